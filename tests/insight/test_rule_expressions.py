"""The expressions of the tables against the kernels: what a rule says in the schema is what the readers judge."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import pytest

from msmqwire.insight.layouts import LAYOUTS, broken_rules
from tests.columns.formats import FORMATS, MESSAGES, NOTIFICATIONS, SESSIONS, TOPOLOGY, Format
from tests.reference.reader import Fault

#: The rules that no expression says, as they need other bytes than numbers: each with a vector that breaks it.
VECTORS: dict[Format, dict[str, str]] = {
    TOPOLOGY: {"mask_count_mismatch": "reply-mask-of-another-count", "trailing_bytes": "reply-every-violation"},
    NOTIFICATIONS: {
        "trailing_bytes": "trailing-bytes",
        "path_name_syntax": "path-without-backslash",
        "property_set": "change-without-properties",
        "duplicate_property": "duplicate-property",
    },
    MESSAGES: {
        "trailing_bytes": "http-without-either",
        "sender_id": "security-sid-without-data",
        "label_terminator": "label-without-terminator",
        "unresolved_queue": "response-queue-beside-no-admin-queue",
        "srmp_envelope_terminator": "http-envelope-without-terminator",
        "soap_terminator": "soap-without-terminators",
        "sent_over_http": "sent-over-http",
        "queue_manager_address": "direct-destination-with-a-queue-manager",
        "crypto_provider": "security-no-sender",
        "padding": "padding-that-is-missing",
        "acknowledgment": "order-ack-recoverable",
    },
    SESSIONS: {"trailing_bytes": "session-ack-with-four-bytes"},
}

each_format = pytest.mark.parametrize("kind", FORMATS, ids=str)


def layouts_of(kind: Format) -> tuple[str, ...]:
    """The byte maps of the payloads of a table, which come over TCP or UDP."""
    return ("sessions", "ping") if kind is SESSIONS else (kind.table.name,)


def judged(kind: Format) -> dict[str, set[str]]:
    """The faults and violations that have an expression, each with the names that faults have for its fields."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in (row for name in layouts_of(kind) for field in LAYOUTS[name] for row in (field, *field.fields)):
        for code in row.checks:
            found[code] |= {*(row.faults or (row.name,))}
    return found


def differences(kind: Format, layout: str, payloads: Iterable[bytes]) -> Counter[str]:
    """How often expressions and kernel differ, by the code of the rule."""
    transport = {"sessions": "tcp", "ping": "udp", "topology": "udp"}.get(layout, "")
    way, known, found = {"transport": transport} if transport else {}, judged(kind), Counter[str]()
    for payload in payloads:
        if kind.read_as(payload, transport) is not kind:
            continue
        packet, expected = kind.decode(payload, **way), broken_rules(layout, payload)
        if not isinstance(packet, Fault):
            found.update(expected ^ (set(packet.violations) & known.keys()))
        elif packet.field in known.get(packet.code, ()) and packet.code not in expected:
            found[f"{packet.code}: {packet.field}"] += 1
    return found


@each_format
@pytest.mark.parametrize("count", [2_000, pytest.param(25_000, marks=pytest.mark.long)])
def test_expressions_and_kernels_agree(kind: Format, count: int) -> None:
    for layout in layouts_of(kind):
        assert not differences(kind, layout, [*kind.packets, *kind.cases(count, 11)])


@each_format
def test_rules_without_an_expression_have_a_vector(kind: Format) -> None:
    assert {*VECTORS[kind]} == {*kind.table.violation_names} - judged(kind).keys()
    vectors = {vector.name: vector for vector in kind.vectors}
    for rule, name in VECTORS[kind].items():
        assert any(rule in outcome.violations for outcome in vectors[name].outcomes), rule
        packets = [kind.decode(vectors[name].data, **way) for way in kind.ways()]
        assert any(rule in packet.violations for packet in packets if not isinstance(packet, Fault)), rule
