"""What there is to a Notification Update before anything is applied ([MS-MQCN] 3.2.5.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msmqwire.directory.elements import Queue, QueueManager
from msmqwire.mqcn import Violation
from msmqwire.notification.attributes import CREATED_QUEUE, UPDATED_QUEUE, attribute_value
from msmqwire.notification.audit import Rule
from msmqwire.properties import by_name

__all__ = ["DISCARDABLE", "INSTANCE", "PATHNAME", "attributes_of", "first_values", "pathname_of", "refusal"]

INSTANCE = by_name("PROPID_Q_INSTANCE").number
PATHNAME = by_name("PROPID_Q_PATHNAME").number

#: Violations for which a receiver discards a message: those that ``strict=True`` makes faults.
DISCARDABLE = Violation.TRAILING_BYTES | Violation.PATH_NAME_SYNTAX | Violation.PROPERTY_COUNT


def first_values(properties: Iterable[tuple[int, Any]]) -> dict[int, Any]:
    """The values of an update by PROPID; of several of one PROPID the first counts, as IndexOf has it."""
    found: dict[int, Any] = {}
    for propid, value in properties:
        found.setdefault(propid, value)
    return found


def pathname_of(path_name: str | None, values: Mapping[int, Any]) -> str:
    """The path of a queue that was created: PROPID_Q_PATHNAME before PathName; empty if it has none."""
    return values.get(PATHNAME) or path_name or ""


def attributes_of(
    element: type[Queue | QueueManager], table: Mapping[int, str], values: Mapping[int, Any]
) -> dict[str, Any]:
    """The attributes that some of the values say something of.

    Raises
    ------
    ValueError
        A value is none of its enumeration.
    """
    return {
        name: attribute_value(
            element, name, bytes(values[propid]) if element.attribute_type(name) is bytes else values[propid]
        )
        for propid, name in table.items()
        if propid in values
    }


def refusal(kind: str | None, command: str, path_name: str | None, values: Mapping[int, Any]) -> Rule | None:
    """The rule by which an update makes its whole message disregarded.

    Parameters
    ----------
    kind : {"queue", "machine"} or None
        Of the object.
    command : {"create", "change", "delete"}
    path_name : str or None
        PathName, where it stands for the GUID.
    values : mapping of int to value
        As ``first_values`` gives them.
    """
    if kind is None or (command == "delete" and kind != "queue"):
        return Rule.OBJECT_TYPE
    if kind != "queue" or command == "delete":
        return None
    if command == "create":
        if INSTANCE not in values:
            return Rule.NO_IDENTIFIER
        if not pathname_of(path_name, values):
            return Rule.NO_PATHNAME
    try:
        attributes_of(Queue, CREATED_QUEUE if command == "create" else UPDATED_QUEUE, values)
    except ValueError:
        return Rule.VALUE
    return None
