"""The numbers of faults: the one that was read, and the one that was needed."""

from __future__ import annotations

import pickle
import struct
from typing import Any

import pytest

from msmqwire import formatname, mqqb
from msmqwire.errors import DecodeError
from tests.columns.formats import FORMATS, MESSAGES, NOTIFICATIONS, TOPOLOGY, Format

GUIDS = bytes(range(48))
REQUEST = b"\0\1\0\0" + GUIDS
REPLY = b"\0\2\0\0" + GUIDS[:16] + struct.pack("<III", 1, 0, 8) + GUIDS[:32] + "00a\0".encode("utf-16-le")
UPDATE = b"\1\1\1\1" + GUIDS[:32] + bytes(24)
#: Of the MessagePropertiesHeader; the queue has no bytes of its own.
PROPERTIES = 16 + 48 + 4
QUEUE = "PRIVATE=557358d1-9150-9595-4997-b6e611ea26c6\\3"
SECURITY = mqqb.SecurityHeader(security_flags=2, security_id=GUIDS[:16], sender_certificate=b"0123")
LISTS = mqqb.MultiQueueFormatHeader(destination_queues=(QUEUE,))
SOAP = mqqb.SoapHeader(soap_header="header", soap_body="body")
COMPOUND = mqqb.CompoundMessageHeader(http_body=b"0123456789", message_body_size=4, message_body_offset=2)
OVERFLOWS = (0x80000000, 0xFFFFFFFF)


def message(**optional: Any) -> bytes:
    return mqqb.encode(mqqb.UserMessage(destination_queue=QUEUE, label="one", body=b"body", **optional))


def changed(packet: bytes, at: int, number: int) -> bytes:
    """A packet with another number of four bytes."""
    return packet[:at] + struct.pack("<I", number) + packet[at + 4 :]


@pytest.mark.parametrize(
    ("kind", "payload", "fault"),
    [
        (TOPOLOGY, b"", ("truncated", "Version", 0, None, 1)),
        (TOPOLOGY, b"\0\x07", ("bad_type", "Type", 1, 7, None)),
        (TOPOLOGY, REQUEST[:30], ("truncated", "RequestID", 20, None, 16)),
        (TOPOLOGY, REQUEST + struct.pack("<II", 33, 0), ("bad_count", "IPXNetworkCount", 52, 33, 32)),
        (TOPOLOGY, REQUEST + struct.pack("<II", 2, 0), ("truncated", "IPXNetworkNumberArray", 56, 2, 8)),
        (TOPOLOGY, changed(REPLY, 20, 0), ("bad_count", "ConnectedNetworkCount", 20, 0, 1)),
        (TOPOLOGY, changed(REPLY, 20, 32), ("truncated", "ConnectedNetworkArray", 32, 32, 512)),
        (TOPOLOGY, changed(REPLY, 28, 7), ("bad_size", "DirectoryServiceServerSize", 28, 7, 8)),
        (TOPOLOGY, changed(REPLY, 28, 10), ("truncated", "DirectoryServiceServerArray", 64, 10, 10)),
        (NOTIFICATIONS, b"\3\1", ("bad_version", "Version", 0, 3, None)),
        (NOTIFICATIONS, b"\2\2", ("bad_count", "NumberOfUpdateNotifications", 1, 2, 1)),
        (NOTIFICATIONS, b"\1\1\3", ("bad_command", "Command", 2, 3, None)),
        (NOTIFICATIONS, b"\1\1\1\2", ("bad_use_guid", "UseGuid", 3, 2, None)),
        (NOTIFICATIONS, UPDATE + b"\2\0\0\0\0", ("truncated", "PropertyId", 61, 2, 8)),
        (NOTIFICATIONS, UPDATE + b"\1" + bytes(4), ("unknown_property", "PropertyId[0]", 61, 0, None)),
        (MESSAGES, b"\x11" + message()[1:], ("bad_version", "VersionNumber", 0, 0x11, 0x10)),
        (MESSAGES, changed(message(), 4, 5), ("bad_signature", "Signature", 4, 5, 0x524F494C)),
        (MESSAGES, changed(message(), 8, 15), ("bad_size", "PacketSize", 8, 15, 16)),
        (MESSAGES, changed(message(), 8, 1000), ("truncated", "PacketSize", 8, 1000, 1000)),
        (MESSAGES, message()[:PROPERTIES] + b"\0\xfb" + message()[PROPERTIES + 2 :],
         ("bad_size", "LabelLength", PROPERTIES + 1, 0xFB, 250)),
    ],
)  # fmt: skip
def test_numbers_of_a_fault(kind: Format, payload: bytes, fault: tuple[Any, ...]) -> None:
    batch = kind.decode_batch([payload, None])
    assert batch.fault(0) == fault
    assert batch.to_arrow()["fault"].to_pylist() == [dict(zip(batch.fault(0)._fields, fault, strict=True)), None]
    with pytest.raises(DecodeError) as raised:
        kind.codec.decode(payload, **({"transport": "tcp"} if kind is MESSAGES else {}))
    error = raised.value
    assert (error.code, error.field, error.offset, error.value, error.needed) == fault
    again = pickle.loads(pickle.dumps(error))
    assert (again.value, again.needed, str(again)) == (error.value, error.needed, str(error))


