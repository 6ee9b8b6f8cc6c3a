"""The records that a queue manager makes of change notifications: one for every decision.

``Created``, ``Changed`` and ``Deleted`` record what was applied; ``Ignored`` one change that was not applied,
``Disregarded`` a message of which nothing was applied, ``Overflowed`` the messages that came too fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict
from uuid import UUID

from msmqwire.directory.elements import Queue
from msmqwire.notification.judgement import Rule

DISPATCH, VERSION_1, VERSION_2 = "[MS-MQCN] 3.2.5", "[MS-MQCN] 3.2.5.1", "[MS-MQCN] 3.2.5.2"


class ChangePlace(TypedDict):
    """The fields that all records share, as arguments: ``Ignored(**place, rule=rule)``."""

    message: int | None
    index: int | None
    section: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The fields that all records share.

    Attributes
    ----------
    message : int or None
        Number of the message among those processed, from 0; None when queues were refreshed.
    index : int or None
        Number of the update in the message, from 0; None for the complete message.
    section : str
        Section of the rule that was followed.
    """

    message: int | None
    index: int | None
    section: str


@dataclass(frozen=True, slots=True)
class Change:
    """An attribute whose value changed."""

    attribute: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Created(Record):
    """A queue was added; ``replaced`` is the queue that had its Pathname under another Identifier and was removed."""

    queue: Queue
    replaced: Queue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed(Record):
    """A queue, or the queue manager itself, was updated; ``changes`` holds the attributes whose values differ."""

    object: Literal["queue", "machine"]
    identifier: UUID
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted(Record):
    """A queue was removed."""

    queue: Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored(Record):
    """One change was not applied; the other changes of its message were."""

    rule: Rule
    identifier: UUID | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disregarded(Record):
    """Nothing of a message was applied; ``index`` is the update that caused it, if one did."""

    rule: Rule
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflowed(Record):
    """Too many messages came while the queue manager waited: it dropped them and refreshed its queues."""

    dropped: int
