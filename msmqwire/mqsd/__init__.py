"""MS-MQSD: the packets by which clients find directory servers ([MS-MQSD] 2.2), one at a time or many."""

from __future__ import annotations

import numpy as np

from msmqwire.mqsd._batch import decode_batch
from msmqwire.mqsd._encode import encode_batch
from msmqwire.mqsd._packet import TopologyClientRequest, TopologyPacket, TopologyServerReply, decode, encode
from msmqwire.mqsd.schema import REPLY_COLUMNS, REQUEST_COLUMNS, TOPOLOGY, Violation
from msmqwire.mqsd.values import DirectoryServiceServer, TransportName

__all__ = [
    "HEADER_DTYPE",
    "REPLY_COLUMNS",
    "REPLY_DTYPE",
    "REQUEST_COLUMNS",
    "REQUEST_DTYPE",
    "TOPOLOGY",
    "DirectoryServiceServer",
    "TopologyClientRequest",
    "TopologyPacket",
    "TopologyServerReply",
    "TransportName",
    "Violation",
    "decode",
    "decode_batch",
    "encode",
    "encode_batch",
]

TOPOLOGY.codec.update(decode=decode, decode_batch=decode_batch)


def __dir__() -> list[str]:
    return __all__


_HEADER, _REQUEST, _REPLY, *_ = TOPOLOGY.headers

HEADER_DTYPE = _HEADER.dtype
"""TopologyPacketHeader, 4 bytes: [MS-MQSD] 2.2.1."""

REQUEST_DTYPE = np.dtype([("header", HEADER_DTYPE), *_REQUEST.dtype.descr])
"""TopologyClientRequest in its IP form, 52 bytes; ``numpy.frombuffer(data, REQUEST_DTYPE)`` copies nothing."""

REPLY_DTYPE = np.dtype([("header", HEADER_DTYPE), *_REPLY.dtype.descr])
"""The fixed part of a TopologyServerReply, 32 bytes: [MS-MQSD] 2.2.3."""
