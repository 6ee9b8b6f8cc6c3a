"""The judgement of change notifications: whether a receiver applies a change, and by which rule it does not.

One judgement serves the processor, the notifications table of captures, ``summary``, ``detect`` and ``replay``. It
needs a message as a receiver decodes it, and what is known of its sender ([MS-MQCN] 3.2.5.1, 3.2.5.2). It says what
it does not know (``Unverified``): a capture does not show whether a receiver could authenticate a message, which
queues it had, and what the directory answered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from msmqwire.columns import Payloads
from msmqwire.columns._batch import gathered
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


OUTCOMES, RULES, UNVERIFIED = tuple(Outcome), tuple(Rule), tuple(Unverified)
#: The columns of ``mqcn.decode_batch`` that ``judge_batch`` needs.
COLUMNS = (
    "version", "operation", "object", "object_guid", "path_name", "master_guid", "domain_controller", "properties",
    "fault", "violations",
)  # fmt: skip

# Places in these, from 1; 0 is none
_OUTCOME = {each: place for place, each in enumerate(OUTCOMES, 1)}
_RULE = {each: place for place, each in enumerate(RULES, 1)}
_UNVERIFIED = {each: place for place, each in enumerate(UNVERIFIED, 1)}
_CREATE, _CHANGE, _DELETE = map(OPERATIONS.index, ("create", "change", "delete"))
_QUEUE, _MACHINE = map(OBJECTS.index, ("queue", "machine"))
_PUBLIC = QUEUE_TYPES.by_name["public"]
_BAD_VERSION = "bad_version"
_LONGEST_KEPT = 1024  # characters of a path whose rule is kept: a packet has room for a path of 2 MiB


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
        0 for None, or the place in ``OUTCOMES``, ``RULES`` and ``UNVERIFIED``, from 1.
    """

    outcome: NDArray[np.uint8]
    rule: NDArray[np.uint8]
    unverified: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.outcome)

    def __getitem__(self, row: int) -> Judgement:
        return Judgement(
            OUTCOMES[self.outcome[row] - 1] if self.outcome[row] else None,
            RULES[self.rule[row] - 1] if self.rule[row] else None,
            UNVERIFIED[self.unverified[row] - 1] if self.unverified[row] else None,
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
    try:
        message = decode(body, strict=True)
    except DecodeError as error:
        rule = Rule.VERSION if error.code == _BAD_VERSION else Rule.MALFORMED
        return JudgedMessage((Judgement(Outcome.DISREGARDED, rule),), fault=error)
    if message.version not in versions:
        return _disregarded(message, Rule.VERSION)
    if message.body is not None:
        unknown = Unverified.QUEUES if message.body.operation == "delete" else Unverified.DIRECTORY
        return JudgedMessage((Judgement(Outcome.APPLIED, None, unknown),), message)
    unknown = Unverified.SENDER if envelope is None else Unverified.AUTHENTICATION
    if envelope is not None:
        if envelope.sender_identifier_type is not SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER:
            return _disregarded(message, Rule.SENDER_TYPE)
        if verifier is not None:
            unknown = Unverified.QUEUES
            if _level(verifier, envelope) is AuthenticationLevel.NONE:
                return _disregarded(message, Rule.NOT_AUTHENTICATED)
        if trusted is not None and claimed_senders(envelope).isdisjoint(trusted):
            return _disregarded(message, Rule.SENDER)
    for index, update in enumerate(message.updates):
        if (against := _rule_against_message(update)) is not None:
            return _disregarded(message, against, index)
    changes = []
    for update in message.updates:
        if (against := _rule_against(update)) is not None:
            certain = unknown is Unverified.QUEUES
            changes.append(Judgement(Outcome.IGNORED, against, None if certain else unknown))
        else:
            changes.append(Judgement(Outcome.APPLIED, None, unknown))
    return JudgedMessage(tuple(changes) or (Judgement(None),), message)


def _disregarded(message: ChangeNotificationMessage, rule: Rule, cause: int | None = None) -> JudgedMessage:
    count = max(len(message.updates), 1)
    return JudgedMessage((Judgement(Outcome.DISREGARDED, rule),) * count, message, cause)


def _rule_against_message(update: NotificationUpdate) -> Rule | None:
    """The rule by which the message of an update is disregarded because of it ([MS-MQCN] 3.2.5.1)."""
    command, kind = update.command, update.object
    if kind is None or (kind == "machine" and command == "delete"):
        return Rule.OBJECT_TYPE
    if kind == "machine" or command == "delete":
        return None
    values = first_values(update.properties)
    if command == "create" and PROPID_Q_INSTANCE not in values:
        return Rule.NO_IDENTIFIER
    if command == "create" and not (values.get(PROPID_Q_PATHNAME) or update.path_name):
        return Rule.NO_PATHNAME
    carried = CREATED_QUEUE if command == "create" else UPDATED_QUEUE
    wrong = any(values[propid] >= len(MEANINGS[propid]) for propid in carried.keys() & MEANINGS.keys() & values.keys())
    return Rule.VALUE if wrong else None


def _rule_against(update: NotificationUpdate) -> Rule | None:
    """The rule by which an update is ignored."""
    command, by_guid = update.command, update.use_guid
    if update.object == "machine":
        return Rule.MACHINE_CREATED if command == "create" else None if by_guid else Rule.OTHER_MACHINE
    if command == "delete":
        return None if by_guid else Rule.NO_GUID
    if command == "change":
        return None if by_guid else rule_against_pathname(update.path_name or "")
    return rule_against_pathname(first_values(update.properties).get(PROPID_Q_PATHNAME) or update.path_name or "")


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
    message = np.repeat(np.arange(len(batch.messages) - 1), np.diff(batch.messages))
    against = _against_messages(batch, message, senders, versions)
    disregarded = against[message] > 0
    ignored = np.where(disregarded, 0, _ignoring(batch))
    outcome = np.where(batch.is_valid("operation"), _OUTCOME[Outcome.APPLIED], 0)
    outcome[ignored > 0] = _OUTCOME[Outcome.IGNORED]
    outcome[disregarded] = _OUTCOME[Outcome.DISREGARDED]
    return Judgements(
        outcome.astype(np.uint8),
        np.where(disregarded, against[message], ignored).astype(np.uint8),
        np.where(disregarded, 0, _unverified(batch, outcome, senders)).astype(np.uint8),
    )


def _against_messages(
    batch: NotificationBatch, message: NDArray[np.int64], senders: Senders, versions: Collection[int]
) -> NDArray[np.uint8]:
    """The rule by which each message is disregarded, 0 for none."""
    count = len(batch.messages) - 1
    against = np.zeros(count, np.uint8)
    # The rules in the order in which receivers follow them, from the last: each replaces those after it
    by_change = _disregarding(batch)
    wrong = np.flatnonzero(by_change)
    broken, first = np.unique(message[wrong], return_index=True)
    against[broken] = by_change[wrong[first]]
    version = batch["version"][batch.messages[:-1]]
    is_first = version == 1
    for known, rule in (
        (senders.trusted, Rule.SENDER),
        (senders.authenticated, Rule.NOT_AUTHENTICATED),
        (senders.queue_manager, Rule.SENDER_TYPE),
    ):
        if known is not None:
            against[is_first & ~known] = _RULE[rule]
    against[~np.isin(version, list(versions))] = _RULE[Rule.VERSION]
    malformed = (batch.violations & STRICT != 0) | ~batch.is_valid("version")
    against[message[malformed]] = _RULE[Rule.MALFORMED]
    faults = batch.faults
    against[message[faults["row"][faults["code"] == FAULT_NAMES.index(_BAD_VERSION)]]] = _RULE[Rule.VERSION]
    return against


def _disregarding(batch: NotificationBatch) -> NDArray[np.uint8]:
    """The rule by which the message of each update is disregarded because of it, 0 for none ([MS-MQCN] 3.2.5.1)."""
    operation, is_update = batch["operation"], batch.is_valid("master_guid")
    is_queue = batch.is_valid("object") & (batch["object"] == _QUEUE)
    is_machine = batch.is_valid("object") & (batch["object"] == _MACHINE)
    created = is_update & is_queue & (operation == _CREATE)
    changed = is_update & is_queue & (operation == _CHANGE)
    against = np.zeros(len(batch), np.uint8)
    for propid, meanings in MEANINGS.items():
        if propid in CREATED_QUEUE:
            values, rows = _first_of_rows(batch, propid)
            wrong = rows[values >= len(meanings)]
            against[wrong[created[wrong] | (changed[wrong] & (propid in UPDATED_QUEUE))]] = _RULE[Rule.VALUE]
    against[created & ~_has_path(batch)] = _RULE[Rule.NO_PATHNAME]
    has_identifier = np.zeros(len(batch), np.bool_)
    has_identifier[batch.property(PROPID_Q_INSTANCE).rows] = True
    against[created & ~has_identifier] = _RULE[Rule.NO_IDENTIFIER]
    against[is_update & ~is_queue & ~(is_machine & (operation != _DELETE))] = _RULE[Rule.OBJECT_TYPE]
    return against


def _ignoring(batch: NotificationBatch) -> NDArray[np.uint8]:
    """The rule by which each update is ignored, 0 for none."""
    operation, is_update = batch["operation"], batch.is_valid("master_guid")
    has_guid, is_machine = batch.is_valid("object_guid"), batch["object"] == _MACHINE
    against = np.zeros(len(batch), np.uint8)
    against[is_update & (operation == _DELETE) & ~has_guid] = _RULE[Rule.NO_GUID]
    against[is_update & is_machine & ~has_guid] = _RULE[Rule.OTHER_MACHINE]
    against[is_update & is_machine & (operation == _CREATE)] = _RULE[Rule.MACHINE_CREATED]
    by_path = is_update & ~is_machine & ((operation == _CREATE) | ((operation == _CHANGE) & ~has_guid))
    texts, rows, first = _pathnames(batch)
    by_property = np.flatnonzero(first & by_path[rows] & (operation[rows] == _CREATE))
    names = batch["path_name"]
    by_path &= names.length > 0
    by_path[rows[by_property]] = False
    by_name = np.flatnonzero(by_path)
    against[rows[by_property]] = _rules_against_pathnames(texts, by_property)
    against[by_name] = _rules_against_pathnames(names, by_name)
    return against


def _unverified(batch: NotificationBatch, outcome: NDArray[Any], senders: Senders) -> NDArray[np.uint8]:
    """What is not known of each change that is not disregarded."""
    applied = outcome == _OUTCOME[Outcome.APPLIED]
    is_event = batch.is_valid("domain_controller")
    unknown = np.where(applied, _UNVERIFIED[Unverified.QUEUES], 0)
    unknown[applied & is_event & (batch["operation"] != _DELETE)] = _UNVERIFIED[Unverified.DIRECTORY]
    is_update = (outcome > 0) & ~is_event
    if senders.authenticated is None:
        unknown[is_update] = _UNVERIFIED[Unverified.AUTHENTICATION]
    if senders.queue_manager is None:
        unknown[is_update] = _UNVERIFIED[Unverified.SENDER]
    return unknown.astype(np.uint8)


def _first_of_rows(batch: NotificationBatch, propid: int) -> tuple[Any, NDArray[np.uint32]]:
    """The values of a number, and their rows; of several in one row the first counts, as IndexOf has it."""
    values, rows = batch.property(propid)
    first = np.ones(len(rows), np.bool_)
    first[1:] = rows[1:] != rows[:-1]
    return values[first], rows[first]


def _has_path(batch: NotificationBatch) -> NDArray[np.bool_]:
    """The rows of which the queue has a path: PROPID_Q_PATHNAME, or else PathName."""
    found: NDArray[np.bool_] = batch.is_valid("path_name") & (batch["path_name"].length > 0)
    _, rows, first = _pathnames(batch)
    found[rows[first]] = True
    return found


def _pathnames(batch: NotificationBatch) -> tuple[TextColumn, NDArray[np.uint32], NDArray[np.bool_]]:
    """PROPID_Q_PATHNAME, the rows, and which of the values count: the first in a row, if it is not empty."""
    texts, rows = batch.property(PROPID_Q_PATHNAME)
    first = texts.length > 0
    first[1:] &= rows[1:] != rows[:-1]
    return texts, rows, first


def _rules_against_pathnames(texts: TextColumn, places: NDArray[np.integer]) -> NDArray[np.uint8]:
    """As ``rule_against_pathname`` for some of these texts, 0 for none."""
    ends, data = gathered(texts, places)
    parsed = parse_batch(Payloads.of(data, ends), path_names=True, columns=("queue_type", "fault"))
    against = np.where(parsed["queue_type"] == _PUBLIC, 0, _RULE[Rule.PRIVATE_QUEUE]).astype(np.uint8)
    against[parsed.faults["row"]] = _RULE[Rule.PATHNAME]
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
