"""One packet: every attribute is what the oracle says, and what is written is read the same."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from array import array
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from msmqwire import formatname, mqqb
from msmqwire.errors import DecodeError, EncodeError
from tests.columns.formats import rebuilt
from tests.mqqb.messages import F7, F8, FULL, GUIDS
from tests.vectors import get

SID = b"\1\1" + bytes(10)

#: What may stand in a packet that an encoder writes.


def test_everything_at_once() -> None:
    data = mqqb.encode(FULL)
    packet = mqqb.decode(data, strict=True)
    assert packet == FULL
    assert isinstance(packet, mqqb.UserMessage)
    assert packet.destination_queue == formatname.PrivateName(GUIDS[0], 3)
    assert packet.queue_manager_address == GUIDS[0]
    assert packet.notification == "plain"
    assert packet.transaction is not None
    assert packet.transaction.connector_queue_manager == GUIDS[5]
    assert packet.delivery_mode == "recoverable"
    assert packet.security is not None
    assert packet.security.sender_id_type == "sid"
    assert not packet.security.body_encrypted
    assert packet.session is not None
    assert len(data) == packet.packet_size + 16
    assert packet.multi_queue is not None
    assert [str(queue) for queue in packet.multi_queue.destination_queues] == [
        "DIRECT=OS:server\\one",
        f"PUBLIC={GUIDS[6]}",
        f"DL={GUIDS[7]}",
    ]


def test_printed_it_is_what_builds_it() -> None:
    for packet in (FULL, mqqb.decode(F7), mqqb.decode(F8)):
        assert rebuilt(packet) == packet


@pytest.mark.parametrize(
    "header",
    [
        mqqb.TransactionHeader,
        mqqb.SecurityHeader,
        mqqb.SoapHeader,
        mqqb.CompoundMessageHeader,
        mqqb.MultiQueueFormatHeader,
        mqqb.SessionHeader,
    ],
)
def test_fields_that_are_not_given_are_zero_empty_or_none(header: Any) -> None:
    assert not any(field.default for field in dataclasses.fields(header) if field.default is not dataclasses.MISSING)


def test_the_body_is_a_view() -> None:
    packet = mqqb.decode(F7)
    assert isinstance(packet, mqqb.UserMessage)
    assert np.shares_memory(np.frombuffer(packet.body, np.uint8), np.frombuffer(F7, np.uint8))
    assert packet.body.readonly
    writable = bytearray(F7)
    kept = mqqb.decode(writable)
    writable[:] = bytes(len(writable))
    assert kept == packet


@pytest.mark.parametrize(
    "body", [array("H", [1, 2]), np.ones((2, 2), np.uint16), memoryview(b"abcd").cast("I"), memoryview(b"abcd")[::2]]
)
def test_a_body_has_the_bytes_of_its_buffer(body: Any) -> None:
    """The items of the buffer may have more than one byte."""
    written = mqqb.UserMessage(body=body)
    assert mqqb.decode(mqqb.encode(written), strict=True) == written
    assert bytes(written.body or b"") == memoryview(body).tobytes()
    assert written.allocation_body_size == memoryview(body).nbytes


def test_a_packet_over_bytes_as_wider_items_has_its_bytes() -> None:
    """A slice of such a view counts its items; that of a packet counts bytes."""
    data = mqqb.encode(mqqb.UserMessage(body=b"12345678", extension_data=b"abcd")) + b"trailing"
    expected = mqqb.decode(data)
    for view in (memoryview(data).cast("H"), memoryview(data).cast("B", shape=[len(data) // 2, 2])):
        packet = mqqb.decode(view)
        assert isinstance(packet, mqqb.UserMessage)
        assert packet == expected
        parts = (packet.body, packet.extension_data, packet.trailing or b"")
        assert tuple(map(bytes, parts)) == (b"12345678", b"abcd", b"trailing")


def test_flags_of_numpy_are_taken() -> None:
    flags = mqqb.decode_batch([F7, mqqb.encode(mqqb.UserMessage(tracing=True))])["tracing"]
    assert [mqqb.UserMessage(tracing=flag).tracing for flag in flags] == [False, True]


def test_none_counts_as_not_given() -> None:
    given: dict[str, Any] = dict.fromkeys(inspect.signature(mqqb.UserMessage).parameters)
    assert mqqb.UserMessage(**given) == mqqb.UserMessage()


def test_reserved_bytes_and_padding_are_no_part_of_the_value() -> None:
    changed = bytearray(F7)
    changed[1] = 0xAA
    changed[-1] = 0x55
    assert mqqb.decode(changed) == mqqb.decode(F7)
    assert hash(mqqb.decode(changed)) == hash(mqqb.decode(F7))
    changed[-3] ^= 1  # of the body
    assert mqqb.decode(changed) != mqqb.decode(F7)
    assert mqqb.decode(F7) != mqqb.decode(F8)
    assert mqqb.decode(F7) != F7


def test_the_transport_tells_a_ping_from_a_packet() -> None:
    ping = mqqb.encode(mqqb.Ping(cookie=int.from_bytes(b"LIOR", "little"), queue_manager=GUIDS[0], refused=True))
    packet = mqqb.decode(ping, transport="udp")
    assert isinstance(packet, mqqb.Ping)
    assert packet.refused
    assert pickle.loads(pickle.dumps(packet)) == packet
    with pytest.raises(DecodeError, match="bad_version"):
        mqqb.decode(ping.ljust(40, b"\0"))
    with pytest.raises(DecodeError, match=r"Ping\.Signature"):
        mqqb.decode(F7, transport="udp")
    with pytest.raises(ValueError, match="transport"):
        mqqb.decode(F7, transport="ipx")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("class_", "values"),
    [
        (mqqb.Ping, {"cookie": 7, "queue_manager": GUIDS[0], "initiator_is_client": True}),
        (
            mqqb.EstablishConnection,
            {"client_guid": GUIDS[0], "server_guid": GUIDS[1], "time_stamp": 9, "refused": True},
        ),
        (mqqb.ConnectionParameters, {"recoverable_ack_timeout": 500, "ack_timeout": 20000, "window_size": 64}),
        (mqqb.SessionAck, {"ack_sequence_number": 1, "recoverable_msg_ack_flags": 0x80000001, "window_size": 32}),
    ],
)
def test_packets_of_sessions(class_: Any, values: dict[str, Any]) -> None:
    packet = class_(**values)
    again: Any = mqqb.decode(mqqb.encode(packet), strict=True)
    assert type(again) is class_
    assert again == packet
    assert {name: getattr(again, name) for name in values} == values
    assert set(values) <= set(dir(packet))
    with pytest.raises(TypeError, match="nothing"):
        class_(**values, nothing=1)
    with pytest.raises(TypeError, match="needs"):
        class_()
    with pytest.raises(AttributeError):
        _ = packet.body


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"priority": 8}, "priority"),
        ({"priority": -1}, "priority"),
        ({"message_id": 1 << 32}, "message_id"),
        ({"hop_count": 32}, "hop_count"),
        ({"hop_count": 0x1E}, "UserHeader.Flags"),
        ({"delivery_mode": "fast"}, "delivery_mode"),
        ({"label": "a\0b"}, "label"),
        ({"label": "x" * 250}, "Label"),
        ({"label": "x" * 251}, "label"),
        ({"label": "x" * 300}, "label"),
        ({"label": b"x"}, "label"),
        ({"body": "text"}, "body"),
        ({"body": 5}, "body"),
        ({"body": np.array([b"an address"], object)}, "body"),
        ({"body": np.str_("text")}, "body"),
        ({"extension_data": np.float64(5)}, "extension_data"),
        ({"priority": np.array([1])}, "priority"),
        ({"body": bytes(1 << 22)}, "PacketSize"),
        ({"allocation_body_size": 1, "body": b"ab"}, "AllocationBodySize"),
        ({"privacy_level": 2}, "PrivacyLevel"),
        ({"message_class": 0x200}, "MessageClass"),
        ({"hash_algorithm": 0x8005}, "HashAlgorithm"),
        ({"encryption_algorithm": 0x6611}, "EncryptionAlgorithm"),
        ({"privacy_level": 5, "encryption_algorithm": 0x6602}, "EncryptionAlgorithm"),
        ({"sent_over_http": True}, "UserHeader.Flags"),
        ({"admin_queue": "DIRECT=OS:a\\b"}, "AdminQueue"),
        ({"destination_queue": "DIRECT=OS:a\\b", "queue_manager_address": GUIDS[0]}, "QueueManagerAddress"),
        ({"destination_queue": f"PUBLIC={GUIDS[0]}"}, "QueueManagerAddress"),
        ({"destination_queue": f"PRIVATE={UUID(int=0)}\\5"}, "QueueManagerAddress"),
        ({"source_queue_manager": "x"}, "source_queue_manager"),
        ({"destination_queue": "DIRECT=nowhere"}, "destination_queue"),
        ({"destination_queue": f"DL={GUIDS[0]}"}, "destination_queue"),
        ({"destination_queue": f"MACHINE={GUIDS[0]}"}, "destination_queue"),
        ({"destination_queue": f"PUBLIC={GUIDS[0]};JOURNAL"}, "destination_queue"),
        ({"destination_queue": f"PRIVATE={GUIDS[0]}\\3", "queue_manager_address": GUIDS[1]}, "destination_queue"),
        ({"destination_queue": 5}, "destination_queue"),
        ({"transaction": mqqb.TransactionHeader(tx_sequence_id=1, tx_sequence_number=0)}, "TxSequenceNumber"),
        (
            {
                "transaction": mqqb.TransactionHeader(
                    tx_sequence_id=1, tx_sequence_number=2, previous_tx_sequence_number=0xFFFFFFFF
                )
            },
            "PreviousTxSequenceNumber",
        ),
        (
            {
                "label": "QM Ordering Ack",
                "priority": 0,
                "message_class": 0xFF,
                "body": bytes(36),
                "destination_queue": f"PRIVATE={GUIDS[0]}\\4",
            },
            "MessageBody",
        ),
        ({"transaction": mqqb.SoapHeader()}, "transaction"),
        (
            {"transaction": mqqb.TransactionHeader(tx_sequence_id=None, tx_sequence_number=1)},  # type: ignore[arg-type]
            "tx_sequence_id",
        ),
        ({"compound": mqqb.CompoundMessageHeader(http_body=None)}, "http_body"),  # type: ignore[arg-type]
        ({"security": mqqb.SecurityHeader()}, "SecurityHeader"),
        ({"security": mqqb.SecurityHeader(security_flags=0x11, security_id=SID)}, "SecurityHeader.Flags"),
        ({"security": mqqb.SecurityHeader(security_flags=1, security_id=b"\2" + SID[1:])}, "SecurityID"),
        ({"security": mqqb.SecurityHeader(security_flags=1, security_id=SID + b"x")}, "SecurityID"),
        ({"security": mqqb.SecurityHeader(security_flags=1, security_id=SID, signature=b"x")}, "ProviderInfo"),
        ({"security": mqqb.SecurityHeader(security_flags=0x21, security_id=SID)}, "PrivacyLevel"),
        ({"security": mqqb.SecurityHeader(security_flags=2, security_id=b"x")}, "SecurityID"),
        ({"security": mqqb.SecurityHeader(security_flags=1, security_id=bytes(0x10000))}, "security_id"),
        ({"session": mqqb.SessionHeader(window_size=0x10000)}, "window_size"),
        ({"session": mqqb.SessionHeader(window_size=0)}, "SessionHeader.WindowSize"),
    ],
)
def test_what_no_sender_sends_is_refused(values: dict[str, Any], field: str) -> None:
    with pytest.raises(EncodeError) as raised:
        mqqb.UserMessage(**values)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("packet", "field"),
    [
        (lambda: mqqb.SessionAck(window_size=1, refused=True), "InternalHeader.Flags"),
        (lambda: mqqb.SessionAck(window_size=0), "SessionHeader.WindowSize"),
        (lambda: mqqb.EstablishConnection(client_guid=GUIDS[0], operating_system=0x811), "OperatingSystem"),
        (lambda: mqqb.EstablishConnection(client_guid=GUIDS[0], operating_system=0x0810), "Flags"),
    ],
)
def test_packets_of_sessions_that_no_sender_sends_are_refused(packet: Any, field: str) -> None:
    with pytest.raises(EncodeError) as raised:
        packet()
    assert raised.value.field == field


def test_a_transactional_message_is_recoverable_and_has_no_priority() -> None:
    header = mqqb.TransactionHeader(tx_sequence_id=1, tx_sequence_number=1)
    message = mqqb.UserMessage(transaction=header)
    assert (message.priority, message.delivery_mode) == (0, "recoverable")
    with pytest.raises(EncodeError, match="express_transaction"):
        mqqb.UserMessage(transaction=header, delivery_mode="express")
    with pytest.raises(EncodeError, match="transaction_priority"):
        mqqb.UserMessage(transaction=header, priority=3)


@pytest.mark.parametrize(
    ("admin", "codes"), [(GUIDS[0], (3, 1)), (GUIDS[1], (2, 1)), (GUIDS[2], (6, 1))], ids=["there", "here", "else"]
)
def test_private_queues_are_said_by_the_host_they_are_on(admin: UUID, codes: tuple[int, int]) -> None:
    name = f"PRIVATE={admin}\\1F"
    message = mqqb.UserMessage(
        destination_queue=f"PRIVATE={GUIDS[0]}\\5",
        source_queue_manager=GUIDS[1],
        admin_queue=name,
        response_queue=name,
        positive_arrival_ack=True,
    )
    flags = int.from_bytes(mqqb.encode(message)[60:64], "little")
    assert (flags >> 13 & 7, flags >> 16 & 7) == codes
    assert str(message.admin_queue) == str(message.response_queue) == name


def test_in_which_of_its_ways_a_queue_was_written_is_no_part_of_the_value() -> None:
    elsewhere = mqqb.decode(get("mqqb", "admin-queue-elsewhere-that-is-the-source").data)
    made = rebuilt(elsewhere)
    assert mqqb.encode(made) != mqqb.encode(elsewhere)
    assert made == elsewhere
    assert hash(made) == hash(elsewhere)
    assert made != mqqb.decode(F7)


def test_a_direct_name_that_is_none_is_text() -> None:
    data = mqqb.encode(mqqb.UserMessage(destination_queue="DIRECT=OS:a\\b"))
    packet = mqqb.decode(data.replace("OS:".encode("utf-16-le"), "??:".encode("utf-16-le")))
    assert isinstance(packet, mqqb.UserMessage)
    assert packet.destination_queue == "DIRECT=??:a\\b"
    assert mqqb.decode(mqqb.encode(packet)) == packet


def test_what_a_sender_says_of_authentication_says_nothing() -> None:
    """[MS-MQMQ] 2.2.20.6: AU and AS are the receiver's; a packet that sets them breaks a rule."""
    security = mqqb.SecurityHeader(security_flags=0x41, security_id=SID, signature=b"forged")
    message = mqqb.UserMessage(security=security)
    data = bytearray(mqqb.encode(message))
    at = 64  # no queues
    data[at] |= 0x10
    data[at + 1] |= 0x05
    packet = mqqb.decode(data)
    assert packet.violations == ("security_flags",)
    shown = [name for name in dir(packet) if "authentic" in name or "verified" in name or "level" in name]
    assert shown == ["privacy_level"]


