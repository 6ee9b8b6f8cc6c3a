"""Written by `make build` from the annotations in _buffer.pyx; do not edit."""

from typing import Final

class Buffer:
    size: Final[int]
    def __len__(self) -> int: ...

def allocated_bytes() -> int: ...
