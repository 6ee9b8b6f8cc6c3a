"""The other half of the oracle of MQQB: what an encoder writes for the columns of a packet.

Reserved and unused bits are zero, and so is padding. A queue is said the way it was read, or in the shortest way: a
private queue's host is left out where the packet names it anyway.
"""

from __future__ import annotations

import struct
from typing import Any

from tests.reference.mqqb_walk import LIOR, SESSION_SIZE, Packet, Queue

PUBLIC, PRIVATE, DIRECT, DISTRIBUTION_LIST = 1, 2, 3, 6
_FORMS = {"public": PUBLIC, "private": PRIVATE, "direct": DIRECT, "distribution_list": DISTRIBUTION_LIST}


#: What can be written all the same: a queue on the host of the admin queue, which only a directory could tell.
WRITABLE = {"unresolved_queue"}


def write(packet: Packet, *, shortest: bool = False) -> bytes:
    """The bytes of a packet; ``ValueError`` for one that breaks the specification."""
    if set(packet.violations) - WRITABLE:
        raise ValueError("a packet with violations is not written")
    if packet.table == "messages":
        types = shortest_types(packet) if shortest else packet.queue_types
        return _user_message(packet.values, types)
    if packet.values["kind"] == "ping":
        return _ping(packet.values)
    return _internal(packet.values)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _bits(values: dict[str, Any], **columns: int) -> int:
    """The bits of the columns that are true."""
    return sum(1 << bit for name, bit in columns.items() if values.get(name))


def _base(flags: int, size: int, time_to_reach_queue: int) -> bytes:
    return struct.pack("<BxHIII", 0x10, flags, LIOR, size, time_to_reach_queue)


# --- sessions ---


def _ping(values: dict[str, Any]) -> bytes:
    flags = _bits(values, initiator_is_client=0, refused=1)
    return struct.pack("<HHI16s", flags, 0x5548, values["cookie"], values["queue_manager"])


def _internal(values: dict[str, Any]) -> bytes:
    kind = ("session_ack", "establish_connection", "connection_parameters").index(values["kind"]) + 1
    flags = 0x000B  # priority 3, internal
    if kind == 1:
        flags |= 0x0010
        content = _session_header(values)
    elif kind == 2:
        names = ("client_guid", "server_guid", "time_stamp", "operating_system")
        content = struct.pack("<16s16sIH2x", *(values[name] for name in names)) + b"\x5a" * 512
    else:
        names = ("recoverable_ack_timeout", "ack_timeout", "window_size")
        content = struct.pack("<II2xH", *(values[name] for name in names))
    internal = struct.pack("<2xH", kind | _bits(values, refused=4))
    return _base(flags, 20 + len(content), 0xFFFFFFFF) + internal + content


def _session_header(values: dict[str, Any]) -> bytes:
    names = (
        "ack_sequence_number",
        "recoverable_msg_ack_seq_number",
        "recoverable_msg_ack_flags",
        "user_msg_sequence_number",
        "recoverable_msg_seq_number",
        "window_size",
    )
    header = struct.pack("<HHIHHH2x", *(values[name] for name in names))
    assert len(header) == SESSION_SIZE
    return header


# --- messages ---


