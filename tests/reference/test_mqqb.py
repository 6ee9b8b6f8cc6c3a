"""The oracle itself, against the golden vectors: an oracle that is wrong would bless a wrong kernel."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.reference import mqqb
from tests.reference.mqqb_cases import cases
from tests.vectors import UNSTATED, Vector, load

VECTORS = load("mqqb")
TABLES: tuple[mqqb.Table, ...] = ("messages", "sessions")
ADDRESSES = ("Destination", "Administration", "Response")
QUEUES = ("DestinationQueue", "AdminQueue", "ResponseQueue")
FORMATS = (
    "empty", "xml", "text", "value", "dotnet_binary", "binary", "ansi_text", "hl7", "edifact", "net_msmq",
)  # fmt: skip # "encrypted" is a notification form too
ENUMERATIONS = (
    "body_format",
    "extension_format",
    "kind",
    "delivery_mode",
    "sender_id_type",
    "message_class_name",
    "notification",
)


def plain(packet: mqqb.Packet) -> dict[str, Any]:
    """The columns of a packet as a golden vector says them: texts and bytes without their places."""
    return {name: _plain(name, value) for name, value in packet.values.items()}


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, mqqb.Queue):
        return value.number if value.text is None else value.text
    if isinstance(value, mqqb.Span):
        return value.data
    if isinstance(value, tuple):
        return tuple(_plain(name, item) for item in value)
    return value


def read_vector(vector: Vector) -> list[tuple[Any, mqqb.Packet | mqqb.Fault]]:
    """What each way of reading a vector must give, and what it gives."""
    assert vector.table
    found: list[tuple[Any, mqqb.Packet | mqqb.Fault]] = []
    for outcome in vector.outcomes:
        assert outcome.transport != "ipx"
        got = mqqb.read(vector.data, vector.table, strict=outcome.strict, transport=outcome.transport)
        found.append((outcome, got))
    return found


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_reads_vector(vector: Vector) -> None:
    assert vector.table
    for outcome, got in read_vector(vector):
        if outcome.fault is not None:
            assert got == outcome.fault
            assert [name for name, value in mqqb.rows(got, vector.table)[0].items() if value is not None] == ["fault"]
            continue
        assert isinstance(got, mqqb.Packet)
        assert outcome.packet is not None
        assert {
            name: value for name, value in plain(got).items() if name in outcome.packet or name not in UNSTATED
        } == outcome.packet
        assert got.violations == outcome.violations


def test_vectors_are_named_once() -> None:
    names = [vector.name for vector in VECTORS]
    assert len(names) == len(set(names)) > 250


def test_spans_tell_where_they_stand() -> None:
    for vector in VECTORS:
        packets = [got for _, got in read_vector(vector) if isinstance(got, mqqb.Packet)]
        for value in (value for got in packets for value in got.values.values()):
            queues = value if isinstance(value, tuple) and not isinstance(value, (mqqb.Span, mqqb.Queue)) else (value,)
            for item in queues:
                span = item.name if isinstance(item, mqqb.Queue) else item
                if isinstance(span, mqqb.Span):
                    assert vector.data[span.offset : span.offset + len(span.data)] == span.data, vector.name


@pytest.mark.long
def test_the_cases_reach_every_outcome() -> None:
    """A gate proves that it checked something: every fault, violation, kind and column is among the cases."""
    found: Counter[Any] = Counter()
    for table in TABLES:
        for broken in (0, 1):
            for data in cases(20_000, 1, table, broken=broken):
                outcome = mqqb.read(data, table)
                if isinstance(outcome, mqqb.Fault):
                    assert broken, (outcome, data.hex())
                    found[outcome.code, outcome.field.partition("[")[0]] += 1
                    continue
                found.update((table, name) for name in outcome.violations or ("fine",))
                found.update((table, name) for name in outcome.values)
                found.update(outcome.values[name] for name in ENUMERATIONS if name in outcome.values)
    truncated = (
        "BaseHeader", "PacketSize", "InternalHeader", "EstablishConnectionHeader", "ConnectionParametersHeader",
        "SessionHeader", "Ping", "UserHeader", "DestinationQueue", "AdminQueue", "ResponseQueue", "ConnectorType",
        "TransactionHeader", "ConnectorQMGuid", "SecurityHeader", "SecurityID", "EncryptionKey",
        "SecurityData.Signature", "SenderCert", "ProviderInfo", "MessagePropertiesHeader", "Label", "ExtensionData",
        "MessageBody", "DebugHeader", "DebugHeader.QueueIdentifier", "SoapHeader", "SoapHeader.Header", "SoapBody",
        "SoapBody.Body", "SRMPEnvelopeHeader.DataLength", "CompoundMessageHeader", "CompoundMessageHeader.HttpBodySize",
        *ADDRESSES, *(f"{name}.FormatNameList" for name in ADDRESSES), "MQFSignatureHeader",
        "MQFSignatureHeader.Signature",
    )  # fmt: skip
    wanted = {
        *(("truncated", name) for name in truncated),
        ("bad_version", "VersionNumber"),
        *(("bad_signature", name) for name in ("Signature", "Ping.Signature")),
        *((code, "PacketSize") for code in ("bad_size", "too_large")),
        *(("bad_type", name) for name in ("BaseHeader.Flags", "InternalHeader.Flags")),
        *(("bad_flag", name) for name in ("BaseHeader.Flags", "UserHeader.Flags", "DebugHeader.Flags")),
        *((code, name) for code in ("bad_size", "bad_terminator") for name in QUEUES),
        ("too_large", "SecurityHeader.SenderCertSize"),
        ("bad_size", "LabelLength"),
        *(("bad_size", f"CompoundMessageHeader.MessageBody{name}") for name in ("Size", "Offset")),
        *(("bad_header", name) for name in ("SoapHeader", "SoapBody", "MQFSignatureHeader.ID")),
        *(("bad_size", f"{name}.HeaderSize") for name in ADDRESSES),
        *(("bad_header", f"{name}.HeaderID") for name in ADDRESSES),
        *((code, f"{name}.FormatNameList") for name in ADDRESSES for code in ("bad_type", "bad_terminator")),
        *((table, name) for table in TABLES for name in ("fine", *mqqb.VIOLATIONS[table], *mqqb.COLUMNS[table])),
        "user_message", "order_ack", "final_ack", "ping", "establish_connection", "connection_parameters",
        "session_ack", "express", "recoverable", "none", "sid", "queue_manager", "plain", "encrypted",
        *FORMATS,
        *mqqb.MESSAGE_CLASSES.values(),
    }  # fmt: skip
    assert set(found) == wanted
    assert min(found.values()) >= 5, found.most_common()[-8:]
