"""Every kind of payload that is decoded into a batch, beside the oracle that says which rows it has."""

from __future__ import annotations

import copy
import datetime
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import product
from types import ModuleType
from typing import Any, TypeAlias
from uuid import UUID

import pytest

from msmqwire import Batch, Payloads, formatname, mqcn, mqqb, mqsd
from msmqwire.columns import Table
from msmqwire.errors import DecodeError, EncodeError
from tests.columns.rows import Expected, assert_arrow, assert_columns
from tests.mqcn.messages import assert_message
from tests.mqqb.messages import F8, FULL
from tests.mqqb.packets import assert_packet
from tests.mqsd.packets import assert_discovery_packet
from tests.reference import mqcn as mqcn_reference
from tests.reference import mqcn_cases, mqqb_cases, mqsd_cases
from tests.reference import mqqb as mqqb_reference
from tests.reference import mqsd as mqsd_reference
from tests.reference.reader import Fault, placeless
from tests.vectors import Vector, get, load

Bytes: TypeAlias = "Sequence[bytes | None]"


@dataclass(frozen=True, eq=False)
class Format:
    """Payloads of one kind.

    ``codec`` is the module of the protocol, ``decode_batch`` its function for this table, ``transports`` the values
    of its option. ``read(data, strict=...)`` is the oracle, ``rows`` its rows of an outcome and ``violations`` the
    names it knows, by bit; ``assert_packet`` compares a packet with an outcome. ``cases(count, seed)`` makes payloads,
    half of them broken; ``count`` of them are many for the oracle. ``vectors`` are the golden ones. ``whole`` are two
    without a fault, the first with every optional part. An encoder with ``options`` takes packets with the violations
    ``accepts`` and writes no column of ``unwritten``. ``most_memory`` limits the bytes that a batch may hold: at all,
    for each payload and for each byte of the payloads. ``look`` follows offsets of a batch that an export does not.
    """

    table: Table
    codec: ModuleType
    decode_batch: Callable[..., Any]
    read: Callable[..., Any]
    rows: Callable[[Any], list[dict[str, Any]]]
    assert_packet: Callable[[Any, Any], None]
    cases: Callable[..., list[bytes]]
    count: int
    vectors: tuple[Vector, ...]
    whole: tuple[bytes, ...]
    most_memory: tuple[int, int, int]
    violations: tuple[str, ...]
    unwritten: tuple[str, ...]
    transports: tuple[str, ...] = ()
    accepts: frozenset[str] = frozenset()
    options: Mapping[str, Any] = field(default_factory=dict)
    look: Callable[[Any], object] = Batch.to_arrow

    def __str__(self) -> str:
        return self.table.name

    @property
    def packets(self) -> tuple[bytes, ...]:
        """The bytes of the golden vectors."""
        return tuple(vector.data for vector in self.vectors)

    def decode(self, data: Any, **ways: Any) -> Any:
        """The package over one payload, its exception turned into the fault of the oracle."""
        try:
            return self.codec.decode(data, **ways)
        except DecodeError as error:
            return Fault(error.code, error.field, error.offset)

    def encode(self, packet: Any) -> bytes:
        """The bytes of a packet, or an exception."""
        written = self.codec.encode(packet, **self.options)
        assert type(written) is bytes
        return written

    def encode_batch(self, given: Any, **options: Any) -> Payloads:
        """The encoder of many packets."""
        written: Payloads = self.codec.encode_batch(given, **self.options, **options)
        return written

    def ways(self) -> list[dict[str, Any]]:
        """Every way to decode a payload: strictly or not, by each transport."""
        if not self.transports:
            return [{"strict": strict} for strict in (False, True)]
        return [
            {"strict": strict, "transport": transport} for strict, transport in product((False, True), self.transports)
        ]

    def accepted(self, count: int, seed: int) -> dict[bytes, Any]:
        """Some payloads that an encoder takes, and their packets."""
        found = {}
        for data in (*self.packets, *self.cases(count, seed, broken=0.2)):
            packet = self.decode(data)
            if self is self.read_as(data) and self.accepts.issuperset(getattr(packet, "violations", ("fault",))):
                found[data] = packet
        assert len(found) > count // 10
        return found

    def read_as(self, data: bytes, transport: str = "unknown") -> Format:
        """The table of the packet that ``decode`` makes of a payload; that of MQQB reads packets of two tables."""
        if self.codec is not mqqb:
            return self
        internal = transport == "udp" or len(data) < 16 or data[4:8] != b"LIOR" or data[2] & 8
        return SESSIONS if internal else MESSAGES

    def assert_agrees(self, data: bytes, **ways: Any) -> Any:
        """One payload is decoded as the oracle says, and encoded; the packet, or the fault in place of one."""
        kind = self.read_as(data, ways.get("transport", "unknown"))
        expected = kind.read(data, **ways)
        packet = kind.decode(data, **ways)
        kind.assert_packet(packet, expected)
        if isinstance(packet, Fault):
            assert 0 <= packet.offset <= len(data)
        elif kind.accepts.issuperset(packet.violations):
            kind.assert_encoded(packet, expected, **{**ways, "strict": False})
        else:
            with pytest.raises(EncodeError):
                kind.encode(packet)
        return packet

    def assert_encoded(self, packet: Any, expected: Any, **ways: Any) -> bytes:
        """The oracle reads what is written as the same packet; the bytes."""
        written = self.encode(packet)
        assert self._compared(self.read(written, **ways)) == self._compared(expected)
        again = self.codec.decode(written, **ways)
        assert again == packet
        assert hash(again) == hash(packet)
        assert self.encode(again) == written
        return written

    def _compared(self, outcome: Any) -> Any:
        """The rows of an outcome without the places, which ignored bytes move, and without columns not written."""
        rows = placeless(tuple(self.rows(outcome)))
        return [{name: value for name, value in row.items() if name not in self.unwritten} for row in rows]

    def expected(self, payloads: Bytes, **ways: Any) -> Expected:
        """The answer of the oracle, kept as the oracle is slow and the tests repeat their payloads."""
        return _expected(self, tuple(payloads), tuple(sorted(ways.items())))

    def assert_rows(self, payloads: Bytes, batch: Any = None, **ways: Any) -> Any:
        """A batch of these payloads, or the one given, has the rows of the oracle in numpy and in Arrow."""
        if batch is None:
            batch = self.decode_batch(payloads, **ways)
        expected = self.expected(payloads, **ways)
        assert_columns(batch, expected)
        assert_arrow(batch, expected)
        return batch


