"""Columns that are made when they are read, and the headers of messages sent over HTTP as values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StringType

from msmqwire import Payloads, mqqb
from msmqwire.columns import allocated_bytes
from msmqwire.errors import EncodeError
from msmqwire.mqqb import read_body
from msmqwire.mqqb.message.readable import BODY_TYPES
from msmqwire.spark.schema import spark_columns
from tests.mqqb.messages import F7
from tests.reference.mqqb_bodies import readable, readable_extension
from tests.vectors import get

DERIVED = ("sender_sid", "body_type_name", "extension_format", "extension_text", "body_format", "body_text")
REQUEST = b"POST /msmq HTTP/1.1\r\n\r\nMessage--"
COMPOUND = mqqb.CompoundMessageHeader(http_body=REQUEST, message_body_size=7, message_body_offset=23)
SID = bytes.fromhex("01020000000000052000000020020000")


_NUMBERS = st.integers(0, 2**32 - 1)


def message(text: str = "Größe", **values: Any) -> bytes:
    return mqqb.encode(mqqb.UserMessage(body=text.encode("utf-16-le"), body_type=8, **values))


def test_derived_columns_cost_nothing_until_they_are_read() -> None:
    assert tuple(column.name for column in mqqb.MESSAGES.columns if column.derived) == DERIVED
    others = [name for name in mqqb.MESSAGES.names if name not in DERIVED]
    payloads = Payloads.of([message()] * 1000)
    start = allocated_bytes()
    without = mqqb.decode_batch(payloads, columns=others)
    cost = allocated_bytes() - start
    batch = mqqb.decode_batch(payloads)
    assert allocated_bytes() - start == 2 * cost
    assert batch["body_text"].text(999) == "Größe"
    # The text takes 7 bytes, and its format, which is made with it, one
    assert allocated_bytes() - start == 2 * cost + 4 * 1001 + (7 + 1) * 1000
    del without


@pytest.mark.parametrize("name", DERIVED)
def test_one_derived_column_alone(name: str) -> None:
    payloads = [F7, None, b"oops", message(), message(security=mqqb.SecurityHeader(security_flags=1, security_id=SID))]
    whole = mqqb.decode_batch(payloads).to_arrow(dictionaries=False)
    only = mqqb.decode_batch(payloads, columns=[name])
    assert only.is_valid(name).tolist() == [value is not None for value in whole[name].to_pylist()]
    assert only.to_arrow(dictionaries=False).equals(whole.select([name]))
    assert whole.schema.field(name).type == pa.string()
    (column,) = mqqb.MESSAGES.select([name])
    assert [made.spark for made in spark_columns([column])] == [StringType()]


def test_presence_of_a_derived_column_needs_the_column() -> None:
    """It is not known before its values are, and was said to be missing in all rows."""
    packets = [mqqb.encode(mqqb.UserMessage(body=b"<order/>"))]
    assert mqqb.decode_batch(packets).is_valid("HAS_BODY_TEXT").tolist() == [True]
    some = mqqb.decode_batch(packets, columns=["label"])
    for name in ("body_text", "HAS_BODY_TEXT", "sender_sid", "body_type_name"):
        with pytest.raises(KeyError, match="is not among the requested columns: label"):
            some.is_valid(name)
    assert some.is_valid("body").tolist() == some.is_valid("body_format").tolist() == [True]


def test_a_batch_that_is_written_again_makes_them_again() -> None:
    batch = mqqb.decode_batch([message("one"), message("two")])
    assert [batch["body_text"].text(row) for row in range(2)] == ["one", "two"]
    batch = mqqb.decode_batch([b"oops", message("three")], out=batch)
    assert batch.is_valid("body_text").tolist() == [False, True]
    assert [batch["body_text"].text(row) for row in range(2)] == ["", "three"]


def test_bytes_that_changed_after_decoding_are_read_anew() -> None:
    memory = bytearray(message("abcd"))
    batch = mqqb.decode_batch(memoryview(memory).toreadonly(), offsets=[0, len(memory)])
    at = memory.index("abcd".encode("utf-16-le"))
    memory[8:12] = b"\xff" * 4
    assert batch.to_arrow()["body_text"].to_pylist() in ([None], ["abcd"])
    batch = mqqb.decode_batch(memoryview(memory).toreadonly(), offsets=[0, len(memory)])
    memory[at - 24 : at - 20] = b"\xff" * 4  # MessageSize
    assert batch.to_arrow()["body_text"].to_pylist() == [None]


def test_a_packet_says_the_same_as_its_row() -> None:
    for data in (F7, message(), get("mqqb", "http-envelope-and-request").data, get("mqqb", "body-encrypted").data):
        row = mqqb.decode_batch([data]).to_arrow().to_pylist()[0]
        packet = mqqb.decode(data)
        assert isinstance(packet, mqqb.UserMessage)
        for name in (*DERIVED[1:], "srmp_envelope", "base_flags", "user_flags"):
            assert getattr(packet, name) == row[name], name
        assert (packet.security.sender_sid if packet.security else None) == row["sender_sid"]
        assert (packet.compound.compound_body if packet.compound else None) == row["compound_body"]


@pytest.mark.parametrize(
    "sid",
    [SID[:-1], b"\2" + SID[1:], SID + bytes(4), b"", b"\1\x10" + SID[2:8] + bytes(64)],
    ids=["short", "revision", "long", "empty", "sixteen"],
)
def test_what_is_no_sid_has_no_text(sid: bytes) -> None:
    assert mqqb.SecurityHeader(security_flags=1, security_id=sid).sender_sid is None
    assert mqqb.SecurityHeader(security_flags=2, security_id=SID).sender_sid is None
    assert mqqb.SecurityHeader(security_flags=1, security_id=SID).sender_sid == "S-1-5-32-544"


@pytest.mark.parametrize(
    ("authority", "text"), [((1 << 32) - 1, "S-1-4294967295-9"), (1 << 32, "S-1-0x000100000000-9")]
)
def test_large_authorities_of_a_sid_are_hexadecimal(authority: int, text: str) -> None:
    sid = b"\1\1" + authority.to_bytes(6, "big") + b"\x09\0\0\0"
    assert mqqb.SecurityHeader(security_flags=1, security_id=sid).sender_sid == text


_UNITS = st.text(st.characters(codec="utf-8"), max_size=20)
_SPACE = st.sampled_from(["", "\ufeff", " \t\r\n", "\ufeff \ufeff"])
_TEXTS = st.builds(
    "{}{}{}".format, _SPACE, st.sampled_from(["", "<", "{"]), _UNITS | st.text("az 9\t\n\x7f", max_size=40)
)
_BODIES = st.one_of(
    st.binary(max_size=40),
    st.builds(
        lambda text, encoding, end: text.encode(encoding, "surrogatepass") + bytes(end),
        _TEXTS,
        st.sampled_from(["utf-8", "utf-16-le", "utf-16-be", "utf-8-sig"]),
        st.integers(0, 3),
    ),
    st.binary(max_size=17).map(lambda tail: b"\0" + bytes(8) + b"\1" + bytes(7) + tail),
    st.lists(st.sampled_from([b"\0\xd8", b"\0\xdc", b"a\0", b"\0\0"])).map(b"".join),
)
#: What has a name beside text and values
_NAMED = st.builds(
    "{}{}{}".format,
    st.sampled_from(
        [
            "<?xml version='1.0' encoding='ISO-8859-1'?>", '<?xml encoding = "windows-1252"?>',
            "<?xml encoding='cp9999'?>", "<?xml encoding='rot13'?>", "<?xml encoding='UTF-16'?>", "\x0bMSH|",
            "\x0bFHS|",
            "\x0bmsh|", "MSH|^~\\&|LAB|", "UNB\x1dUNOA:3", "UNB+UNOC:3", "UNBAUNOA", "UNA:+.? 'UNB+UNOY:4", "\0\1\0\1\4\2\x14net.msmq://",
            "\0\1\0\1\5\2", "{", "[", "<",
        ]
    ),
    st.text(st.characters(codec="latin-1"), max_size=20),
    st.sampled_from(["", "\r\x1c\r", "\r\x1c", "\x1c", "}", "]", ">", "\0"]),
)  # fmt: skip
_HEADER = b"\0\1\0\0\0\xff\xff\xff\xff\1" + bytes(7)
_RECORDS = [b"\6\1\0\0\0\5", b"\6\1\0\0\0\x85\0", b"\x0f\1\0\0\0\5\0\0\0\2", b"\x0f\1\0\0\0\5\0\0\0\3", b"\6\1"]
_OBJECTS = st.builds(
    lambda begin, text, end: _HEADER + begin + text + end,
    st.sampled_from([*_RECORDS, b"\x0f", b""]),
    st.sampled_from([b"hello", b"Gr\xc3\xb6", b"\xff1234", b"\1\2\3\4\5", b"hello!"]),
    st.sampled_from([b"\x0b", b"", b"\x0b\0"]),
)
_ENCODINGS = st.sampled_from(["latin-1", "utf-8", "utf-16-le", "utf-16-be"])
_BODIES |= _OBJECTS | st.builds(lambda text, encoding: text.encode(encoding), _NAMED, _ENCODINGS)
_TYPES = st.sampled_from([*BODY_TYPES, 0x0400, 0x10FF, 0x1100, 2**32 - 1]) | st.sampled_from([0, 8, 30, 31])


@given(st.lists(st.tuples(_BODIES, _TYPES, st.booleans()), max_size=8))
def test_bodies_of_a_batch_read_as_one_alone(bodies: list[tuple[bytes, int, bool]]) -> None:
    """The kernel reads most of them itself."""
    packets = [
        mqqb.encode(mqqb.UserMessage(body=body, body_type=body_type, privacy_level=int(encrypted)))
        for body, body_type, encrypted in bodies
    ]
    batch = mqqb.decode_batch(packets).to_arrow(dictionaries=False)
    batch.validate(full=True)
    found = zip(*(batch[name].to_pylist() for name in ("body_format", "body_text", "body_type_name")), strict=True)
    assert list(found) == [(*read_body(*body), BODY_TYPES.get(body[1])) for body in bodies]


@given(_BODIES, _TYPES)
def test_bodies_read_as_the_oracle_reads_them(body: bytes, body_type: int) -> None:
    assert read_body(body, body_type, False) == readable(body, body_type)


@given(_BODIES.map(lambda data: b"\xef\xbb\xbf" + data) | _BODIES)
def test_extension_data_reads_as_the_oracle_reads_it(data: bytes) -> None:
    packet = mqqb.encode(mqqb.UserMessage(extension_data=data, body_type=30, body=b"\xff"))
    batch = mqqb.decode_batch([packet]).to_arrow(dictionaries=False)
    assert (batch["extension_format"][0].as_py(), batch["extension_text"][0].as_py()) == readable_extension(data)
    message = mqqb.decode(packet)
    assert isinstance(message, mqqb.UserMessage)
    assert (message.extension_format, message.extension_text) == readable_extension(data)


_LATIN_1 = '<?xml version="1.0" encoding="ISO-8859-1"?><a>\xeb</a>'
_ANSI = '<?xml version="1.0" encoding="windows-1252"?>'
_HL7 = "MSH|^~\\&|LAB|H\rPID|1\r"


@pytest.mark.parametrize(
    ("body", "body_type", "found"),
    [
        ('{"a":"b"}'.encode("utf-16-le"), 0, ("text", '{"a":"b"}')),
        ("<a>Zo\xeb</a>".encode("utf-16-be"), 0, ("xml", "<a>Zo\xeb</a>")),
        (_LATIN_1.encode("latin-1"), 0, ("xml", _LATIN_1)),
        (_ANSI.encode() + b"<a>\x80\x81</a>", 0, ("xml", _ANSI + "<a>\u20ac\ufffd</a>")),
        (b'<?xml version="1.0" encoding="unicode_escape"?><a>\xeb</a>', 0, ("binary", None)),
        (b'<?xml version="1.0" encoding="ISO-8859-1b?><a>\xeb</a>', 0, ("binary", None)),
        (b"<?xml version='1.0' encoding='ISO-8859-1\"?><a>\xeb</a>", 0, ("binary", None)),
        (b"Zo\xeb M\xfcller, 12 \x80", 0, ("binary", None)),
        (b"Zo\xeb\0", 30, ("ansi_text", "Zo\xeb")),
        (b"Zo\xc3\xab\0", 30, ("text", "Zo\xeb")),
        (b"\x0b" + _HL7.encode() + b"\x1c\r", 0, ("hl7", _HL7)),
        (_HL7.encode(), 0, ("hl7", _HL7)),
        (b"UNB\x1dUNOA:3\x1dSENDER\x1c", 0, ("edifact", "UNB\x1dUNOA:3\x1dSENDER\x1c")),
        (b"UNB+UNOC:3+M\xfcller'", 0, ("edifact", "UNB+UNOC:3+M\xfcller'")),
        (b"\0\1\0\1\4\2\x17net.msmq://beta/private\3\7\5", 0, ("net_msmq", "net.msmq://beta/private")),
        (_HEADER + b"\6\1\0\0\0\5hello\x0b", 768, ("dotnet_binary", "hello")),
        (_HEADER + b"\x0f\1\0\0\0\2\0\0\0\2{}\x0b", 768, ("dotnet_binary", "{}")),
        (_HEADER + b"\6\1\0\0\0\6hello\x0b", 768, ("dotnet_binary", None)),
        (b"\x1f\x8b\x08\0" + bytes(20), 0, ("binary", None)),
    ],
)
def test_bodies_that_have_a_name(body: bytes, body_type: int, found: tuple[str, str | None]) -> None:
    assert read_body(body, body_type, False) == found == readable(body, body_type)


def test_malformed_headers_are_text() -> None:
    for data, text in (
        (b"\xef\xbb\xbf<?xml version='1.0'?><Headers>", "<?xml version='1.0'?><Headers>"),
        (b'{"rbs2-msg-id":"1"}\0\xff\7#7', '{"rbs2-msg-id":"1"}\0\ufffd\7#7'),
        (b"\1\2", None),
        (b"", None),
    ):
        assert mqqb.UserMessage(extension_data=data).extension_text == text


@pytest.mark.parametrize("form", [bytearray, memoryview, lambda body: np.frombuffer(body, np.uint8)[::-1][::-1]])
def test_a_body_may_be_any_buffer(form: Any) -> None:
    """As ``body`` of a message is a view, and a value of its column an array."""
    assert read_body(form(b"<order/>"), 0, False) == ("xml", "<order/>")


@given(
    st.lists(
        st.tuples(st.binary(min_size=6, max_size=6), st.lists(_NUMBERS, max_size=15), st.sampled_from([0, 0, 1, 2])),
        max_size=4,
    )
)
def test_sids_of_a_batch_read_as_one_alone(sids: list[tuple[bytes, list[int], int]]) -> None:
    """Some are of another revision, and some have another number of parts than they say."""
    packets = []
    for authority, numbers, broken in sids:
        sid = bytes([1, len(numbers)]) + authority + b"".join(number.to_bytes(4, "little") for number in numbers)
        packet = message(security=mqqb.SecurityHeader(security_flags=1, security_id=sid))
        other = bytes([sid[0] + (broken == 1), sid[1] ^ (broken == 2)]) + sid[2:]
        packets.append(packet.replace(sid, other, 1))
    found = mqqb.decode_batch(packets).to_arrow()["sender_sid"].to_pylist()
    read = [mqqb.decode(packet) for packet in packets]
    assert found == [packet.security.sender_sid for packet in read]  # type: ignore[union-attr]
    assert [text is None for text in found] == [broken > 0 for *_, broken in sids]


# --- Messages sent over HTTP ---


def test_the_headers_of_http_are_written_and_read() -> None:
    sent = mqqb.UserMessage(destination_queue="DIRECT=OS:a\\b", srmp_envelope="<e/>", compound=COMPOUND)
    packet = mqqb.encode(sent)
    got = mqqb.decode(packet, strict=True)
    assert isinstance(got, mqqb.UserMessage)
    assert got == sent
    assert (got.sent_over_http, got.srmp_envelope, got.compound, got.body_text) == (True, "<e/>", COMPOUND, "Message")
    assert "sent_over_http" not in repr(got)
    batch = mqqb.decode_batch([packet])
    batch.to_arrow()  # with derived columns made
    assert bytes(mqqb.encode_batch(batch)[0]) == packet  # type: ignore[arg-type]


def test_an_envelope_is_no_list_of_queues_without_its_flag() -> None:
    """Its length stands where a MultiQueueFormatHeader has the id 0x0064, and its HeaderId where that has its size."""
    sent = mqqb.UserMessage(destination_queue="DIRECT=OS:a\\b", srmp_envelope="x" * (0x64 - 1))
    packet = mqqb.encode(sent)
    header = packet.index("x".encode("utf-16-le") * 99) - 8
    got = mqqb.decode(packet[:header] + b"\x90\1" + packet[header + 2 :], strict=True)
    assert got == sent


@pytest.mark.parametrize(
    ("size", "offset", "field"),
    [(34, 0, "MessageBodySize"), (7, 26, "MessageBodyOffset"), (7, 2**32 - 1, "MessageBodyOffset")],
)
def test_a_message_body_outside_of_the_request_is_refused(size: int, offset: int, field: str) -> None:
    compound = mqqb.CompoundMessageHeader(http_body=REQUEST[:32], message_body_size=size, message_body_offset=offset)
    with pytest.raises(EncodeError) as raised:
        mqqb.UserMessage(compound=compound)
    assert raised.value.field == f"CompoundMessageHeader.{field}"


def test_both_forms_of_the_check_for_cve_2023_21554_show() -> None:
    harmless, malicious = (get("mqqb", f"http-check-{name}").data for name in ("harmless", "malicious"))
    assert sum(one != other for one, other in zip(harmless, malicious, strict=True)) == 1
    batch = mqqb.decode_batch([harmless, malicious])
    assert batch.violation_names(0) == ("trailing_bytes", "reserved_flags")
    assert batch["trailing"][0].tobytes() == b"\x0c" + bytes(11)
    fault = batch.fault(1)
    assert fault is not None
    assert fault[:3] == ("truncated", "SRMPEnvelopeHeader.DataLength", 128)


def test_reserved_flags_are_shown_and_not_written() -> None:
    changed = bytearray(F7)
    changed[3] |= 0x80
    packet = mqqb.decode(changed, strict=True)
    assert packet.violations == ("reserved_flags",)
    assert packet.base_flags == 0x8003
    with pytest.raises(EncodeError, match="reserved_flags"):
        mqqb.encode(packet)
