"""What ``msmqwire send`` makes of options and rows: the packets that an acceptor reads, and the files."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from msmqwire import mqqb
from msmqwire.capture import TABLES
from msmqwire.cli.message_bodies import body_of_bytes, body_of_text
from msmqwire.cli.next_hops import find_destination
from msmqwire.directory import MemoryDirectory
from msmqwire.mqqb import SecurityHeader, TransactionHeader
from tests.cli.support import EXAMPLES, Done, process, refused
from tests.net.session_wire import Wire, free_port, in_thread, listener
from tests.reference.mqqb_session_packets import SessionAck, SessionHeader

NAME = r"DIRECT=TCP:127.0.0.1\private$\orders"
SOURCE, OTHER = uuid.UUID(int=0xA), uuid.UUID(int=0xB)


class Sent(NamedTuple):
    """The packets that the acceptor read, and how the command ended."""

    packets: list[bytes]
    status: int
    error: str

    @property
    def messages(self) -> list[mqqb.UserMessage]:
        found = [mqqb.decode(packet, strict=True) for packet in self.packets]
        assert all(isinstance(each, mqqb.UserMessage) for each in found)
        return found  # type: ignore[return-value]


def sent(count: int, *arguments: str, rows: Sequence[dict[str, Any]] = (), name: str = NAME) -> Sent:
    """Let the command send so many messages to an acceptor, which acknowledges them together."""
    packets: list[bytes] = []
    with listener() as listening:

        def play() -> None:
            wire = Wire(listening.accept()[0])
            wire.accept_session()
            packets.extend(wire.read_packet() for _ in range(count))
            recoverable = sum(packet[60] >> 5 & 3 == 1 for packet in packets)
            wire.write(SessionAck(SessionHeader(count, recoverable, 1 if recoverable else 0, 0, 0)))
            wire.read_to_end()
            wire.close()

        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        options = ("--rows",) if rows else ()
        port = str(listening.getsockname()[1])
        with in_thread(play):
            done = process("send", name, "--port", port, "--timeout", "20", *options, *arguments, input=data)
    assert done.stdout == b""
    return Sent(packets, done.returncode, done.stderr.decode())


def captured(**fields: Any) -> tuple[bytes, dict[str, Any]]:
    """A packet of another sender, and its row as ``decode`` writes it."""
    values = {
        "destination_queue": r"DIRECT=OS:old\private$\orders", "source_queue_manager": SOURCE, "message_id": 77,
        "sent_time": 1_600_000_000, "body": b"body", **fields,
    }  # fmt: skip
    packet = mqqb.encode(mqqb.UserMessage(**values))
    table = TABLES["messages"].decode_batch([packet]).to_arrow(guid="text", dictionaries=False)
    return packet, json.loads(json.dumps(table.to_pylist()[0], default=plain))


def plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


SIGNED = SecurityHeader(
    security_flags=0xC1, security_id=bytes.fromhex("010100000000000512000000"), signature=b"s" * 128,
    sender_certificate=b"c" * 40,
)  # fmt: skip
ENCRYPTED = SecurityHeader(security_flags=0xA1, security_id=SIGNED.security_id, encryption_key=b"k" * 128)
TRANSACTION = TransactionHeader(tx_sequence_id=1, tx_sequence_number=1)


# --- rows ---


def test_a_captured_signature_is_not_sent_with_a_new_message() -> None:
    """[MS-MQQB] 3.1.5.8.3: the receiver rejects a signature that was made of another identity."""
    _, row = captured(security=SIGNED)
    found = sent(2, rows=[row, {"label": "plain"}])
    message, other = found.messages
    assert (message.security, other.security) == (None, None)
    assert (message.message_id, bytes(message.body)) == (1, b"body")
    assert message.source_queue_manager != SOURCE
    assert str(message.destination_queue) == r"DIRECT=TCP:127.0.0.1\PRIVATE$\orders"
    assert found.status == 0
    assert "; 1 message sent without a SecurityHeader, which belongs to the captured message" in found.error


@pytest.mark.parametrize("security", [SIGNED, ENCRYPTED])
def test_as_captured_sends_the_bytes(security: SecurityHeader) -> None:
    privacy_level = 3 if security is ENCRYPTED else 0
    packet, row = captured(
        security=security, privacy_level=privacy_level, delivery_mode="recoverable", priority=6, hop_count=2
    )
    found = sent(1, "--as-captured", "--label", "another", rows=[row])
    assert (found.packets, found.status) == ([packet], 0)
    assert "SecurityHeader" not in found.error


def test_identifiers_of_two_sources_as_captured() -> None:
    """Both have the MessageID 77."""
    packets, rows = zip(*(captured(source_queue_manager=source) for source in (SOURCE, OTHER)), strict=True)
    found = sent(2, "--as-captured", rows=rows)
    assert (found.packets, found.status) == ([*packets], 0)
    assert found.error.startswith("2 messages received by queue manager ")


def test_rows_that_cannot_be_sent_are_left_out() -> None:
    """A transactional message, an encrypted one, an acknowledgment of a transaction, and one that is too large."""
    rows = [
        {"label": "first"},
        captured(transaction=TRANSACTION, delivery_mode="recoverable")[1],
        captured(security=ENCRYPTED, privacy_level=3)[1],
        {"kind": "order_ack"},
        {"body": "00" * (4 << 20)},
        {"label": "last"},
    ]
    found = sent(2, rows=rows)
    assert [message.label for message in found.messages] == ["first", "last"]
    assert found.status == 2
    *lines, last = found.error.splitlines()
    reasons = ("transactional messages are not", "the body is encrypted", "no message that can be sent", "PacketSize")
    for line, number, reason in zip(lines, (2, 3, 4, 5), reasons, strict=True):
        assert line.startswith(f"msmqwire: standard input: line {number}: ")
        assert reason in line
    assert last.endswith(", 4 rows left out")


def test_a_line_that_is_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading goes on at the next line."""
    found = sent(2, rows=[{"label": "first"}, {"body_text": "x" * (65 << 20)}, {"label": "last"}])
    assert ([message.label for message in found.messages], found.status) == (["first", "last"], 2)
    assert "line 2: it has more than 67,108,864 bytes; left out" in found.error