def lengths() -> list[tuple[str, bytes, int, int]]:
    """Each length of 32 bits in a message: the field of the fault, a packet, the place of the length, bytes a unit."""
    secured, lists, soap, compound = (
        message(security=SECURITY), message(multi_queue=LISTS), message(soap=SOAP), message(compound=COMPOUND)
    )  # fmt: skip
    security = PROPERTIES
    signature = lists.index(b"\x5e\x01")
    header, body, http = soap.index(b"\x20\x03"), soap.index(b"\x84\x03"), compound.index(b"\xf4\x01")
    return [
        ("PacketSize", message(), 8, 0),
        ("ExtensionData", message(), PROPERTIES + 52, 1),
        ("MessageBody", message(), PROPERTIES + 32, 1),
        ("SecurityHeader.SenderCertSize", secured, security + 8, 0),
        ("ProviderInfo", secured, security + 12, 1),
        ("Destination.HeaderSize", lists, lists.index(b"\x64\0") - 4, 1),
        ("Destination.FormatNameList[1]", lists, lists.index(b"\x64\0") + 4, 0),
        ("MQFSignatureHeader.Signature", lists, signature + 4, 1),
        ("SoapHeader.Header", soap, header + 4, 2),
        ("SoapBody.Body", soap, body + 4, 2),
        ("CompoundMessageHeader.HttpBodySize", compound, http + 4, 1),
        ("CompoundMessageHeader.MessageBodySize", compound, http + 8, 1),
        ("CompoundMessageHeader.MessageBodyOffset", compound, http + 12, 1),
    ]


@pytest.mark.parametrize("number", OVERFLOWS)
@pytest.mark.parametrize(("field", "packet", "at", "unit"), lengths(), ids=lambda value: str(value)[:40])
def test_a_length_that_leaves_the_packet_is_the_value(
    field: str, packet: bytes, at: int, unit: int, number: int
) -> None:
    fault = mqqb.decode_batch([changed(packet, at, number)]).fault(0)
    assert fault is not None
    assert (fault.field, fault.value) == (field, number)
    assert unit == 0 or fault.needed == unit * number


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_the_value_is_in_the_payload(kind: Format) -> None:
    """At the offset, where the fault is of a number; anywhere before it, where it is of the bytes that it counts."""
    checked = 0
    payloads = [data[:size] for data in kind.packets for size in range(0, len(data), 7)] + list(kind.cases(2000, 9))
    batch = kind.decode_batch(payloads)
    rows = batch.messages[:-1].tolist() if hasattr(batch, "messages") else range(len(batch))
    for data, row in zip(payloads, rows, strict=True):
        fault = batch.fault(row)
        if fault is None or fault.value is None:
            continue
        forms = [fault.value.to_bytes(size, "little") for size in (1, 2, 4) if fault.value < 1 << 8 * size]
        if fault.code in ("truncated", "bad_size"):
            assert any(form in data for form in forms), (fault, data.hex())
        else:
            assert any(data.startswith(form, fault.offset) for form in forms), (fault, data.hex())
        checked += 1
    assert checked > 10


def test_format_names_have_no_numbers() -> None:
    assert formatname.parse_batch(["PUBLIC=x"]).fault(0)[3:] == (None, None)  # type: ignore[index]
