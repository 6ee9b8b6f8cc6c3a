"""Names of queues ([MS-MQMQ] 2.1), as text and as packets carry them."""

from __future__ import annotations

from msmqwire.errors import FormatNameError
from msmqwire.formatname.batch import parse_batch
from msmqwire.formatname.binary import (
    decode_direct,
    decode_elements,
    decode_private,
    decode_private_id,
    decode_public,
    encode_direct,
    encode_elements,
    encode_private,
    encode_private_id,
    encode_public,
)
from msmqwire.formatname.model import (
    ConnectorName,
    DirectName,
    DistributionListName,
    FormatName,
    MachineName,
    MulticastName,
    MultipleElementName,
    PathName,
    PrivateName,
    PublicName,
    parse,
    parse_path_name,
)
from msmqwire.formatname.queue_format import decode_queue_format, encode_queue_format
from msmqwire.formatname.schema import FORMAT_NAMES

__all__ = [
    "FORMAT_NAMES",
    "ConnectorName",
    "DirectName",
    "DistributionListName",
    "FormatName",
    "FormatNameError",
    "MachineName",
    "MulticastName",
    "MultipleElementName",
    "PathName",
    "PrivateName",
    "PublicName",
    "decode_direct",
    "decode_elements",
    "decode_private",
    "decode_private_id",
    "decode_public",
    "decode_queue_format",
    "encode_direct",
    "encode_elements",
    "encode_private",
    "encode_private_id",
    "encode_public",
    "encode_queue_format",
    "parse",
    "parse_batch",
    "parse_path_name",
]
