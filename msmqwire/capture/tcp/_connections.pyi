"""Written by `make build` from the annotations in _connections.pyx; do not edit."""

from collections.abc import Iterable
from typing import Any

from msmqwire.columns._batch import Batch

def decode_connections(
    payloads: Any,
    *,
    strict: bool = False,
    columns: Iterable[str] | None = None,
    out: Batch | None = None,
) -> Batch:
    """The columns of ``CONNECTIONS`` from the records of connections; ``strict`` changes nothing.

    Raises
    ------
    ValueError
        A payload is not such a record: only ``Capture`` makes them.
    """
