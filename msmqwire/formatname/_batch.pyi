"""Written by `make build` from the annotations in _batch.pyx; do not edit."""

from collections.abc import Sequence
from typing import Any

from msmqwire.columns._batch import Batch

def parse_batch(
    texts: Any,
    *,
    extended: bool = False,
    http_slashes: bool = False,
    spx: bool = False,
    path_names: bool = False,
    columns: Sequence[str] | None = None,
    out: Batch | None = None,
) -> Batch: ...