def test_options_are_for_rows_without_the_column() -> None:
    options = ("--priority", "6", "--time-to-reach-queue", "60", "--label", "option", "--response-queue", NAME)
    one, other = sent(2, *options, rows=[{"priority": 7, "label": "row"}, {"label": None}]).messages
    assert [(each.priority, each.time_to_reach_queue, each.label) for each in (one, other)] == [
        (7, 60, "row"), (6, 60, "option"),
    ]  # fmt: skip
    assert one.response_queue == other.response_queue == one.destination_queue
    assert (other.admin_queue, other.positive_arrival_ack, other.negative_receive_ack) == (None, False, False)


# --- journal and dead letters ---


def rows_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_journal_and_dead_letters(tmp_path: Path) -> None:
    """JP and JN, [MS-MQQB] 3.1.5.5.2 and 3.1.7.1.2; the row of a dead letter is the row of a new message."""
    journal, dead = tmp_path / "journal", tmp_path / "dead"
    options = ("--journal", str(journal), "--dead-letter", str(dead))
    found = sent(1, *options, "--text", "one")
    (message,) = found.messages
    assert (message.positive_source_journaling, message.negative_source_journaling) == (True, True)
    (row,) = rows_in(journal)
    assert (row["body_text"], row["message_id"], row["source_queue_manager"]) == (
        "one", 1, str(message.source_queue_manager),
    )  # fmt: skip
    assert rows_in(dead) == []

    closed = str(free_port())
    refused("send", NAME, "--port", closed, *options, "--text", "two", "--timeout", "1")
    refused(
        "send", NAME, "--port", closed, *options, "--text", "three", "--timeout", "20", "--time-to-reach-queue", "1"
    )
    assert [(row["body_text"], row["reason"]) for row in rows_in(dead)] == [
        ("two", "unacknowledged"), ("three", "nack_reach_queue_timeout"),
    ]  # fmt: skip
    assert len(rows_in(journal)) == 1
    again = sent(2, rows=rows_in(dead))
    assert [each.body_text for each in again.messages] == ["two", "three"]


