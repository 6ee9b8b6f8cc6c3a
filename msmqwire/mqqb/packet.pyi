from typing import Literal
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
    @property
    def violations(self) -> tuple[str, ...]: ...
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
    @property
    def kind(self) -> Literal["user_message", "order_ack", "final_ack"]:
        """What the packet is: the acknowledgments of transactional messages are messages by their form."""
    @property
    def packet_size(self) -> int:
        """PacketSize, without a SessionHeader behind the packet."""
    @property
    def priority(self) -> int: ...
    @property
    def tracing(self) -> bool: ...
    @property
    def base_flags(self) -> int: ...
    @property
    def user_flags(self) -> int: ...
    @property
    def transaction_flags(self) -> int | None: ...
    @property
    def properties_flags(self) -> int: ...
    @property
    def time_to_reach_queue(self) -> int: ...
    @property
    def source_queue_manager(self) -> UUID: ...
    @property
    def queue_manager_address(self) -> UUID: ...
    @property
    def time_to_be_received(self) -> int: ...
    @property
    def sent_time(self) -> int: ...
    @property
    def message_id(self) -> int: ...
    @property
    def hop_count(self) -> int: ...
    @property
    def delivery_mode(self) -> str | None: ...
    @property
    def negative_source_journaling(self) -> bool: ...
    @property
    def positive_source_journaling(self) -> bool: ...
    @property
    def sent_over_http(self) -> bool: ...
    @property
    def destination_queue(self) -> FormatName | str | None: ...
    @property
    def admin_queue(self) -> FormatName | str | None: ...
    @property
    def response_queue(self) -> FormatName | str | None: ...
    @property
    def connector_type(self) -> UUID | None: ...
    @property
    def positive_arrival_ack(self) -> bool: ...
    @property
    def positive_receive_ack(self) -> bool: ...
    @property
    def negative_arrival_ack(self) -> bool: ...
    @property
    def negative_receive_ack(self) -> bool: ...
    @property
    def label(self) -> str:
        """Label to its first U+0000; lone surrogates stay lone surrogates."""
    @property
    def message_class(self) -> int: ...
    @property
    def message_class_name(self) -> str | None: ...
    @property
    def correlation_guid(self) -> UUID: ...
    @property
    def correlation_ordinal(self) -> int: ...
    @property
    def body_type(self) -> int: ...
    @property
    def body_type_name(self) -> str | None: ...
    @property
    def body_format(self) -> BodyFormat: ...
    @property
    def body_text(self) -> str | None: ...
    @property
    def application_tag(self) -> int: ...
    @property
    def message_size(self) -> int: ...
    @property
    def allocation_body_size(self) -> int: ...
    @property
    def privacy_level(self) -> int: ...
    @property
    def hash_algorithm(self) -> int: ...
    @property
    def encryption_algorithm(self) -> int: ...
    @property
    def extension_data(self) -> memoryview: ...
    @property
    def body(self) -> memoryview:
        """MessageBody: a view of the packet's bytes."""
    @property
    def debug_queue(self) -> UUID | None: ...
    @property
    def srmp_envelope(self) -> str | None: ...
    @property
    def trailing(self) -> memoryview | None: ...
    @property
    def notification(self) -> Literal["plain", "encrypted"] | None:
        """Whether the body is a change notification, and can be read: [MS-MQCN] 3.2.1.2.1."""
    @property
    def transaction(self) -> TransactionHeader | None: ...
    @property
    def security(self) -> SecurityHeader | None: ...
    @property
    def compound(self) -> CompoundMessageHeader | None: ...
    @property
    def soap(self) -> SoapHeader | None: ...
    @property
    def multi_queue(self) -> MultiQueueFormatHeader | None: ...
    @property
    def session(self) -> SessionHeader | None: ...
    @property
    def acknowledged(self) -> Acknowledgment | None: ...

class SessionPacket(MessagePacket):
    @property
    def kind(self) -> str:
        """``"ping"``, ``"establish_connection"``, ``"connection_parameters"`` or ``"session_ack"``."""
    @property
    def packet_size(self) -> int | None:
        """PacketSize; None for a ping."""
    @property
    def refused(self) -> bool: ...
    @property
    def base_flags(self) -> int | None: ...
    @property
    def internal_flags(self) -> int | None: ...
    @property
    def trailing(self) -> memoryview | None: ...

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
    @property
    def client_guid(self) -> UUID: ...
    @property
    def server_guid(self) -> UUID: ...
    @property
    def time_stamp(self) -> int: ...
    @property
    def operating_system(self) -> int: ...

class ConnectionParameters(SessionPacket):
    def __init__(
        self, *, recoverable_ack_timeout: int, ack_timeout: int, window_size: int, refused: bool = False
    ) -> None: ...
    @property
    def recoverable_ack_timeout(self) -> int: ...
    @property
    def ack_timeout(self) -> int: ...
    @property
    def window_size(self) -> int: ...

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
    @property
    def ack_sequence_number(self) -> int: ...
    @property
    def recoverable_msg_ack_seq_number(self) -> int: ...
    @property
    def recoverable_msg_ack_flags(self) -> int: ...
    @property
    def user_msg_sequence_number(self) -> int: ...
    @property
    def recoverable_msg_seq_number(self) -> int: ...
    @property
    def window_size(self) -> int: ...

class Ping(SessionPacket):
    def __init__(
        self, *, cookie: int, queue_manager: UUID, initiator_is_client: bool = False, refused: bool = False
    ) -> None: ...
    @property
    def cookie(self) -> int: ...
    @property
    def queue_manager(self) -> UUID: ...
    @property
    def initiator_is_client(self) -> bool: ...

def decode(
    data: Buffer, *, strict: bool = False, transport: Transport = "unknown"
) -> UserMessage | EstablishConnection | ConnectionParameters | SessionAck | Ping: ...
def encode(packet: MessagePacket) -> bytes: ...
