"""Encoders of many packets: from columns and from packets they write what the encoder of one packet writes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from msmqwire import Payloads
from msmqwire.columns import allocated_bytes
from msmqwire.errors import EncodeError
from tests.columns.formats import FORMATS, Format, each_format
from tests.columns.rows import contents
from tests.reference.reader import Fault

#: Columns that an encoder of columns does not read: they repeat others, or packets with them are refused.
UNREAD = {
    "topology": ("type", "version", "trailing", "fault"),
    "notifications": ("version", "index", "reserved", "fault"),
    "messages": (
        "packet_size", "base_flags", "user_flags", "transaction_flags", "sender_id_type", "body_encrypted",
        "sender_sid", "properties_flags", "message_class_name", "body_type_name", "message_size", "body_format",
        "body_text", "extension_format", "extension_text",
        "compound_body", "acknowledged_tx_sequence_id", "acknowledged_tx_sequence_number",
        "acknowledged_previous_tx_sequence_number", "acknowledged_source_queue_manager", "acknowledged_message_id",
        "notification", "trailing", "fault",
    ),
    "sessions": ("packet_size", "base_flags", "internal_flags", "trailing", "fault"),
}  # fmt: skip


@cache
def written_by(kind: Format) -> list[bytes]:
    """Packets without violations, as an encoder writes them."""
    found = kind.accepted(1000, 13).values()
    return [kind.codec.encode(packet) for packet in found if not packet.violations]


@pytest.mark.parametrize(("seed", "count"), [(5, 2_000), pytest.param(6, 20_000, marks=pytest.mark.long)])
@each_format
def test_batches_and_packets_are_written_alike(kind: Format, seed: int, count: int) -> None:
    """Ignored bytes are not written back by either."""
    found = kind.accepted(count if kind.count > 1000 else count // 4, seed)
    payloads, packets = list(found), list(found.values())
    written = [kind.encode(packet) for packet in packets]
    for given in (kind.decode_batch(payloads), packets, tuple(packets), iter(packets)):
        assert contents(kind.encode_batch(given)) == written
    assert list(kind.encode_batch([])) == []


@each_format
def test_out_gives_equal_results(kind: Format) -> None:
    payloads = written_by(kind)
    out = kind.encode_batch(kind.decode_batch(payloads[:50]))
    assert isinstance(out, Payloads)
    for some in (payloads[:20], payloads, [], payloads[::-1]):
        assert kind.encode_batch(kind.decode_batch(some), out=out) is out
        assert contents(out) == some
        assert out.nbytes == sum(map(len, some))


@each_format
def test_out_is_written_where_it_was(kind: Format) -> None:
    batch = kind.decode_batch(written_by(kind))
    out = kind.encode_batch(batch)
    held, place = allocated_bytes(), np.frombuffer(out[0], np.uint8).__array_interface__["data"]  # type: ignore[arg-type]
    kind.encode_batch(batch, out=out)
    assert np.frombuffer(out[0], np.uint8).__array_interface__["data"] == place  # type: ignore[arg-type]
    assert allocated_bytes() == held


@each_format
def test_out_leaves_what_others_hold_as_it_was(kind: Format) -> None:
    """Who took a payload, or decoded the payloads, keeps what it has: the memory is refused or another is taken."""
    large, small = kind.whole
    few, many = [small] * 1000, [large] * 5000
    holds: list[Callable[[Payloads], memoryview | None]] = [lambda out: out[7], lambda out: out[5:9][2]]
    for hold in holds:
        out = kind.encode_batch(kind.decode_batch(few))
        window = hold(out)
        assert window is not None
        kept = bytes(window)
        for packets in (many, many[:1]):
            with contextlib.suppress(BufferError):
                kind.encode_batch(kind.decode_batch(packets), out=out)
        assert window == kept
    for packets in ([small], few, many * 2):
        out = kind.encode_batch(kind.decode_batch(many))
        batch = kind.decode_batch(out)
        with contextlib.suppress(BufferError):
            kind.encode_batch(kind.decode_batch(packets), out=out)
        assert (
            batch.to_arrow()
            .slice(len(batch) - 1)
            .equals(kind.decode_batch([kind.encode(kind.decode(large))]).to_arrow())
        )


# --- what is refused ---


@each_format
def test_a_refusal_names_row_and_rule(kind: Format) -> None:
    data = kind.encode(kind.decode(kind.whole[0]))
    for wrong, reason in (
        (data + bytes(8), "trailing_bytes"),
        (None, "the row is null"),
        (data[:3], "the row has the fault truncated of "),
    ):
        with pytest.raises(EncodeError, match=reason) as raised:
            kind.encode_batch(kind.decode_batch([data, wrong]))
        assert raised.value.row == 1
        assert "row 1" in str(raised.value)


@each_format
def test_faults_and_violations_are_refused(kind: Format) -> None:
    data = kind.encode(kind.decode(kind.whole[0]))
    refused = 0
    for way in kind.ways():
        if kind.decode_batch([data], **way).fault(0) is not None:
            continue  # it has another transport
        good = len(kind.decode_batch([data, data]))
        for wrong in kind.packets:
            batch = kind.decode_batch([data, data, wrong], **way)
            names = {name for row in range(good, len(batch)) for name in batch.violation_names(row)}
            if batch.violations[0] or (batch.fault(good) is None and kind.accepts.issuperset(names)):
                continue
            with pytest.raises(EncodeError) as raised:
                kind.encode_batch(batch)
            assert raised.value.row is not None
            assert raised.value.row >= good
            refused += 1
    assert refused > 20


@each_format
def test_a_packet_with_violations_is_refused_by_its_row(kind: Format) -> None:
    data = kind.encode(kind.decode(kind.whole[0]))
    good, bad = kind.decode(data), kind.decode(data + bytes(8))
    assert not isinstance(bad, Fault)
    with pytest.raises(EncodeError) as raised:
        kind.encode_batch([good, bad])
    assert raised.value.row == 1
    with pytest.raises(TypeError):
        kind.encode_batch([good, data])


@each_format
def test_columns_are_needed_by_name(kind: Format) -> None:
    """Violations too: they say that there are bytes after a packet, which an encoder does not write."""
    payloads = written_by(kind)[:200]
    for name in kind.table.names:
        batch = kind.decode_batch(payloads, columns=[each for each in kind.table.names if each != name])
        if name in UNREAD[str(kind)]:
            assert contents(kind.encode_batch(batch)) == payloads, name
        else:
            with pytest.raises((EncodeError, KeyError, ValueError), match=name):
                kind.encode_batch(batch)


@each_format
def test_batches_of_another_protocol_are_refused(kind: Format) -> None:
    others: list[Any] = [other.decode_batch([]) for other in FORMATS if other.codec is not kind.codec]
    for wrong in (*others, [kind.whole[0]], 5, None):
        with pytest.raises((TypeError, ValueError)):
            kind.encode_batch(wrong)
