"""Many packets at once: every row of ``decode_batch`` is what the oracle says of its payload."""

from __future__ import annotations

import gc
import random
import struct
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from msmqwire import mqsd
from msmqwire.columns import allocated_bytes
from msmqwire.errors import EncodeError
from msmqwire.wire._transport import Transport as Code
from tests.columns.formats import TOPOLOGY
from tests.columns.rows import Expected, arrow_text, assert_columns, contents, fault_entries
from tests.reference import mqsd as reference
from tests.reference.mqsd_cases import cases, listing
from tests.reference.propvariant import units_of
from tests.vectors import get

V1, V2, V3 = (get("mqsd", name).data for name in ("V1-request", "V2-reply-local-site", "V3-reply-other-site"))
SOME = list(cases(2000, seed=20240229))


def test_faults_are_sparse_and_in_order() -> None:
    payloads = [V1, b"", V3, V2[:20], V1, V3[:66]]
    batch = mqsd.decode_batch(payloads)
    assert fault_entries(batch) == [
        (1, "truncated", "Version", 0),
        (3, "truncated", "ConnectedNetworkCount", 20),
        (5, "truncated", "DirectoryServiceServerArray", 64),
    ]
    assert [batch.fault(row) is None for row in range(6)] == [True, False, True, False, True, False]
    fault = batch.fault(3)
    assert fault is not None
    assert (fault.code, fault.field, fault.offset) == ("truncated", "ConnectedNetworkCount", 20)
    for row in (-1, 6):
        with pytest.raises(IndexError):
            batch.fault(row)
    assert batch.is_valid("fault").tolist() == [False, True, False, True, False, True]
    assert batch.is_valid("violations").tolist() == [True, False, True, False, True, False]


def test_a_fault_names_the_entry_of_an_array() -> None:
    batch = mqsd.decode_batch([get("mqsd", "reply-servers-flag-ipx-high-byte").data])
    assert batch.fault(0) == ("bad_flag", "DirectoryServiceServerArray[1]", 74, 0x130, None)
    assert batch.to_arrow()["fault"].to_pylist() == [
        {"code": "bad_flag", "field": "DirectoryServiceServerArray[1]", "offset": 74, "value": 0x130, "needed": None}
    ]
    assert batch.faults["item"].tolist() == [1]


def test_violations_are_bits_and_names() -> None:
    data = get("mqsd", "reply-every-violation").data
    batch = mqsd.decode_batch([V1, data, b"x", None], transport="udp")
    assert batch.violations.tolist() == [0, 0b101011, 0, 0]
    assert batch.violation_names(1) == (
        "version_nonzero",
        "reserved_nonzero",
        "mask_nonzero_on_ip",
        "trailing_bytes",
    )
    assert batch["violations"].tolist() == batch.violations.tolist()
    assert batch.to_arrow()["violations"].to_pylist() == [[], list(batch.violation_names(1)), None, None]
    assert mqsd.TOPOLOGY.violation_names == reference.VIOLATIONS


# --- names ---


def test_names_are_code_units_in_the_payload() -> None:
    lone, many = get("mqsd", "reply-lone-surrogates").data, get("mqsd", "reply-many-servers").data
    payloads = [V1, lone, V3[:-1], many]
    batch = mqsd.decode_batch(payloads)
    names = batch["servers"].values["name"]
    expected = [server.name for listed in TOPOLOGY.expected(payloads).column("servers") for server in listed or ()]
    assert len(names) == len(expected) == 7
    owner = [1, 1, 1, 3, 3, 3, 3]
    for i, name in enumerate(expected):
        assert names[i].dtype == np.dtype("<u2")
        assert names[i].tobytes() == name.data
        assert names.text(i) == name.text
        assert np.shares_memory(names[i], np.frombuffer(payloads[owner[i]], np.uint8))
    assert names[-1].tobytes() == names[6].tobytes()
    with pytest.raises(IndexError):
        names[7]
    arrow = [name for servers in batch.to_arrow()["servers"].to_pylist() for name in servers or ()]
    assert [server["name"] for server in arrow] == [arrow_text(name.text) for name in expected]
    assert arrow[0]["name"] == "\ufffd"
    assert arrow[1]["name"] == "A\ufffd\ufffd"


@pytest.mark.usefixtures("everything_is_released")
def test_names_keep_the_payload() -> None:
    data = bytes(bytearray(get("mqsd", "reply-many-servers").data))
    before = sys.getrefcount(data)
    name = mqsd.decode_batch([data])["servers"].values["name"][1]
    gc.collect()
    assert sys.getrefcount(data) > before
    assert name.tobytes() == "bsc1".encode("utf-16-le")
    assert np.shares_memory(name, np.frombuffer(data, np.uint8))
    del name
    gc.collect()
    assert sys.getrefcount(data) == before


