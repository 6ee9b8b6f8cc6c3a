"""The judgement of change notifications: whether a receiver applies a change, and by which rule it does not.

One judgement serves the processor, the notifications table of captures, ``summary``, ``detect`` and ``replay``. It
needs a message as a receiver decodes it, and what is known of its sender ([MS-MQCN] 3.2.5.1, 3.2.5.2). It says what
it does not know (``Unverified``): a capture does not show whether a receiver could authenticate a message, which
queues it had, and what the directory answered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import UUID

import numpy as np

from msmqwire.columns import Payloads
from msmqwire.columns._batch import take
from msmqwire.errors import DecodeError, FormatNameError
from msmqwire.formatname import parse_batch, parse_path_name
from msmqwire.formatname.schema import QUEUE_TYPES
from msmqwire.mqcn import STRICT, ChangeNotificationMessage, NotificationBatch, NotificationUpdate, decode
from msmqwire.mqcn.schema import OBJECTS, OPERATIONS
from msmqwire.notification.carried_attributes import CREATED_QUEUE, MEANINGS, UPDATED_QUEUE
from msmqwire.notification.envelope import (
    AuthenticationLevel,
    Envelope,
    SenderIdentifierType,
    Verifier,
    claimed_senders,
)
from msmqwire.properties import PROPID_Q_INSTANCE, PROPID_Q_PATHNAME
from msmqwire.wire.codes import FAULT_NAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from msmqwire.columns.views import TextColumn


class Outcome(StrEnum):
    """What a receiver does with a change."""

    APPLIED = "applied"
    """The change is applied, unless what is not known stands against it (``unverified``)."""
    IGNORED = "ignored"
    """This change is not applied; the other changes of its message are."""
    DISREGARDED = "disregarded"
    """Nothing of the message is applied."""


class Rule(StrEnum):
    """Why a change is not applied."""

    VERSION = "version"
    """The queue manager does not process messages of this version."""
    MALFORMED = "malformed"
    """The message cannot be decoded."""
    SENDER_TYPE = "sender_type"
    """SenderIdentifierType is not QueueManagerIdentifier."""
    NOT_AUTHENTICATED = "not_authenticated"
    """The verifier did not authenticate the message."""
    SENDER = "sender"
    """The queue manager does not accept messages from this sender."""
    OBJECT_TYPE = "object_type"
    """The object of an update is neither a queue nor (except in a deletion) a queue manager."""
    NO_IDENTIFIER = "no_identifier"
    """A queue was created without PROPID_Q_INSTANCE."""
    NO_PATHNAME = "no_pathname"
    """A queue was created without a path."""
    VALUE = "value"
    """The number of an enumeration has no meaning."""
    NOT_FOUND = "not_found"
    """The queue manager has no such queue."""
    OTHER_MACHINE = "other_machine"
    """The change is for another queue manager."""
    OTHER_COMPUTER = "other_computer"
    """The queue is on another computer."""
    MACHINE_CREATED = "machine_created"
    """A queue manager was created; the specification has no rule for it."""
    NO_GUID = "no_guid"
    """A deletion does not name its queue by GUID."""
    NOT_IN_DIRECTORY = "not_in_directory"
    """The directory does not have the object."""
    DIRECTORY = "directory"
    """The directory cannot be read, or its answer is incomplete or for another object."""
    PATHNAME = "pathname"
    """The path of the queue is not a valid queue path name ([MS-MQMQ] 2.1.1)."""
    PRIVATE_QUEUE = "private_queue"
    """The queue is a private queue, which notifications do not cover ([MS-MQCN] 1.6)."""
    PATHNAME_TAKEN = "pathname_taken"
    """The directory has moved the queue to the path of another one."""


class Unverified(StrEnum):
    """What is not known, so that a receiver that knows it may decide otherwise. What is disregarded stays so."""

    SENDER = "sender"
    """Version 1: who sent the message."""
    AUTHENTICATION = "authentication"
    """Version 1: whether the receiver could authenticate the message."""
    DIRECTORY = "directory"
    """Version 2: what the directory says of the object."""
    QUEUES = "queues"
    """Which queues the receiver has."""


_Named = TypeVar("_Named", Rule, Unverified)
OUTCOMES, RULES, UNVERIFIED = tuple(Outcome), tuple(Rule), tuple(Unverified)
#: The columns of ``mqcn.decode_batch`` that ``judge_batch`` needs.
COLUMNS = (
    "version", "operation", "object", "object_guid", "path_name", "master_guid", "domain_controller", "properties",
    "fault", "violations",
)  # fmt: skip

_OUTCOME = {each: number for number, each in enumerate(OUTCOMES)}
_NONE = 0xFF
_CREATE, _CHANGE, _DELETE = map(OPERATIONS.index, ("create", "change", "delete"))
_QUEUE, _MACHINE = map(OBJECTS.index, ("queue", "machine"))
_PUBLIC = QUEUE_TYPES.by_name["public"]
_BAD_VERSION = "bad_version"
# The enumerated numbers of queues that an update with each command carries, and how many values have a meaning
_NUMBERED = {
    command: tuple((propid, len(MEANINGS[propid])) for propid in carried if propid in MEANINGS)
    for command, carried in (("create", CREATED_QUEUE), ("change", UPDATED_QUEUE), ("delete", ()))
}
_LONGEST_KEPT = 1024  # characters of a path whose rule is kept: a packet has room for a path of 2 MiB

# The rules in the order in which receivers follow them: the first that holds decides. Each reads facts of one message
# or update, which are bool, or of all in a batch, which are arrays of bool.
_RULES_OF_MESSAGES: tuple[tuple[Rule, Callable[[Any], Any]], ...] = (
    (Rule.VERSION, lambda message: message.has_no_version),
    (Rule.MALFORMED, lambda message: message.is_malformed),
    (Rule.VERSION, lambda message: message.has_other_version),
    (Rule.SENDER_TYPE, lambda message: message.is_of_another_sender_type),
    (Rule.NOT_AUTHENTICATED, lambda message: message.is_not_authenticated),
    (Rule.SENDER, lambda message: message.is_of_another_sender),
)
# The message of an update is disregarded because of it ([MS-MQCN] 3.2.5.1)
_DISREGARDING: tuple[tuple[Rule, Callable[[Any], Any]], ...] = (
    (Rule.OBJECT_TYPE, lambda update: update.is_of_another_object | (update.is_of_machine & update.is_delete)),
    (Rule.NO_IDENTIFIER, lambda update: update.creates_queue & update.lacks_identifier),
    (Rule.NO_PATHNAME, lambda update: update.creates_queue & update.lacks_path),
    (Rule.VALUE, lambda update: update.has_wrong_value),
)
_IGNORING: tuple[tuple[Rule, Callable[[Any], Any]], ...] = (
    (Rule.MACHINE_CREATED, lambda update: update.is_of_machine & update.is_create),
    (Rule.OTHER_MACHINE, lambda update: update.is_of_machine & update.lacks_guid),
    (Rule.NO_GUID, lambda update: update.is_delete & update.lacks_guid),
    (Rule.PATHNAME, lambda update: update.has_invalid_path),
    (Rule.PRIVATE_QUEUE, lambda update: update.has_private_path),
)
# What is not known of a change that is not disregarded
_UNKNOWN: tuple[tuple[Unverified, Callable[[Any], Any]], ...] = (
    (Unverified.DIRECTORY, lambda change: change.is_event & change.needs_directory & change.is_applied),
    (Unverified.SENDER, lambda change: change.is_update & change.sender_is_unknown),
    (Unverified.AUTHENTICATION, lambda change: change.is_update & change.authentication_is_unknown),
    (Unverified.QUEUES, lambda change: change.is_applied),
)


def _first(order: Iterable[tuple[_Named, Callable[[Any], Any]]], facts: Any) -> _Named | None:
    """The first that holds for one message or change."""
    for each, holds in order:
        if holds(facts):
            return each
    return None


def _first_of_each(order: tuple[tuple[Enum, Callable[[Any], Any]], ...], facts: Any, count: int) -> NDArray[np.uint8]:
    """The number of the first that holds for each of ``count`` messages or changes."""
    members = list(type(order[0][0]))
    found = np.full(count, _NONE, np.uint8)
    for each, holds in order:
        found[(found == _NONE) & holds(facts)] = members.index(each)
    return found


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of one change.

    Attributes
    ----------
    outcome : Outcome or None
        None for a message of version 1 without a change, unless it is disregarded.
    rule : Rule or None
        Why the change is not applied.
    unverified : Unverified or None
        What is not known; None if no receiver decides otherwise.
    """

    outcome: Outcome | None
    rule: Rule | None = None
    unverified: Unverified | None = None


