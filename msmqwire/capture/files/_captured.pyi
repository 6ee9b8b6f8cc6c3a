"""Frames that were taken out of captures, read as the captures would be."""

from collections.abc import Iterable

from msmqwire.capture.files._blocks import Pool
from msmqwire.capture.files._file_reader import FileReader
from msmqwire.capture.files.sources import FrameRun
from msmqwire.capture.frames._selection import PayloadSelection
from msmqwire.capture.stats import CaptureStats
from msmqwire.capture.tcp._streams import StreamTable

class CapturedFramesReader(FileReader):
    """The blocks of frames out of any number of files, named in each of the ``runs``."""

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
