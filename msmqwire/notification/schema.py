"""The notifications table of captures: the changes as decoded, their senders, and the judgement of each."""

from __future__ import annotations

from dataclasses import replace

from msmqwire.columns.schema import Column, Enumeration
from msmqwire.mqcn import NOTIFICATIONS
from msmqwire.mqqb import MESSAGES
from msmqwire.notification.judgement import OUTCOMES, RULES, UNVERIFIED

#: The sender of a message, as the table of messages has it.
SENDER = tuple(replace(column, presence=0) for column in MESSAGES.select(("sender_id_type", "security_id")))

#: The judgement of each change: the members of ``judgement.Judgements``.
JUDGEMENT = (
    Column(
        "outcome",
        Enumeration(tuple(map(str, OUTCOMES))),
        "what a receiver does with the change, as far as a capture shows: `ignored` is this change alone, "
        "`disregarded` its complete message; null without a change",
    ),
    Column("rule", Enumeration(tuple(map(str, RULES))), "why the change is not applied; null if it is"),
    Column(
        "unverified",
        Enumeration(tuple(map(str, UNVERIFIED))),
        "what a capture does not show, so that a receiver may decide otherwise; null if none does",
    ),
)

#: The columns of notifications that are read from captures, after the capture columns.
CAPTURED_NOTIFICATIONS = replace(NOTIFICATIONS, columns=(*NOTIFICATIONS.columns, *SENDER, *JUDGEMENT))
