"""The columns of the format_names table, and the names that its faults use: [MS-MQMQ] 2.1."""

from __future__ import annotations

from typing import Literal

from msmqwire.columns.schema import ASCII, GUID, UINT16, UINT32, Column, Enumeration, ListOf, Table

__all__ = [
    "FIELDS",
    "FORMAT_NAMES",
    "KINDS",
    "PROTOCOLS",
    "QUEUE_TYPES",
    "SUFFIXES",
    "Kind",
    "Protocol",
    "QueueType",
    "Suffix",
]

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

# The bits of a row's presence above DECODED, as batch.pyx has them
(
    HAS_GUID,
    HAS_PRIVATE_ID,
    HAS_PROTOCOL,
    HAS_ADDRESS,
    HAS_PORT,
    HAS_QUEUE_TYPE,
    HAS_QUEUE,
    HAS_SUBQUEUE,
    HAS_SUFFIX,
    HAS_DOMAIN,
    HAS_ELEMENTS,
) = (2 << place for place in range(11))

FORMAT_NAMES = Table(
    name="format_names",
    section="[MS-MQMQ] 2.1",
    columns=(
        Column("kind", Enumeration(KINDS), "kind of name"),
        Column("guid", GUID, "of the queue, its computer, the distribution list, the machine or connector", HAS_GUID),
        Column("private_id", UINT32, "private name: the number of the queue on its computer", HAS_PRIVATE_ID),
        Column("protocol", Enumeration(PROTOCOLS), "direct name: Protocol", HAS_PROTOCOL),
        Column(
            "address",
            ASCII,
            "direct name: ProtocolAddressSpecification; path name: Computer; multicast name: the IPv4 address",
            HAS_ADDRESS,
        ),
        Column("port", UINT16, "multicast name: Port", HAS_PORT),
        Column(
            "queue_type",
            Enumeration(QUEUE_TYPES),
            "direct or path name: which queues of the computer it is one of",
            HAS_QUEUE_TYPE,
        ),
        Column("queue", ASCII, "direct or path name: QueueName without Subqueue", HAS_QUEUE),
        Column("subqueue", ASCII, "direct or path name: Subqueue", HAS_SUBQUEUE),
        Column("suffix", Enumeration(SUFFIXES), "journal or dead-letter queue of what is named", HAS_SUFFIX),
        Column("domain", ASCII, "distribution list name: DomainName", HAS_DOMAIN),
        Column("elements", ListOf(ASCII), "multiple-element name: its names", HAS_ELEMENTS),
    ),
    fields=FIELDS,
)
