"""Written by `make build` from the annotations in _encode.pyx; do not edit."""

from collections.abc import Iterable

from msmqwire.columns._batch import Batch
from msmqwire.columns._payloads import Payloads
from msmqwire.mqcn._packet import ChangeNotificationMessage

def encode_batch(
    messages: Batch | Iterable[ChangeNotificationMessage],
    *,
    out: Payloads | None = None,
    closing_space: bool = True,
    enforce: bool = True,
) -> Payloads: ...
