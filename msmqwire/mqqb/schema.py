"""The tables of message packets: messages and sessions, and the names that their faults use.

[MS-MQMQ] 2.2.19-2.2.20 for messages, [MS-MQQB] 2.2 for the packets of sessions.
"""

from __future__ import annotations

from msmqwire.columns.fields import fault_names, packet_table
from msmqwire.mqqb.faults import FAULT_RULES
from msmqwire.mqqb.message.schema import KINDS, MESSAGE_HEADERS, NOTIFICATION_FORMS
from msmqwire.mqqb.rules import SessionViolation, Violation
from msmqwire.mqqb.session.schema import SESSION_HEADERS, SESSION_KINDS

TRANSPORTS = ("unknown", "udp", "tcp")

#: Headers and fields in faults.
FIELDS = fault_names((*MESSAGE_HEADERS, *SESSION_HEADERS))

#: Enumerations of columns that readers set.
CODES = {"MessageKind": KINDS, "SessionKind": SESSION_KINDS, "NotificationForm": NOTIFICATION_FORMS}

#: RQ is not 0; without HAS_RESPONSE, the queue is on an unknown host.
_KEPT = ("HAS_RESPONSE_CODE",)

MESSAGES = packet_table("messages", "[MS-MQMQ] 2.2.20", MESSAGE_HEADERS, FIELDS, Violation, FAULT_RULES, _KEPT)
SESSIONS = packet_table("sessions", "[MS-MQQB] 2.2", SESSION_HEADERS, FIELDS, SessionViolation, FAULT_RULES)