def rejection(message: mqqb.UserMessage, message_class: int, **fields: Any) -> bytes:
    """A negative acknowledgment of a message to its administration queue: 3.1.7.15."""
    return mqqb.encode(
        mqqb.UserMessage(
            destination_queue=message.admin_queue, source_queue_manager=OTHER, message_id=1, sent_time=1,
            message_class=message_class, correlation_guid=message.source_queue_manager,
            correlation_ordinal=message.message_id, **fields,
        )
    )  # fmt: skip


def rejected(message_class: int, *arguments: str, host: str = "127.0.0.1", **options: Any) -> Done:
    """Let the command send one message to an acceptor, which rejects it on the session."""
    with listener(host) as listening:

        def play() -> None:
            wire = Wire(listening.accept()[0])
            wire.accept_session()
            message = mqqb.decode(wire.read_packet())
            assert isinstance(message, mqqb.UserMessage)
            mode = message.delivery_mode
            is_recoverable = mode == "recoverable"
            wire.write(rejection(message, message_class, delivery_mode=mode))
            if is_recoverable:
                assert wire.read(SessionAck).header[:3] == (1, 1, 1)
            wire.write(SessionAck(SessionHeader(1, is_recoverable, is_recoverable, 1, is_recoverable)))
            wire.read_to_end()
            wire.close()

        port = str(listening.getsockname()[1])
        with in_thread(play):
            done = process("send", "--port", port, "--timeout", "20", *arguments, **options)
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_rejected_message_is_a_dead_letter(tmp_path: Path) -> None:
    dead = tmp_path / "dead"
    done = rejected(0x8003, NAME, "--text", "x", "--wait", "reach", "--dead-letter", str(dead))
    assert done.returncode == 3
    assert [(row["body_text"], row["message_class"], row["reason"]) for row in rows_in(dead)] == [
        ("x", 0, "nack_q_exceed_quota")
    ]
    assert json.loads(done.stdout)["correlation_ordinal"] == 1
    rejection, outcome = done.stderr.decode().splitlines()
    assert rejection.startswith("message 1: nack_q_exceed_quota: ")
    assert outcome.endswith(", 0 reached the queue, 1 rejected")


def test_answers_over_ipv6() -> None:
    done = rejected(0x8000, r"DIRECT=TCP:::1\private$\orders", "--wait", "receive", host="::1")
    assert done.returncode == 3
    assert json.loads(done.stdout)["destination_queue"] == r"DIRECT=TCP:::1\PRIVATE$\msmqwire_send"


def test_a_rejection_that_a_row_asks_for_is_a_row() -> None:
    """[MS-MQQB] 3.1.5.11, 3.1.5.8.7: before it is acknowledged."""
    queue = r"DIRECT=OS:localhost\private$\acks"
    row = {"admin_queue": queue, "negative_arrival_ack": True, "delivery_mode": "recoverable"}
    data = b"\n" + json.dumps(row).encode() + b"\n"
    done = rejected(0x8000, NAME, "--rows", input=data)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert (found["message_class_name"], found["correlation_ordinal"]) == ("nack_bad_dst_q", 1)
    rejection, outcome = done.stderr.decode().splitlines()
    assert rejection.startswith("line 2: nack_bad_dst_q: ")
    assert outcome.endswith(", 1 rejected")


