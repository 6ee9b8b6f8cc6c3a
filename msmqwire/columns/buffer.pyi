"""Memory that a Batch owns and that numpy and Arrow look into."""

class Buffer:
    """Aligned memory that never moves; read and written through the buffer protocol.

    A Buffer is never resized: a Batch that needs more room takes a new one, so a view can never dangle.
    """

    size: int
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def allocated_bytes() -> int:
    """Bytes that all live Buffers hold now: back to where it was when every Batch and every view is gone."""
