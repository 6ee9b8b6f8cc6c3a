"""One judgement: the table, summary, detect, replay and the processor say the same of every message."""

from __future__ import annotations

import io
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msmqwire import mqcn, mqqb
from msmqwire.capture import read_table, read_tables
from msmqwire.directory import MemoryDirectory
from msmqwire.insight import COLUMNS, summarize
from msmqwire.insight.findings import CapturedRows, Detector
from msmqwire.mqcn.schema import STRICT
from msmqwire.notification.audit import Disregarded, Ignored
from msmqwire.notification.envelope import AuthenticationLevel, Envelope
from msmqwire.notification.judgement import (
    Judgement,
    Outcome,
    Rule,
    Senders,
    Unverified,
    judge,
    judge_batch,
    rule_against_pathname,
)
from msmqwire.notification.processor import NotificationProcessor
from msmqwire.notification.replay import replay
from tests.notification.sent import (
    FROM_QUEUE_MANAGER,
    FROM_USER,
    LEDGER,
    MACHINE,
    MASTER,
    captured_packets,
    packet_of,
)
from tests.reference import judgement as reference

SENDERS = {"none": None, "sid": FROM_USER, "queue_manager": FROM_QUEUE_MANAGER}
#: The rules that need more than a message and its sender.
KNOWING = {Rule.NOT_FOUND, Rule.OTHER_MACHINE, Rule.OTHER_COMPUTER, Rule.NOT_IN_DIRECTORY, Rule.DIRECTORY}
SMALL = st.integers(0, 3)
GUIDS = st.sampled_from([UUID(int=1), UUID(int=2), LEDGER])
PATHS = st.sampled_from(["ledger\\a", "LEDGER\\A", "other\\a", "ledger\\private$\\a", "ledger\\system$;journal"])
WRONG_PATHS = st.sampled_from(["", "ledger\\", "ledger\\" + "q" * 125])
NUMBERS = {propid: st.integers(0, 3) for propid in (104, 111, 112, 113, 114, 105, 214)}
VALUES: dict[int, st.SearchStrategy[Any]] = {
    **NUMBERS, 101: GUIDS, 103: PATHS | WRONG_PATHS, 108: st.just("label"), 115: GUIDS, 201: GUIDS, 202: GUIDS,
    1403: st.just(1), 1404: st.integers(0, 3), 501: SMALL,
}  # fmt: skip
USUAL: dict[str, list[int]] = {"create": [101, 103], "change": [115], "delete": [1403, 1404]}


@st.composite
def updates(draw: st.DrawFn) -> mqcn.NotificationUpdate:
    """An update as senders write it, or nearly so."""
    command: Any = draw(st.sampled_from(["create", "change", "delete"]))
    ids = USUAL[command] if draw(st.booleans()) else draw(st.permutations([*USUAL[command], 202, 501][:3]))
    ids = [propid for propid in ids if propid in VALUES]
    ids += draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=3))
    properties = [(propid, draw(VALUES[propid])) for propid in ids]
    named: dict[str, Any] = {"guid_identifier": draw(GUIDS)} if draw(st.booleans()) else {"path_name": draw(PATHS)}
    return mqcn.NotificationUpdate(command=command, guid_master_id=MASTER, properties=properties, **named)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from([b"", b"\1", b"\1\0", b"\3\1", b"\2\2", b"\1\1\0"]))
    if kind <= 2:
        event = mqcn.NotificationBody(draw(st.integers(1, 4)), draw(GUIDS), "dc1")
        body = mqcn.encode_body(mqcn.ChangeNotificationMessage(2, body=event))
    else:
        items = draw(st.lists(updates(), min_size=1, max_size=3))
        body = mqcn.encode_body(mqcn.ChangeNotificationMessage(1, items), enforce=False)
    return body + draw(st.sampled_from([b"", b"", b"", b"\0\0\0\0"]))


SENT = st.lists(st.tuples(bodies(), st.sampled_from([*SENDERS, "queue_manager", "queue_manager"])), max_size=6)


def capture(sent: list[tuple[bytes, str]]) -> bytes:
    return captured_packets([packet_of(body, SENDERS[sender]) for body, sender in sent])


