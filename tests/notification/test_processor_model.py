"""The processor compared with its oracle over any sequence of notifications."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from msmqwire.notification.envelope import Envelope
from tests.notification import modelled as m
from tests.notification import processing as p
from tests.reference.processor import Update

QUEUE_VALUES = st.one_of(
    st.tuples(st.sampled_from([104, 111, 113, 114]), st.sampled_from([0, 1, 1, 0, 1, 0, 2])),
    st.tuples(st.just(112), st.sampled_from([0, 1, 2, 0, 1, 2, 3])),
    st.tuples(st.sampled_from([105, 107]), m.SMALL),
    st.tuples(st.just(106), st.integers(-2, 2)),
    st.tuples(st.just(1101), st.sampled_from([b"", b"one", b"two"])),
    st.tuples(st.just(108), st.sampled_from(["", "label"])),
    st.tuples(st.just(214), m.SMALL),
)
MACHINE_VALUES = st.one_of(
    st.tuples(st.sampled_from([214, 215]), m.SMALL),
    st.tuples(st.just(1201), st.sampled_from([b"", b"one"])),
    st.tuples(st.just(105), m.SMALL),
)
FIRST = st.sampled_from([115] * 12 + [126, 301, 1403])


@st.composite
def updates(draw: Any) -> Update:
    """An update of any kind, most of them proper."""
    kind = draw(st.sampled_from(["change"] * 8 + ["path", "create", "create", "delete", "machine", "odd"]))
    guid = draw(m.GUIDS)
    values = draw(st.lists(QUEUE_VALUES, max_size=4))
    if kind == "change":
        return "change", guid, None, [(draw(FIRST), p.MACHINE), *values]
    if kind == "path":
        return "change", None, draw(m.PATHS), [(115, p.MACHINE), *values]
    if kind == "create":
        head: list[tuple[int, Any]] = [(102, p.SPARE)]
        head += [(101, guid)] if draw(st.integers(0, 9)) else []
        head += [(103, draw(st.one_of(m.PATHS, st.just(""))))] if draw(st.booleans()) else []
        if draw(st.booleans()):
            return "create", guid, None, [*head, *values]
        return "create", None, draw(m.PATHS), [*head, *values]
    if kind == "delete":
        which = draw(st.sampled_from([1, 1, 1, 1, 1, 1, 2]))
        if draw(st.integers(0, 9)) == 0:
            return "delete", None, draw(m.PATHS), [(1403, 1), (1404, which)]
        return "delete", guid, None, [(1403, 1), (1404, which)]
    guid = draw(st.sampled_from([p.MACHINE, p.MACHINE, p.ORDERS]))
    command = "create" if kind == "odd" else "change"
    return command, guid, None, [(202, guid), *draw(st.lists(MACHINE_VALUES, max_size=3))]


ENVELOPES = st.sampled_from([p.SIGNED] * 10 + [p.UNSIGNED, p.FROM_USER, Envelope()])


def repaired(item: Update) -> Update:
    """With a value of the type that the first PROPID calls for."""
    command, guid, path, properties = item
    (number, value), *rest = properties
    value = {126: "path", 301: "name", 1403: 1}.get(number, value)
    return command, guid, path, [(number, value), *rest]


class ProcessorMachine(m.BesideItsOracle):
    """Any notifications in any order, with a directory that changes and fails in between."""

    @initialize()
    def processor_begins(self) -> None:
        self.begin()

    @rule(items=st.lists(updates(), max_size=4), envelope=ENVELOPES)
    def tell_version_1(self, items: list[Update], envelope: Envelope) -> None:
        items = [repaired(each) for each in items]
        records = self.processor.process(m.version_1_of(items), envelope)
        expected = self.model.version_1(envelope.sender_identifier_type.value, envelope.packet == "signed", items)
        assert [p.outcome(each) for each in records] == expected

    @rule(event=st.integers(1, 4), guid=m.GUIDS)
    def tell_version_2(self, event: int, guid: UUID) -> None:
        (record,) = self.processor.process(p.version_2(event, guid))
        assert p.outcome(record) == self.model.version_2(event, guid)


TestProcessor = ProcessorMachine.TestCase
TestProcessor.settings = settings(max_examples=min(60, settings().max_examples), stateful_step_count=30)
