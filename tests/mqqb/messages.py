"""A message with everything in it, and the packets of the printed example."""

from __future__ import annotations

from uuid import UUID

from msmqwire import mqqb
from tests.vectors import get

GUIDS = [UUID(int=number << 96 | 7) for number in range(1, 9)]
F7, F8 = (get("mqqb", name).data for name in ("F7-user-message", "F8-session-ack"))

FULL = mqqb.UserMessage(
    destination_queue=f"PRIVATE={GUIDS[0]}\\3",
    admin_queue=f"PRIVATE={GUIDS[1]}\\A",
    response_queue="DIRECT=TCP:10.0.0.1\\answers",
    source_queue_manager=GUIDS[2],
    connector_type=GUIDS[3],
    sent_time=1509286144,
    message_id=42,
    positive_arrival_ack=True,
    label="Größe \N{SMILING FACE WITH SUNGLASSES}",
    body=b"hello",
    extension_data=b"\1\2\3",
    tracing=True,
    debug_queue=GUIDS[4],
    transaction=mqqb.TransactionHeader(
        tx_sequence_id=1 << 40 | 5,
        tx_sequence_number=2,
        previous_tx_sequence_number=1,
        last_message=True,
        transaction_id=0xFFFFF,
        connector_queue_manager=GUIDS[5],
    ),
    security=mqqb.SecurityHeader(security_flags=1, security_id=b"\1\1" + bytes(10), sender_certificate=b"cert"),
    soap=mqqb.SoapHeader(soap_header="<h/>", soap_body="<b/>"),
    multi_queue=mqqb.MultiQueueFormatHeader(
        destination_queues=("DIRECT=OS:server\\one", f"PUBLIC={GUIDS[6]}", f"DL={GUIDS[7]}"),
        response_queues=(f"PRIVATE={GUIDS[1]}\\B",),
        multi_queue_signature=b"sig",
    ),
    session=mqqb.SessionHeader(user_msg_sequence_number=3, window_size=64),
)
