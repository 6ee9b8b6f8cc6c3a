"""Captures without the names, addresses and contents of those who sent them: the payloads, written anew.

A payload keeps its size and all that is no name: numbers, flags, times, and its fault and violations. What cannot be
rewritten so is left out and counted.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from msmqwire import mqcn, mqqb
from msmqwire.capture import TABLES, ReadOptions
from msmqwire.capture import open as open_capture
from msmqwire.capture.files.writing import CaptureWriter, Flow, is_writable
from msmqwire.capture.schema import PING_PORTS
from msmqwire.columns import UNFRAMED_BIT, Payloads
from msmqwire.columns.byte_map import FieldSpan
from msmqwire.errors import MsmqWireError, counted
from msmqwire.insight.layouts import byte_map, guess
from msmqwire.insight.pseudonyms import Pseudonyms
from msmqwire.mqqb.framing import BASE_HEADER_SIZE, FLAG_SESSION, PACKET_SIGNATURE, VERSION_NUMBER, has_signature

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from msmqwire.capture.files._blocks import Block
    from msmqwire.capture.files.sources import Source

__all__ = ["Anonymized", "anonymize", "anonymize_payload"]

#: Fields of packets that hold contents, or what only their owner can read. A sender need not clear its padding.
_CONTENTS = frozenset(
    {
        "EncryptionKey",
        "SecurityData.Signature",
        "SenderCert",
        "ExtensionData",
        "MessageBody",
        "Padding",
        "trailing bytes",
    }
)
_SIGNED = 8  # bytes of a BaseHeader that has its Signature
_SENDER_IS_SID = 1
# The columns of messages that say what to rewrite
_READ = (
    "violations", "kind", "notification", "acknowledged_source_queue_manager", "destination_queues", "admin_queues",
    "response_queues", "srmp_envelope", "soap_header", "soap_body", "http_body", "multi_queue_signature", "body",
    "trailing",
)  # fmt: skip
# The bytes before the data of further headers: numbers
_SECTION, _COMPOUND = 8, 16
_ADDRESS = struct.Struct("<I2HI")  # HeaderSize, HeaderID, Reserved, ElementCount
_TITLE = struct.Struct("<2HI")  # the id, Reserved, the size of what follows
# Further headers without content
_EMPTY = {
    "SoapHeader": _TITLE.pack(800, 0, 0),
    "SoapBody": _TITLE.pack(900, 0, 0),
    "Destination": _ADDRESS.pack(_ADDRESS.size, 100, 0, 0),
    "Administration": _ADDRESS.pack(_ADDRESS.size, 200, 0, 0),
    "Response": _ADDRESS.pack(_ADDRESS.size, 300, 0, 0),
    "MQFSignatureHeader": _TITLE.pack(350, 0, 0),
}
# Where in its further header a field of a fault is
_AT = {"DataLength": 4, "HttpBodySize": 4, "Header": _SECTION, "Body": _SECTION, "Signature": _SECTION}
# The numbers that acknowledgments begin with; of an OrderAck the rest is reserved ([MS-MQQB] 2.2.4.1)
_ACKNOWLEDGED = 16
# Whether a directory server speaks IP, and IPX: [MS-MQSD] 2.2.3
_FLAGS = ("0".encode("utf-16-le"), "1".encode("utf-16-le"))
# Of these texts only what precedes the first U+0000 is known to be text
_UNTERMINATED = frozenset({"srmp_envelope_terminator", "soap_terminator"})


@dataclass
class Anonymized:
    """What was written.

    Attributes
    ----------
    packets : int
        The payloads that were written.
    left_out : dict of str to int
        The payloads that were not, by the reason.
    losses : list of str
        What of the captures cannot be read and so was not written, as numbers with their nouns.
    """

    packets: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    losses: list[str] = field(default_factory=list)


def anonymize(
    source: Source, file: SupportsWrite[bytes], key: bytes, options: ReadOptions | None = None,
    progress: Callable[[int], object] = lambda size: None,
) -> Anonymized:  # fmt: skip
    """Write the MSMQ packets of captures as a capture without names, addresses and contents.

    Frames are written anew, without their link layer and encapsulation; streams keep their offsets and gaps. Frames of
    other protocols are not written.

    Parameters
    ----------
    source : str, path or file object, or a list of them
        As for ``capture.open``.
    file : binary file object
        The capture to write.
    key : bytes
        At least 16 bytes, as for ``Pseudonyms``.
    options : ReadOptions, optional
        As for ``capture.open``.
    progress : callable, optional
        It is called with the number of bytes read.

    Raises
    ------
    CaptureError
        The source is no capture.

    Examples
    --------
    >>> import io
    >>> from msmqwire.capture import read_table
    >>> file = io.BytesIO()
    >>> anonymize("examples/message-session.pcap", file, bytes(16)).packets
    12
    >>> rows = read_table(io.BytesIO(file.getvalue()), "messages", columns=["label"])
    >>> [label for batch in rows for label in batch["label"].to_pylist()][2]
    'Order 3067'
    """
    pseudonyms = Pseudonyms(key)
    writer = CaptureWriter(file)
    done = Anonymized()
    with open_capture(source, options=options) as blocks:
        for block in blocks:
            _anonymize_block(block, writer, pseudonyms, done)
            progress(blocks.stats.bytes_read)
        done.losses = blocks.stats.describe_losses()
        if skipped := blocks.stats.bytes_skipped:
            done.losses.append(f"{counted(skipped, 'byte')} skipped")
    return done


def _anonymize_block(block: Block, writer: CaptureWriter, pseudonyms: Pseudonyms, done: Anonymized) -> None:
    for place, payload in _packets(block):
        transport = place["transport"]
        if transport not in ("udp", "tcp"):
            done.left_out[f"transport {transport}"] += 1
            continue
        if not is_writable(place["time_ns"]):
            done.left_out["a time before 1970 or after 2106"] += 1
            continue
        lost, layout = place["lost"], _layout(place, payload)
        rewritten: bytes | None
        if lost & UNFRAMED_BIT:
            # A BaseHeader, which has no names, shows its PacketSize
            header = payload[:BASE_HEADER_SIZE] if _begins_a_packet(payload) else b""
            rewritten, lost = header.ljust(len(payload) + lost - UNFRAMED_BIT, b"\0"), 0
        else:
            rewritten = anonymize_payload(payload, layout, pseudonyms, lost) if layout else bytes(len(payload))
        if rewritten is None:
            done.left_out["a header or notification that cannot be read"] += 1
            continue
        src, dst = (pseudonyms.address(place[end]) for end in ("src", "dst"))
        flow = Flow(src, place["src_port"], dst, place["dst_port"])
        if transport == "udp":
            writer.datagram(place["time_ns"], flow, rewritten, lost=lost)
        elif not _begins_a_packet(rewritten) and not writer.is_next(flow, place["stream_offset"]):
            # After a gap, readers look for the next packet
            done.left_out["bytes of no packet after one that was left out"] += 1
            continue
        else:
            writer.stream(place["time_ns"], flow, rewritten, offset=place["stream_offset"])
        done.packets += 1


def _begins_a_packet(payload: bytes) -> bool:
    """Whether readers find the packet wherever it is in a stream: it has a BaseHeader."""
    return len(payload) >= BASE_HEADER_SIZE and payload[0] == VERSION_NUMBER and has_signature(payload)


def _packets(block: Block) -> Iterator[tuple[dict[str, Any], bytes]]:
    columns = ("time", "src", "src_port", "dst", "dst_port", "transport", "stream_offset")
    table: Any = block.capture.to_arrow()
    times = np.asarray(block.capture["time"]).astype(np.int64)
    lost = block.payloads.lost
    for at, row in enumerate(table.select([name for name in columns if name != "time"]).to_pylist()):
        payload = block.payloads[at]
        if payload is not None:
            yield {**row, "time_ns": int(times[at]), "lost": 0 if lost is None else int(lost[at])}, bytes(payload)


def _layout(place: dict[str, Any], payload: bytes) -> str:
    """What a payload is, by its transport and port; empty for bytes between the packets of a stream."""
    if place["transport"] == "udp":
        return "ping" if PING_PORTS & {place["src_port"], place["dst_port"]} else "topology"
    # A packet may have lost all but its first bytes
    if not PACKET_SIGNATURE.startswith(payload[4:8]):
        return ""
    return guess(payload) if len(payload) >= _SIGNED else "messages"


def anonymize_payload(payload: bytes, layout: str, pseudonyms: Pseudonyms, lost: int = 0) -> bytes | None:
    """A payload with pseudonyms and without contents, of the same size, fault and violations; None if there is none.

    Parameters
    ----------
    payload : bytes
    layout : {"topology", "ping", "messages", "sessions"}
        What it is.
    lost : int
        The bytes that it had after those captured.
    """
    rewritten, sender = bytearray(payload), 0
    parts = list(byte_map(layout, payload))
    for part in parts:
        if part.name == "SecurityHeader.Flags":
            sender = part.value & 0xF  # ST
        rewritten[part.start : part.end] = _rewritten(part, payload[part.start : part.end], sender, pseudonyms)
    outcome = _outcome(layout, payload, lost)
    fault = outcome[0][0]
    further = next((part for part in parts if part.name == "further headers"), None)
    if layout == "messages" and not _rewrite_message(payload, rewritten, lost, further, fault, pseudonyms):
        return None
    if fault is not None and fault["code"] != "incomplete":
        # After it the layout need not hold
        known = [part.end for part in parts if part.start <= fault["offset"]]
        after = max([*known[-1:], BASE_HEADER_SIZE if layout in ("messages", "sessions") else 0])
        rewritten[after:] = bytes(len(payload[after:]))
    found = bytes(rewritten)
    return found if outcome == _outcome(layout, found, lost) else None


def _outcome(layout: str, payload: bytes, lost: int) -> list[Any]:
    """The fault and the violations of a payload; for a notification, of its body as well.

    The number that was read may be a character of a name, which has a pseudonym.
    """
    kind = TABLES["sessions" if layout == "ping" else layout]
    options = {"transport": "udp" if layout in ("topology", "ping") else "tcp"} if kind.takes_transport else {}
    columns = ["fault", "violations", *(("notification", "body") if layout == "messages" else ())]
    rows: Any = kind.decode_batch(Payloads.of([payload], lost=[lost]), columns=columns, **options).to_arrow()
    found = [_places(rows["fault"]), rows["violations"].to_pylist()]
    if layout == "messages" and rows["notification"].to_pylist() == ["plain"]:
        changes: Any = mqcn.decode_batch([rows["body"][0].as_py()]).to_arrow()
        found.append(_places(changes["fault"]))
        found += [changes[name].to_pylist() for name in ("violations", "operation", "object")]
    return found


def _places(faults: Any) -> list[dict[str, Any] | None]:
    """The faults without their numbers."""
    return [fault and {name: fault[name] for name in ("code", "field", "offset")} for fault in faults.to_pylist()]


def _rewritten(part: FieldSpan, data: bytes, sender: int, pseudonyms: Pseudonyms) -> bytes:
    name, kind = part.name, part.field.type
    if kind == "guid":
        return _guid(data, pseudonyms)
    if name == "DirectoryServiceServerArray":
        return _server_array(data, pseudonyms)
    if kind == "text":
        return _text(data, pseudonyms)
    if name == "SecurityID":
        # A GUID may begin as a SID does
        return pseudonyms.sid(data) if sender == _SENDER_IS_SID and data[:1] == b"\1" else _guid(data, pseudonyms)
    if name == "ProviderInfo":
        return data[:4] + _text(data[4:], pseudonyms)
    if name == "IPX fields":
        return _networks(data, pseudonyms)
    if name == "ConnectedNetworkArray":
        return b"".join(_guid(data[at : at + 16], pseudonyms) for at in range(0, len(data), 16))
    if name in _CONTENTS or kind == "pad":
        return bytes(len(data))
    return data


def _guid(data: bytes, pseudonyms: Pseudonyms) -> bytes:
    # Fewer bytes are the beginning of a GUID in a packet that lacks the others
    return pseudonyms.guid(UUID(bytes_le=data)).bytes_le if len(data) == 16 else bytes(len(data))


def _text(data: bytes, pseudonyms: Pseudonyms) -> bytes:
    odd = len(data) % 2
    units = data[: len(data) - odd].decode("utf-16-le", "surrogatepass")
    return pseudonyms.text(units).encode("utf-16-le", "surrogatepass") + bytes(odd)


def _networks(data: bytes, pseudonyms: Pseudonyms) -> bytes:
    """IPXNetworkCount and the numbers of networks of a request: [MS-MQSD] 2.2.2. Nothing else is known after them."""
    end = min(4 + 4 * int.from_bytes(data[:4], "little"), len(data) // 4 * 4)
    numbers = (int.from_bytes(data[at : at + 4], "little") for at in range(4, end, 4))
    found = data[:4] + b"".join(pseudonyms.network(number).to_bytes(4, "little") for number in numbers)
    return found + bytes(len(data) - len(found))


def _server_array(data: bytes, pseudonyms: Pseudonyms) -> bytes:
    """The names of servers; the two flags in front of each stay: [MS-MQSD] 2.2.3."""
    comma = ",".encode("utf-16-le")
    entries: list[bytes] = []
    start = 0
    for at in range(0, len(data) + 1, 2):
        if data[at : at + 2] == comma or at + 1 >= len(data):
            name = start
            while name < min(start + 4, at) and data[name : name + 2] in _FLAGS:
                name += 2
            entries += data[start:name], _text(data[name:at], pseudonyms), data[at : at + 2]
            start = at + 2
    return b"".join(entries)


def _rewrite_message(
    payload: bytes, rewritten: bytearray, lost: int, further: FieldSpan | None, fault: dict[str, Any] | None,
    pseudonyms: Pseudonyms,
) -> bool:  # fmt: skip
    """Rewrite further headers, and the body of a notification or acknowledgment; whether that was possible."""
    if fault is not None:
        if further is not None:
            if fault["code"] == "incomplete" and _rewrite_incomplete(payload, rewritten, further, fault, pseudonyms):
                return True
            # Which bytes of headers are names is known from whole headers only; the first one begins with numbers
            size = _COMPOUND if fault["field"].startswith("CompoundMessageHeader") else _SECTION
            known = further.start + size if fault["offset"] in range(further.start, further.start + _COMPOUND) else 0
            start = min(max(further.start, known), further.end)
            rewritten[start : further.end] = bytes(further.end - start)
        if fault["code"] != "incomplete":
            return True
    batch = mqqb.decode_batch(Payloads.of([payload], lost=[lost]), columns=_READ)
    row: Any = batch.to_arrow().to_pylist()[0]
    if fault is not None:
        pass
    elif _UNTERMINATED & set(row["violations"]):
        return False
    elif further is not None and row["destination_queues"] is not None:
        if not _is_canonical(payload):
            return False
        _rewrite_queues(batch, further, payload, rewritten, pseudonyms)
    elif further is not None:
        rewritten[further.start : further.end] = bytes(further.end - further.start)
    for name in ("srmp_envelope", "soap_header", "soap_body"):
        if row[name] is not None:
            _rewrite_span(batch[name], _SECTION, payload, rewritten, lambda data: _text(data, pseudonyms))
    if row["http_body"] is not None:
        _rewrite_span(batch["http_body"], _COMPOUND, payload, rewritten, lambda data: bytes(len(data)))
    for name in ("multi_queue_signature", "trailing"):
        _rewrite_span(batch[name], 0, payload, rewritten, lambda data: bytes(len(data)))
    start, size = int(batch["body"].offset[0]), int(batch["body"].length[0])
    if row["notification"] == "plain":
        body = _notification(payload[start : start + size], pseudonyms)
        if body is None:
            return False
        rewritten[start : start + size] = body
    elif row["kind"] not in (None, "user_message"):
        # The body says which messages it acknowledges
        body = payload[start : start + size]
        source = row["acknowledged_source_queue_manager"]
        body = body[:_ACKNOWLEDGED] + bytes(size - _ACKNOWLEDGED) if source is None else body
        rewritten[start : start + size] = _replaced(body, [source] if source else [], pseudonyms)
    return True


def _rewrite_incomplete(
    payload: bytes, rewritten: bytearray, further: FieldSpan, fault: dict[str, Any], pseudonyms: Pseudonyms
) -> bool:  # fmt: skip
    """Rewrite a message that lost bytes in its further headers, or after them; whether that was possible.

    The complete headers are rewritten as those of a message that has the others without content. Of the header that
    lost bytes the numbers stay.
    """
    header, _, name = fault["field"].partition(".")
    head = len(_EMPTY.get(header, b"")) or (_COMPOUND if header == "CompoundMessageHeader" else _SECTION)
    start = fault["offset"] - _AT.get(name, 0)
    if start < further.start:
        # All headers are there
        start = further.end
    complete = bytearray(payload[:start].ljust(start, b"\0"))
    complete[2] &= ~FLAG_SESSION & 0xFF
    found: dict[str, Any] | None = {"field": ""}
    while found is not None:
        complete += _EMPTY.get(found["field"], b"")
        complete[8:12] = len(complete).to_bytes(4, "little")
        before, found = found, _outcome("messages", bytes(complete), 0)[0][0]
        if found is not None and (found["field"] not in _EMPTY or found["field"] == before["field"]):
            return False
    of_complete = anonymize_payload(bytes(complete), "messages", pseudonyms)
    if of_complete is None:
        return False
    start = min(start, len(payload))
    rewritten[BASE_HEADER_SIZE:start] = of_complete[BASE_HEADER_SIZE:start]
    rest = payload[start : min(start + head, further.end)]
    rewritten[start : further.end] = rest.ljust(further.end - start, b"\0")
    return True


def _is_canonical(payload: bytes) -> bool:
    """Whether all bytes of a message follow from its values."""
    try:
        return mqqb.encode(mqqb.decode(payload)) == payload
    except MsmqWireError:
        return False


def _rewrite_span(
    column: Any, head: int, payload: bytes, rewritten: bytearray, how: Callable[[bytes], bytes]
) -> None:  # fmt: skip
    """Rewrite the data of a header; the ``head`` bytes before the data stay."""
    start, size = int(column.offset[0]), int(column.length[0])
    rewritten[start - head : start] = payload[start - head : start]
    rewritten[start : start + size] = how(payload[start : start + size])


def _rewrite_queues(
    batch: Any, further: FieldSpan, payload: bytes, rewritten: bytearray, pseudonyms: Pseudonyms
) -> None:  # fmt: skip
    """The queues of a MultiQueueFormatHeader: the names where they lie, and their GUIDs wherever they stand."""
    guids = []
    for name in ("destination_queues", "admin_queues", "response_queues"):
        for queue in batch[name].values:
            start, size = int(queue["offset"]), int(queue["length"])
            if size:
                rewritten[start : start + size] = _text(payload[start : start + size], pseudonyms)
            else:
                guids.append(bytes(queue["guid"]))
    rewritten[further.start : further.end] = _replaced(bytes(rewritten[further.start : further.end]), guids, pseudonyms)


def _replaced(data: bytes, guids: list[bytes], pseudonyms: Pseudonyms) -> bytes:
    known = {wire: _guid(wire, pseudonyms) for guid in guids for wire in (guid, UUID(bytes=guid).bytes_le)}
    if not known:
        return data
    replaced, at = bytearray(data), 0
    # In one pass: a packet of 4 MiB has room for 200,000 of them
    while at + 16 <= len(data):
        found = known.get(data[at : at + 16])
        if found is not None:
            replaced[at : at + 16] = found
        at += 1 if found is None else 16
    return bytes(replaced)


def _notification(body: bytes, pseudonyms: Pseudonyms) -> bytes | None:
    """The body of a notification with pseudonyms; None if it cannot be read."""
    try:
        message = mqcn.decode(body)
        for space in (True, False):
            written = mqcn.encode_body(message, closing_space=space, enforce=False)[:-1]
            if _is_written_as(body[: len(written)], message, written):
                renamed = mqcn.encode_body(_renamed(message, pseudonyms), closing_space=space, enforce=False)[:-1]
                return renamed + bytes(len(body) - len(written)) if len(renamed) == len(written) else None
    except MsmqWireError:
        pass
    return None


def _is_written_as(body: bytes, message: mqcn.ChangeNotificationMessage, written: bytes) -> bool:
    """Whether a body is written so, but for what has no meaning: the case of a text, and Reserved of an update."""
    if message.body is not None:
        return body.lower() == written.lower()
    return len(body) == len(written) and mqcn.decode(body) == message


def _renamed(message: mqcn.ChangeNotificationMessage, pseudonyms: Pseudonyms) -> mqcn.ChangeNotificationMessage:
    if message.body is not None:
        event, guid, controller = message.body
        body = mqcn.NotificationBody(event, pseudonyms.guid(guid), pseudonyms.text(controller))
        return mqcn.ChangeNotificationMessage(2, body=body)
    return mqcn.ChangeNotificationMessage(1, [_renamed_update(update, pseudonyms) for update in message.updates])


def _renamed_update(update: mqcn.NotificationUpdate, pseudonyms: Pseudonyms) -> mqcn.NotificationUpdate:
    path = update.path_name
    guid = update.guid_identifier
    return mqcn.NotificationUpdate(
        command=update.command,
        guid_identifier=None if guid is None else pseudonyms.guid(guid),
        path_name=None if path is None else pseudonyms.text(path),
        guid_master_id=pseudonyms.guid(update.guid_master_id),
        properties=[(each[0], _renamed_value(each[1], pseudonyms)) for each in update.properties],
    )


def _renamed_value(value: Any, pseudonyms: Pseudonyms) -> Any:
    """The value of a property; numbers stay, alone and in vectors."""
    match value:
        case str():
            return pseudonyms.text(value)
        case UUID():
            return pseudonyms.guid(value)
        case tuple():
            return tuple(map(pseudonyms.text, value))
        case np.ndarray(ndim=2):
            return [pseudonyms.guid(UUID(bytes_le=bytes(each))) for each in value]
        case np.ndarray(dtype=np.uint8):
            return bytes(len(value))
    return value