def test_a_rejection_that_cannot_be_written_is_not_acknowledged() -> None:
    """The reader of standard output has gone: the queue manager keeps its answer."""
    with listener() as listening:
        acknowledged: list[SessionAck] = []

        def play() -> None:
            wire = Wire(listening.accept()[0])
            wire.accept_session()
            message = mqqb.decode(wire.read_packet())
            assert isinstance(message, mqqb.UserMessage)
            wire.write(rejection(message, 0x8000, delivery_mode="recoverable"))
            acknowledged.extend(packet for packet in wire.read_to_end() if isinstance(packet, SessionAck))
            wire.close()

        port = str(listening.getsockname()[1])
        with in_thread(play), open("/dev/full", "wb") as full:
            done = process("send", NAME, "--port", port, "--text", "x", "--wait", "reach", stdout=full)
    assert acknowledged == []
    assert (done.returncode, b"cannot write standard output: No space left" in done.stderr) == (1, True)


def test_a_file_that_cannot_be_written() -> None:
    port = str(free_port())
    said = refused("send", NAME, "--port", port, "--text", "x", "--timeout", "1", "--dead-letter", "/dev/full")
    assert "cannot write /dev/full: No space left on device" in said
    said = refused("send", NAME, "--text", "x", "--journal", "/nowhere/file")
    assert said == "msmqwire: cannot write /nowhere/file: No such file or directory\n"


# --- names ---


@pytest.mark.parametrize(
    ("name", "host", "queue"),
    [
        (r"DIRECT=OS:.\private$\orders", "localhost", r"DIRECT=OS:.\PRIVATE$\orders"),
        (r".\private$\orders", "localhost", r"DIRECT=OS:.\PRIVATE$\orders"),
        (r"FormatName:DIRECT=TCP:10.0.0.1\orders", "10.0.0.1", r"DIRECT=TCP:10.0.0.1\orders"),
        (r"formatname:direct=os:a\orders", "a", r"DIRECT=OS:a\orders"),
        (r"server\private$\orders", "server", r"DIRECT=OS:server\PRIVATE$\orders"),
        (r"server.example\orders=open", "server.example", r"DIRECT=OS:server.example\orders=open"),
        (r"DIRECT=TCP:10.0.0.1\private$\Neue Bücher", "10.0.0.1", r"DIRECT=TCP:10.0.0.1\PRIVATE$\Neue Bücher"),
        (r"server\private$\注文 2", "server", r"DIRECT=OS:server\PRIVATE$\注文 2"),
    ],
)
def test_names_that_people_type(name: str, host: str, queue: str) -> None:
    found = find_destination(name, None)
    assert ([hop.host for hop in found.hops], str(found.address["destination_queue"])) == ([host], queue)


def test_the_path_of_a_public_queue_in_the_directory() -> None:
    directory = MemoryDirectory.load(str(EXAMPLES / "enterprise.toml"))
    found = find_destination(r"LEDGER\Orders", directory)
    assert str(found.address["destination_queue"]).startswith("PUBLIC=")
    assert str(find_destination(r"ledger\other", directory).address["destination_queue"]) == r"DIRECT=OS:ledger\other"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (r"DIRECT=OS:a\orders;JOURNAL", "a journal takes messages of its own queue manager only; leave out ;JOURNAL"),
        (r"a\orders;journal", "a journal takes messages of its own queue manager only"),
        (r"DIRECT=OS:a\SYSTEM$;DEADXACT", "a dead-letter queue takes messages of its own queue manager only"),
        (f"MACHINE={SOURCE};DEADLETTER", "a dead-letter queue takes messages of its own queue manager only"),
        (f"PUBLIC={SOURCE};JOURNAL", "a journal takes messages of its own queue manager only"),
        (rf"PRIVATE={SOURCE}\1;JOURNAL", "a journal takes messages of its own queue manager only"),
        (r"DIRECT=OS:a\private$\orders;late", "applications move messages into a sub-queue; send to the queue itself"),
        ("DIRECT=HTTP://shop.example/msmq/private$/orders", "messages are sent over TCP only"),
        (r"DIRECT=SPX:00000012:00a0234f7500\orders", "messages are sent over TCP only"),
    ],
)
def test_targets_that_are_refused(name: str, reason: str) -> None:
    assert reason in refused("send", name, "--text", "x", "--timeout", "1")


