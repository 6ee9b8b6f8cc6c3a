"""The numpy arrays that a batch shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msmqwire import Batch
from msmqwire.mqcn import NotificationBatch


def arrays(batch: Batch) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every array, by the path of what it is in: ``servers[].name.offset``."""
    for name in batch.columns:
        yield from _arrays_of(name, batch[name])
    if isinstance(batch, NotificationBatch):
        yield "messages.offsets", batch.messages


def _arrays_of(name: str, column: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    if isinstance(column, np.ndarray):
        yield name, column
    elif isinstance(column, dict):
        for member, inner in column.items():
            yield from _arrays_of(f"{name}.{member}", inner)
    elif hasattr(column, "values"):
        yield f"{name}.offsets", column.offsets
        yield from _arrays_of(f"{name}[]", column.values)
    else:
        yield f"{name}.offset", column.offset
        yield f"{name}.length", column.length
