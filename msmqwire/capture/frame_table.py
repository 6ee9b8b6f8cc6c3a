"""The frames of captures as a table, to be stored, or read elsewhere together with the frames of other files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from msmqwire.capture.files.sources import Source
from msmqwire.capture.options import ReadKeywords, ReadOptions
from msmqwire.capture.reader import ArrowReader, Capture
from msmqwire.capture.schema import FRAMES

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FrameReader", "read_frames"]


class FrameReader(ArrowReader):
    """The frames of captures, a record batch for each block; a context manager that closes its files.

    Attributes
    ----------
    schema : pyarrow.Schema
    stats : CaptureStats
        The counts of the frames read so far. ``payloads`` counts the rows; no stream is reassembled.
    """

    def __init__(self, source: Source, options: ReadOptions) -> None:
        import pyarrow as pa

        self.schema = FRAMES.arrow_schema(dictionaries=False).append(pa.field("data", pa.binary()))
        self._capture = Capture(source, options, table=FRAMES)
        self.stats = self._capture.stats

    def __next__(self) -> pa.RecordBatch:
        import pyarrow as pa

        block = next(self._capture)
        data = pa.array(block.payloads).cast(pa.binary())  # type: ignore[call-overload]  # it has __arrow_c_array__
        columns = block.capture.to_arrow(dictionaries=False).columns
        return pa.RecordBatch.from_arrays([*columns, data], schema=self.schema)

    def _has_ended(self) -> bool:
        return self._capture._has_ended()

    def close(self) -> None:
        """Close the file that is being read. Record batches stay valid; there are no more of them."""
        self._capture.close()


def read_frames(source: Source, options: ReadOptions | None = None, **keywords: Unpack[ReadKeywords]) -> FrameReader:
    """Read the frames that payloads are made of, as they were captured; needs pyarrow.

    These are datagrams, IPX packets, TCP segments that do more than acknowledge, and all fragments of TCP and UDP,
    since only the first fragment has ports. Reading ``CapturedFrames`` of them gives the rows of the captures.

    Parameters
    ----------
    source : path, folder, glob, URI, binary file object, or a list of these
        As for ``capture.open``.
    options : ReadOptions, optional
        The fields ``ports``, ``block_size``, ``resume``, ``stop`` and ``final``; others have no effect on frames. A
        checkpoint may have been made for any ports, since no stream is reassembled.
    **keywords
        These fields; they replace the fields of ``options``.

    Returns
    -------
    FrameReader
        An iterator of record batches with the columns ``file``, ``frame``, ``time``, ``src``, ``dst``, ``link`` (the
        link type), ``offset`` (of the record in its file) and ``data``: the captured bytes of the frame.

    Raises
    ------
    CaptureError
        A file is not a capture.

    Examples
    --------
    >>> from msmqwire.capture import CapturedFrames, read_frames, read_table
    >>> frames = list(read_frames("examples/message-session.pcap"))
    >>> sum(len(batch) for batch in frames), sum(len(batch) for batch in read_table(CapturedFrames(frames), "messages"))
    (17, 5)
    """
    unused = ("packets", "addresses", "since", "until", "columns", "guid", "dictionaries", "strict", "limits", "jobs")
    return FrameReader(source, ReadOptions.of(ReadOptions.of(options, keywords, unused), {"columns": None}))
