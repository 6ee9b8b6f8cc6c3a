"""The server beside its oracle: any notifications at any times, with too many of them and late clocks among these."""

from __future__ import annotations

import contextlib
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from msmqwire.notification.audit import Ignored, Overflowed, Record
from msmqwire.notification.envelope import Envelope
from msmqwire.notification.judgement import Rule
from msmqwire.notification.processor import Profile
from msmqwire.notification.schedule import WINDOW, NotificationServer, QueueOpening
from tests.notification import modelled as m
from tests.notification import processing as p
from tests.reference.notification_server import ReferenceServer
from tests.reference.processor import Outcome

#: Of every kind that is applied, few so that one undoes what another did.
MESSAGES: list[Any] = [
    *([("change", p.ORDERS, None, [(115, p.MACHINE), (105, quota)])] for quota in range(3)),
    [("change", None, "here\\bills", [(115, p.MACHINE), (104, 1)])],
    [("create", None, "here\\spare", [(101, p.SPARE), (108, "label")])],
    *([("delete", guid, None, [(1403, 1), (1404, 1)])] for guid in (p.ORDERS, p.SPARE)),
    [
        ("change", p.MACHINE, None, [(202, p.MACHINE), (214, 7)]),
        ("change", p.BILLS, None, [(115, p.MACHINE), (1101, b"two")]),
    ],
    *((event, guid) for event in (1, 2, 3) for guid in (p.ORDERS, p.SPARE)),
    (4, p.MACHINE),
]
#: Bodies that are counted like all others, and the rule by which nothing of them is applied.
SPOILT: list[Any] = [(b"\3\1", "version"), (b"\2\2", "malformed"), (b"", "malformed")]
SENT = st.lists(
    st.sampled_from([*((each, p.SIGNED) for each in [*MESSAGES, *SPOILT]), (MESSAGES[0], p.UNSIGNED)]),
    min_size=1,
    max_size=4,
)
#: Of messages in one go: on both sides of what is too many.
COUNTS = st.sampled_from([1, 1, 2, 5, 50, WINDOW - 2, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW])
#: Seconds, on both sides of every limit.
SECONDS = st.sampled_from([0, 0, 0.5, 1, 59, 60, 61, 779, 780, 839, 839.5, 840, 840.5, 841, 899, 900, 901, 5000])
#: What the clock is late by when the deadline comes.
LATE = st.sampled_from([-0.5, 0, 0, 0.5, 100])


class ServerMachine(m.BesideItsOracle):
    """The clock moves, messages come; each step is what the oracle makes of it, and keeps the promises of the note."""

    profile = Profile.LATER
    reported = 0

    @initialize()
    def server_begins(self) -> None:
        self.begin(profile=self.profile)
        self.server = NotificationServer(self.processor)
        at_once = self.profile is Profile.NT_2000
        self.oracle = ReferenceServer(self.model, at_once=at_once)
        self.now, self.opened, self.last_run = 1000.0, math.inf, -math.inf
        self.received = self.dropped = self.waiting = 0

    @rule(sent=SENT, count=COUNTS, after=SECONDS, apart=st.sampled_from([0, 0, 0, 0.25, 1, 10]), late=st.none() | LATE)
    def messages_come(self, sent: list[Any], count: int, after: float, apart: float, late: float | None) -> None:
        """Some in turn, until there are so many; and then perhaps the deadline."""
        made = [m.wire_and_model(each, self.model, self.profile) for each in sent]
        self.now += after
        for number in range(count):
            body, envelope, message = made[number % len(made)]
            queues, processed = len(self.processor.queues), self.processor.processed
            due = self.is_due()
            buffer = bytearray(body)
            records = self.server.receive(buffer, envelope, now=self.now)
            buffer.clear()  # it is the caller's
            self.compare(records, self.oracle.message(message, self.now))
            self.received += 1
            if self.profile is Profile.NT_2000:
                assert self.processor.processed == processed + 1
                assert {record.message for record in records} <= {processed}
                continue
            self.judge(due, records, queues, processed)
            if not self.waiting:
                self.opened = self.now
            self.waiting += 1
            self.now += apart
        if late is not None:
            self.deadline_comes(late)

    @rule(after=SECONDS)
    def clock_ticks(self, after: float) -> None:
        self.now += after
        self.tick()

    @rule(late=LATE)
    def deadline_comes(self, late: float) -> None:
        if self.server.deadline is not None:
            self.now = max(self.now, self.server.deadline + late)
            self.tick()

    @precondition(lambda self: self.server.deadline is None and self.last_run > 0)
    @rule(sent=SENT, silence=st.sampled_from([839.5, 840, 840.5, 841, 899.5, 900]))
    def silence_ends(self, sent: list[Any], silence: float) -> None:
        """So long after the last run."""
        self.messages_come(sent, len(sent), max(self.last_run + silence - self.now, 0), 0, None)

    def tick(self) -> None:
        queues, processed, due = len(self.processor.queues), self.processor.processed, self.is_due()
        records = self.server.tick(self.now)
        self.compare(records, self.oracle.clock(self.now))
        self.judge(due, records, queues, processed)

    def is_due(self) -> bool:
        return self.server.deadline is not None and self.now >= self.server.deadline

    def compare(self, records: list[Record], expected: list[Outcome]) -> None:
        assert [p.outcome(each) for each in records] == expected

    def judge(self, due: bool, records: list[Record], queues: int, processed: int) -> None:
        """What holds of any step, whatever the messages said; ``queues`` and ``processed`` were before it."""
        numbers = [record.message for record in records]
        if not due:
            assert (numbers, self.processor.processed) == ([], processed)
            return
        assert self.now >= self.opened + 60
        assert self.now >= self.last_run + 900
        if self.waiting > WINDOW:
            dropped = self.waiting - self.reported
            note = Overflowed(message=None, index=None, section="[MS-MQCN] 3.2.5.2", dropped=dropped)
            refreshed = records[1:] if dropped else records
            assert records == ([note, *refreshed] if dropped else refreshed)
            assert (len(refreshed), numbers) == (queues, [None] * len(records))
            assert self.processor.processed == processed
            if any(isinstance(each, Ignored) and each.rule is Rule.DIRECTORY for each in refreshed):
                # Until the directory has answered for every queue, the refresh stays due
                assert self.server.deadline == self.now + 60
                self.reported = self.waiting
                return
            self.dropped += self.waiting
            self.reported = 0
        else:
            assert self.processor.processed == processed + self.waiting
            assert numbers == sorted(number for number in numbers if number is not None)
            assert set(numbers) <= set(range(processed, processed + self.waiting))
        self.last_run, self.opened, self.waiting = self.now, math.inf, 0

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.received == self.processor.processed + self.dropped + self.waiting

    @invariant()
    def it_waits_as_long_as_the_oracle(self) -> None:
        waiting = self.oracle.waiting
        assert self.server.deadline == (None if waiting is None else waiting.deadline)
        assert self.server.overflowed == (waiting is not None and waiting.overflow)
        assert (self.server.deadline is None) == (self.waiting == 0)
        if self.server.deadline is not None and not self.reported:
            assert self.opened + 60 <= self.server.deadline <= self.opened + 900
        # What has overflowed is let go of
        assert len(self.server._pending) == (self.waiting if self.waiting <= WINDOW else 0)


