"""Written by `make build` from the annotations in _captured.pyx; do not edit."""

from collections.abc import Iterable

from msmqwire.capture.files._blocks import Pool
from msmqwire.capture.files._file_reader import FileReader
from msmqwire.capture.files.sources import FrameRun
from msmqwire.capture.frames._selection import PayloadSelection
from msmqwire.capture.stats import CaptureStats
from msmqwire.capture.tcp._streams import StreamTable

class CapturedFramesReader(FileReader):
    """The blocks of frames out of any number of files.

    ``runs`` are frames of one file each: its name, their numbers, offsets, times, whether they have one, link types,
    and their bytes.
    """

    def __init__(
        self,
        runs: Iterable[FrameRun],
        selection: PayloadSelection,
        pool: Pool,
        streams: StreamTable,
        stats: CaptureStats,
        *,
        last: bool = True,
    ) -> None: ...