def update(command: Any, *properties: tuple[int, Any], **named: Any) -> bytes:
    """A message of version 1 with one update."""
    named = named or {"guid_identifier": UUID(int=1)}
    made = mqcn.NotificationUpdate(command=command, guid_master_id=MASTER, properties=properties, **named)
    return mqcn.encode_body(mqcn.ChangeNotificationMessage(1, [made]), enforce=False)


CHANGE = update("change", (115, LEDGER), (105, 7))
DELETE = update("delete", (1403, 1), (1404, 1))
#: Of a queue manager: a change by GUID and by path, a creation and a deletion.
OF_MACHINES = [
    update("change", (202, LEDGER), (219, 0), (214, 7)),
    update("change", (202, LEDGER), (219, 0), path_name="ledger\\a"),
    update("create", (202, LEDGER), (203, "ledger")),
    update("create", (202, LEDGER), path_name="ledger\\a"),
    update("delete", (1403, 1), (1404, 2)),
]
EVENT = mqcn.encode_body(mqcn.ChangeNotificationMessage(2, body=mqcn.NotificationBody(2, UUID(int=1), "dc1")))


@given(SENT)
@example([(CHANGE, "queue_manager"), (CHANGE, "none"), (CHANGE, "sid"), (EVENT, "none"), (EVENT, "sid")])
@example([(update("create", (103, "ledger\\a"), path_name="ledger\\a"), "queue_manager")])
@example([(CHANGE + b"\0\0", "queue_manager"), (EVENT + b"\0\0\0\0", "none")])
@example([(update("change", (501, 1)), "queue_manager")])
@example([(body, "queue_manager") for body in OF_MACHINES])
@example([(update("change", (115, LEDGER), (104, 7)), "queue_manager")])
def test_everyone_tells_one_story(sent: list[tuple[bytes, str]]) -> None:
    expected = [reference.judge(body, sender) for body, sender in sent]
    pairs = [pair for each in expected for pair in each]
    # Frames are numbered from the one after the handshake
    data = capture(sent)
    rows = [row for batch in read_table(io.BytesIO(data), "notifications", guid="text") for row in batch.to_pylist()]
    assert [(row["outcome"], row["rule"]) for row in rows] == pairs

    summary = summarize(read_tables(io.BytesIO(data), columns=COLUMNS, guid="binary"))
    counted: Counter[Any] = Counter()
    for each in summary.section("notifications").to_pylist():
        counted[each["applied"], each["rule"]] += each["changes"]
    assert counted == Counter((None if out is None else out == "applied", rule) for out, rule in pairs)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.pcap"
        path.write_bytes(data)
        detector = Detector()
        for table, batch in CapturedRows(path):
            detector.add(table, batch)
        found: Counter[Any] = Counter()
        for finding in detector.findings():
            if finding.rule == "refused-notification":
                found[finding.evidence["outcome"], finding.evidence["reason"]] += finding.evidence["packets"]
        assert found == Counter(pair for pair in pairs if pair[1])
        replayed = replay(batch for batch in read_table(path, "notifications"))
    disregarded = Counter(each[0][1] for each in expected if each[0][0] == "disregarded")
    assert replayed.rules == disregarded
    refused = [event.rule for queue in replayed.queues for event in queue.history if event.rule in set(Rule) - KNOWING]
    of_queues = {"machine_created", "other_machine"}
    assert Counter(refused) == Counter(rule for out, rule in pairs if out == "ignored" and rule not in of_queues)

    processor = NotificationProcessor(
        MACHINE, directory=MemoryDirectory([]), verifier=lambda _: AuthenticationLevel.SIG20
    )
    for (body, sender), judged in zip(sent, expected, strict=True):
        security = SENDERS[sender]
        records = processor.process(body, Envelope.of(mqqb.UserMessage(security=security)))
        if judged[0][0] == "disregarded":
            assert [type(each) for each in records] == [Disregarded]
            assert records[0].rule == judged[0][1]  # type: ignore[attr-defined]
            continue
        changes = [pair for pair in judged if pair[0]]
        for record, (outcome, rule) in zip(records, changes, strict=True):
            ruled = record.rule if isinstance(record, Ignored) else None
            assert ruled == rule if outcome == "ignored" else ruled is None or ruled in KNOWING


def answer(level: AuthenticationLevel, _: Envelope) -> AuthenticationLevel:
    """A verifier."""
    return level


