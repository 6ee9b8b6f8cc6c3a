"""Written by `make build` from the annotations in _file_reader.pyx; do not edit."""

from collections.abc import Callable
from typing import Final

from msmqwire.capture.files._blocks import Block, Pool
from msmqwire.capture.frames._selection import PayloadSelection
from msmqwire.capture.stats import CaptureStats
from msmqwire.capture.tcp._streams import StreamTable

class FileReader:
    name: Final[str]
    end: Final[int]
    def __init__(
        self,
        name: str,
        read_into: Callable[[memoryview], int],
        selection: PayloadSelection,
        pool: Pool,
        streams: StreamTable,
        stats: CaptureStats,
        *,
        last: bool = True,
        growing: bool = False,
        size: int = ...,
        most_interfaces: int = ...,
        copies: bool = False,
        ready: Callable[[], bool] | None = None,
    ) -> None: ...
    place: Final[int]
    is_empty: Final[bool]
    frames: Final[int]
    def next_block(self) -> Block | None: ...
    def pass_to(self, limit: int) -> bool: ...
