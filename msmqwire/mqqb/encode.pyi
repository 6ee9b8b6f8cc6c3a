from collections.abc import Iterable

from msmqwire.columns.batch import Batch
from msmqwire.columns.payloads import Payloads
from msmqwire.mqqb.packet import MessagePacket

DERIVED: frozenset[str]

def encode_batch(packets: Batch | Iterable[MessagePacket], *, out: Payloads | None = None) -> Payloads: ...
