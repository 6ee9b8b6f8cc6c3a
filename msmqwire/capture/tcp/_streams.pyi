"""From TCP segments to the MSMQ packets of their streams."""

import numpy as np
from numpy.typing import NDArray

from msmqwire.capture.schema import StreamLimits
from msmqwire.columns import Payloads

class StreamTable:
    """The streams of a capture, over all its files.

    ``kinds`` has a bit for each of ``PACKET_KINDS`` that gives rows; ``seed`` is a random number of 64 bits.
    """

    files: list[str]
    def __init__(self, kinds: int, limits: StreamLimits, seed: int) -> None: ...
    def counts(self) -> dict[str, int]:
        """The account so far, by the names of the fields of ``StreamStats``."""
    def probes(self) -> tuple[int, int]: ...

def packet_kinds(payloads: Payloads) -> NDArray[np.uint8]:
    """The bit of its kind, in the order of ``PACKET_KINDS``, for each packet of a stream; 0 if it has no BaseHeader."""