def test_lists_of_queues_are_kept_as_tuples() -> None:
    queues = [formatname.parse("DIRECT=OS:a\\b"), formatname.parse("DIRECT=OS:c\\d")]
    header = mqqb.MultiQueueFormatHeader(destination_queues=queues)  # type: ignore[arg-type]
    read = mqqb.decode(mqqb.encode(mqqb.UserMessage(multi_queue=header)))
    assert isinstance(read, mqqb.UserMessage)
    assert read.multi_queue == header
    assert hash(read.multi_queue) == hash(header)


@pytest.mark.parametrize("queues", [None, "DIRECT=OS:a\\b", formatname.parse("DIRECT=OS:a\\b"), 5])
def test_no_list_of_queues(queues: Any) -> None:
    with pytest.raises(EncodeError, match=f"admin_queues: must be many format names, not {type(queues).__name__}"):
        mqqb.MultiQueueFormatHeader(admin_queues=queues)


def test_packets_are_made_by_their_classes() -> None:
    with pytest.raises(TypeError):
        type(FULL).__base__()  # type: ignore[misc]
    empty = mqqb.UserMessage.__new__(mqqb.UserMessage)
    assert repr(empty)
    with pytest.raises(EncodeError, match="never built"):
        mqqb.encode(empty)
    with pytest.raises(TypeError):
        mqqb.encode(None)  # type: ignore[arg-type]


