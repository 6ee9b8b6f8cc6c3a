"""The tables of message packets: messages and sessions, and the names that their faults use.

[MS-MQMQ] 2.2.19-2.2.20 for messages, [MS-MQQB] 2.2 for the packets of sessions.
"""

from __future__ import annotations

from msmqwire.columns.fields import packet_table
from msmqwire.mqqb.message.schema import KINDS, MESSAGE_HEADERS, NOTIFICATION_FORMS
from msmqwire.mqqb.rules import SessionViolation, Violation
from msmqwire.mqqb.session.schema import SESSION_HEADERS, SESSION_KINDS

TRANSPORTS = ("unknown", "udp", "tcp")

#: Headers and fields in faults; the four of each MQFAddressHeader stand together.
FIELDS = (
    "BaseHeader", "VersionNumber", "BaseHeader.Flags", "Signature", "PacketSize", "InternalHeader",
    "InternalHeader.Flags", "EstablishConnectionHeader", "ConnectionParametersHeader", "SessionHeader", "Ping",
    "Ping.Signature", "UserHeader", "UserHeader.Flags", "DestinationQueue", "AdminQueue", "ResponseQueue",
    "ConnectorType", "TransactionHeader", "ConnectorQMGuid", "SecurityHeader", "SecurityHeader.SenderCertSize",
    "SecurityID", "EncryptionKey", "SecurityData.Signature", "SenderCert", "ProviderInfo", "MessagePropertiesHeader",
    "LabelLength", "Label", "ExtensionData", "MessageBody", "DebugHeader", "DebugHeader.Flags",
    "DebugHeader.QueueIdentifier", "SRMPEnvelopeHeader.DataLength", "CompoundMessageHeader",
    "CompoundMessageHeader.HttpBodySize", "CompoundMessageHeader.MessageBodySize",
    "CompoundMessageHeader.MessageBodyOffset", "SoapHeader", "SoapHeader.Header", "SoapBody", "SoapBody.Body",
    "Destination", "Destination.HeaderSize", "Destination.HeaderID", "Destination.FormatNameList", "Administration",
    "Administration.HeaderSize", "Administration.HeaderID", "Administration.FormatNameList", "Response",
    "Response.HeaderSize", "Response.HeaderID", "Response.FormatNameList", "MQFSignatureHeader",
    "MQFSignatureHeader.ID", "MQFSignatureHeader.Signature",
)  # fmt: skip

#: Enumerations of columns that readers set.
CODES = {"MessageKind": KINDS, "SessionKind": SESSION_KINDS, "NotificationForm": NOTIFICATION_FORMS}

#: RQ is not 0; without HAS_RESPONSE, the queue is on an unknown host.
_KEPT = ("HAS_RESPONSE_CODE",)

MESSAGES = packet_table("messages", "[MS-MQMQ] 2.2.20", MESSAGE_HEADERS, FIELDS, Violation, _KEPT)
SESSIONS = packet_table("sessions", "[MS-MQQB] 2.2", SESSION_HEADERS, FIELDS, SessionViolation)
