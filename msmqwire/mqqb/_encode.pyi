"""Written by `make build` from the annotations in _encode.pyx; do not edit."""

from collections.abc import Iterable

from msmqwire.columns._batch import Batch
from msmqwire.columns._payloads import Payloads
from msmqwire.mqqb._packet import MessagePacket

DERIVED: frozenset[str]

def encode_batch(packets: Batch | Iterable[MessagePacket], *, out: Payloads | None = None) -> Payloads: ...
