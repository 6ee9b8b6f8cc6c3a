from collections.abc import Iterable

from msmqwire.columns.batch import Batch
from msmqwire.columns.payloads import Payloads
from msmqwire.mqcn.packet import ChangeNotificationMessage

def encode_batch(
    messages: Batch | Iterable[ChangeNotificationMessage],
    *,
    out: Payloads | None = None,
    closing_space: bool = True,
    enforce: bool = True,
) -> Payloads: ...
