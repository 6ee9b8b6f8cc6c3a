"""Written by `make build` from the annotations in _streams.pyx; do not edit."""

from typing import Final

from numpy.typing import NDArray
import numpy as np

from msmqwire.capture.schema import StreamLimits
from msmqwire.columns._payloads import Payloads

class StreamTable:
    """The streams of a capture, over all its files."""

    files: Final[list[str]]
    def __init__(self, kinds: int, limits: StreamLimits, seed: int) -> None: ...
    def counts(self) -> dict[str, int]:
        """The counts so far, by the names of the fields of StreamStats."""

    def probes(self) -> tuple[int, int]:
        """The streams that are open, and the slots of the hash table that are looked at to find each of them once."""

def packet_kinds(payloads: Payloads) -> NDArray[np.uint8]:
    """The bits of PACKET_KINDS for each of the packets of streams; 0 for what is shorter than a BaseHeader.

    Of a packet that lost the rest of its BaseHeader, bits that are missing count as 0. Bytes in which no packet begins
    are among the messages.
    """