def assert_value(packet: Any) -> None:
    """A packet is a value: copied or pickled it is equal."""
    for other in (pickle.loads(pickle.dumps(packet)), copy.copy(packet), copy.deepcopy(packet)):
        assert other == packet
        assert (other != packet) is False
        assert hash(other) == hash(packet)
        assert repr(other) == repr(packet)


def rebuilt(packet: Any) -> Any:
    """The packet built from what it prints."""
    return eval(
        repr(packet), {**vars(mqsd), **vars(mqcn), **vars(mqqb), **vars(formatname), "UUID": UUID, "datetime": datetime}
    )


@lru_cache(8)
def _expected(kind: Format, payloads: Bytes, ways: tuple[tuple[str, Any], ...]) -> Expected:
    outcomes = (None if data is None else kind.read(data, **dict(ways)) for data in payloads)
    return Expected(kind.table, map(kind.rows, outcomes))


def _look_at_properties(batch: mqcn.NotificationBatch) -> None:
    values, found = batch.property(105)
    assert len(values) == len(found)


def _look_at_bodies(batch: mqqb.MessageBatch) -> None:
    found = batch.notifications()
    assert len(found.payloads) == len(found.rows)
    assert all(body is not None for body in found.payloads[:100])


def _packets(table: Table, name: mqqb_reference.Table, **others: Any) -> Format:
    """One of the two tables of message packets."""
    return Format(
        table=table,
        codec=mqqb,
        read=partial(mqqb_reference.read, table=name),
        rows=partial(mqqb_reference.rows, table=name),
        assert_packet=assert_packet,
        cases=lambda count, seed, **options: list(mqqb_cases.cases(count, seed, name, **options)),
        count=500,
        vectors=tuple(vector for vector in load("mqqb") if vector.table == name),
        violations=mqqb_reference.VIOLATIONS[name],
        accepts=frozenset({"unresolved_queue"}),
        **others,
    )


TOPOLOGY = Format(
    table=mqsd.TOPOLOGY,
    codec=mqsd,
    decode_batch=mqsd.decode_batch,
    read=mqsd_reference.read,
    rows=mqsd_reference.rows,
    assert_packet=assert_discovery_packet,
    cases=lambda *given, **options: list(mqsd_cases.cases(*given, **options)),
    count=2000,
    vectors=load("mqsd"),
    whole=(get("mqsd", "reply-many-servers").data, get("mqsd", "V1-request").data),
    most_memory=(4096, 250, 12),
    violations=mqsd_reference.VIOLATIONS,
    unwritten=("trailing",),
    transports=mqsd_reference.TRANSPORTS,
)
NOTIFICATIONS = Format(
    table=mqcn.NOTIFICATIONS,
    codec=mqcn,
    decode_batch=mqcn.decode_batch,
    read=mqcn_reference.read,
    rows=mqcn_reference.rows,
    assert_packet=assert_message,
    cases=lambda *given, **options: list(mqcn_cases.cases(*given, **options)),
    count=2000,
    vectors=load("mqcn"),
    whole=(get("mqcn", "change-machine-with-riders").data, get("mqcn", "C1-delete").data),
    most_memory=(8192, 300, 40),
    violations=mqcn_reference.VIOLATIONS,
    unwritten=("reserved",),
    accepts=frozenset({"property_count", "use_guid", "property_set", "duplicate_property"}),
    options={"enforce": False},
    look=_look_at_properties,
)
MESSAGES = _packets(
    mqqb.MESSAGES,
    "messages",
    decode_batch=mqqb.decode_batch,
    whole=(mqqb.encode(FULL), mqqb.encode(mqqb.UserMessage())),
    most_memory=(8192, 600, 10),
    unwritten=("packet_size",),
    look=_look_at_bodies,
)
SESSIONS = _packets(
    mqqb.SESSIONS,
    "sessions",
    decode_batch=mqqb.decode_session_batch,
    whole=(get("mqqb", "F3-establish-connection-request").data, F8),
    most_memory=(8192, 200, 1),
    unwritten=("packet_size", "base_flags"),
    transports=mqqb_reference.TRANSPORTS,
)
FORMATS = (TOPOLOGY, NOTIFICATIONS, MESSAGES, SESSIONS)

each_format = pytest.mark.parametrize("kind", FORMATS, ids=str)
#: For what takes seconds and hardly depends on the format: the short run takes one.
one_format_first = pytest.mark.parametrize(
    "kind", [FORMATS[0], *(pytest.param(kind, marks=pytest.mark.long) for kind in FORMATS[1:])], ids=str
)