def _user_message(values: dict[str, Any], types: tuple[int, int, int]) -> bytes:
    has_debug = values["debug_header"]
    flags = values["priority"] | has_debug << 5 | _bits(values, tracing=8)
    parts = [_user_header(values, types)]
    if "tx_sequence_id" in values:
        parts.append(_transaction_header(values))
    if "security_flags" in values:
        parts.append(_security_header(values))
    parts.append(_message_properties_header(values))
    if has_debug:
        queue = values.get("debug_queue", b"")
        parts.append(struct.pack("<H2x", bool(queue)) + queue)
    if "srmp_envelope" in values:
        text = values["srmp_envelope"].data + b"\0\0"
        parts.append(_padded(struct.pack("<4xI", len(text) // 2) + text))
    if "http_body" in values:
        numbers = (len(values["http_body"].data), values["message_body_size"], values["message_body_offset"])
        parts.append(struct.pack("<H2x3I", 500, *numbers) + values["http_body"].data)
    if "soap_header" in values:
        parts += [_soap(0x0320, values["soap_header"].data), _soap(0x0384, values["soap_body"].data)]
    if "destination_queues" in values:
        parts += [
            _address_header(0x0064, values["destination_queues"]),
            _address_header(0x00C8, values["admin_queues"]),
            _address_header(0x012C, values["response_queues"]),
            struct.pack("<H2xI", 0x015E, len(values["multi_queue_signature"].data)),
            values["multi_queue_signature"].data,
        ]
    content = _padded(b"".join(parts))
    session = b""
    if "ack_sequence_number" in values:
        flags |= 0x0010
        session = _session_header(values)
    return _base(flags, 16 + len(content), values["time_to_reach_queue"]) + content + session


def _user_header(values: dict[str, Any], types: tuple[int, int, int]) -> bytes:
    flags = values["hop_count"] | ("express", "recoverable").index(values["delivery_mode"]) << 5 | 1 << 21
    flags |= sum(type_ << shift for type_, shift in zip(types, (10, 13, 16), strict=True))
    flags |= _bits(values, negative_source_journaling=8, positive_source_journaling=9, sent_over_http=25)
    headers = {19: "security_flags", 20: "tx_sequence_id", 22: "connector_type", 23: "destination_queues"}
    flags |= sum(1 << bit for bit, name in {**headers, 28: "soap_header"}.items() if name in values)
    names = ("source_queue_manager", "queue_manager_address", "time_to_be_received", "sent_time", "message_id")
    source, address, lifetime, sent, number = (values[name] for name in names)
    fixed = struct.pack("<16s16sIIII", source, address, lifetime, sent // 1_000_000_000, number, flags)
    queues = (_queue(values.get(name), type_) for name, type_ in zip(_QUEUES, types, strict=True))
    return fixed + b"".join(queues) + values.get("connector_type", b"")


_QUEUES = ("destination_queue", "admin_queue", "response_queue")


def _queue(queue: Queue | None, type_: int) -> bytes:
    """What says a queue beside its type."""
    if queue is None or type_ == 1:
        return b""
    if queue.name is not None:
        data = queue.name.data + b"\0\0"
        return _padded(struct.pack("<H", len(data)) + data)
    guid = queue.guid if type_ in (5, 6) else b""
    number = b"" if type_ == 5 else struct.pack("<I", queue.number)
    assert guid is not None
    return guid + number


def shortest_types(packet: Packet) -> tuple[int, int, int]:
    """DQ, AQ and RQ that say each queue in the fewest bytes ([MS-MQMQ] 2.2.19.2); of several hosts the destination."""
    destination, admin, response = (packet.values.get(name) for name in _QUEUES)
    hosts = {packet.values["queue_manager_address"]: 3}
    types = [_shortest_type(destination, hosts)]
    hosts.setdefault(packet.values["source_queue_manager"], 2)
    types.append(_shortest_type(admin, hosts))
    if admin is not None and admin._replace(code=0) == (response and response._replace(code=0)):
        return types[0], types[1], 1
    if types[1] == 6:
        hosts.setdefault(admin.guid, 4)
    return types[0], types[1], _shortest_type(response, hosts)


def _shortest_type(queue: Queue | None, hosts: dict[bytes, int]) -> int:
    """A private queue's host has a type of its own where it is among ``hosts``."""
    if queue is None:
        return 0
    if queue.form == "private":
        assert queue.guid is not None
        return hosts.get(queue.guid, 6)
    return {"public": 5, "direct": 7, "unresolved": 4}[queue.form]


def _transaction_header(values: dict[str, Any]) -> bytes:
    connector = values.get("connector_queue_manager", b"")
    flags = bool(connector) | _bits(values, final_ack_required=1, first_message=2, last_message=3)
    names = ("tx_sequence_id", "tx_sequence_number", "previous_tx_sequence_number")
    numbers = (values[name] for name in names)
    return struct.pack("<IQII", flags | values["transaction_id"] << 4, *numbers) + connector


def _security_header(values: dict[str, Any]) -> bytes:
    names = ("security_id", "encryption_key", "signature", "sender_certificate", "provider_info")
    items = [values[name].data if name in values else b"" for name in names]
    header = struct.pack("<HHHHII", values["security_flags"] & 0x0FFF, *map(len, items))
    return header + b"".join(map(_padded, items))


def _message_properties_header(values: dict[str, Any]) -> bytes:
    label, extension, body = (values[name].data for name in ("label", "extension_data", "body"))
    if label:
        label += b"\0\0"
    flags = _bits(
        values, positive_arrival_ack=0, positive_receive_ack=1, negative_arrival_ack=2, negative_receive_ack=3
    )
    names = (
        "message_class", "correlation_guid", "correlation_ordinal", "body_type", "application_tag", "message_size",
        "allocation_body_size", "privacy_level", "hash_algorithm", "encryption_algorithm",
    )  # fmt: skip
    fields = [values[name] for name in names]
    header = struct.pack("<BBH16s9I", flags, len(label) // 2, *fields, len(extension))
    return _padded(header + label + extension + body)


def _soap(section: int, text: bytes) -> bytes:
    return struct.pack("<H2xI", section, len(text) // 2 + 1) + text + b"\0\0"


def _address_header(id_: int, queues: tuple[Queue, ...]) -> bytes:
    """MQFAddressHeader; its padding counts as part of it."""
    elements = b""
    for queue in queues:
        elements += struct.pack("<H", _FORMS[queue.form])
        if queue.name is not None:
            elements += queue.name.data + b"\0\0"
            continue
        assert queue.guid is not None
        elements = _padded(elements) + queue.guid
        if queue.form == "private":
            elements += struct.pack("<I", queue.number)
    elements = _padded(elements)
    return struct.pack("<IH2xI", 12 + len(elements), id_, len(queues)) + elements
