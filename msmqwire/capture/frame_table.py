"""The frames of captures as record batches, which ``CapturedFrames`` reads.

Both are private to ``spark.streams.read_streams``, the one way to read streams that continue in other captures on
several machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from msmqwire.capture.files.sources import Source
from msmqwire.capture.options import ReadKeywords, ReadOptions
from msmqwire.capture.reader import ArrowReader, Capture
from msmqwire.capture.schema import FRAMES

if TYPE_CHECKING:
    import pyarrow as pa


class FrameReader(ArrowReader):
    """The frames that payloads are made of, as they were captured: a record batch for each block.

    These are datagrams, IPX packets, TCP segments that do more than acknowledge, and all fragments of TCP and UDP,
    since only the first fragment has ports. The columns are those of ``FRAMES`` and ``data``, the captured bytes.

    Attributes
    ----------
    schema : pyarrow.Schema
    stats : CaptureStats
        The counts of the frames read so far. ``payloads`` counts the rows; no stream is reassembled.
    """

    def __init__(self, source: Source, **keywords: Unpack[ReadKeywords]) -> None:
        import pyarrow as pa

        self.schema = FRAMES.arrow_schema(dictionaries=False).append(pa.field("data", pa.binary()))
        self._inner = self._capture = Capture(source, ReadOptions(**keywords), table=FRAMES)
        self.stats = self._capture.stats

    def __next__(self) -> pa.RecordBatch:
        import pyarrow as pa

        block = next(self._capture)
        data = pa.array(block.payloads).cast(pa.binary())  # type: ignore[call-overload]  # it has __arrow_c_array__
        columns = block.capture.to_arrow(dictionaries=False).columns
        return pa.RecordBatch.from_arrays([*columns, data], schema=self.schema)