@dataclass(frozen=True, slots=True)
class JudgedMessage:
    """A message and its judgement.

    Attributes
    ----------
    changes : tuple of Judgement
        Of each change, in order; one if there is no change, or the message cannot be decoded.
    message : ChangeNotificationMessage or None
    cause : int or None
        The index of the update by which the message is disregarded; None if it is disregarded for another reason.
    fault : DecodeError or None
        Why the message cannot be decoded.
    """

    changes: tuple[Judgement, ...]
    message: ChangeNotificationMessage | None = None
    cause: int | None = None
    fault: DecodeError | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Senders:
    """What is known of the senders of messages: arrays of shape (messages,), bool; None where nothing is known.

    Attributes
    ----------
    queue_manager : ndarray or None
        SenderIdentifierType is QueueManagerIdentifier.
    authenticated : ndarray or None
        AuthenticationLevel is other than None.
    trusted : ndarray or None
        The sender is one of those that the receiver accepts; None if it accepts all.
    """

    queue_manager: NDArray[np.bool_] | None = None
    authenticated: NDArray[np.bool_] | None = None
    trusted: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Judgements:
    """The judgements of the rows of a batch: arrays of shape (n,), uint8.

    Attributes
    ----------
    outcome, rule, unverified : ndarray
        The place in ``OUTCOMES``, ``RULES`` and ``UNVERIFIED``, or 255 for None.
    """

    outcome: NDArray[np.uint8]
    rule: NDArray[np.uint8]
    unverified: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.outcome)

    def __getitem__(self, row: int) -> Judgement:
        return Judgement(
            None if self.outcome[row] == _NONE else OUTCOMES[self.outcome[row]],
            None if self.rule[row] == _NONE else RULES[self.rule[row]],
            None if self.unverified[row] == _NONE else UNVERIFIED[self.unverified[row]],
        )


