"""Every kind of payload that is decoded into a batch, beside what says which rows it should have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

import pytest

import tests.mqcn.rows
import tests.mqqb.rows
import tests.mqsd.rows
from msmqwire import Batch, Payloads, mqcn, mqqb, mqsd
from msmqwire.columns import Table
from tests.mqcn.messages import read_all
from tests.mqqb.messages import F8, FULL, some, vectors
from tests.reference import mqcn_cases, mqsd_cases
from tests.reference.mqqb import Table as PacketTable
from tests.vectors import get, load

Bytes: TypeAlias = "Sequence[bytes | None]"


@dataclass(frozen=True)
class Format:
    """Payloads of one kind.

    ``decode_batch`` and ``encode_batch`` are those of the package. ``cases(count, seed)`` makes payloads, half of them
    broken; ``count`` of them are many for its oracle. ``vectors`` are the golden ones. ``whole`` are two without a
    fault, the first with every optional part. ``expected(payloads, strict=)`` is the answer of the oracle, which
    ``assert_columns`` and ``assert_arrow`` compare with the numpy columns of a batch and with its Arrow export;
    ``rows`` is its number of rows. ``most_memory`` limits the bytes that a batch may hold: at all, for each payload
    and for each byte of the payloads. ``look`` follows offsets of a batch that an export does not.
    """

    table: Table
    decode_batch: Callable[..., Any]
    encode_batch: Callable[..., Payloads]
    cases: Callable[[int, int], list[bytes]]
    count: int
    vectors: tuple[bytes, ...]
    whole: tuple[bytes, ...]
    expected: Callable[..., Any]
    rows: Callable[[Any], int]
    assert_columns: Callable[[Any, Any], None]
    assert_arrow: Callable[[Any, Any], None]
    most_memory: tuple[int, int, int]
    look: Callable[[Any], object] = Batch.to_arrow

    def __str__(self) -> str:
        return self.table.name

    def assert_rows(self, payloads: Bytes, batch: Any = None, *, strict: bool = False, **options: Any) -> Any:
        """A batch of these payloads, or the one given, has the rows of the oracle in numpy and in Arrow."""
        if batch is None:
            batch = self.decode_batch(payloads, strict=strict, **options)
        expected = _expected(self.expected, tuple(payloads), strict)
        self.assert_columns(batch, expected)
        self.assert_arrow(batch, expected)
        with_dictionaries = batch.to_arrow()
        with_dictionaries.validate(full=True)
        if len(batch) <= 500:
            assert with_dictionaries.to_pylist() == batch.to_arrow(dictionaries=False).to_pylist()
        return batch


@lru_cache(8)
def _expected(oracle: Callable[..., Any], payloads: Bytes, strict: bool) -> Any:
    """The answer of the oracle, kept as the oracle is slow and the tests repeat their payloads."""
    return oracle(payloads, strict=strict)


def _look_at_properties(batch: mqcn.NotificationBatch) -> None:
    values, found = batch.property(105)
    assert len(values) == len(found)


def _look_at_bodies(batch: mqqb.MessageBatch) -> None:
    found = batch.notifications()
    assert len(found.payloads) == len(found.rows)
    assert all(body is not None for body in found.payloads[:100])


def _expected_notifications(payloads: Bytes, *, strict: bool = False) -> tests.mqcn.rows.Expected:
    return tests.mqcn.rows.Expected(read_all(payloads, strict=strict))


def _packets(table: Table, name: PacketTable, **others: Any) -> Format:
    """One of the two tables of message packets."""

    def expected(payloads: Bytes, *, strict: bool = False) -> tests.mqqb.rows.Expected:
        return tests.mqqb.rows.Expected(tests.mqqb.rows.read_all(payloads, name, strict=strict), name)

    return Format(
        table=table,
        encode_batch=mqqb.encode_batch,
        cases=partial(some, name),
        count=500,
        vectors=tuple(vectors(name)),
        expected=expected,
        rows=lambda outcomes: len(outcomes.outcomes),
        assert_columns=tests.mqqb.rows.assert_columns,
        assert_arrow=tests.mqqb.rows.assert_arrow,
        **others,
    )


FORMATS = (
    Format(
        table=mqsd.TOPOLOGY,
        decode_batch=mqsd.decode_batch,
        encode_batch=mqsd.encode_batch,
        cases=lambda count, seed: list(mqsd_cases.cases(count, seed=seed)),
        count=2000,
        vectors=tuple(vector.data for vector in load("mqsd")),
        whole=(get("mqsd", "reply-many-servers").data, get("mqsd", "V1-request").data),
        expected=tests.mqsd.rows.read_all,
        rows=len,
        assert_columns=tests.mqsd.rows.assert_columns,
        assert_arrow=tests.mqsd.rows.assert_arrow,
        most_memory=(4096, 250, 12),
    ),
    Format(
        table=mqcn.NOTIFICATIONS,
        decode_batch=mqcn.decode_batch,
        encode_batch=mqcn.encode_batch,
        cases=lambda count, seed: list(mqcn_cases.cases(count, seed=seed)),
        count=2000,
        vectors=tuple(vector.data for vector in load("mqcn")),
        whole=(get("mqcn", "change-machine-with-riders").data, get("mqcn", "C1-delete").data),
        expected=_expected_notifications,
        rows=lambda expected: len(expected.rows),
        assert_columns=tests.mqcn.rows.assert_columns,
        assert_arrow=tests.mqcn.rows.assert_arrow,
        most_memory=(8192, 300, 40),
        look=_look_at_properties,
    ),
    _packets(
        mqqb.MESSAGES,
        "messages",
        decode_batch=mqqb.decode_batch,
        whole=(mqqb.encode(FULL), mqqb.encode(mqqb.UserMessage())),
        most_memory=(8192, 600, 10),
        look=_look_at_bodies,
    ),
    _packets(
        mqqb.SESSIONS,
        "sessions",
        decode_batch=mqqb.decode_session_batch,
        whole=(get("mqqb", "F3-establish-connection-request").data, F8),
        most_memory=(8192, 200, 1),
    ),
)

each_format = pytest.mark.parametrize("kind", FORMATS, ids=str)
