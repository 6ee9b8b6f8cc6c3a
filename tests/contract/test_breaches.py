"""Each requirement of ``musts.csv`` on a field, broken alone in a packet that is right: its own outcome, and no other.

A breach names a golden packet, a field of its byte map, and what the field becomes.
"""

from __future__ import annotations

import csv
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from msmqwire import mqqb
from msmqwire.insight.layouts import byte_map, guess
from tests.vectors import get

with (Path(__file__).parent / "musts.csv").open(encoding="utf-8") as source:
    MUSTS = list(csv.DictReader(source))

#: The flags of optional headers in UserHeader.Flags, and of queues.
SECURITY, TRANSACTION, PROPERTIES, CONNECTOR, SEVERAL, SOAP = (1 << bit for bit in (19, 20, 21, 22, 23, 28))


class Breach(NamedTuple):
    """A requirement by its field and the beginning of its rule, and a packet that breaks it."""

    field: str
    rule: str
    payload: bytes
    at: str = ""
    """The field that the fault names; not for violations."""
    beside: frozenset[str] = frozenset()
    """What the packet breaks as well."""
    table: str = ""
    """That it is decoded for, if its bytes do not say so."""


def changed(payload: bytes, *changes: tuple[str, int | bytes | Callable[[int], int]]) -> bytes:
    """A payload with other values in some fields of its byte map, of the same size."""
    layout = "ping" if payload[2:4] == b"\x48\x55" else guess(payload)
    for name, value in changes:
        (part,) = [part for part in byte_map(layout, payload) if part.name == name]
        size = part.end - part.start
        if callable(value):
            value = value(part.value)
        data = value.to_bytes(size, "little") if isinstance(value, int) else value.ljust(size, b"\0")
        payload = payload[: part.start] + data + payload[part.end :]
    return payload


def bits(mask: int) -> Callable[[int], int]:
    return lambda value: value | mask


def without(mask: int) -> Callable[[int], int]:
    return lambda value: value & ~mask


def golden(name: str) -> bytes:
    data: bytes = get("mqqb", name).data
    return data


def bare(flags: int, more: bytes = b"") -> bytes:
    """A BaseHeader and a UserHeader with these flags instead of those of queues and headers, and some bytes."""
    packet = changed(golden("no-destination"), ("UserHeader.Flags", flags))[:64] + more
    return changed(packet, ("PacketSize", len(packet)))


def longer(payload: bytes, count: int) -> bytes:
    """With bytes at the end that PacketSize counts."""
    return changed(payload, ("PacketSize", len(payload) + count)) + bytes(count)


def body_of(payload: bytes, at: int, value: int) -> bytes:
    """With another number in the body of an acknowledgment."""
    (body,) = [part for part in byte_map("messages", payload) if part.name == "MessageBody"]
    return payload[: body.start + at] + struct.pack("<I", value) + payload[body.start + at + 4 :]


def queue_form(form: int) -> Callable[[int], int]:
    """Another form of the destination queue in the flags of a UserHeader."""
    return lambda flags: flags & ~(7 << 10) | form << 10


FLAGS = "UserHeader.Flags"
UNNAMED = frozenset({"missing_properties"})
SIZES = "SecurityHeader.SenderIdSize, EncryptionKeySize, SignatureSize, ProviderInfoSize"
PROVIDER = struct.pack("<I", 1) + "P\0".encode("utf-16-le")


def secured(flags: int, *sizes: int, data: bytes = b"") -> bytes:
    """With a SecurityHeader that has sizes of SecurityID, EncryptionKey, Signature, SenderCert and ProviderInfo."""
    return bare(SECURITY, struct.pack("<4H2I", flags, *sizes) + data)


def without_padding(payload: bytes) -> bytes:
    """Without the two bytes after the list of response queues."""
    at = payload.index(b"q\0\0\0\0\0\x5e\1") + 4
    shorter = payload[:at] + payload[at + 2 :]
    return changed(shorter, ("PacketSize", len(shorter)))


