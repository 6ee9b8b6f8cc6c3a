"""Written by `make build` from the annotations in _buffer.pyx; do not edit."""

from typing import Final

class Buffer:
    """Aligned memory that never moves; read and written through the buffer protocol.

    A Buffer is never resized: a Batch that needs more room takes a new one, so a view can never dangle.
    """

    size: Final[int]
    def __len__(self) -> int: ...

def allocated_bytes() -> int:
    """Bytes that all live Buffers hold now: back to where it was when every Batch and every view is gone."""
