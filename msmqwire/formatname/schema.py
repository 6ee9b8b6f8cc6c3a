"""The columns of the format_names table, and the names that its faults use: [MS-MQMQ] 2.1."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Literal

from msmqwire.columns.schema import ASCII, GUID, UINT16, UINT32, Column, Enumeration, FaultRule, ListOf, Table
from msmqwire.formatname._kernel import Expected, Field, NameKind, NameProtocol, NameQueueType, NameSuffix, Presence

ProtocolName = Literal["tcp", "os", "ipx", "spx", "http", "https"]
QueueTypeName = Literal["public", "private", "system"]
SuffixName = Literal["journal", "deadletter", "deadxact", "xactonly"]


def _texts(members: Iterable[IntEnum]) -> Enumeration:
    """The text forms of an enumeration of the kernel, whose member 0 stands for none."""
    return Enumeration.of({int(each): each.name.partition("_")[2].lower() for each in members if each})


KINDS = _texts(NameKind)
PROTOCOLS = _texts(NameProtocol)
QUEUE_TYPES = _texts(NameQueueType)
SUFFIXES = _texts(NameSuffix)
FIELDS = tuple(field.name.replace("_", ".") for field in Field if field.name)

_TEXTS = {
    "KEYWORD": "DIRECT=, PUBLIC=, PRIVATE=, DL=, MACHINE=, CONNECTOR= or MULTICAST=",
    "PROTOCOL": "TCP:, OS:, IPX:, HTTP: or HTTPS:",
    "HEXADECIMAL_DIGIT": "a hexadecimal digit",
    "HYPHEN": "'-'",
    "BACKSLASH": "'\\'",
    "END": "the end of the name",
    "JOURNAL_OR_END": "';JOURNAL' or the end of the name",
    "SUFFIX_OR_END": "';JOURNAL', ';DEADLETTER', ';DEADXACT' or the end of the name",
    "XACTONLY_OR_END": "';XACTONLY' or the end of the name",
    "DOMAIN_OR_END": "'@' and a domain, or the end of the name",
    "COMPUTER_CHARACTER": "a character of a computer name (U+0021 to U+007E), 1 to 256 of them",
    "QUEUE_CHARACTER": "a character of a queue name, 1 to 124 of them",
    "SUBQUEUE_CHARACTER": "a character of a subqueue name, 1 to 32 of them",
    "DOMAIN_CHARACTER": "a character of a domain name (U+0021 to U+007E), 1 to 255 of them",
    "IP_ADDRESS": "an IPv4 or IPv6 address",
    "OCTET": "a number from 0 to 255 without leading zeros",
    "MULTICAST_OCTET": "a number from 224 to 239",
    "MULTICAST_PORT": "a number from 0 to 65535 without leading zeros",
    "DOT": "'.'",
    "COLON": "':'",
    "TWO_SLASHES": "'//'",
    "HOST_CHARACTER": "a character of a host name, 1 to 256 of them",
    "MSMQ": "'/MSMQ'",
    "WRITABLE_QUEUE": "a queue that accepts messages: an element cannot be a journal or dead-letter queue",
    "LIST_ELEMENT": "an element other than MACHINE=",
}
EXPECTED = tuple(_TEXTS[name] for name in Expected.__members__)

SMALLEST_ELEMENT = 13  # bytes of DIRECT=OS:a\b

FORMAT_NAMES = Table(
    name="format_names",
    section="[MS-MQMQ] 2.1",
    columns=(
        Column("kind", KINDS, "kind of name"),
        Column(
            "guid",
            GUID,
            "of the queue, its computer, the distribution list, the machine or connector",
            Presence.HAS_GUID,
        ),
        Column("private_id", UINT32, "private name: the number of the queue on its computer", Presence.HAS_PRIVATE_ID),
        Column("protocol", PROTOCOLS, "direct name: Protocol", Presence.HAS_PROTOCOL),
        Column(
            "address",
            ASCII,
            "direct name: ProtocolAddressSpecification; path name: Computer; multicast name: the IPv4 address",
            Presence.HAS_ADDRESS,
        ),
        Column("port", UINT16, "multicast name: Port", Presence.HAS_PORT),
        Column(
            "queue_type",
            QUEUE_TYPES,
            "direct or path name: the group of queues of the computer",
            Presence.HAS_QUEUE_TYPE,
        ),
        Column("queue", ASCII, "direct or path name: QueueName without Subqueue", Presence.HAS_QUEUE),
        Column("subqueue", ASCII, "direct or path name: Subqueue", Presence.HAS_SUBQUEUE),
        Column("suffix", SUFFIXES, "the journal or dead-letter queue of the name", Presence.HAS_SUFFIX),
        Column("domain", ASCII, "distribution list name: DomainName", Presence.HAS_DOMAIN),
        Column("elements", ListOf(ASCII, SMALLEST_ELEMENT), "multiple-element name: its names", Presence.HAS_ELEMENTS),
    ),
    fields=FIELDS,
    faults=(
        FaultRule("truncated", "", "the text is truncated; at its end"),
        FaultRule("bad_type", "", "not a keyword or not a protocol; or a machine name in a list"),
        FaultRule("bad_text", "", "a character that the grammar does not allow here"),
        FaultRule(
            "bad_value", "", "a number out of range, not an IP address, or a journal or dead-letter queue in a list"
        ),
        FaultRule("too_large", "", "more characters than the rule allows"),
    ),
)