def judge(
    body: bytes | bytearray | memoryview,
    envelope: Envelope | None = None,
    *,
    verifier: Verifier | None = None,
    trusted: Collection[UUID] | None = None,
    versions: Collection[int] = (1, 2),
) -> JudgedMessage:
    r"""Judge one message: a judgement for each change, as for the rows of the notifications table.

    Parameters
    ----------
    body : bytes-like
        The body of the message.
    envelope : Envelope, optional
        The sender that the message claims.
    verifier : callable, optional
        Called for a message of version 1 that claims a queue manager as its sender.
    trusted : collection of UUID, optional
        The accepted senders of version 1.
    versions : collection of int
        The versions that the receiver processes.

    Raises
    ------
    TypeError
        The answer of the verifier is not an AuthenticationLevel.

    Examples
    --------
    >>> body = "<Notification><Event>3</Event><ObjectGuid>00112233-4455-6677-8899-AABBCCDDEEFF</ObjectGuid >"
    >>> body += "<DomainController>dc1</DomainController></Notification>"
    >>> judge(b"\2\1" + body.encode("utf-16-le")).changes[0]
    Judgement(outcome=<Outcome.APPLIED: 'applied'>, rule=None, unverified=<Unverified.QUEUES: 'queues'>)
    """
    claim = _Claim(envelope, verifier, trusted)
    try:
        message = decode(body, strict=True)
    except DecodeError as error:
        rule = _first(_RULES_OF_MESSAGES, _MessageFacts(error.code, 0, versions, claim))
        return JudgedMessage((Judgement(Outcome.DISREGARDED, rule),), fault=error)
    rule = _first(_RULES_OF_MESSAGES, _MessageFacts("", message.version, versions, claim))
    if rule is not None:
        return _disregarded(message, rule)
    if message.body is not None:
        return JudgedMessage(
            (Judgement(Outcome.APPLIED, None, _unknown(claim, message.body.operation, True)),), message
        )
    updates = [_UpdateFacts(update) for update in message.updates]
    for index, update in enumerate(updates):
        if (rule := _first(_DISREGARDING, update)) is not None:
            return _disregarded(message, rule, index)
    changes = []
    for update in updates:
        rule = _first(_IGNORING, update)
        outcome = Outcome.APPLIED if rule is None else Outcome.IGNORED
        changes.append(Judgement(outcome, rule, _unknown(claim, None, rule is None)))
    return JudgedMessage(tuple(changes) or (Judgement(None),), message)


