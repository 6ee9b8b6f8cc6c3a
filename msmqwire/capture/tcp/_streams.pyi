"""Written by `make build` from the annotations in _streams.pyx; do not edit."""

from typing import Final

from numpy.typing import NDArray
import numpy as np

from msmqwire.capture.schema import StreamLimits
from msmqwire.columns._payloads import Payloads

class StreamTable:
    files: Final[list[str]]
    def __init__(self, kinds: int, limits: StreamLimits, seed: int) -> None: ...
    def counts(self) -> dict[str, int]: ...
    def probes(self) -> tuple[int, int]: ...

def packet_kinds(payloads: Payloads) -> NDArray[np.uint8]: ...
