"""The columns of the format_names table, and the names that its faults use: [MS-MQMQ] 2.1."""

from __future__ import annotations

from typing import Literal

__all__ = ["FIELDS", "KINDS", "PROTOCOLS", "QUEUE_TYPES", "SUFFIXES", "Kind", "Protocol", "QueueType", "Suffix"]

Kind = Literal[
    "public",
    "private",
    "direct",
    "machine",
    "connector",
    "distribution_list",
    "multicast",
    "multiple_element",
    "path_name",
]
Protocol = Literal["tcp", "os", "ipx", "spx", "http", "https"]
QueueType = Literal["public", "private", "system"]
Suffix = Literal["journal", "deadletter", "deadxact", "xactonly"]

# By the numbers of the enumerations in grammar.pxd
KINDS = (
    "",
    "public",
    "private",
    "direct",
    "machine",
    "connector",
    "distribution_list",
    "multicast",
    "multiple_element",
    "path_name",
)
PROTOCOLS = ("", "tcp", "os", "ipx", "spx", "http", "https")
QUEUE_TYPES = ("", "public", "private", "system")
SUFFIXES = ("", "journal", "deadletter", "deadxact", "xactonly")

# In the order of the enumeration Field in grammar.pyx
FIELDS = (
    "FormatName",
    "Protocol",
    "ProtocolAddressSpecification",
    "Host",
    "Port",
    "QueueName",
    "Subqueue",
    "Suffix",
    "QueueGuid",
    "ComputerGuid",
    "PrivateQueueIdentifier",
    "DistributionListGuid",
    "DomainName",
    "Guid",
    "Address",
    "Address.Port",
    "Computer",
)