@given(st.lists(bodies(), max_size=6), st.data())
def test_the_columns_and_the_single_message_agree(sent: list[bytes], data: st.DataObject) -> None:
    """Also where the caller knows the sender, or nothing of it."""
    flags = st.lists(st.booleans(), min_size=len(sent), max_size=len(sent)).map(lambda each: np.array(each, np.bool_))
    managers, authenticated, trusted = (data.draw(st.none() | flags) for _ in range(3))
    if managers is None:
        authenticated = trusted = None
    batch = mqcn.decode_batch(sent)
    known = Senders(queue_manager=managers, authenticated=authenticated, trusted=trusted)
    versions = data.draw(st.sampled_from([(1, 2), (1,)]))
    columns = judge_batch(batch, known, versions=versions)
    assert len(columns) == len(batch)
    for at, body in enumerate(sent):
        envelope = None
        if managers is not None:
            security = FROM_QUEUE_MANAGER if managers[at] else FROM_USER
            envelope = Envelope.of(mqqb.UserMessage(security=security))
        level = None
        if authenticated is not None:
            level = AuthenticationLevel.SIG20 if authenticated[at] else AuthenticationLevel.NONE
        single = judge(
            body,
            envelope,
            verifier=None if level is None else partial(answer, level),
            trusted=None if trusted is None else [LEDGER] if trusted[at] else [],
            versions=versions,
        )
        rows = [columns[row] for row in range(batch.messages[at], batch.messages[at + 1])]
        if single.fault is None:
            assert rows == list(single.changes)
        else:
            assert set(rows) == set(single.changes)


def test_the_columns_and_the_single_message_agree_on_queue_managers() -> None:
    columns = judge_batch(mqcn.decode_batch(OF_MACHINES))
    assert [columns[row] for row in range(len(columns))] == [judge(body).changes[0] for body in OF_MACHINES]
    assert [(each.outcome, each.rule) for each in (columns[row] for row in range(len(columns)))] == [
        (Outcome.APPLIED, None),
        (Outcome.IGNORED, Rule.OTHER_MACHINE),
        (Outcome.IGNORED, Rule.MACHINE_CREATED),
        (Outcome.IGNORED, Rule.MACHINE_CREATED),
        (Outcome.DISREGARDED, Rule.OBJECT_TYPE),
    ]


PARTS = st.sampled_from(
    ["a", "\\", "private$", "\\private$\\", "system$;", "journal", ";", "$", ",", " ", "\x7f", "é", "😀", "\ud800"]
) | st.sampled_from(["ledger", "q" * 124, "q" * 125, "m" * 256])


@given(st.lists(st.tuples(st.booleans(), st.lists(PARTS, max_size=6).map("".join)), max_size=8))
def test_the_columns_and_the_single_message_agree_on_paths(paths: list[tuple[bool, str]]) -> None:
    """Whichever characters they have, in PROPID_Q_PATHNAME or in PathName, one message beside the other."""
    created = update("create", (101, LEDGER), (103, "x\\path"), (103, "ledger\\other"), path_name="ledger\\named")
    changed = update("change", (115, LEDGER), path_name="x\\path")
    place = "x\\path".encode("utf-16-le")
    sent = [
        (created if is_created else changed).replace(place, path.encode("utf-16-le", "surrogatepass"))
        for is_created, path in paths
    ]
    batch = mqcn.decode_batch(sent)
    columns = judge_batch(batch)
    for body, rows in zip(sent, batch.messages[:-1].tolist(), strict=True):
        assert [columns[rows]] == list(judge(body).changes), body


@pytest.mark.parametrize("said", [False, True, None, 0, 1, "none", "sig20"])
def test_only_a_level_of_authentication_is_an_answer(said: Any) -> None:
    """R15: an answer of another kind is an error, and authenticates nothing."""
    envelope = Envelope.of(mqqb.UserMessage(security=FROM_QUEUE_MANAGER))
    with pytest.raises(TypeError, match=f"the verifier returned {said!r}, which is not an AuthenticationLevel"):
        judge(CHANGE, envelope, verifier=lambda _: said)
    processor = NotificationProcessor(MACHINE, directory=MemoryDirectory([]), verifier=lambda _: said)
    with pytest.raises(TypeError):
        processor.process(CHANGE, envelope)


