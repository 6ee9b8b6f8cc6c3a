"""Names of queues ([MS-MQMQ] 2.1), as text and as columns."""

from __future__ import annotations

from msmqwire.errors import FormatNameError
from msmqwire.formatname._batch import parse_batch
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
from msmqwire.formatname.schema import FORMAT_NAMES, ProtocolName, QueueTypeName, SuffixName

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
    "ProtocolName",
    "PublicName",
    "QueueTypeName",
    "SuffixName",
    "parse",
    "parse_batch",
    "parse_path_name",
]


def __dir__() -> list[str]:
    return __all__