def _disregarded(message: ChangeNotificationMessage, rule: Rule, cause: int | None = None) -> JudgedMessage:
    count = max(len(message.updates), 1)
    return JudgedMessage((Judgement(Outcome.DISREGARDED, rule),) * count, message, cause)


class _Claim(NamedTuple):
    """The sender that a message claims, and how a receiver judges it."""

    envelope: Envelope | None
    verifier: Verifier | None
    trusted: Collection[UUID] | None


class _MessageFacts:
    """The facts of one message. The facts of its sender are read when the rules need them."""

    def __init__(self, fault: str, version: int, versions: Collection[int], claim: _Claim) -> None:
        self.has_no_version = fault == _BAD_VERSION
        self.is_malformed = fault != ""
        self.has_other_version = version not in versions
        self._claim = claim
        self._is_claimed = version == 1 and claim.envelope is not None

    @property
    def is_of_another_sender_type(self) -> bool:
        """Version 1, and SenderIdentifierType is not QueueManagerIdentifier."""
        envelope = self._claim.envelope
        expected = SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER
        return self._is_claimed and envelope is not None and envelope.sender_identifier_type is not expected

    @property
    def is_not_authenticated(self) -> bool:
        """Version 1, and the verifier does not authenticate the message."""
        envelope, verifier, _ = self._claim
        if not self._is_claimed or envelope is None or verifier is None:
            return False
        return _level(verifier, envelope) is AuthenticationLevel.NONE

    @property
    def is_of_another_sender(self) -> bool:
        """Version 1, and the sender is not among those that the receiver accepts."""
        envelope, _, trusted = self._claim
        if not self._is_claimed or envelope is None or trusted is None:
            return False
        return claimed_senders(envelope).isdisjoint(trusted)


class _UpdateFacts:
    """The facts of one update."""

    def __init__(self, update: NotificationUpdate) -> None:
        command, kind, values = update.command, update.object, first_values(update.properties)
        is_queue = kind == "queue"
        self.is_create = command == "create"
        self.is_delete = command == "delete"
        self.is_of_machine = kind == "machine"
        self.is_of_another_object = kind is None
        self.creates_queue = is_queue and self.is_create
        self.lacks_guid = not update.use_guid
        self.lacks_identifier = PROPID_Q_INSTANCE not in values
        path = (values.get(PROPID_Q_PATHNAME) if self.is_create else None) or update.path_name
        self.lacks_path = not path
        self.has_wrong_value = is_queue and any(
            values[propid] >= count for propid, count in _NUMBERED[command] if propid in values
        )
        # The path names the queue
        is_named = self.creates_queue or (is_queue and command == "change" and self.lacks_guid)
        self._path = (path or "") if is_named else None

    @cached_property
    def _against_path(self) -> Rule | None:
        return None if self._path is None else rule_against_pathname(self._path)

    @property
    def has_invalid_path(self) -> bool:
        """The path that names the queue is not valid."""
        return self._against_path is Rule.PATHNAME

    @property
    def has_private_path(self) -> bool:
        """The path names a private queue."""
        return self._against_path is Rule.PRIVATE_QUEUE


class _ChangeFacts(NamedTuple):
    """The facts of one change that is not disregarded, or of all in a batch."""

    is_event: Any
    is_update: Any
    is_applied: Any
    needs_directory: Any
    sender_is_unknown: bool
    authentication_is_unknown: bool


def _unknown(claim: _Claim, operation: str | None, is_applied: bool) -> Unverified | None:
    """Return what is not known of a change; ``operation`` is the operation of an event."""
    is_event = operation is not None
    unknown_sender = claim.envelope is None
    facts = _ChangeFacts(
        is_event, not is_event, is_applied, operation != "delete", unknown_sender, claim.verifier is None
    )
    return _first(_UNKNOWN, facts)


