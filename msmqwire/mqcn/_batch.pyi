"""Written by `make build` from the annotations in _batch.pyx; do not edit."""

from collections.abc import Sequence
from typing import Any, Final

from numpy.typing import ArrayLike, NDArray
import numpy as np

from msmqwire.columns._batch import Batch
from msmqwire.mqcn.values import PropertyColumn

class NotificationBatch(Batch):
    messages: Final[NDArray[np.int32]]
    def property(self, propid: int) -> PropertyColumn: ...

def decode_batch(
    payloads: Any,
    *,
    offsets: ArrayLike | None = None,
    strict: bool = False,
    columns: Sequence[str] | None = None,
    out: Batch | None = None,
) -> NotificationBatch: ...