class AtOnceMachine(ServerMachine):
    """Nothing waits."""

    profile = Profile.NT_2000


TestServer = ServerMachine.TestCase
TestServer.settings = settings(stateful_step_count=30)
TestAtOnce = AtOnceMachine.TestCase
TestAtOnce.settings = settings(max_examples=30, stateful_step_count=10)


class NobodySendsError(Exception):
    """There is nothing left to wait for."""


@given(st.lists(st.tuples(SENT, COUNTS, SECONDS), max_size=6), st.sampled_from(Profile))
def test_the_loop_takes_and_waits_as_the_oracle_does(bursts: list[Any], profile: Profile) -> None:
    """``run`` on a clock that stands still unless something waits for it."""
    objects = [p.queue(p.ORDERS, "orders", quota=3), p.queue(p.SPARE, "spare", journaling=True), p.HERE]
    processor = p.processor(m.start(), p.Failing(objects), profile=profile)
    model = p.reference(m.start(), m.reads_of(p.Failing(objects)))
    oracle = ReferenceServer(model, at_once=profile is Profile.NT_2000)
    arrivals, now = [], 0.0
    for sent, count, after in bursts:
        now += after
        made = [m.wire_and_model(each, model, profile) for each in sent]
        arrivals += [(now, *made[number % len(made)]) for number in range(count)]

    expected: list[tuple[float, Outcome]] = []
    for now, _, _, message in [*arrivals, (math.inf, b"", Envelope(), list)]:
        if oracle.waiting is not None and oracle.waiting.deadline < now:
            due = oracle.waiting.deadline
            expected += [(due, outcome) for outcome in oracle.clock(due)]
        if now < math.inf:
            expected += [(now, outcome) for outcome in oracle.message(message, now)]

    now, left = 0.0, arrivals[::-1]

    def dequeue(until: float | None) -> tuple[bytes, Envelope] | None:
        nonlocal now
        if left and (until is None or left[-1][0] <= until):
            now, body, envelope, _ = left.pop()
            return body, envelope
        if until is None:
            raise NobodySendsError
        assert until > now
        now = until
        return None

    def open_queue(_: QueueOpening) -> Any:
        return dequeue

    found = []
    server = NotificationServer(processor)
    with contextlib.suppress(NobodySendsError):
        for record in server.run(open_queue, lambda: now):
            found.append((now, p.outcome(record)))
    assert found == expected
    assert p.state(processor) == p.reference_state(model)