def first_values(properties: Iterable[tuple[int, Any]]) -> dict[int, Any]:
    """The values of an update by PROPID. Of several values of one PROPID the first counts, as IndexOf has it."""
    found: dict[int, Any] = {}
    for propid, value in properties:
        found.setdefault(propid, value)
    return found


def _level(verifier: Callable[[Envelope], Any], envelope: Envelope) -> AuthenticationLevel:
    level = verifier(envelope)
    if not isinstance(level, AuthenticationLevel):
        raise TypeError(f"the verifier returned {level!r}, which is not an AuthenticationLevel")
    return level


def judge_batch(
    batch: NotificationBatch, senders: Senders = Senders(), *, versions: Collection[int] = (1, 2)
) -> Judgements:
    """Judge the messages of a batch, which has at least ``COLUMNS``, decoded strictly or not.

    Parameters
    ----------
    batch : NotificationBatch
    senders : Senders
        Of each message, in their order.
    versions : collection of int
        The versions that the receiver processes.
    """
    count = len(batch.messages) - 1
    message = np.repeat(np.arange(count), np.diff(batch.messages))
    updates = _UpdatesFacts(batch)
    against = _first_of_each(_RULES_OF_MESSAGES, _MessagesFacts(batch, message, senders, versions), count)
    by_update = _first_of_each(_DISREGARDING, updates, len(batch))
    wrong = np.flatnonzero(by_update != _NONE)
    broken, first = np.unique(message[wrong], return_index=True)
    cause = np.full(count, _NONE, np.uint8)
    cause[broken] = by_update[wrong[first]]
    against = np.where(against == _NONE, cause, against)[message]
    disregarded = against != _NONE
    ignoring = np.where(disregarded, _NONE, _first_of_each(_IGNORING, updates, len(batch))).astype(np.uint8)
    outcome = np.where(batch.is_valid("operation"), _OUTCOME[Outcome.APPLIED], _NONE).astype(np.uint8)
    outcome[ignoring != _NONE] = _OUTCOME[Outcome.IGNORED]
    outcome[disregarded] = _OUTCOME[Outcome.DISREGARDED]
    is_event = batch.is_valid("domain_controller")
    stands = (outcome != _NONE) & ~disregarded
    changes = _ChangeFacts(
        stands & is_event,
        stands & ~is_event,
        outcome == _OUTCOME[Outcome.APPLIED],
        batch["operation"] != _DELETE,
        senders.queue_manager is None,
        senders.authenticated is None,
    )
    rule = np.where(disregarded, against, ignoring)
    return Judgements(outcome, rule, _first_of_each(_UNKNOWN, changes, len(batch)))


class _MessagesFacts:
    """The facts of the messages of a batch; ``message`` is the message of each row."""

    def __init__(
        self, batch: NotificationBatch, message: NDArray[np.int64], senders: Senders, versions: Collection[int]
    ) -> None:
        count = len(batch.messages) - 1
        version = batch["version"][batch.messages[:-1]]
        faults = batch.faults
        unversioned = faults["row"][faults["code"] == FAULT_NAMES.index(_BAD_VERSION)]
        self.has_no_version = _marked(count, message[unversioned])
        malformed = (batch.violations & STRICT != 0) | ~batch.is_valid("version")
        self.is_malformed = _marked(count, message[malformed])
        self.has_other_version = ~np.isin(version, list(versions))
        self.is_of_another_sender_type = _known_not(version, senders.queue_manager)
        self.is_not_authenticated = _known_not(version, senders.authenticated)
        self.is_of_another_sender = _known_not(version, senders.trusted)


def _marked(count: int, places: NDArray[Any]) -> NDArray[np.bool_]:
    marked = np.zeros(count, np.bool_)
    marked[places] = True
    return marked


def _known_not(version: NDArray[np.uint8], known: NDArray[np.bool_] | None) -> Any:
    """The messages of version 1 of whose senders something is known to be false."""
    return False if known is None else (version == 1) & ~known


