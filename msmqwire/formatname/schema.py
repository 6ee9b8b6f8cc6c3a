"""The columns of the format_names table, and the names that its faults use: [MS-MQMQ] 2.1."""

from __future__ import annotations

from typing import Literal

from msmqwire.columns.schema import ASCII, GUID, UINT16, UINT32, Column, Enumeration, ListOf, Table

__all__ = [
    "EXPECTED",
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

# By the numbers of the enumerations in kernel.pxd
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

# In the order of the enumeration Field in kernel.pyx
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

# What a fault expected, in the order of the enumeration Expected in kernel.pyx
EXPECTED = (
    "DIRECT=, PUBLIC=, PRIVATE=, DL=, MACHINE=, CONNECTOR= or MULTICAST=",
    "TCP:, OS:, IPX:, HTTP: or HTTPS:",
    "a hexadecimal digit",
    "'-'",
    "'\\'",
    "the end of the name",
    "';JOURNAL' or the end of the name",
    "';JOURNAL', ';DEADLETTER', ';DEADXACT' or the end of the name",
    "';XACTONLY' or the end of the name",
    "'@' and a domain, or the end of the name",
    "a character of a computer name (U+0021 to U+007E), 1 to 256 of them",
    "a character of a queue name, 1 to 124 of them",
    "a character of a subqueue name, 1 to 32 of them",
    "a character of a domain name (U+0021 to U+007E), 1 to 255 of them",
    "an IPv4 or IPv6 address",
    "a number from 0 to 255 without leading zeros",
    "a number from 224 to 239",
    "a number from 0 to 65535 without leading zeros",
    "'.'",
    "':'",
    "'//'",
    "a character of a host name, 1 to 256 of them",
    "'/MSMQ'",
    "a queue that can be written to: an element is no journal and no dead-letter queue",
    "an element other than MACHINE=",
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
