"""``capture.write``: frames of captures, as they were captured, in a capture of their own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from msmqwire.capture.files._blocks import Block
from msmqwire.capture.files.sources import OneSource, Source, files_of
from msmqwire.capture.files.writing import FrameWriter
from msmqwire.capture.options import ReadKeywords, ReadOptions
from msmqwire.capture.reader import Capture
from msmqwire.capture.schema import RECORDS, FileLimits

if TYPE_CHECKING:
    import pyarrow as pa
    from _typeshed import SupportsWrite
    from numpy.typing import NDArray

#: The columns of rows that say which frames they were made of.
FRAME_COLUMNS = ("file", "frame", "first_frame", "src", "src_port", "dst", "dst_port")
_LAST = (1 << 63) - 2


class ChosenFrames:
    """The frames of which rows of tables were made, in any number of files.

    Parameters
    ----------
    files : sequence of str
        The names of all files in their order: a packet may begin in the file before its own.

    Attributes
    ----------
    ports : set of int
        The ports of packets in several frames: to open the captures with, so that frames have the addresses of these.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self.ports: set[int] = set()
        self._before = dict(zip(files[1:], files, strict=False))
        self._numbers: dict[str, list[int]] = {}
        # First and last frame of packets in several, with the addresses of sender and receiver as columns have them
        self._spans: dict[str, list[tuple[int, int, bytes, bytes]]] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """Add the frames of rows, before the first ``mask``.

        Raises
        ------
        ValueError
            The rows lack a column of ``FRAME_COLUMNS``.
        """
        missing = [name for name in FRAME_COLUMNS if name not in rows.schema.names]
        if missing:
            raise ValueError(f"rows lack {', '.join(missing)}; their frames are known from {', '.join(FRAME_COLUMNS)}")
        for file, frame, first, *ends in zip(*(rows.column(name).to_pylist() for name in FRAME_COLUMNS), strict=True):
            if frame is None:
                continue
            self._numbers.setdefault(file, []).append(frame)
            if first is None or first == frame:
                continue
            src, src_port, dst, dst_port = ends
            self.ports.update((src_port, dst_port))
            addresses = (_in_column(src), _in_column(dst))
            if first < frame:
                self._spans.setdefault(file, []).append((first, frame, *addresses))
            elif file in self._before:
                self._spans.setdefault(self._before[file], []).append((first, _LAST, *addresses))
                self._spans.setdefault(file, []).append((1, frame, *addresses))

    def mask(self, block: Block) -> NDArray[np.bool_]:
        """Which frames of a block were chosen."""
        columns: Any = block.capture
        frames = columns["frame"].astype(np.int64)
        numbers, first, last, spans = self._of_file(columns.names("file")[0])
        found = np.isin(frames, numbers)
        for place in np.flatnonzero((first <= frames[-1]) & (last >= frames[0])):
            # The numbers of frames rise
            part = slice(*np.searchsorted(frames, (first[place], last[place] + 1)))
            _, _, src, dst = spans[place]
            found[part] |= _are(columns["src"][part], src) & _are(columns["dst"][part], dst)
        return found

    @cache  # noqa: B019 # a file has many blocks, and the object ends with the last of them
    def _of_file(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], list[Any]]:
        """The numbers of frames in a file; the first frames, the last ones, and all of its spans."""
        spans = self._spans.get(name, [])
        ends = [np.array([span[place] for span in spans], np.int64) for place in (0, 1)]
        return np.array(self._numbers.get(name, ()), np.int64), ends[0], ends[1], spans


@cache
def _in_column(address: str) -> bytes:
    """An address as columns have it; no address for one of IPX, whose packets are in one frame each."""
    try:
        found = ip_address(address)
    except ValueError:
        return bytes(18)
    return found.packed.ljust(16, b"\0") + found.version.to_bytes(2, "little")


def _are(column: NDArray[np.void], address: bytes) -> NDArray[np.bool_]:
    equal: NDArray[np.bool_] = column.view(f"V{len(address)}") == np.void(address)
    return equal


def copy_frames(
    file: SupportsWrite[bytes], blocks: Capture, mask: Callable[[Block], NDArray[np.bool_]],
    progress: Callable[[int], object] = lambda size: None,
) -> int:  # fmt: skip
    """Write frames of a capture that was opened with the table ``RECORDS``; the number of frames.

    Parameters
    ----------
    mask : callable
        Which frames of a block to write.
    progress : callable, optional
        It is called with the number of bytes read.
    """
    writer, count = FrameWriter(file), 0
    for block in blocks:
        columns: Any = block.capture
        times, timed = columns["time"].astype(np.int64), columns.is_valid("time")
        links, lengths = columns["link"], columns["length"]
        for row in np.flatnonzero(mask(block)).tolist():
            time = int(times[row]) if timed[row] else None
            writer.frame(time, int(links[row]), bytes(cast("memoryview", block.payloads[row])), int(lengths[row]))
            count += 1
        progress(blocks.stats.bytes_read)
    return count


