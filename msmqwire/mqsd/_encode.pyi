"""Written by `make build` from the annotations in _encode.pyx; do not edit."""

from collections.abc import Iterable

from msmqwire.columns._batch import Batch
from msmqwire.columns._payloads import Payloads
from msmqwire.mqsd._packet import TopologyPacket

def encode_batch(packets: Batch | Iterable[TopologyPacket], *, out: Payloads | None = None) -> Payloads: ...