def test_faults_say_how_many_bytes_are_left() -> None:
    """In a packet of any size that has all headers."""
    packet = bytearray(mqqb.encode(FULL))
    packet[2] &= ~0x10  # a SessionHeader would be the first that is truncated
    sizes = range(16, len(packet))
    payloads = [bytes(packet[:8]) + size.to_bytes(4, "little") + bytes(packet[12:size]) for size in sizes]
    faults = mqqb.decode_batch(payloads).faults
    left = np.array(sizes)[faults["row"]] - faults["offset"]
    np.testing.assert_array_equal(faults["available"], left)
    assert (faults["needed"] > faults["available"]).all()
    assert len(set(faults["field"].tolist())) > 20


def renamed(data: bytes, name: str) -> bytes:
    """A packet in which each place of as many letters ``q`` in a direct name has another name."""
    old = ("OS:" + "q" * (len(name) - 5) + "\\q").encode("utf-16-le")
    assert data.count(old)
    return data.replace(old, name.encode("utf-16-le"))


@pytest.mark.parametrize(
    "name",
    [
        "HTTP://server/MSMQ/orders",
        "https://[2001:db8::1]:8443/msmq/private$/orders;journal",
        "http://server/MSMQ/private$\\orders",
        "http://server/MSMQ\\PRIVATE$/orders;late",
        "os:server\\private$\\orders",
        "tcp:10.0.0.1\\system$;deadxact",
        "OS:server/private$/orders",
        "OS:a\\q,OS:b\\q",
    ],
)
def test_names_of_queues_are_the_text_as_sent(name: str) -> None:
    """In a packet and in a batch, alone and in lists: with slashes over HTTP, and keywords in any case."""
    plain = "DIRECT=OS:" + "q" * (len(name) - 5) + "\\q"
    lists = mqqb.MultiQueueFormatHeader(
        destination_queues=(plain, plain), admin_queues=(f"PUBLIC={GUIDS[0]}", plain), response_queues=(plain,)
    )
    message = mqqb.UserMessage(destination_queue=plain, admin_queue=plain, negative_arrival_ack=True, multi_queue=lists)
    data = renamed(mqqb.encode(message), name)
    packet = mqqb.decode(data, strict=True)
    assert isinstance(packet, mqqb.UserMessage)
    assert packet.multi_queue is not None
    (row,) = mqqb.decode_batch([data]).to_arrow(dictionaries=False).to_pylist()
    for column in ("destination_queue", "admin_queue"):
        assert str(getattr(packet, column)) == row[column] == f"DIRECT={name}"
    for column in ("destination_queues", "admin_queues", "response_queues"):
        texts = [str(each) for each in getattr(packet.multi_queue, column)]
        assert texts == row[column]
        assert f"DIRECT={name}" in texts
    assert mqqb.encode(packet) == data
    assert pickle.loads(pickle.dumps(packet)) == packet


def test_a_name_as_sent_is_the_queue_that_it_names() -> None:
    data = renamed(
        mqqb.encode(mqqb.UserMessage(destination_queue="DIRECT=OS:" + "q" * 24 + "\\q")),
        "http://h/MSMQ/private$/orders",
    )
    packet = mqqb.decode(data)
    assert isinstance(packet, mqqb.UserMessage)
    sent = packet.destination_queue
    assert isinstance(sent, formatname.DirectName)
    same = formatname.DirectName("http", "//h/MSMQ", "orders", "private")
    assert sent == same == formatname.parse(str(sent), http_slashes=True)
    assert hash(sent) == hash(same)
    assert (same.sent, str(same)) == (None, "DIRECT=HTTP://h/MSMQ\\PRIVATE$\\orders")
    assert str(pickle.loads(pickle.dumps(sent))) == str(sent) == "DIRECT=http://h/MSMQ/private$/orders"
    assert str(dataclasses.replace(sent, queue="others")) == "DIRECT=HTTP://h/MSMQ\\PRIVATE$\\others"
    # A message that is forwarded, or answered, has the name as it came
    assert mqqb.encode(mqqb.UserMessage(destination_queue=sent)) == data