def open_records(source: Source, **keywords: Unpack[ReadKeywords]) -> Capture:
    """Open captures to read every frame as it was captured."""
    keywords["copies"] = True
    return Capture(source, ReadOptions(**keywords), table=RECORDS)


def write(
    path: str | os.PathLike[str] | SupportsWrite[bytes],
    source: Source,
    *,
    frames: Iterable[int] | None = None,
    rows: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    file_limits: FileLimits | None = None,
) -> int:
    """Write frames of captures, as they were captured, as a capture of their own, in the format pcapng.

    Parameters
    ----------
    path : str, path or binary file object
        The capture to write. A file has its name when it is complete.
    source : path, folder, glob, URI, binary file object, or a list of these
        As for ``open``.
    frames : iterable of int, optional
        The numbers of frames in a single file, from 1, as Wireshark counts them.
    rows : Arrow table, record batch or stream; optional
        Rows of these captures with the columns ``capture.FRAME_COLUMNS``; needs pyarrow. Of a packet in several frames
        the frames from its sender to its receiver are written, from its first to its last. Without ``frames`` and
        ``rows`` all frames are written.
    storage_options, file_limits : optional
        As in ``ReadOptions``.

    Returns
    -------
    int
        The number of frames that were written. Malformed records, and records of other
        things than packets of a network, are not.

    Raises
    ------
    CaptureError, OSError, ValueError
        As for ``open``; or ``path`` is one of the files to read, ``frames`` are given with ``rows`` or for several
        files, or ``rows`` lack a column.

    Examples
    --------
    >>> import io
    >>> from msmqwire import capture
    >>> day = "examples/message-session.pcap"
    >>> capture.write(io.BytesIO(), day, frames=[1, 2, 3])
    3
    >>> rows = capture.read_table(day, "messages", columns=capture.FRAME_COLUMNS)
    >>> capture.write(io.BytesIO(), day, rows=rows)
    6
    """
    several = [cast("OneSource", source)] if _is_one(source) else list(cast("Iterable[OneSource]", source))
    how: ReadKeywords = {"storage_options": storage_options or {}, "file_limits": file_limits or FileLimits()}
    names = [each.name for each in files_of(several, how["storage_options"])]
    if frames is not None and rows is not None:
        raise ValueError("frames and rows both choose frames: give one of them")
    if frames is not None and len(names) != 1:
        raise ValueError(f"frames are numbers in one file, and the source has {len(names)} files: give rows")
    mask: Callable[[Block], NDArray[np.bool_]]
    if rows is not None:
        chosen = ChosenFrames(names)
        for batch in _batches(rows):
            chosen.add(batch)
        mask, how["ports"] = chosen.mask, chosen.ports
    elif frames is not None:
        mask = partial(_are_numbers, np.fromiter(frames, np.uint64))
    else:
        mask = _all
    with open_records(several, **how) as blocks, _opened(path, names) as file:
        return copy_frames(file, blocks, mask)


def _all(block: Block) -> NDArray[np.bool_]:
    return np.ones(len(block), np.bool_)


def _are_numbers(numbers: NDArray[np.uint64], block: Block) -> NDArray[np.bool_]:
    columns: Any = block.capture
    return np.isin(columns["frame"], numbers)


def _is_one(source: object) -> bool:
    return isinstance(source, str | os.PathLike) or hasattr(source, "read") or hasattr(source, "readinto")


def _batches(rows: Any) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    if hasattr(rows, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(rows)
    else:
        yield from pa.table(rows).to_batches()


@contextlib.contextmanager
def _opened(path: Any, inputs: Sequence[str]) -> Iterator[SupportsWrite[bytes]]:
    """The file to write; it has its name when the block succeeds."""
    if hasattr(path, "write"):
        yield path
        return
    name = os.fspath(path)
    for each in inputs:
        if os.path.exists(name) and os.path.exists(each) and os.path.samefile(name, each):
            raise ValueError(f"{name} is one of the files to read: name another file to write")
    temporary = f"{name}.part"
    try:
        with open(temporary, "xb") as file:
            yield file
        os.replace(temporary, name)
    except FileExistsError:
        raise
    except BaseException:
        os.unlink(temporary)
        raise
