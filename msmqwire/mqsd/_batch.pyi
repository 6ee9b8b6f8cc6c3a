"""Written by `make build` from the annotations in _batch.pyx; do not edit."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray
import numpy as np

from msmqwire.columns._batch import Batch
from msmqwire.mqsd._packet import TransportName

def decode_batch(
    payloads: Any,
    *,
    offsets: ArrayLike | None = None,
    strict: bool = False,
    transport: TransportName | NDArray[np.uint8] = "unknown",
    columns: Sequence[str] | None = None,
    out: Batch | None = None,
) -> Batch: ...
