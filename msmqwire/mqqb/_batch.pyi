"""Written by `make build` from the annotations in _batch.pyx; do not edit."""

from collections.abc import Sequence
from typing import NamedTuple

from numpy.typing import ArrayLike, NDArray
import numpy as np

from msmqwire.columns._batch import Batch
from msmqwire.columns._payloads import Payloads
from msmqwire.mqqb._packet import Transport

class Notifications(NamedTuple):
    payloads: Payloads
    rows: NDArray[np.uint32]
    encrypted: NDArray[np.uint32]

class MessageBatch(Batch):
    def notifications(self) -> Notifications: ...

def decode_batch(
    payloads: object,
    *,
    offsets: ArrayLike | None = None,
    strict: bool = False,
    columns: Sequence[str] | None = None,
    out: Batch | None = None,
) -> MessageBatch: ...
def decode_session_batch(
    payloads: object,
    *,
    offsets: ArrayLike | None = None,
    strict: bool = False,
    transport: Transport | NDArray[np.uint8] = "unknown",
    columns: Sequence[str] | None = None,
    out: Batch | None = None,
) -> Batch: ...
