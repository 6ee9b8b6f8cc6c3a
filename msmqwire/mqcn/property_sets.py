"""Which PROPIDs of an update are wrong, as text for errors: [MS-MQCN] 3.3.5.2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msmqwire.properties.table import by_name, by_number

#: The PROPIDs that a sender writes: [MS-MQCN] 3.3.5.2. The index of each is its bit.
SENT = (
    # a create has the first fifteen, the change of a queue any of the first seven
    "Q_JOURNAL", "Q_QUOTA", "Q_BASEPRIORITY", "Q_JOURNAL_QUOTA", "Q_AUTHENTICATE", "Q_PRIV_LEVEL", "Q_SECURITY",
    "Q_TYPE", "Q_INSTANCE", "Q_CREATE_TIME", "Q_MODIFY_TIME", "Q_SCOPE", "Q_PATHNAME", "Q_LABEL", "Q_TRANSACTION",
    # the change of a queue has this one
    "Q_QMID",
    # the change of a machine has these two, and any of the rest
    "QM_MACHINE_ID", "QM_FOREIGN",
    "QM_QUOTA", "QM_JOURNAL_QUOTA", "QM_SECURITY", "QM_ADDRESS", "QM_CNS", "QM_MACHINE_TYPE", "QM_OS",
)  # fmt: skip

#: The PROPIDs, as bits, that a create, a change of a queue and a change of a machine need, and can have.
PROPERTY_SETS = {
    "CREATED": 0x7FFF,
    "QUEUE_KEY": 0x8000,
    "QUEUE_CHANGES": 0x807F,
    "MACHINE_KEY": 0x30000,
    "MACHINE_CHANGES": 0x1FF0000,
}


def _members(name: str) -> list[int]:
    bits = PROPERTY_SETS[name]
    return [by_name(f"PROPID_{name}").number for at, name in enumerate(SENT) if bits >> at & 1]


#: The PROPIDs that a create of a queue, a change of a queue and a change of a queue manager can have.
CREATED = frozenset(_members("CREATED"))
QUEUE_CHANGES = frozenset(_members("QUEUE_CHANGES"))
MACHINE_CHANGES = frozenset(_members("MACHINE_CHANGES"))

_DELETED = [by_name("PROPID_D_SCOPE").number, by_name("PROPID_D_OBJTYPE").number]

# By command and object: what an update needs, and what it can have
_SETS = {
    ("create", None): (_members("CREATED"), _members("CREATED")),
    ("change", "queue"): (_members("QUEUE_KEY"), _members("QUEUE_CHANGES")),
    ("change", "machine"): (_members("MACHINE_KEY"), _members("MACHINE_CHANGES")),
    ("delete", None): (_DELETED, _DELETED),
}


def describe(violations: Iterable[str], updates: Iterable[tuple[int, Any]]) -> str:
    """Return the names of violations of numbered updates; one of properties has the PROPIDs of its first update."""
    described = []
    numbered = list(updates)
    for name in violations:
        found = [(at, update) for at, update in numbered if name in update.violations and name in _REASONS]
        described.append(f"{name} (update {found[0][0]} {_REASONS[name](found[0][1])})" if found else name)
    return ", ".join(described)


def _wrong_set(update: Any) -> str:
    ids = dict.fromkeys(one.id for one in update.properties)
    key = (update.command, update.object if update.command == "change" else None)
    if key not in _SETS:
        return f"begins with {_named(list(ids)[:1])}" if ids else "has no PROPID"
    needed, allowed = _SETS[key]
    missing, extra = [one for one in needed if one not in ids], [one for one in ids if one not in allowed]
    lacks = f"lacks {_named(missing)}" if missing else ""
    has = f"cannot have {_named(extra)}" if extra else ""
    return " and ".join(filter(None, (lacks, has))) or f"has other values than 1, or another order, of {_named(ids)}"


def _repeated(update: Any) -> str:
    counts = Counter(one.id for one in update.properties)
    return f"repeats {_named(one for one, count in counts.items() if count > 1)}"


_REASONS = {"property_set": _wrong_set, "duplicate_property": _repeated}


def _named(ids: Iterable[int]) -> str:
    return ", ".join(f"{by_number(one).name} ({one})" for one in ids)
