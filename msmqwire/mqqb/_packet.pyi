from typing import Final, Literal
from uuid import UUID

from typing_extensions import Buffer

from msmqwire.formatname import FormatName
from msmqwire.mqqb.groups import (
    Acknowledgment,
    CompoundMessageHeader,
    MultiQueueFormatHeader,
    SecurityHeader,
    SessionHeader,
    SoapHeader,
    TransactionHeader,
)

Transport = Literal["unknown", "udp", "tcp"]
BodyFormat = Literal["empty", "encrypted", "xml", "text", "value", "dotnet_binary", "binary"]

class MessagePacket:
    violations: Final[tuple[str, ...]]
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class UserMessage(MessagePacket):
    def __init__(
        self,
        *,
        destination_queue: FormatName | str | None = None,
        admin_queue: FormatName | str | None = None,
        response_queue: FormatName | str | None = None,
        source_queue_manager: UUID = ...,
        queue_manager_address: UUID = ...,
        priority: int = ...,
        debug_header: bool = False,
        tracing: bool = False,
        time_to_reach_queue: int = 0xFFFFFFFF,
        time_to_be_received: int = 0xFFFFFFFF,
        sent_time: int = 0,
        message_id: int = 0,
        hop_count: int = 0,
        delivery_mode: Literal["express", "recoverable"] = ...,
        negative_source_journaling: bool = False,
        positive_source_journaling: bool = False,
        sent_over_http: bool = False,
        connector_type: UUID | None = None,
        positive_arrival_ack: bool = False,
        positive_receive_ack: bool = False,
        negative_arrival_ack: bool = False,
        negative_receive_ack: bool = False,
        label: str = "",
        message_class: int = 0,
        correlation_guid: UUID = ...,
        correlation_ordinal: int = 0,
        body_type: int = 0,
        application_tag: int = 0,
        body: Buffer = b"",
        allocation_body_size: int = ...,
        privacy_level: int = 0,
        hash_algorithm: int = 0x8004,
        encryption_algorithm: int = 0x6801,
        extension_data: Buffer = b"",
        debug_queue: UUID | None = None,
        srmp_envelope: str | None = None,
        transaction: TransactionHeader | None = None,
        security: SecurityHeader | None = None,
        compound: CompoundMessageHeader | None = None,
        soap: SoapHeader | None = None,
        multi_queue: MultiQueueFormatHeader | None = None,
        session: SessionHeader | None = None,
    ) -> None: ...
    kind: Final[Literal["user_message", "order_ack", "final_ack"]]
    """What the packet is: the acknowledgments of transactional messages are messages by their form."""
    packet_size: Final[int]
    """PacketSize, without the SessionHeader after the packet."""
    priority: Final[int]
    debug_header: Final[bool]
    tracing: Final[bool]
    base_flags: Final[int]
    user_flags: Final[int]
    transaction_flags: Final[int | None]
    properties_flags: Final[int]
    time_to_reach_queue: Final[int]
    source_queue_manager: Final[UUID]
    queue_manager_address: Final[UUID]
    time_to_be_received: Final[int]
    sent_time: Final[int]
    message_id: Final[int]
    hop_count: Final[int]
    delivery_mode: Final[str | None]
    negative_source_journaling: Final[bool]
    positive_source_journaling: Final[bool]
    sent_over_http: Final[bool]
    destination_queue: Final[FormatName | str | None]
    admin_queue: Final[FormatName | str | None]
    response_queue: Final[FormatName | str | None]
    connector_type: Final[UUID | None]
    positive_arrival_ack: Final[bool]
    positive_receive_ack: Final[bool]
    negative_arrival_ack: Final[bool]
    negative_receive_ack: Final[bool]
    label: Final[str]
    """Label to its first U+0000; lone surrogates stay lone surrogates."""
    message_class: Final[int]
    message_class_name: Final[str | None]
    correlation_guid: Final[UUID]
    correlation_ordinal: Final[int]
    body_type: Final[int]
    body_type_name: Final[str | None]
    body_format: Final[BodyFormat]
    body_text: Final[str | None]
    application_tag: Final[int]
    message_size: Final[int]
    allocation_body_size: Final[int]
    privacy_level: Final[int]
    hash_algorithm: Final[int]
    encryption_algorithm: Final[int]
    extension_data: Final[memoryview]
    body: Final[memoryview]
    """MessageBody: a view of the packet's bytes."""
    debug_queue: Final[UUID | None]
    srmp_envelope: Final[str | None]
    trailing: Final[memoryview | None]
    notification: Final[Literal["plain", "encrypted"] | None]
    """Whether the body is a change notification, and can be read: [MS-MQCN] 3.2.1.2.1."""
    transaction: Final[TransactionHeader | None]
    security: Final[SecurityHeader | None]
    compound: Final[CompoundMessageHeader | None]
    soap: Final[SoapHeader | None]
    multi_queue: Final[MultiQueueFormatHeader | None]
    session: Final[SessionHeader | None]
    acknowledged: Final[Acknowledgment | None]

class SessionPacket(MessagePacket):
    kind: Final[str]
    """``"ping"``, ``"establish_connection"``, ``"connection_parameters"`` or ``"session_ack"``."""
    packet_size: Final[int | None]
    """PacketSize; None for a ping."""
    refused: Final[bool]
    base_flags: Final[int | None]
    internal_flags: Final[int | None]
    trailing: Final[memoryview | None]

class EstablishConnection(SessionPacket):
    def __init__(
        self,
        *,
        client_guid: UUID,
        server_guid: UUID = ...,
        time_stamp: int = 0,
        operating_system: int = 0x0310,
        refused: bool = False,
    ) -> None: ...
    client_guid: Final[UUID]
    server_guid: Final[UUID]
    time_stamp: Final[int]
    operating_system: Final[int]

class ConnectionParameters(SessionPacket):
    def __init__(
        self, *, recoverable_ack_timeout: int, ack_timeout: int, window_size: int, refused: bool = False
    ) -> None: ...
    recoverable_ack_timeout: Final[int]
    ack_timeout: Final[int]
    window_size: Final[int]

class SessionAck(SessionPacket):
    def __init__(
        self,
        *,
        ack_sequence_number: int = 0,
        recoverable_msg_ack_seq_number: int = 0,
        recoverable_msg_ack_flags: int = 0,
        user_msg_sequence_number: int = 0,
        recoverable_msg_seq_number: int = 0,
        window_size: int,
        refused: bool = False,
    ) -> None: ...
    ack_sequence_number: Final[int]
    recoverable_msg_ack_seq_number: Final[int]
    recoverable_msg_ack_flags: Final[int]
    user_msg_sequence_number: Final[int]
    recoverable_msg_seq_number: Final[int]
    window_size: Final[int]

class Ping(SessionPacket):
    def __init__(
        self, *, cookie: int, queue_manager: UUID, initiator_is_client: bool = False, refused: bool = False
    ) -> None: ...
    cookie: Final[int]
    queue_manager: Final[UUID]
    initiator_is_client: Final[bool]

def decode(
    data: Buffer, *, strict: bool = False, transport: Transport = "unknown"
) -> UserMessage | EstablishConnection | ConnectionParameters | SessionAck | Ping: ...
def encode(packet: MessagePacket) -> bytes: ...
