"""Names of queues ([MS-MQMQ] 2.1), as text and as packets carry them."""

from __future__ import annotations

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

__all__ = [
    "ConnectorName",
    "DirectName",
    "DistributionListName",
    "FormatName",
    "MachineName",
    "MulticastName",
    "MultipleElementName",
    "PathName",
    "PrivateName",
    "PublicName",
    "parse",
    "parse_path_name",
]
