"""Where the fields of each packet lie: one list for byte maps, the Wireshark dissector and the Kaitai descriptions.

A field has a type and may have a condition. Sizes and conditions are expressions that Python and Lua read alike: the
names of earlier numbers, ``has(number, mask)``, ``bits(number, shift, width)``, ``left`` (the bytes that remain) and
``position``.
The kernels have their own layouts; the tests compare both on every vector.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["LAYOUTS", "SIZES", "Field", "Part", "byte_map", "field_ids", "guess"]

#: The bytes of types with a fixed size. ``bytes`` and ``text`` (UTF-16LE) take an expression, ``pad`` fills up to four.
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "guid": 16}


class Field(NamedTuple):
    """A field of a packet.

    ``name`` is that of the specification, ``id`` the name of its number in expressions, ``column`` the column that
    shows its value unchanged, if there is one.
    """

    name: str
    type: str
    id: str = ""
    column: str = ""
    when: str = ""
    size: str = ""


class Part(NamedTuple):
    """The bytes of a field in a payload; ``end`` is that of the payload where it is truncated."""

    field: Field
    start: int
    end: int
    truncated: bool
    value: Any


def _numbers(header: str, when: str, *rows: tuple[str, str, str]) -> tuple[Field, ...]:
    """Fields of fixed size: name, type and id, which is the column as well; an id in angle brackets has no column."""
    return tuple(
        Field(f"{header}{name}", type_, id_.strip("<>"), "" if id_.startswith("<") else id_, when)
        for name, type_, id_ in rows
    )


def _queue(name: str, id_: str, shift: int) -> tuple[Field, ...]:
    """A queue, by the code in UserHeader.Flags ([MS-MQMQ] 2.2.19.2)."""
    code = f"bits(user_flags, {shift}, 3)"
    direct = f"{code} == 7"
    return (
        Field(f"{name}.Guid", "guid", "", "", f"{code} == 5 or {code} == 6"),
        Field(f"{name}.Number", "u32", "", "", f"{code} == 2 or {code} == 3 or {code} == 4 or {code} == 6"),
        Field(f"{name}.Count", "u16", f"{id_}_count", "", direct),
        Field(f"{name}.Name", "text", "", "", direct, f"{id_}_count"),
        Field(f"{name}.Padding", "pad", "", "", direct),
    )


def _blob(name: str, column: str, size: str) -> tuple[Field, ...]:
    when = f"has(user_flags, 0x80000) and {size} > 0"
    return Field(name, "bytes", "", column, when, size), Field(f"{name} padding", "pad", "", "", when)


_BASE = _numbers(
    "", "",
    ("VersionNumber", "u8", "<version>"), ("BaseHeader.Reserved", "u8", ""), ("BaseHeader.Flags", "u16", "base_flags"),
    ("Signature", "u32", "<signature>"), ("PacketSize", "u32", "packet_size"),
)  # fmt: skip
_SESSION_HEADER = (
    ("AckSequenceNumber", "u16", "ack_sequence_number"),
    ("RecoverableMsgAckSeqNumber", "u16", "recoverable_msg_ack_seq_number"),
    ("RecoverableMsgAckFlags", "u32", "recoverable_msg_ack_flags"),
    ("UserMsgSequenceNumber", "u16", "user_msg_sequence_number"),
    ("RecoverableMsgSeqNumber", "u16", "recoverable_msg_seq_number"),
    ("WindowSize", "u16", "window_size"),
    ("Reserved", "u16", ""),
)
_KIND = "bits(internal_flags, 0, 4)"

LAYOUTS: dict[str, tuple[Field, ...]] = {
    "topology": (
        *_numbers("", "", ("Version", "u8", "version"), ("Type", "u8", "<type>"), ("Reserved", "u16", "<reserved>")),
        *_numbers(
            "", "type == 1",
            ("EnterpriseID", "guid", "enterprise_id"), ("RequestID", "guid", "request_id"),
            ("SiteID", "guid", "site_id"),
        ),
        Field("IPX fields", "bytes", "", "", "type == 1 and left > 0", "left"),
        *_numbers(
            "", "type == 2",
            ("CorrelationID", "guid", "correlation_id"), ("ConnectedNetworkCount", "u32", "<count>"),
            ("ConnectedNetworkMask", "u32", "connected_network_mask"), ("DirectoryServiceServerSize", "u32", "<size>"),
        ),
        Field("ConnectedNetworkArray", "bytes", "", "", "type == 2", "count * 16"),
        Field("RespondingSiteID", "guid", "", "responding_site_id", "type == 2 and size > 0"),
        Field("DirectoryServiceServerArray", "text", "", "", "type == 2 and size > 0", "size"),
    ),
    "messages": (
        *_BASE,
        *_numbers(
            "", "",
            ("TimeToReachQueue", "u32", "time_to_reach_queue"),
            ("SourceQueueManager", "guid", "source_queue_manager"),
            ("QueueManagerAddress", "guid", "queue_manager_address"),
            ("TimeToBeReceived", "u32", "time_to_be_received"), ("SentTime", "u32", "<sent>"),
            ("MessageID", "u32", "message_id"), ("UserHeader.Flags", "u32", "user_flags"),
        ),
        *_queue("DestinationQueue", "destination", 10),
        *_queue("AdminQueue", "admin", 13),
        *_queue("ResponseQueue", "response", 16),
        *_numbers("", "has(user_flags, 0x400000)", ("ConnectorType", "guid", "connector_type")),
        *_numbers(
            "", "has(user_flags, 0x100000)",
            ("TransactionHeader.Flags", "u32", "transaction_flags"), ("TxSequenceID", "u64", "tx_sequence_id"),
            ("TxSequenceNumber", "u32", "tx_sequence_number"),
            ("PreviousTxSequenceNumber", "u32", "previous_tx_sequence_number"),
        ),
        *_numbers(
            "", "has(user_flags, 0x100000) and has(transaction_flags, 1)",
            ("ConnectorQMGuid", "guid", "connector_queue_manager"),
        ),
        *_numbers(
            "SecurityHeader.", "has(user_flags, 0x80000)",
            ("Flags", "u16", "security_flags"), ("SecurityIDSize", "u16", "<security_id_size>"),
            ("EncryptionKeySize", "u16", "<encryption_key_size>"), ("SignatureSize", "u16", "<signature_size>"),
            ("SenderCertSize", "u32", "<sender_cert_size>"), ("ProviderInfoSize", "u32", "<provider_info_size>"),
        ),
        *_blob("SecurityID", "security_id", "security_id_size"),
        *_blob("EncryptionKey", "encryption_key", "encryption_key_size"),
        *_blob("SecurityData.Signature", "signature", "signature_size"),
        *_blob("SenderCert", "sender_certificate", "sender_cert_size"),
        *_blob("ProviderInfo", "provider_info", "provider_info_size"),
        *_numbers(
            "", "has(user_flags, 0x200000)",
            ("MessagePropertiesHeader.Flags", "u8", "properties_flags"), ("LabelLength", "u8", "<label_length>"),
            ("MessageClass", "u16", "message_class"), ("CorrelationID.Guid", "guid", "correlation_guid"),
            ("CorrelationID.Ordinal", "u32", "correlation_ordinal"), ("BodyType", "u32", "body_type"),
            ("ApplicationTag", "u32", "application_tag"), ("MessageSize", "u32", "message_size"),
            ("AllocationBodySize", "u32", "allocation_body_size"), ("PrivacyLevel", "u32", "privacy_level"),
            ("HashAlgorithm", "u32", "hash_algorithm"), ("EncryptionAlgorithm", "u32", "encryption_algorithm"),
            ("ExtensionSize", "u32", "<extension_size>"),
        ),
        Field("Label", "text", "", "", "has(user_flags, 0x200000)", "label_length * 2"),
        Field("ExtensionData", "bytes", "", "extension_data", "has(user_flags, 0x200000)", "extension_size"),
        Field("MessageBody", "bytes", "", "body", "has(user_flags, 0x200000)", "message_size"),
        Field("MessagePropertiesHeader padding", "pad", "", "", "position < packet_size"),
        *_numbers(
            "DebugHeader.", "has(base_flags, 0x20)", ("Flags", "u16", "<debug_flags>"), ("Reserved", "u16", ""),
        ),
        *_numbers(
            "DebugHeader.", "has(base_flags, 0x20) and bits(debug_flags, 0, 2) == 1",
            ("QueueIdentifier", "guid", "debug_queue"),
        ),
        # SRMPEnvelopeHeader, CompoundMessageHeader, SoapHeader and MultiQueueFormatHeader
        Field("further headers", "bytes", "", "", "position < packet_size", "packet_size - position"),
        *_numbers("SessionHeader.", "has(base_flags, 0x10)", *_SESSION_HEADER),
    ),
    "sessions": (
        *_BASE,
        *_numbers(
            "", "",
            ("TimeToReachQueue", "u32", "<time_to_reach_queue>"),
            ("InternalHeader.Reserved", "u16", "<internal_reserved>"),
            ("InternalHeader.Flags", "u16", "internal_flags"),
        ),
        *_numbers("SessionHeader.", f"{_KIND} == 1", *_SESSION_HEADER),
        *_numbers(
            "", f"{_KIND} == 2",
            ("ClientGuid", "guid", "client_guid"), ("ServerGuid", "guid", "server_guid"),
            ("TimeStamp", "u32", "time_stamp"), ("OperatingSystem", "u16", "operating_system"),
            ("EstablishConnection.Reserved", "u16", "<establish_reserved>"),
        ),
        Field("Padding", "bytes", "", "", f"{_KIND} == 2", "512"),
        *_numbers(
            "", f"{_KIND} == 3",
            ("RecoverableAckTimeout", "u32", "recoverable_ack_timeout"), ("AckTimeout", "u32", "ack_timeout"),
            ("ConnectionParameters.Reserved", "u16", "<parameters_reserved>"), ("WindowSize", "u16", "window_size"),
        ),
    ),
    "ping": _numbers(
        "Ping.", "",
        ("Flags", "u16", "<flags>"), ("Signature", "u16", "<signature>"), ("Cookie", "u32", "cookie"),
        ("QMGuid", "guid", "queue_manager"),
    ),
    "notifications": (
        *_numbers("", "", ("Version", "u8", "version"), ("NumberOfUpdateNotifications", "u8", "<updates>")),
        Field("NotificationUpdate", "bytes", "", "", "version == 1", "left"),
        Field("NotificationBody", "text", "", "", "version == 2", "left"),
    ),
}  # fmt: skip

_FUNCTIONS = {
    "has": lambda number, mask: bool(number & mask),
    "bits": lambda number, shift, width: number >> shift & ((1 << width) - 1),
}


def field_ids(layout: str) -> Iterator[tuple[str, Field]]:
    """The fields of a layout with names that are unique in it: the column, or else the name in small letters.

    >>> [name for name, _ in field_ids("ping")]
    ['flags', 'signature', 'cookie', 'queue_manager']
    """
    used: set[str] = set()
    columns = {field.column for field in LAYOUTS[layout]}
    for field in LAYOUTS[layout]:
        name = field.column or field.id or re.sub(r"[^a-z0-9]+", "_", field.name.lower())
        base, number = name, 2
        while name in used or (name in columns and not field.column):
            name, number = f"{base}_{number}", number + 1
        used.add(name)
        yield name, field


def guess(payload: bytes) -> str:
    """The layout of a payload, by the constants that begin it; ``topology`` if it has none.

    >>> guess(bytes.fromhex("0000485504000000d1587355509195954997b6e611ea26c6"))
    'ping'
    """
    if payload[4:8] == b"LIOR":
        return "sessions" if payload[2] & 8 else "messages"
    if payload[2:4] == b"\x48\x55":
        return "ping"
    return "notifications" if payload[:1] in (b"\1", b"\2") else "topology"


def byte_map(layout: str, payload: bytes) -> Iterator[Part]:
    """The fields of a payload in the order of the wire, up to the first that is truncated; then bytes of no field.

    Examples
    --------
    >>> for part in byte_map("ping", bytes.fromhex("0000485504000000d1587355509195954997b6e611ea26c6")):
    ...     print(part.start, part.end, part.field.name, part.value)
    0 2 Ping.Flags 0
    2 4 Ping.Signature 21832
    4 8 Ping.Cookie 4
    8 24 Ping.QMGuid b'\\xd1XsUP\\x91\\x95\\x95I\\x97\\xb6\\xe6\\x11\\xea&\\xc6'
    """
    known: dict[str, Any] = {"position": 0, "left": len(payload)}
    at = 0
    for field in LAYOUTS[layout]:
        if field.when and not _value(field.when, known):
            continue
        size = -at % 4 if field.type == "pad" else SIZES.get(field.type) or _value(field.size, known)
        if field.type == "pad":
            size = min(size, known.get("packet_size", len(payload)) - at)
        if size <= 0:
            continue
        data = payload[at : at + size]
        value = int.from_bytes(data, "little") if field.type.startswith("u") else data
        yield Part(field, at, at + len(data), len(data) < size, value)
        if len(data) < size:
            return
        at += size
        known |= {"position": at, "left": len(payload) - at, **({field.id: value} if field.id else {})}
    if at < len(payload):
        yield Part(Field("trailing bytes", "bytes"), at, len(payload), False, payload[at:])


def _value(expression: str, known: dict[str, Any]) -> int:
    # Expressions are those of this file; payloads only give numbers
    return int(eval(expression, {"__builtins__": {}, **_FUNCTIONS}, known))
