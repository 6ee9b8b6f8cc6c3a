"""The judgement of a notification, rule by rule from CONTRACT 8 and its rulings: slow, and of one message at a time.

``judge`` returns a pair for each row of the notifications table: ("applied", None), ("ignored", rule),
("disregarded", rule), or (None, None) for a message without a change.
"""

from __future__ import annotations

from tests.reference import mqcn
from tests.reference.mqcn import Update
from tests.reference.reader import Fault

#: How many numbers have a meaning, by PROPID ([MS-MQMQ] 2.3.1): flags, PROPID_Q_PRIV_LEVEL and PROPID_Q_SCOPE.
CHANGEABLE = {104: 2, 111: 2, 112: 3}
CREATED = {**CHANGEABLE, 113: 2, 114: 2}

Pair = tuple[str | None, str | None]


def judge(body: bytes, sender: str | None, authenticated: bool = True, trusted: bool = True) -> list[Pair]:
    """``sender`` is "none", "sid" or "queue_manager"."""
    message = mqcn.read(body, strict=True)
    if isinstance(message, Fault):
        rule = "version" if message.code == "bad_version" else "malformed"
        # A table decodes what is only against a rule, and has a row for each change of it
        loose = mqcn.read(body)
        return [("disregarded", rule)] * (1 if isinstance(loose, Fault) else max(len(loose.updates), 1))
    if message.body is not None:
        return [("applied", None)]
    for allowed, rule in (
        (sender == "queue_manager", "sender_type"),
        (authenticated, "not_authenticated"),
        (trusted, "sender"),
    ):
        if not allowed:
            return [("disregarded", rule)] * max(len(message.updates), 1)
    for update in message.updates:
        against = of_message(update)
        if against:
            return [("disregarded", against)] * len(message.updates)
    if not message.updates:
        return [(None, None)]
    return [("ignored", against) if (against := of_change(update)) else ("applied", None) for update in message.updates]


def first(update: Update, propid: int) -> object:
    for item in update.properties:
        if item.id == propid:
            return item.value
    return None


def of_message(update: Update) -> str | None:
    if update.object not in ("queue", "machine"):
        return "object_type"
    if update.object == "machine":
        return "object_type" if update.command == "delete" else None
    if update.command == "delete":
        return None
    if update.command == "create":
        if first(update, 101) is None:
            return "no_identifier"
        if not (first(update, 103) or path_of(update)):
            return "no_pathname"
    for propid, count in (CREATED if update.command == "create" else CHANGEABLE).items():
        number = first(update, propid)
        if number is not None and not 0 <= number < count:  # type: ignore[operator]
            return "value"
    return None


def of_change(update: Update) -> str | None:
    if update.object == "machine":
        if update.command == "create":
            return "machine_created"
        return "other_machine" if update.guid_identifier is None else None
    if update.command == "delete":
        return "no_guid" if update.guid_identifier is None else None
    path = path_of(update)
    if update.command == "create":
        path = first(update, 103) or path  # type: ignore[assignment]
    elif update.guid_identifier is not None:
        return None
    return against_path(path)


def path_of(update: Update) -> str:
    return "" if update.path_name is None else update.path_name.text


def against_path(path: str) -> str | None:
    """R11: of no public queue. Enough of [MS-MQMQ] 2.1.1 for the paths of the tests."""
    computer, _, queue = path.partition("\\")
    if queue.lower().startswith("private$\\") and queue[9:]:
        return "private_queue"
    if queue.lower() in ("system$;journal", "system$;deadletter", "system$;deadxact"):
        return "private_queue"
    sound = computer and queue and "\\" not in queue and ";" not in queue and "\r" not in queue and len(queue) <= 124
    return None if sound else "pathname"