def test_text_of_every_code_unit() -> None:
    """Each unit but the two delimiters, alone, in front of one of every surrogate kind, and behind one."""
    units = [unit for unit in range(0x10000) if unit not in (0, 0x2C)]
    names = [chr(unit) for unit in units]
    names += [chr(unit) + other for unit in units[::0x101] for other in "\ud800\udc00a"]
    names += [other + chr(unit) for unit in units[::0x101] for other in "\ud800\udc00a"]
    edges = "\x7f\x80\u07ff\u0800\ud7ff\ud800\udbff\udc00\udfff\ue000\uffff"
    names += [one + other for one in edges for other in edges]
    payloads = [listing(name) for name in names]
    batch = mqsd.decode_batch(payloads)
    assert len(batch.faults) == 0
    got = pc.struct_field(pc.list_flatten(batch.to_arrow()["servers"]), "name").to_pylist()
    assert got == [arrow_text(units_of(name).decode("utf-16-le", "surrogatepass")) for name in names]
    assert contents(mqsd.encode_batch(batch)) == payloads


@pytest.mark.parametrize("length", [*range(1, 66), 255, 256, 257])
def test_text_of_every_length(length: int) -> None:
    """UTF-8 is made 16 units at a time: an odd one is put at each place of a block of plain ones."""
    names = ["a" * length]
    for odd in ("\u0100", "\ud800", "\udc00", "\U0001f600", "\x7f", "\x80", "\uffff"):
        names += ["a" * at + odd + "b" * (length - 1 - at) for at in range(min(length, 40))]
    batch = mqsd.decode_batch(list(map(listing, names)))
    got = pc.struct_field(pc.list_flatten(batch.to_arrow()["servers"]), "name").to_pylist()
    assert got == [arrow_text(name) for name in names]


# --- runs of replies ---