#: Requirements in the order of ``musts.csv``.
BREACHES = [
    Breach(
        "MQFFormatNameElement.FormatType",
        "FormatType",
        golden("multiple-queues-unknown-form"),
        "Destination.FormatNameList[1]",
    ),
    Breach(
        "MQFFormatNameElement.FormatName",
        "FormatName",
        golden("multiple-queues-cut-private"),
        "Administration.FormatNameList[0]",
    ),
    Breach(
        "MQFDirectQueueFormatName.DirectFormatName",
        "DirectFormatName ends",
        golden("multiple-queues-without-terminator"),
        "Response.FormatNameList[0]",
    ),
    Breach("PrivateQueueFormatNameId", "PrivateQueueFormatNameId", bare(2 << 13, bytes(3)), "AdminQueue"),
    Breach("DirectQueueFormatName", "DirectQueueFormatName", golden("count-odd"), "DestinationQueue"),
    Breach(
        "DirectQueueFormatName.DirectFormatName",
        "DirectFormatName ends",
        golden("direct-with-two-terminators"),
        "DestinationQueue",
    ),
    Breach(
        "DirectQueueFormatName.DirectFormatName",
        "DirectFormatName ends",
        golden("direct-without-terminator"),
        "DestinationQueue",
    ),
    Breach(
        "DirectQueueFormatName.DirectFormatName",
        "DirectFormatName is padded",
        bare(7 << 10, b"\4\0a\0\0\0"),
        beside=UNNAMED | {"queue_manager_address"},
    ),
    Breach("PublicQueueFormatName", "PublicQueueFormatName", bare(5 << 10, bytes(15)), "DestinationQueue"),
    Breach("PrivateQueueFormatName", "PrivateQueueFormatName", bare(6 << 13, bytes(19)), "AdminQueue"),
    Breach(
        "BaseHeader.VersionNumber", "VersionNumber", changed(golden("plain"), ("VersionNumber", 0x11)), "VersionNumber"
    ),
    Breach("BaseHeader.Flags.PR", "PR is 0", changed(golden("transaction"), ("BaseHeader.Flags", bits(1)))),
    Breach(
        "BaseHeader.Flags.IN", "IN is set", golden("internal-packet-as-message"), "BaseHeader.Flags", table="messages"
    ),
    Breach("BaseHeader.Flags.IN", "IN is set", golden("user-message-as-session"), "BaseHeader.Flags", table="sessions"),
    Breach(
        "BaseHeader.Flags.SH",
        "SH is set",
        changed(golden("plain"), ("BaseHeader.Flags", bits(1 << 4))),
        "SessionHeader",
    ),
    Breach(
        "BaseHeader.Flags.SH", "SH is 0", changed(golden("connection-parameters"), ("BaseHeader.Flags", bits(1 << 4)))
    ),
    Breach(
        "BaseHeader.Flags.DH", "DH is set", changed(golden("plain"), ("BaseHeader.Flags", bits(1 << 5))), "DebugHeader"
    ),
    Breach(
        "BaseHeader.Flags.DH", "DH is 0", changed(golden("connection-parameters"), ("BaseHeader.Flags", bits(1 << 5)))
    ),
    Breach("BaseHeader.Flags.TR", "TR is set only", changed(golden("plain"), ("BaseHeader.Flags", bits(1 << 8)))),
    *(
        Breach("BaseHeader.Flags.X0-X9", "X0-X9", changed(golden("plain"), ("BaseHeader.Flags", bits(1 << bit))))
        for bit in (6, 7, *range(9, 16))
    ),
    Breach(
        "BaseHeader.Signature",
        "Signature",
        changed(golden("plain"), ("Signature", 0x524F494D)),
        "Signature",
        table="messages",
    ),
    Breach("BaseHeader.PacketSize", "PacketSize is the size", golden("plain")[:-1], "PacketSize"),
    Breach("BaseHeader.PacketSize", "PacketSize does not", longer(golden("plain"), 4)),
    Breach("BaseHeader.PacketSize", "PacketSize is at most", golden("packet-size-4-mib-and-1"), "PacketSize"),
    Breach(
        "BaseHeader.TimeToReachQueue",
        "TimeToReachQueue is 0xFFFFFFFF in packets of",
        changed(golden("session-ack"), ("TimeToReachQueue", 0xFFFFFFFE)),
    ),
    Breach(
        "BaseHeader.TimeToReachQueue",
        "TimeToReachQueue is 0xFFFFFFFF in OrderAck",
        changed(golden("order-ack"), ("TimeToReachQueue", 0xFFFFFFFE)),
    ),
    Breach(
        "BaseHeader.TimeToReachQueue",
        "TimeToReachQueue is 0xFFFFFFFF in OrderAck",
        changed(golden("final-ack"), ("TimeToReachQueue", 0)),
    ),
    Breach(
        "UserHeader.QueueManagerAddress",
        "QueueManagerAddress is the GUID",
        changed(golden("plain"), ("QueueManagerAddress", 0)),
    ),
    Breach(
        "UserHeader.QueueManagerAddress",
        "QueueManagerAddress is the GUID",
        changed(golden("public-destination"), ("QueueManagerAddress", 0)),
    ),
    Breach(
        "UserHeader.QueueManagerAddress",
        "QueueManagerAddress is all zeros",
        changed(golden("direct-destination"), ("QueueManagerAddress", 1)),
    ),
    Breach("UserHeader.Flags.RC", "RC is at most", changed(golden("plain"), (FLAGS, bits(0x1E)))),
    Breach("UserHeader.Flags.DM", "DM is 0 or 1", changed(golden("plain"), (FLAGS, bits(3 << 5)))),
    *(
        Breach("UserHeader.Flags.X1, X2, X3, X4", "X1", changed(golden("plain"), (FLAGS, bits(1 << bit))))
        for bit in (7, 24, 26, 27, 29, 30, 31)
    ),
    *(
        Breach(
            "UserHeader.Flags.DQ",
            "DQ is",
            changed(golden("plain"), (FLAGS, queue_form(form))),
            FLAGS,
        )
        for form in (1, 2, 4, 6)
    ),
    *(
        Breach("UserHeader.Flags.AQ", "AQ is", changed(golden("plain"), (FLAGS, bits(form << 13))), FLAGS)
        for form in (1, 4)
    ),
    Breach("UserHeader.Flags.SH", "SH is set", bare(SECURITY), "SecurityHeader"),
    Breach("UserHeader.Flags.TH", "TH is set", bare(TRANSACTION), "TransactionHeader"),
    Breach("UserHeader.Flags.TH", "TH is not set", changed(golden("transaction"), (FLAGS, without(3 << 5)))),
    Breach("UserHeader.Flags.MP", "MP is", bare(0)),
    Breach("UserHeader.Flags.CQ", "CQ is set", bare(CONNECTOR), "ConnectorType"),
    Breach("UserHeader.Flags.MQ", "MQ is set", bare(SEVERAL), "Destination"),
    Breach("UserHeader.Flags.AH", "AH is 0", changed(golden("plain"), (FLAGS, bits(1 << 25)))),
    Breach("UserHeader.Flags.HH", "HH is set", bare(SOAP), "SoapHeader"),
    *(
        Breach("UserHeader.DestinationQueue", "DestinationQueue has", bare(form << 10), "DestinationQueue")
        for form in (3, 5, 7)
    ),
    Breach(
        "UserHeader.AdminQueue",
        "AdminQueue is absent",
        changed(golden("admin-queue-public"), ("MessagePropertiesHeader.Flags", 0)),
    ),
    *(Breach("UserHeader.AdminQueue", "AdminQueue has", bare(form << 13), "AdminQueue") for form in (2, 3, 5, 6, 7)),
    *(
        Breach("UserHeader.ResponseQueue", "ResponseQueue has", bare(form << 16), "ResponseQueue")
        for form in (2, 3, 5, 6, 7)
    ),
    Breach("UserHeader.ResponseQueue", "If RQ is 4", golden("response-queue-beside-no-admin-queue")),
    Breach("UserHeader.ConnectorType", "ConnectorType is present", bare(CONNECTOR, bytes(15)), "ConnectorType"),
    *(
        Breach(
            "MessagePropertiesHeader.Flags.X",
            "X SHOULD",
            changed(golden("plain"), ("MessagePropertiesHeader.Flags", bits(1 << bit))),
        )
        for bit in range(4, 8)
    ),
    Breach("MessagePropertiesHeader.LabelLength", "LabelLength is at most", golden("label-of-251"), "LabelLength"),
    Breach("MessagePropertiesHeader.LabelLength", "LabelLength is the number", golden("label-with-two-terminators")),
    Breach("MessagePropertiesHeader.Label", "Label is at most", golden("label-without-terminator")),
    Breach(
        "MessagePropertiesHeader.MessageClass",
        "MessageClass is one",
        changed(golden("plain"), ("MessageClass", 0x0200)),
    ),
    Breach("MessagePropertiesHeader.MessageSize", "MessageSize is", golden("body-beyond-the-packet"), "MessageBody"),
    Breach(
        "MessagePropertiesHeader.AllocationBodySize",
        "AllocationBodySize",
        changed(golden("plain"), ("AllocationBodySize", 0)),
    ),
    *(
        Breach(
            "MessagePropertiesHeader.PrivacyLevel", "PrivacyLevel is", changed(golden("plain"), ("PrivacyLevel", level))
        )
        for level in (2, 4, 6)
    ),
    Breach("MessagePropertiesHeader.HashAlgorithm", "HashAlgorithm", changed(golden("plain"), ("HashAlgorithm", 1))),
    Breach(
        "MessagePropertiesHeader.EncryptionAlgorithm",
        "EncryptionAlgorithm is one of",
        changed(golden("plain"), ("EncryptionAlgorithm", 1)),
    ),
    Breach(
        "MessagePropertiesHeader.EncryptionAlgorithm",
        "EncryptionAlgorithm is one that",
        golden("encryption-algorithm-of-another-privacy-level"),
    ),
    Breach(
        "MessagePropertiesHeader.ExtensionSize", "ExtensionSize", golden("extension-beyond-the-packet"), "ExtensionData"
    ),
    Breach("MessagePropertiesHeader", "MessagePropertiesHeader is padded", golden("padding-that-is-missing")),
    Breach("UserMessage Packet", "A UserMessage Packet has a", bare(0)),
    Breach(
        "UserMessage Packet", "A UserMessage Packet has the optional", changed(golden("soap"), (FLAGS, without(SOAP)))
    ),
    Breach(
        "MultiQueueFormatHeader.Destination, Administration, Response",
        "Destination",
        without_padding(golden("multiple-queues")),
        "MQFSignatureHeader.ID",
    ),
    Breach(
        "MQFAddressHeader.HeaderSize",
        "HeaderSize",
        golden("multiple-queues-size-beyond-the-packet"),
        "Destination.HeaderSize",
    ),
    Breach("MQFAddressHeader.HeaderID", "HeaderID", golden("multiple-queues-wrong-id"), "Destination.HeaderID"),
    Breach(
        "MQFAddressHeader.HeaderID",
        "HeaderID",
        golden("multiple-queues-wrong-administration-id"),
        "Administration.HeaderID",
    ),
    Breach("MQFAddressHeader.HeaderID", "HeaderID", golden("multiple-queues-wrong-response-id"), "Response.HeaderID"),
    Breach(
        "MQFAddressHeader.ElementCount",
        "ElementCount",
        golden("multiple-queues-too-many"),
        "Destination.FormatNameList[1]",
    ),
    Breach("MQFSignatureHeader.ID", "ID is", golden("multiple-queues-wrong-signature-id"), "MQFSignatureHeader.ID"),
    Breach(
        "MQFSignatureHeader.Size",
        "Size is",
        golden("multiple-queues-signature-beyond-the-packet"),
        "MQFSignatureHeader.Signature",
    ),
    Breach(
        "SessionHeader.WindowSize", "WindowSize is", changed(golden("session-ack"), ("SessionHeader.WindowSize", 0))
    ),
    Breach(
        "SessionHeader.WindowSize", "WindowSize is", changed(golden("session-header"), ("SessionHeader.WindowSize", 0))
    ),
    Breach("TransactionHeader.Flags.CG", "CG is set", bare(TRANSACTION | 1 << 5, b"\1" + bytes(34)), "ConnectorQMGuid"),
    *(
        Breach(
            "TransactionHeader.Flags.X1-X8",
            "X1-X8",
            changed(golden("transaction"), ("TransactionHeader.Flags", bits(1 << bit))),
        )
        for bit in range(24, 32)
    ),
    Breach(
        "TransactionHeader.TxSequenceNumber",
        "TxSequenceNumber is at",
        changed(golden("transaction"), ("TxSequenceNumber", 0), ("PreviousTxSequenceNumber", 0)),
    ),
    Breach(
        "TransactionHeader.PreviousTxSequenceNumber",
        "PreviousTx",
        changed(golden("transaction"), ("PreviousTxSequenceNumber", 0xFFFFFFFF)),
    ),
    Breach(
        "SecurityHeader.Flags.ST",
        "ST is 0",
        changed(golden("security-sid"), ("SecurityHeader.Flags", lambda flags: flags & ~15 | 3)),
    ),
    Breach(
        "SecurityHeader.Flags.ST", "If ST is 0", changed(golden("security-sid"), ("SecurityHeader.Flags", without(15)))
    ),
    Breach(
        "SecurityHeader.Flags.ST",
        "If ST is 1",
        changed(golden("security-queue-manager"), ("SecurityHeader.Flags", lambda flags: flags & ~15 | 1)),
    ),
    Breach(
        "SecurityHeader.Flags.ST",
        "If ST is 2",
        changed(golden("security-sid"), ("SecurityHeader.Flags", lambda flags: flags & ~15 | 2)),
    ),
    *(
        Breach(
            "SecurityHeader.Flags.AU, AS",
            "AU and AS",
            changed(golden("security-sid"), ("SecurityHeader.Flags", bits(1 << bit))),
        )
        for bit in (4, *range(8, 12))
    ),
    Breach(
        "SecurityHeader.Flags.EB", "EB is set", changed(golden("security-sid"), ("SecurityHeader.Flags", bits(1 << 5)))
    ),
    Breach("SecurityHeader.Flags.DE", "DE is", secured(0xC0, 0, 0, 4, 0, 8, data=bytes(4) + PROVIDER), beside=UNNAMED),
    Breach("SecurityHeader.Flags.DE", "DE is", secured(0x80, 0, 0, 4, 0, 0, data=bytes(4)), beside=UNNAMED),
    Breach("SecurityHeader.Flags.AI", "If AI is", secured(0x80, 0, 0, 0, 0, 0), beside=UNNAMED),
    *(
        Breach(
            "SecurityHeader.Flags.X12-X15",
            "X12-X15",
            changed(golden("security-sid"), ("SecurityHeader.Flags", bits(1 << bit))),
        )
        for bit in range(12, 16)
    ),
    Breach(SIZES, "SenderIdSize", secured(0x82, 16, 0, 0, 0, 0, data=bytes(15)), "SecurityID"),
    Breach(SIZES, "SenderIdSize", secured(0x80, 0, 8, 0, 0, 0, data=bytes(7)), "EncryptionKey"),
    Breach(SIZES, "SenderIdSize", secured(0x80, 0, 0, 8, 0, 0, data=bytes(7)), "SecurityData.Signature"),
    Breach(SIZES, "SenderIdSize", secured(0x80, 0, 0, 0, 0, 8, data=bytes(7)), "ProviderInfo"),
    Breach(
        "SecurityHeader.SenderCertSize",
        "SenderCertSize",
        golden("security-certificate-too-large"),
        "SecurityHeader.SenderCertSize",
    ),
    Breach("SecurityHeader", "At least one size", golden("security-without-data")),
    *(
        Breach("SecurityData", "The fields", secured(0x80 | default, *sizes, data=data), beside=UNNAMED)
        for default, sizes, data in (
            (0, (0, 7, 0, 0, 0), bytes(7)),
            (0x40, (0, 0, 7, 0, 0), bytes(7)),
            (0x40, (0, 0, 0, 7, 0), bytes(7)),
            (0, (0, 0, 0, 0, 10), PROVIDER[:-2] + b"R\0\0\0"),
        )
    ),
    Breach("SecurityData.ProviderInfo", "ProviderInfo is", secured(0xC0, 0, 0, 0, 0, 8, data=PROVIDER), beside=UNNAMED),
    *(
        Breach(
            "SecurityData.ProviderInfo",
            "ProviderInfo has",
            secured(0x80, 0, 0, 0, 0, len(data), data=data + bytes(-len(data) % 4)),
            beside=UNNAMED,
        )
        for data in (PROVIDER[:2], PROVIDER[:4], PROVIDER[:-2] + b"x\0", PROVIDER + bytes(2))
    ),
    Breach(
        "SoapHeader.HeaderSectionID, BodySectionID", "HeaderSectionID", golden("soap-wrong-header-id"), "SoapHeader"
    ),
    Breach("SoapHeader.HeaderSectionID, BodySectionID", "HeaderSectionID", golden("soap-wrong-body-id"), "SoapBody"),
    Breach("SoapHeader.HeaderDataLength, BodyDataLength", "Each length", golden("soap-two-terminators")),
    Breach("DebugHeader.Flags.QT", "QT is", golden("debug-queue-type-2"), "DebugHeader.Flags"),
    *(
        Breach(
            "DebugHeader.Flags.X2-X15", "X2-X15", changed(golden("debug-queue"), ("DebugHeader.Flags", bits(1 << bit)))
        )
        for bit in range(2, 16)
    ),
    Breach("SRMPEnvelopeHeader.DataLength", "DataLength", golden("http-envelope-with-two-terminators")),
    Breach("InternalHeader.Reserved", "Reserved is", changed(golden("session-ack"), ("InternalHeader.Reserved", 1))),
    *(
        Breach(
            "InternalHeader.Flags.PT",
            "PT is",
            changed(golden("session-ack"), ("InternalHeader.Flags", kind)),
            "InternalHeader.Flags",
        )
        for kind in (0, 4, 15)
    ),
    Breach("InternalHeader.Flags.CS", "CS is 0", changed(golden("session-ack"), ("InternalHeader.Flags", bits(16)))),
    *(
        Breach(
            "InternalHeader.Flags.X5-X15",
            "X5-X15",
            changed(golden("session-ack"), ("InternalHeader.Flags", bits(1 << bit))),
        )
        for bit in range(5, 16)
    ),
    *(
        Breach(
            "ConnectionParametersHeader.RecoverableAckTimeout, AckTimeout",
            "Recoverable",
            changed(golden("connection-parameters"), change),
        )
        for change in (
            ("RecoverableAckTimeout", 499),
            ("RecoverableAckTimeout", 120_001),
            ("AckTimeout", 19_999),
            ("AckTimeout", 120_001),
        )
    ),
    Breach(
        "ConnectionParametersHeader.Reserved",
        "Reserved is",
        changed(golden("connection-parameters"), ("ConnectionParameters.Reserved", 1)),
    ),
    Breach(
        "EstablishConnectionHeader.OperatingSystem.RE",
        "RE is",
        changed(golden("establish-connection"), ("OperatingSystem", bits(1))),
    ),
    *(
        Breach(
            "EstablishConnectionHeader.OperatingSystem.X11-X15",
            "X11-X15",
            changed(golden("establish-connection"), ("OperatingSystem", bits(1 << bit))),
        )
        for bit in range(11, 16)
    ),
    Breach(
        "EstablishConnectionHeader.Reserved",
        "Reserved is",
        changed(golden("establish-connection"), ("EstablishConnection.Reserved", 1)),
    ),
    *(
        Breach("OrderAck Packet UserHeader.Flags", "All bits", changed(golden("order-ack"), (FLAGS, bits(1 << bit))))
        for bit in (0, 5, 8, 9)
    ),
    Breach("OrderAck Packet MessagePropertiesHeader", "Flags is 0", changed(golden("order-ack"), ("BodyType", 8))),
    Breach(
        "OrderAck Packet MessagePropertiesHeader",
        "Flags is 0",
        changed(golden("order-ack"), ("MessagePropertiesHeader.Flags", 1)),
    ),
    Breach("OrderAck Body", "TxSequenceNumber", body_of(golden("order-ack"), 8, 0)),
    Breach("OrderAck Body", "TxSequenceNumber", body_of(golden("order-ack"), 12, 0xFFFF)),
    *(
        Breach("FinalAck Packet UserHeader.Flags", "All bits", changed(golden("final-ack"), (FLAGS, bits(1 << bit))))
        for bit in (0, 8, 9)
    ),
    Breach("FinalAck Packet MessageClass", "MessageClass is one", golden("final-ack-of-an-unknown-class")),
    Breach("FinalAck Packet MessagePropertiesHeader", "Flags is 0", changed(golden("final-ack"), ("BodyType", 8))),
    Breach(
        "FinalAck Packet MessagePropertiesHeader",
        "Flags is 0",
        changed(golden("final-ack"), ("MessagePropertiesHeader.Flags", 1)),
    ),
    Breach("FinalAck Body", "TxSequenceNumber", body_of(golden("final-ack"), 8, 0)),
    Breach("FinalAck Body", "TxSequenceNumber", body_of(golden("final-ack"), 12, 0xFFFFFFFF)),
    Breach("SessionAck Packet", "IN and SH", golden("session-ack-without-sh"), "BaseHeader.Flags"),
    Breach(
        "Ping Packet Signature", "Signature is", changed(golden("ping"), ("Ping.Signature", 0x5549)), "Ping.Signature"
    ),
]


def rule_of(breach: Breach) -> dict[str, str]:
    """The row that a breach is of."""
    (row,) = [row for row in MUSTS if row["field"] == breach.field and row["rule"].startswith(breach.rule)]
    return row


def test_every_requirement_that_is_judged_has_a_breach() -> None:
    judged = [(row["field"], row["rule"]) for row in MUSTS if not row["outcome"].startswith("not judged")]
    assert list(dict.fromkeys((breach.field, rule_of(breach)["rule"]) for breach in BREACHES)) == judged


@pytest.mark.parametrize("breach", BREACHES, ids=lambda breach: f"{breach.field}: {breach.rule}")
def test_a_breach_has_the_outcome_of_its_requirement(breach: Breach) -> None:
    kind, _, name = rule_of(breach)["outcome"].partition(": ")
    name = name.partition(",")[0]
    is_message = (breach.table or guess(breach.payload)) == "messages"
    batch = (mqqb.decode_batch if is_message else mqqb.decode_session_batch)([breach.payload])
    fault = batch.fault(0)
    if kind == "fault":
        assert fault is not None
        assert (fault.code, fault.field) == (name, breach.at)
    else:
        assert fault is None
        assert set(batch.violation_names(0)) == {name} | breach.beside
