from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msmqwire.columns._batch import Batch
from msmqwire.mqsd._packet import Transport

def decode_batch(
    payloads: Any,
    *,
    offsets: ArrayLike | None = None,
    strict: bool = False,
    transport: Transport | NDArray[np.uint8] = "unknown",
    columns: Sequence[str] | None = None,
    out: Batch | None = None,
) -> Batch: ...
