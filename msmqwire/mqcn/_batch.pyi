from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