def test_what_is_not_known_is_said() -> None:
    """R14: a capture has no verifier, no directory and no queues."""
    signed = Envelope.of(mqqb.UserMessage(security=FROM_QUEUE_MANAGER))
    applied, no_guid = Outcome.APPLIED, update("delete", (1403, 1), (1404, 1), path_name="ledger\\a")
    assert judge(CHANGE).changes == (Judgement(applied, None, Unverified.SENDER),)
    assert judge(CHANGE, signed).changes == (Judgement(applied, None, Unverified.AUTHENTICATION),)
    assert judge(no_guid, signed).changes == (Judgement(Outcome.IGNORED, Rule.NO_GUID, Unverified.AUTHENTICATION),)

    def verifier(_: Envelope) -> AuthenticationLevel:
        return AuthenticationLevel.SIG10

    assert judge(CHANGE, signed, verifier=verifier).changes == (Judgement(applied, None, Unverified.QUEUES),)
    assert judge(no_guid, signed, verifier=verifier).changes == (Judgement(Outcome.IGNORED, Rule.NO_GUID, None),)
    assert judge(EVENT).changes == (Judgement(applied, None, Unverified.DIRECTORY),)
    assert judge(CHANGE, Envelope()).changes == (Judgement(Outcome.DISREGARDED, Rule.SENDER_TYPE, None),)


def test_the_table_has_the_sender() -> None:
    sid = FROM_USER.security_id
    sent = [(CHANGE, "none"), (CHANGE, "sid"), (CHANGE, "queue_manager"), (EVENT, "none")]
    (batch,) = read_table(io.BytesIO(capture(sent)), "notifications", guid="text", dictionaries=False)
    assert batch.column("sender_id_type").to_pylist() == [None, "sid", "queue_manager", None]
    assert batch.column("security_id").to_pylist() == [None, sid, LEDGER.bytes_le, None]
    assert batch.column("rule").to_pylist() == ["sender_type", "sender_type", None, None]
    assert batch.column("unverified").to_pylist() == [None, None, "authentication", "directory"]


@pytest.mark.parametrize("columns", [["rule"], ["frame", "outcome"], ["sender_id_type"], ["operation", "unverified"]])
def test_columns_alone_are_those_of_the_table(columns: list[str]) -> None:
    data = capture([(CHANGE, "none"), (DELETE, "queue_manager"), (EVENT, "sid")])
    every = pa.table(read_table(io.BytesIO(data), "notifications", guid="text"))
    some = pa.table(read_table(io.BytesIO(data), "notifications", columns=columns, guid="text"))
    assert some.equals(every.select(columns))


def test_the_violations_of_strict_decoding_stand_once() -> None:
    """What is a fault when decoded strictly is what a receiver disregards."""
    for name, flag in mqcn.Violation.__members__.items():
        assert (flag & STRICT != 0) == (name in ("TRAILING_BYTES", "PATH_NAME_SYNTAX", "PROPERTY_COUNT"))


@pytest.mark.parametrize("pathname", ["a\\b" + "b" * 100_000, "a" * 100_000])
def test_long_paths_are_not_kept(pathname: str) -> None:
    """A peer chooses them, and rules are kept of 65,536."""
    before = sys.getrefcount(pathname)
    assert rule_against_pathname(pathname) is Rule.PATHNAME
    assert sys.getrefcount(pathname) == before


def test_judgements_are_equal_to_themselves_alone() -> None:
    """Their arrays have no one truth value."""
    batch = mqcn.decode_batch([CHANGE, CHANGE])
    judgements, senders = judge_batch(batch), Senders(trusted=np.ones(2, np.bool_))
    assert judgements != judge_batch(batch)
    assert senders != Senders(trusted=np.ones(2, np.bool_))
    assert len({judgements, senders}) == 2


def test_the_type_of_a_sender_may_be_text() -> None:
    typed = Envelope(sender_identifier_type="queue_manager_identifier", sender_identifier=MASTER)  # type: ignore[arg-type]
    (judged,) = judge(CHANGE, typed).changes
    assert judged.rule is not Rule.SENDER_TYPE
    with pytest.raises(ValueError, match="'user' is not a valid SenderIdentifierType"):
        Envelope(sender_identifier_type="user")  # type: ignore[arg-type]
