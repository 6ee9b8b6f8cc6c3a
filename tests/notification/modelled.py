"""A processor beside its oracle, while their directories change and fail alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from msmqwire.directory import Directory, Equal, Queue, QueueManager
from msmqwire.errors import DirectoryError
from msmqwire.notification.envelope import Envelope
from msmqwire.notification.processor import Profile
from tests.notification import processing as p
from tests.reference.processor import Outcome, ReferenceProcessor, Update

#: Applies a message to the queues of the oracle.
Message = Callable[[], list[Outcome]]

GUIDS = st.sampled_from([p.ORDERS, p.BILLS, p.SPARE, p.ELSEWHERE, p.MACHINE])
PATHS = st.sampled_from(
    ["here\\orders", "HERE\\Orders", "here\\bills", "Here\\spare", "there\\orders", "here.example\\x"]
)
SMALL = st.integers(0, 3)


def version_1_of(items: list[Update]) -> bytes:
    made = [p.update(command, guid, path, properties) for command, guid, path, properties in items]
    if not made:
        return b"\1\0"
    return p.version_1(*made)


def start() -> list[Queue]:
    return [p.queue(p.ORDERS, "orders", quota=1, label="first"), p.queue(p.BILLS, "bills", security=b"one")]


def reads_of(directory: Directory) -> Callable[[str, UUID], dict[str, Any] | None]:
    """A directory as the oracle reads it."""

    def read(kind: str, guid: UUID) -> dict[str, Any] | None:
        element = Queue if kind == "queue" else QueueManager
        try:
            found = directory.read_directory(element, [Equal("identifier", guid)])
        except DirectoryError:
            raise OSError from None
        return None if found is None else found.attributes()

    return read


def wire_and_model(sent: Any, model: ReferenceProcessor, profile: Profile) -> tuple[bytes, Envelope, Message]:
    """A message for the server, and what it does to the oracle."""
    message, envelope = sent
    if not isinstance(message, tuple):
        authenticated = envelope.packet == "signed"
        done = partial(model.version_1, envelope.sender_identifier_type.value, authenticated, message)
        return version_1_of(message), envelope, done
    if isinstance(message[0], bytes):
        body, rule_name = message
        return body, envelope, lambda: [("disregarded", rule_name)]
    if profile is Profile.NT_2000:
        return p.version_2(*message), envelope, lambda: [("disregarded", "version")]
    return p.version_2(*message), envelope, lambda: [model.version_2(*message)]


class BesideItsOracle(RuleBasedStateMachine):
    """A processor and its oracle, each with a directory of its own so that the reads of each can be counted."""

    def begin(self, **options: Any) -> None:
        """Both in the same state."""
        self.directories = [p.Failing([*start(), p.HERE]) for _ in range(2)]
        self.processor = p.processor(start(), self.directories[0], **options)
        self.model = p.reference(start(), reads_of(self.directories[1]))

    @rule(guid=GUIDS, path=PATHS, quota=SMALL, journaling=st.booleans())
    def directory_has(self, guid: UUID, path: str, quota: int, journaling: bool) -> None:
        if guid != p.MACHINE:
            for each in self.directories:
                each.put(Queue(identifier=guid, pathname=path, quota=quota, journaling=journaling))

    @rule(quota=SMALL)
    def directory_has_machine(self, quota: int) -> None:
        for each in self.directories:
            each.put(QueueManager.of({**p.HERE.attributes(), "queue_manager_quota": quota}))

    @rule(guid=GUIDS)
    def directory_loses(self, guid: UUID) -> None:
        for each in self.directories:
            each.drop(guid)

    @rule(reads=st.frozensets(st.integers(1, 4), max_size=2))
    def directory_will_fail(self, reads: frozenset[int]) -> None:
        """At some of the reads that come next."""
        for each in self.directories:
            each.fails = frozenset(each.reads + number for number in reads)

    @invariant()
    def states_agree(self) -> None:
        assert p.state(self.processor) == p.reference_state(self.model)
        assert len({each.reads for each in self.directories}) == 1