def test_resolve_takes_the_same_names() -> None:
    done = process("resolve", r"FormatName:DIRECT=OS:a\private$\q", "-T", "json")
    assert json.loads(done.stdout)["destination"]["host_name"] == "a"
    done = process("resolve", r"ledger\orders", "--directory", str(EXAMPLES / "enterprise.toml"), "-T", "json")
    assert json.loads(done.stdout)["name"]["kind"] == "public"


# --- bodies: vectors written by hand from the documentation of each reader ---

#: XmlMessageFormatter: XmlSerializer of a string, as it writes to a stream; BodyType stays 0.
XML = bytes.fromhex(
    "3c3f786d6c2076657273696f6e3d22312e30223f3e0d0a"  # <?xml version="1.0"?> CR LF
    "3c737472696e673e48266c743b692661"  # <string>H&lt;i&a
    "6d703b20c3bc3c2f737472696e673e"  # mp; u with diaeresis in UTF-8</string>
)


@pytest.mark.parametrize(
    ("format", "text", "body", "body_type"),
    [
        ("xml", "H<i& ü", XML, 0),
        ("xml", "a\r\n\tb>", b'<?xml version="1.0"?>\r\n<string>a&#xD;\n\tb&gt;</string>', 0),
        # A BSTR: UTF-16 without the length that it has in memory, and without its terminator
        ("activex", "Hi ü", bytes.fromhex("480069002000fc00"), 8),
        ("json", '{"id": 7, "ü": null}', b'{"id": 7, "\xc3\xbc": null}', 0),
        ("bytes", "Hü", bytes.fromhex("48c3bc"), 0x1011),
        (None, "Hü", bytes.fromhex("4800fc00"), 31),
        ("xml", "", b'<?xml version="1.0"?>\r\n<string></string>', 0),
        ("activex", "", b"", 8),
    ],
)
def test_a_text_in_each_format(format: str | None, text: str, body: bytes, body_type: int) -> None:
    assert body_of_text(text, format) == (body, body_type)


@pytest.mark.parametrize(
    ("format", "data", "body_type"),
    [
        ("xml", b'<?xml version="1.0"?><order id="7"/>', 0),
        ("json", b"[1, 2]", 0),
        ("activex", struct.pack("<I", 7), 0x1011),
        ("bytes", b"\0\xff", 0x1011),
        (None, b"\0\xff", 0x1011),
    ],
)
def test_a_file_in_each_format(format: str | None, data: bytes, body_type: int) -> None:
    assert body_of_bytes(data, format) == (data, body_type)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--format", "json", "--text", "{"), "the body is not json: "),
        (("--format", "xml", "--text", "a\0b".replace("\0", "\x01")), "xml cannot have the character U+0001"),
        (("--format", "xml", "--body", str(EXAMPLES / "site.toml")), "the body is not xml: "),
    ],
)
def test_bodies_that_are_not_of_the_format(arguments: tuple[str, ...], reason: str) -> None:
    assert reason in refused("send", NAME, *arguments)


def test_format_of_rows_with_a_text() -> None:
    one, other = sent(2, "--format", "xml", rows=[{"body_text": "a"}, {"body_text": "b", "body_type": 31}]).messages
    assert (bytes(one.body), one.body_type) == (b'<?xml version="1.0"?>\r\n<string>a</string>', 0)
    assert (bytes(other.body), other.body_type) == (b"b\0", 31)
    assert one.body_format == "xml"
