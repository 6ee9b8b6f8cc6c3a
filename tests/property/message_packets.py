"""Hypothesis strategies for MQQB: packets as a caller makes them, and payloads as a network brings them."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from msmqwire import mqqb
from msmqwire.formatname import DistributionListName, FormatName, PrivateName, PublicName
from tests.property.editing import edit
from tests.property.notifications import texts

# Few, so that a private queue's host is often one that the packet names
guids = st.sampled_from([uuid.UUID(int=k) for k in range(4)]) | st.uuids()
u16, u32, u64 = (st.integers(0, (1 << bits) - 1) for bits in (16, 32, 64))
_small = st.binary(max_size=30)
_bytes = st.none() | st.binary(min_size=1, max_size=30)
_flags = st.booleans()
labels = texts.map(lambda text: text.replace("\0", "")[:249])

private_names = st.builds(PrivateName, guids, u32)
_names = st.text(st.sampled_from("abcXYZ019$_-."), min_size=1, max_size=20)
direct_names = st.sampled_from(
    (
        "DIRECT=OS:srv1\\orders",
        "DIRECT=TCP:10.20.1.25\\private$\\orders",
        "DIRECT=TCP:10.20.1.25\\PRIVATE$\\order_queue$",
        "DIRECT=OS:srv1\\PRIVATE$\\notify_queue$",
        "DIRECT=HTTP://srv1/MSMQ\\orders",
        "DIRECT=https://srv1:8443/msmq/private$/orders",
        "direct=http://[2001:db8::1]/MSMQ/private$\\orders;journal",
    )
) | _names.map("DIRECT=OS:srv\\{}".format)
queues: st.SearchStrategy[FormatName | str] = private_names | st.builds(PublicName, guids) | direct_names
_queue_or_none = st.none() | queues
_guid_or_none = st.none() | guids

transactions = st.builds(
    mqqb.TransactionHeader,
    tx_sequence_id=u64,
    tx_sequence_number=st.integers(1, 0xFFFFFFFF),
    first_message=_flags,
    last_message=_flags,
    final_ack_required=_flags,
    transaction_id=st.integers(0, 0xFFFFF),
    connector_queue_manager=_guid_or_none,
)
sessions = st.builds(
    mqqb.SessionHeader,
    ack_sequence_number=u16,
    recoverable_msg_ack_seq_number=u16,
    recoverable_msg_ack_flags=u32,
    user_msg_sequence_number=u16,
    recoverable_msg_seq_number=u16,
    window_size=st.integers(1, 0xFFFF),
)
_elements = st.lists(queues | st.builds(DistributionListName, guids), max_size=4).map(tuple)
multi_queues = st.builds(
    mqqb.MultiQueueFormatHeader,
    destination_queues=_elements,
    admin_queues=_elements,
    response_queues=_elements,
    multi_queue_signature=_small,
)


@st.composite
def securities(draw: st.DrawFn, encrypted: bool) -> mqqb.SecurityHeader:
    """A SecurityHeader with something in it: who sent the message, or what proves it."""
    kind = draw(st.integers(0, 2))
    authorities = draw(st.lists(st.binary(min_size=4, max_size=4), max_size=15))
    sid = bytes((1, len(authorities))) + draw(st.binary(min_size=6, max_size=6)) + b"".join(authorities)
    sender = (None, sid, draw(guids).bytes_le)[kind]
    signature = draw(_bytes if kind else st.binary(min_size=1, max_size=30))
    provider = None
    flags = draw(st.sampled_from((0, 0x20, 0x40, 0x80, 0xE0) if encrypted else (0, 0x40, 0x80, 0xC0)))
    if not flags & 0x40 and (signature or draw(_flags)):
        provider = draw(st.binary(min_size=4, max_size=4)) + (draw(labels) + "\0").encode("utf-16-le", "surrogatepass")
    return mqqb.SecurityHeader(
        security_flags=kind | flags,
        security_id=sender,
        encryption_key=draw(_bytes),
        signature=signature,
        sender_certificate=draw(_bytes),
        provider_info=provider,
    )


_addresses = guids.filter(lambda guid: guid.int != 0)
_classes = st.sampled_from((0, 0, 1, 2, 0xFF, 0x4000, 0x8003)) | u16.map(0xE1FF.__and__)
_bodies = _small | st.binary(min_size=36, max_size=36)
_securities = [st.none() | securities(encrypted) for encrypted in (False, True)]
_soap = st.none() | st.builds(mqqb.SoapHeader, soap_header=texts, soap_body=texts)
_multi_queues = st.none() | multi_queues
_sessions = st.none() | sessions


@st.composite
def user_messages(draw: st.DrawFn, sender: uuid.UUID | None = None) -> mqqb.UserMessage:
    """Any message that a queue manager may send: that sender, its own messages and those that it forwards."""
    options: dict[str, Any] = {}
    hop_count = draw(st.integers(0, 0x1D))
    destination = draw(_queue_or_none)
    address = draw(_addresses)
    if isinstance(destination, PrivateName):
        destination = PrivateName(address, destination.private_id)
    elif not isinstance(destination, PublicName):
        address = uuid.UUID(int=0)
    if draw(_flags):
        options["transaction"] = transaction = draw(transactions)
        previous = draw(st.integers(0, transaction.tx_sequence_number - 1))
        options["transaction"] = replace(transaction, previous_tx_sequence_number=previous)
    else:
        options["priority"] = draw(st.integers(0, 7))
        options["delivery_mode"] = draw(st.sampled_from(("express", "recoverable")))
    for name in (
        "debug_header", "tracing", "negative_source_journaling", "positive_source_journaling", "positive_arrival_ack",
        "positive_receive_ack", "negative_arrival_ack", "negative_receive_ack",
    ):  # fmt: skip
        options[name] = draw(_flags)
    for name in (
        "time_to_reach_queue", "time_to_be_received", "sent_time", "message_id", "correlation_ordinal", "body_type",
        "application_tag",
    ):  # fmt: skip
        options[name] = draw(u32)
    privacy = draw(st.sampled_from((0, 0, 1, 3, 5)))
    ciphers = {1: (0x6602, 0x6801), 3: (0x6602, 0x6801), 5: (0x660E, 0x660F, 0x6610)}
    options["encryption_algorithm"] = draw(st.sampled_from(ciphers.get(privacy, ciphers[1] + ciphers[5])))
    admin = draw(_queue_or_none)
    if admin is not None:
        options["negative_arrival_ack"] = True
    return mqqb.UserMessage(
        destination_queue=destination,
        admin_queue=admin,
        response_queue=draw(_queue_or_none),
        source_queue_manager=sender if sender and not hop_count else draw(guids),
        queue_manager_address=address,
        hop_count=hop_count,
        connector_type=draw(_guid_or_none),
        label=draw(labels),
        message_class=draw(_classes),
        hash_algorithm=draw(st.sampled_from((0x8001, 0x8002, 0x8003, 0x8004, 0x800C, 0x800E))),
        correlation_guid=draw(guids),
        body=draw(_bodies),
        privacy_level=privacy,
        extension_data=draw(_small),
        debug_queue=draw(_guid_or_none),
        security=draw(_securities[privacy != 0]),
        soap=draw(_soap),
        multi_queue=draw(_multi_queues),
        session=draw(_sessions),
        **options,
    )


session_packets = st.one_of(
    st.builds(
        mqqb.EstablishConnection,
        client_guid=guids,
        server_guid=guids,
        time_stamp=u32,
        operating_system=st.integers(0, 7).map(lambda high: high << 8 | 0x10),
        refused=_flags,
    ),
    st.builds(
        mqqb.ConnectionParameters,
        recoverable_ack_timeout=st.integers(0x1F4, 0x1D4C0),
        ack_timeout=st.integers(0x4E20, 0x1D4C0),
        window_size=u16,
        refused=_flags,
    ),
    st.builds(
        mqqb.SessionAck,
        ack_sequence_number=u16,
        recoverable_msg_ack_seq_number=u16,
        recoverable_msg_ack_flags=u32,
        user_msg_sequence_number=u16,
        recoverable_msg_seq_number=u16,
        window_size=st.integers(1, 0xFFFF),
    ),
    st.builds(mqqb.Ping, cookie=u32, queue_manager=guids, initiator_is_client=_flags, refused=_flags),
)


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    """A packet with a few edits, after which PacketSize may still be right, or bytes that begin like one."""
    if draw(st.booleans()):
        data = bytearray(mqqb.encode(draw(user_messages() | session_packets)))
    else:
        head = draw(st.sampled_from((b"", b"\x10\0\3\0LIOR", b"\x10\0\x1b\0LIOR", b"\0\0HU")))
        data = bytearray(head + draw(st.binary(max_size=120)))
    edit(draw, data, (0, 1, 4, 16, 0x7FFFFFFF, 0xFFFFFFFF))
    if len(data) >= 16 and draw(st.booleans()):
        data[8:12] = len(data).to_bytes(4, "little")
    return bytes(data)
