"""One big file on several cores: ranges of it are read side by side, and joined in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from msmqwire.capture.blocks import Block, Pool
from msmqwire.capture.joining import JoiningReader, RangeReader
from msmqwire.capture.schema import StreamLimits
from msmqwire.capture.selection import PayloadSelection
from msmqwire.capture.stats import CaptureStats
from msmqwire.capture.streams import StreamTable

__all__ = ["RANGE_SIZE", "SplitReader", "cuts_of"]

RANGE_SIZE = 8 << 20  # bytes: what is read of them waits in memory until it is joined
AHEAD = 2  # ranges for each thread that are read or wait to be joined

END_OF_FILE = (1 << 64) - 1


class FilePart:
    """A place in an open file; several of them do not disturb each other."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._offset = 0

    def seek(self, offset: int) -> None:
        """Go on elsewhere."""
        self._offset = offset

    def read_into(self, view: memoryview) -> int:
        """Fill a writable buffer with what there is; the number of bytes, 0 at the end."""
        count = os.preadv(self._descriptor, [view], self._offset)
        self._offset += count
        return count


class SplitReader:
    """The blocks of one file, as ``FileReader`` gives them, out of ranges that begin at the offsets ``cuts``."""

    def __init__(
        self,
        name: str,
        descriptor: int,
        ports: Mapping[str, Iterable[int]],
        pool: Pool,
        streams: StreamTable,
        stats: CaptureStats,
        *,
        cuts: Sequence[int],
        threads: int,
        kinds: int,
        limits: StreamLimits,
        selection: PayloadSelection | None,
        last: bool = True,
    ) -> None:
        self._before = stats.bytes_read
        self._stats = stats
        file = FilePart(descriptor)
        self._reader = JoiningReader(
            name, file.read_into, ports, pool, streams, stats, file.seek, selection=selection, last=last
        )
        self._selection = selection
        self.name = name
        self._descriptor = descriptor
        self._ports = ports
        self._streams = streams
        self._kinds = kinds
        self._limits = limits
        self._pools = [
            Pool(pool.block_size, pool.columns, kept=AHEAD * (RANGE_SIZE // pool.block_size + 2))
            for _ in range(threads)
        ]
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="msmqwire-range")
        self._futures: deque[Future[RangeReader]] = deque()
        starts: list[int | None] = [None, *cuts]
        self._ranges = deque(zip(starts, [*cuts, END_OF_FILE], strict=True))
        self._ahead = AHEAD * threads
        self._blocks = self._joined()

    @property
    def end(self) -> int:
        """How many bytes of it were read."""
        return self._reader.place

    @property
    def place(self) -> int:
        """Where the record begins that comes next, or the file ended."""
        return self._reader.place

    @property
    def frames(self) -> int:
        """How many frames of it were read."""
        return self._reader.frames

    def next_block(self) -> Block | None:
        """The next block with rows in it, None at the end of the file."""
        block = next(self._blocks, None)
        self._stats.bytes_read = self._before + self._reader.place
        return block

    def close(self) -> None:
        """Stop reading."""
        self._threads.shutdown(cancel_futures=True)
        self._futures.clear()

    def _read(self, start: int | None, stop: int) -> RangeReader:
        """A range, in a thread."""
        pool = self._pools.pop()
        try:
            file = FilePart(self._descriptor)
            streams = StreamTable(self._kinds, self._limits, int.from_bytes(os.urandom(8), "little"))
            streams.files.extend(self._streams.files[:-1])
            found = RangeReader(
                self.name,
                file.read_into,
                self._ports,
                pool,
                streams,
                file.seek,
                start,
                stop,
                selection=self._selection,
            )
            found.read_all()
            return found
        finally:
            self._pools.append(pool)

    def _submit(self) -> None:
        while len(self._futures) < self._ahead and self._ranges:
            self._futures.append(self._threads.submit(self._read, *self._ranges.popleft()))

    def _joined(self) -> Iterator[Block]:
        self._submit()
        while self._futures:
            found = self._futures.popleft().result()
            self._submit()
            yield from self._reader.read_to(found.begin)
            blocks = self._reader.join(found)
            yield from self._reader.read_to(found.stop) if blocks is None else blocks
            del found, blocks
        yield from self._reader.read_to(END_OF_FILE)
        self.close()


def cuts_of(size: int) -> range:
    """Where ranges of a file of so many bytes begin, but for the first."""
    return range(RANGE_SIZE, size - RANGE_SIZE // 2, RANGE_SIZE)
