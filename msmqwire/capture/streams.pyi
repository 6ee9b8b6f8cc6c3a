"""From TCP segments to the MSMQ packets of their streams."""

from msmqwire.capture.schema import StreamLimits

class StreamTable:
    """The streams of a capture, over all its files.

    ``kinds`` has a bit for each of ``PACKET_KINDS`` that gives rows; ``seed`` is a random number of 64 bits.
    """

    files: list[str]
    def __init__(self, kinds: int, limits: StreamLimits, seed: int) -> None: ...
    def counts(self) -> dict[str, int]:
        """The account so far, by the names of the fields of ``StreamStats``."""
