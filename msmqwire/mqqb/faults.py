"""When a field of a message packet has a fault: for both tables, in the order of the wire."""

from __future__ import annotations

from msmqwire.columns.schema import FaultRule

_QUEUES = "DestinationQueue, AdminQueue, ResponseQueue"
_LISTS = ("Destination", "Administration", "Response")


def _of_lists(name: str) -> str:
    return ", ".join(f"{each}.{name}" for each in _LISTS)


FAULT_RULES = tuple(
    FaultRule(*row)
    for row in (
        ("truncated", "BaseHeader", "fewer than 16 bytes"),
        ("bad_signature", "BaseHeader", "bytes of a stream in which no packet begins"),
        ("bad_version", "VersionNumber", "not 0x10"),
        ("bad_signature", "Signature", "not `LIOR`"),
        ("bad_size", "PacketSize", "below 16"),
        ("too_large", "PacketSize", "above 4 MiB"),
        ("truncated", "PacketSize", "more than the payload has"),
        ("truncated", "SessionHeader", "SH is set and fewer than 16 bytes follow the packet"),
        ("bad_type", "BaseHeader.Flags", "an internal packet among messages, a message among sessions"),
        ("truncated", "InternalHeader", "fewer than 4 bytes"),
        ("bad_type", "InternalHeader.Flags", "a PT other than 1, 2 and 3"),
        ("bad_flag", "BaseHeader.Flags", "a SessionAck without SH"),
        (
            "truncated",
            "EstablishConnectionHeader, ConnectionParametersHeader, SessionHeader",
            "fewer than 552, 12, 16 bytes",
        ),
        ("truncated", "Ping", "fewer than 24 bytes"),
        ("bad_signature", "Ping.Signature", "not 0x5548"),
        ("truncated", "UserHeader", "fewer than 48 bytes"),
        ("bad_flag", "UserHeader.Flags", "DQ other than 0, 3, 5 and 7; AQ 1 or 4"),
        ("truncated", _QUEUES, "the queue does not fit"),
        ("bad_size", _QUEUES, "Count of a direct name is 0 or odd"),
        (
            "bad_terminator",
            _QUEUES,
            "the first U+0000 of a direct name is not its last code unit; at the code unit that is wrong",
        ),
        ("truncated", "ConnectorType, TransactionHeader, ConnectorQMGuid, SecurityHeader", "it does not fit"),
        ("too_large", "SecurityHeader.SenderCertSize", "above 0xFFFF"),
        (
            "truncated",
            "SecurityID, EncryptionKey, SecurityData.Signature, SenderCert, ProviderInfo",
            "shorter than its size says",
        ),
        ("truncated", "MessagePropertiesHeader", "fewer than 56 bytes"),
        ("bad_size", "LabelLength", "above 250"),
        ("truncated", "Label, ExtensionData, MessageBody", "shorter than its size says"),
        ("truncated", "DebugHeader, DebugHeader.QueueIdentifier", "it does not fit"),
        ("bad_flag", "DebugHeader.Flags", "QT 2 or 3"),
        ("truncated", "SRMPEnvelopeHeader.DataLength", "more code units than the packet has; at DataLength"),
        ("truncated", "CompoundMessageHeader", "fewer than 16 bytes"),
        ("truncated", "CompoundMessageHeader.HttpBodySize", "more bytes than the packet has; at HttpBodySize"),
        (
            "bad_size",
            "CompoundMessageHeader.MessageBodySize, CompoundMessageHeader.MessageBodyOffset",
            "the message body is not in the HTTP body; at the field",
        ),
        ("truncated", "SoapHeader, SoapBody", "fewer than 8 bytes"),
        ("bad_header", "SoapHeader, SoapBody", "another id than 0x0320, 0x0384"),
        ("truncated", "SoapHeader.Header, SoapBody.Body", "shorter than its length says"),
        ("truncated", ", ".join(_LISTS), "fewer than 12 bytes"),
        ("bad_size", _of_lists("HeaderSize"), "below 12, or more than is left"),
        ("bad_header", _of_lists("HeaderID"), "not 0x64, 0xC8, 0x12C"),
        (
            "truncated, bad_type, bad_terminator",
            _of_lists("FormatNameList"),
            "an element runs out of its header, is of no known type, or has no U+0000",
        ),
        (
            "truncated",
            "MQFSignatureHeader, MQFSignatureHeader.Signature",
            "it does not fit",
        ),
        ("bad_header", "MQFSignatureHeader.ID", "not 0x015E"),
    )
)
