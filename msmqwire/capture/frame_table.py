"""Frames as they were captured, as a table: to be kept, or read elsewhere together with those of other files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msmqwire.capture.checkpoint import Checkpoint
from msmqwire.capture.reader import Capture, ClosingIterator, Ports
from msmqwire.capture.schema import DEFAULT_PORTS, FRAMES
from msmqwire.capture.sources import Source
from msmqwire.capture.stats import CaptureStats

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FrameReader", "read_frames"]


class FrameReader(ClosingIterator["pa.RecordBatch"]):
    """The frames of captures, a record batch for each block; a context manager that closes its files.

    Attributes
    ----------
    schema : pyarrow.Schema
    stats : CaptureStats
        What became of the frames read so far; ``payloads`` are those that were given, and no stream was read.
    """

    def __init__(self, source: Source, ports: Ports, resume: Checkpoint | None, stop: Checkpoint | None) -> None:
        import pyarrow as pa

        self.schema = FRAMES.arrow_schema().append(pa.field("data", pa.binary()))
        self._capture = Capture(source, ports=ports, table=FRAMES, resume=resume, stop=stop)

    @property
    def stats(self) -> CaptureStats:
        """What became of the frames read so far."""
        return self._capture.stats

    def __next__(self) -> pa.RecordBatch:
        import pyarrow as pa

        block = next(self._capture)
        data = pa.array(block.payloads).cast(pa.binary())  # type: ignore[call-overload]  # it has __arrow_c_array__
        return pa.RecordBatch.from_arrays([*block.capture.to_arrow().columns, data], schema=self.schema)

    def close(self) -> None:
        """Close the file that is being read; record batches stay good, and there are no more of them."""
        self._capture.close()


def read_frames(
    source: Source,
    *,
    ports: Ports = DEFAULT_PORTS,
    resume: Checkpoint | None = None,
    stop: Checkpoint | None = None,
) -> FrameReader:
    """Read the frames of captures that payloads are made of, as they were captured; needs pyarrow.

    These are datagrams, IPX packets, segments of TCP that do more than acknowledge others, and all fragments of TCP and
    UDP, since only the first one has ports. ``CapturedFrames`` gives them back to what reads captures: same rows.

    Parameters
    ----------
    source : path, glob, binary file object, or a list of these
        As for ``capture.open``.
    ports : iterable of int, or a mapping of transports to such
        As for ``capture.open``.
    resume, stop : Checkpoint, optional
        As for ``capture.open``; checkpoints made for any ports will do, since no stream is put together.

    Returns
    -------
    FrameReader
        An iterator of record batches with the columns ``file``, ``frame``, ``time``, ``src``, ``dst``, ``link`` (the
        link type), ``offset`` (of the record in its file) and ``data``: the frame, as far as it was captured.

    Raises
    ------
    CaptureError
        A file is no capture, or a glob matches nothing.

    Examples
    --------
    >>> from msmqwire.capture import CapturedFrames, read_frames, read_table
    >>> frames = list(read_frames("examples/message-session.pcap"))
    >>> sum(len(batch) for batch in frames), sum(len(batch) for batch in read_table(CapturedFrames(frames), "messages"))
    (17, 5)
    """
    return FrameReader(source, ports, resume, stop)
