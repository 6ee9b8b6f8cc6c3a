"""What there is to a Notification Update before anything is applied ([MS-MQCN] 3.2.5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msmqwire.directory.elements import Queue, QueueManager
from msmqwire.mqcn import NotificationUpdate
from msmqwire.notification.attributes import CREATED_QUEUE, UPDATED_QUEUE, attribute_value
from msmqwire.notification.audit import Rule
from msmqwire.properties import by_name

__all__ = ["INSTANCE", "PATHNAME", "attributes_of", "first_values", "pathname_of", "refusal"]

INSTANCE = by_name("PROPID_Q_INSTANCE").number
PATHNAME = by_name("PROPID_Q_PATHNAME").number


def first_values(update: NotificationUpdate) -> dict[int, Any]:
    """The values of an update by PROPID; of several of one PROPID the first counts, as IndexOf has it."""
    return dict(reversed(update.properties))


def pathname_of(update: NotificationUpdate, values: Mapping[int, Any]) -> str:
    """The path of a queue that was created: PROPID_Q_PATHNAME before PathName; empty if it has none."""
    return values.get(PATHNAME) or update.path_name or ""


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


def refusal(update: NotificationUpdate) -> Rule | None:
    """The rule by which an update makes its whole message disregarded."""
    if update.object is None or (update.command == "delete" and update.object != "queue"):
        return Rule.OBJECT_TYPE
    if update.object != "queue" or update.command == "delete":
        return None
    values = first_values(update)
    if update.command == "create":
        if INSTANCE not in values:
            return Rule.NO_IDENTIFIER
        if not pathname_of(update, values):
            return Rule.NO_PATHNAME
    try:
        attributes_of(Queue, CREATED_QUEUE if update.command == "create" else UPDATED_QUEUE, values)
    except ValueError:
        return Rule.VALUE
    return None
