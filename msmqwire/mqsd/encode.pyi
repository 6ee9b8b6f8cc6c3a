from collections.abc import Iterable

from msmqwire.columns.batch import Batch
from msmqwire.columns.payloads import Payloads
from msmqwire.mqsd.packet import TopologyPacket

def encode_batch(packets: Batch | Iterable[TopologyPacket], *, out: Payloads | None = None) -> Payloads: ...
