"""What a queue manager did about change notifications, and why: a record for every decision.

Three kinds say that something happened (``Created``, ``Changed``, ``Deleted``) and three that it did not: ``Ignored``
for one change, ``Disregarded`` for a whole message, ``Overflowed`` for the messages that came too fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from msmqwire.directory.elements import Queue

__all__ = [
    "DISPATCH",
    "VERSION_1",
    "VERSION_2",
    "Change",
    "Changed",
    "Created",
    "Deleted",
    "Disregarded",
    "Ignored",
    "Overflowed",
    "Place",
    "Record",
    "Rule",
]

DISPATCH, VERSION_1, VERSION_2 = "[MS-MQCN] 3.2.5", "[MS-MQCN] 3.2.5.1", "[MS-MQCN] 3.2.5.2"


class Rule(StrEnum):
    """Why a change was not applied."""

    VERSION = "version"
    """The message has another version than those that the queue manager processes."""
    MALFORMED = "malformed"
    """The message cannot be decoded."""
    SENDER_TYPE = "sender_type"
    """SenderIdentifierType is not QueueManagerIdentifier."""
    NOT_AUTHENTICATED = "not_authenticated"
    """The verifier did not vouch for the message."""
    SENDER = "sender"
    """The sender is not among those that the queue manager listens to."""
    OBJECT_TYPE = "object_type"
    """The object of an update is neither a queue nor, if it was changed, a queue manager."""
    NO_IDENTIFIER = "no_identifier"
    """A queue was created without PROPID_Q_INSTANCE."""
    NO_PATHNAME = "no_pathname"
    """A queue was created without a path."""
    VALUE = "value"
    """A value is none of its enumeration."""
    NOT_FOUND = "not_found"
    """The queue manager has no such queue."""
    OTHER_MACHINE = "other_machine"
    """The change is for another queue manager."""
    OTHER_COMPUTER = "other_computer"
    """The queue is on another computer."""
    MACHINE_CREATED = "machine_created"
    """A queue manager was created, for which there is no rule."""
    NO_GUID = "no_guid"
    """A queue was deleted that is not named by its GUID."""
    NOT_IN_DIRECTORY = "not_in_directory"
    """The directory does not have the object."""
    DIRECTORY = "directory"
    """The directory cannot be read, or answered with something else."""
    PATHNAME_TAKEN = "pathname_taken"
    """The directory has moved the queue to the path of another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What all records share.

    Attributes
    ----------
    message : int or None
        Which of the messages that were processed, counted from 0; None when queues were refreshed.
    index : int or None
        Which update of the message; None for the message as a whole.
    section : str
        The rule that was followed.
    """

    message: int | None
    index: int | None
    section: str


@dataclass(frozen=True, slots=True)
class Change:
    """An attribute that has another value now."""

    attribute: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Created(Record):
    """There is a queue more."""

    queue: Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed(Record):
    """A queue, or the queue manager itself, was told its attributes; ``changes`` are those that differ from before."""

    object: Literal["queue", "machine"]
    identifier: UUID
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted(Record):
    """There is a queue less."""

    queue: Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored(Record):
    """One change was not applied; others of its message were not held up by it."""

    rule: Rule
    identifier: UUID | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disregarded(Record):
    """Nothing of a message was applied; ``index`` is the update that is to blame, if one is."""

    rule: Rule
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflowed(Record):
    """So many messages came while the queue manager waited that it dropped them and refreshes its queues instead."""

    dropped: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a change stands: what all records say of it."""

    message: int | None
    index: int | None
    section: str

    def ignored(self, rule: Rule, identifier: UUID | None = None, detail: str = "") -> Ignored:
        """The change was not applied."""
        return Ignored(
            message=self.message,
            index=self.index,
            section=self.section,
            rule=rule,
            identifier=identifier,
            detail=detail,
        )

    def disregarded(self, rule: Rule, detail: str = "") -> Disregarded:
        """The message was not applied, for the sake of this change."""
        return Disregarded(message=self.message, index=self.index, section=self.section, rule=rule, detail=detail)

    def created(self, queue: Queue) -> Created:
        """There is a queue more."""
        return Created(message=self.message, index=self.index, section=self.section, queue=queue)

    def deleted(self, queue: Queue) -> Deleted:
        """There is a queue less."""
        return Deleted(message=self.message, index=self.index, section=self.section, queue=queue)

    def changed(
        self, kind: Literal["queue", "machine"], identifier: UUID, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> Changed:
        """Attributes were told; those that differ are noted."""
        return Changed(
            message=self.message,
            index=self.index,
            section=self.section,
            object=kind,
            identifier=identifier,
            changes=tuple(Change(name, before[name], value) for name, value in after.items() if before[name] != value),
        )