class _UpdatesFacts:
    """The facts of the updates among the rows of a batch."""

    def __init__(self, batch: NotificationBatch) -> None:
        is_update, operation, kind = batch.is_valid("master_guid"), batch["operation"], batch["object"]
        is_queue = is_update & (kind == _QUEUE)
        changes_queue = is_queue & (operation == _CHANGE)
        self.is_create = is_update & (operation == _CREATE)
        self.is_delete = is_update & (operation == _DELETE)
        self.is_of_machine = is_update & (kind == _MACHINE)
        self.is_of_another_object = is_update & ~is_queue & ~self.is_of_machine
        self.creates_queue = is_queue & self.is_create
        self.lacks_guid = is_update & ~batch.is_valid("object_guid")
        self.lacks_identifier = ~_marked(len(batch), batch.property(PROPID_Q_INSTANCE).rows)
        self.has_wrong_value = np.zeros(len(batch), np.bool_)
        for command, rows_of in (("create", self.creates_queue), ("change", changes_queue)):
            for propid, count in _NUMBERED[command]:
                values, rows = _first_of_rows(batch, propid)
                self.has_wrong_value[rows[(values >= count) & rows_of[rows]]] = True
        texts, rows, first = _pathnames(batch)
        names = batch["path_name"]
        self.lacks_path = ~(batch.is_valid("path_name") & (names.length > 0))
        self.lacks_path[rows[first]] = False
        is_named = self.creates_queue | (changes_queue & self.lacks_guid)
        by_property = np.flatnonzero(first & self.creates_queue[rows])
        is_named[rows[by_property]] = False
        by_name = np.flatnonzero(is_named & (names.length > 0))
        against = np.full(len(batch), _NONE, np.uint8)
        against[rows[by_property]] = _rules_against_pathnames(texts, by_property)
        against[by_name] = _rules_against_pathnames(names, by_name)
        self.has_invalid_path = against == RULES.index(Rule.PATHNAME)
        self.has_private_path = against == RULES.index(Rule.PRIVATE_QUEUE)


def _first_of_rows(batch: NotificationBatch, propid: int) -> tuple[Any, NDArray[np.uint32]]:
    """The values of a number, and their rows; of several in one row the first counts, as IndexOf has it."""
    values, rows = batch.property(propid)
    first = np.ones(len(rows), np.bool_)
    first[1:] = rows[1:] != rows[:-1]
    return values[first], rows[first]


def _pathnames(batch: NotificationBatch) -> tuple[TextColumn, NDArray[np.uint32], NDArray[np.bool_]]:
    """PROPID_Q_PATHNAME, the rows, and which of the values count: the first in a row, if it is not empty."""
    texts, rows = batch.property(PROPID_Q_PATHNAME)
    first = texts.length > 0
    first[1:] &= rows[1:] != rows[:-1]
    return texts, rows, first


def _rules_against_pathnames(texts: TextColumn, places: NDArray[np.integer]) -> NDArray[np.uint8]:
    """The number of ``rule_against_pathname`` for some of these texts."""
    ends, data = take(texts, places)
    parsed = parse_batch(Payloads.of(data, ends), path_names=True, columns=("queue_type", "fault"))
    against = np.where(parsed["queue_type"] == _PUBLIC, _NONE, RULES.index(Rule.PRIVATE_QUEUE)).astype(np.uint8)
    against[parsed.faults["row"]] = RULES.index(Rule.PATHNAME)
    return against


def rule_against_pathname(pathname: str) -> Rule | None:
    r"""The rule by which no public queue can be at a path, or None ([MS-MQDMPR] 3.1.7.1.3, step 1).

    >>> rule_against_pathname(r"here\private$\orders")
    <Rule.PRIVATE_QUEUE: 'private_queue'>
    """
    return (_rule_against_short if len(pathname) <= _LONGEST_KEPT else _rule_against_parsed)(pathname)


def _rule_against_parsed(pathname: str) -> Rule | None:
    try:
        parsed = parse_path_name(pathname)
    except FormatNameError:
        return Rule.PATHNAME
    return None if parsed.queue_type == "public" else Rule.PRIVATE_QUEUE


_rule_against_short = lru_cache(maxsize=1 << 16)(_rule_against_parsed)