def _replies() -> list[bytes]:
    """Replies with 1-6 networks and an array of 4-200 code units in entries of all lengths, in one run."""
    rng = random.Random(5)
    replies = []
    for units in range(4, 200):
        ends = [4 * i + 3 for i in range(units // 4 - 1) if rng.random() < 0.4]
        names = ["\u2c2c" * (end - start - 3) for start, end in pairwise([0, *[end + 1 for end in ends], units])]
        networks = 1 + units % 6
        reply = listing(*names)
        head = V3[:4] + rng.randbytes(16) + struct.pack("<I", networks) + reply[24:32]
        replies.append(head + rng.randbytes(16 * networks + 16) + reply[64:])
    return replies


REPLIES = _replies()


def test_runs_of_replies() -> None:
    """Wherever a run of replies ends, and whatever ends it."""
    others = [V1, V2, b"", V3[:66], V3 + b"\0", V3[:24] + b"\1" + V3[25:], b"\1" + V3[1:]]
    mixed = [data for i, reply in enumerate(REPLIES) for data in (reply, *others[i % 50 :][:1])]
    TOPOLOGY.assert_rows(mixed)
    batch = mqsd.decode_batch(REPLIES, columns=mqsd.REPLY_COLUMNS)
    assert len(batch.faults) == 0
    assert contents(mqsd.encode_batch(batch)) == REPLIES


@pytest.mark.parametrize("columns", [None, mqsd.REQUEST_COLUMNS, mqsd.REPLY_COLUMNS, ("type", "trailing", "servers")])
def test_rows_of_earlier_runs_are_forgotten(columns: tuple[str, ...] | None) -> None:
    """A run writes no column that is zeros already; what others wrote there must not be taken for zeros."""
    ipx = V1 + bytes([1, 0, 0, 0, 1, 2, 3, 4])
    runs = ([V1], [V2], [V3], [V1 + b"after"], [ipx], [b""], [V3 + b"\0"], [V1[:9]])
    rng = random.Random(5)
    out: Any = None
    for _ in range(100):
        payloads = [data for run in rng.choices(runs, k=4) for data in run * rng.randrange(1, 90)]
        out = mqsd.decode_batch(payloads, columns=columns, out=out)
        fresh = mqsd.decode_batch(payloads, columns=columns)
        table = out.to_arrow()
        assert table.equals(fresh.to_arrow())
        del table


@pytest.mark.parametrize("unit", [0, 0x2C, 0x30, 0x012C, 0x2C00, 0x2C2C, 0x7F00, 0x8000, 0xFF2C, 0xFFFF])
def test_every_code_unit_of_a_server_array(unit: int) -> None:
    """A unit that closes an entry, or looks as if it did, at each place of arrays of one block, two and three."""
    payloads = [
        reply[:at] + struct.pack("<H", unit) + reply[at + 2 :]
        for reply in (REPLIES[i] for i in (2, 36, 60, 61, 130))
        for at in range(48 + 16 * reply[20], len(reply), 2)
    ]
    batch = TOPOLOGY.assert_rows(payloads)
    assert fault_entries(mqsd.decode_batch(payloads, columns=("servers", "fault"))) == fault_entries(batch)


# --- hostile counts ---


@pytest.mark.parametrize("at", [20, 28, 52])
@pytest.mark.parametrize("value", [0xFFFFFFFF, 0xFFFFFFFE, 0x80000000, 0x7FFFFFFE])
def test_a_count_of_four_thousand_million_allocates_nothing(value: int, at: int) -> None:
    """What a batch holds is bounded by its payloads, not by what they claim."""
    honest = V1 + bytes([1, 0, 0, 0, 1, 2, 3, 4]) if at == 52 else V3
    liar = honest[:at] + struct.pack("<I", value) + honest[at + 4 :]
    before = allocated_bytes()
    usual = mqsd.decode_batch([honest] * 100)
    cost = allocated_bytes() - before
    del usual
    batch = mqsd.decode_batch([liar] * 100)
    assert allocated_bytes() - before <= cost + 100 * 40
    assert len(batch.faults) == 100
    TOPOLOGY.assert_rows([liar] * 100, batch)


# --- options ---


def test_each_row_may_have_its_transport() -> None:
    """A capture knows what carried each packet: codes of Transport."""
    rng = random.Random(17)
    codes = [rng.choice((Code.UNKNOWN, Code.UDP, Code.IPX)) for _ in SOME]
    for strict in (False, True):
        expected = [
            reference.rows(reference.read(data, strict=strict, transport=code.name.lower()))  # type: ignore[arg-type]
            for data, code in zip(SOME, codes, strict=True)
        ]
        for given in (np.array(codes, np.uint8), np.repeat(np.array(codes, np.uint8), 2)[::2]):
            batch = mqsd.decode_batch(SOME, strict=strict, transport=given)
            assert_columns(batch, Expected(mqsd.TOPOLOGY, expected))
    assert len(mqsd.decode_batch([], transport=np.empty(0, np.uint8))) == 0
    unknown = [np.array([code, *codes[1:]], np.uint8) for code in (Code.TCP, 4, 32, 255)]
    for wrong in (np.empty(0, np.uint8), np.array(codes[1:], np.uint8), np.array(codes), *unknown):
        with pytest.raises(ValueError, match="transport"):
            mqsd.decode_batch(SOME, transport=wrong)


def test_refuses_an_unknown_transport() -> None:
    out = mqsd.decode_batch(SOME)
    with pytest.raises(ValueError, match="tcp"):
        mqsd.decode_batch([V1], transport="tcp", out=out)  # type: ignore[arg-type]
    TOPOLOGY.assert_rows(SOME, out)


# --- encode_batch ---


def test_encode_batch_drops_the_bytes_a_receiver_ignores() -> None:
    ipx = get("mqsd", "request-bytes-behind-the-ipx-networks").data
    written = mqsd.encode_batch(mqsd.decode_batch([V1 + b"1234567", ipx]))
    assert contents(written) == [V1, ipx[:60]]


@pytest.mark.parametrize(
    ("packet", "other", "enough", "field"),
    [(V1, V2, mqsd.REQUEST_COLUMNS, "EnterpriseID"), (V2, V1, mqsd.REPLY_COLUMNS, "CorrelationID")],
    ids=["request", "reply"],
)
def test_encode_batch_says_which_columns_are_missing(
    packet: bytes, other: bytes, enough: tuple[str, ...], field: str
) -> None:
    batch = mqsd.decode_batch([packet], columns=enough)
    assert bytes(mqsd.encode_batch(batch)[0] or b"") == packet
    for missing in set(enough) - {"type", "version", "trailing", "fault", "violations"}:
        batch = mqsd.decode_batch([packet], columns=[name for name in enough if name != missing])
        with pytest.raises(EncodeError, match=rf"without all of the columns .*{missing}") as caught:
            mqsd.encode_batch(batch)
        assert (caught.value.row, caught.value.field) == (0, field)
    with pytest.raises(EncodeError, match="without all of the columns"):
        mqsd.encode_batch(mqsd.decode_batch([other], columns=enough))
    with pytest.raises(ValueError, match="needs its columns violations"):
        mqsd.encode_batch(mqsd.decode_batch([packet], columns=["type"]))
