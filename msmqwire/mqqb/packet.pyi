"""Message packets one at a time: [MS-MQMQ] 2.2.20, [MS-MQQB] 2.2."""

from typing import Literal
from uuid import UUID

from typing_extensions import Buffer

from msmqwire.formatname import FormatName
from msmqwire.mqqb.groups import (
    Acknowledgment,
    MultiQueueFormatHeader,
    SecurityHeader,
    SessionHeader,
    SoapHeader,
    TransactionHeader,
)

Transport = Literal["unknown", "udp", "tcp"]

class MessagePacket:
    """What all packets have in common.

    A packet compares, hashes, prints and pickles as a value; reserved bytes and padding are no part of it. It keeps the
    bytes it was decoded from alive.
    """

    @property
    def violations(self) -> tuple[str, ...]:
        """Names of the rules that the packet breaks; empty for a conforming one."""
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class UserMessage(MessagePacket):
    """A message on its way: [MS-MQMQ] 2.2.20.

    Attributes are called as the columns of the messages table are, those of an optional header stand together in an
    object that is None when the packet lacks the header. Queues are format names of ``msmqwire.formatname``, text
    where a direct name is none, and None where the packet has none or does not say its host. Without a
    MessagePropertiesHeader, what stands in it is None.

    Parameters
    ----------
    destination_queue, admin_queue, response_queue : FormatName or str, optional
        Format names. A private destination is on the queue manager that ``queue_manager_address`` names, which is taken
        from it unless given.
    priority : int
        0 to 7; 3, for a transactional message 0.
    time_to_reach_queue, time_to_be_received : int
        Seconds; for ever unless given.
    sent_time : int
        Seconds since 1970.
    delivery_mode : {"express", "recoverable"}
        Recoverable for a transactional message.
    body, extension_data : bytes-like
    transaction, security, soap, multi_queue, session : optional
        The optional headers.

    Raises
    ------
    EncodeError
        What the specification does not let a sender send.

    Examples
    --------
    >>> from msmqwire import mqqb
    >>> message = mqqb.UserMessage(destination_queue="DIRECT=OS:server\\\\private$\\\\orders", label="one", body=b"...")
    >>> packet = encode(message)
    >>> decode(packet).destination_queue
    DirectName(protocol='os', address='server', queue='orders', queue_type='private', subqueue=None, suffix=None)
    >>> len(packet)
    188
    """

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
        transaction: TransactionHeader | None = None,
        security: SecurityHeader | None = None,
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
    def notification(self) -> Literal["plain", "encrypted"] | None:
        """Whether the body is a change notification, and can be read: [MS-MQCN] 3.2.1.2.1."""
    @property
    def transaction(self) -> TransactionHeader | None: ...
    @property
    def security(self) -> SecurityHeader | None: ...
    @property
    def soap(self) -> SoapHeader | None: ...
    @property
    def multi_queue(self) -> MultiQueueFormatHeader | None: ...
    @property
    def session(self) -> SessionHeader | None: ...
    @property
    def acknowledged(self) -> Acknowledgment | None:
        """What an OrderAck or FinalAck packet acknowledges; None for other messages."""

class SessionPacket(MessagePacket):
    """What the packets of sessions have in common."""

    @property
    def kind(self) -> str:
        """``"ping"``, ``"establish_connection"``, ``"connection_parameters"`` or ``"session_ack"``."""
    @property
    def packet_size(self) -> int | None:
        """PacketSize; None for a ping."""
    @property
    def refused(self) -> bool: ...

class EstablishConnection(SessionPacket):
    """The first packet of a session, and the answer to it: [MS-MQQB] 2.2.3.

    Parameters
    ----------
    client_guid : uuid.UUID
    server_guid : uuid.UUID
        Zeros unless given, as for a direct name.
    time_stamp : int
        Milliseconds.
    operating_system : int
    refused : bool
    """

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
    """Timeouts in milliseconds and the window of a session in messages: [MS-MQQB] 2.2.2.

    Examples
    --------
    >>> parameters = ConnectionParameters(recoverable_ack_timeout=1496, ack_timeout=120000, window_size=64)
    >>> len(encode(parameters))
    32
    """

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
    """What has arrived in a session: [MS-MQQB] 2.2.6."""

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
    """The datagram that asks whether a session would be accepted, and the answer to it: [MS-MQQB] 2.2.7."""

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
) -> UserMessage | EstablishConnection | ConnectionParameters | SessionAck | Ping:
    """Decode one message packet: [MS-MQMQ] 2.2.20, [MS-MQQB] 2.2.

    Parameters
    ----------
    data : bytes-like
        One packet, with the SessionHeader that follows it if there is one. It is viewed, not copied, unless it is
        writable.
    strict : bool
        Fault what a conforming receiver refuses, instead of noting it as a violation.
    transport : {"unknown", "udp", "tcp"}
        What carried the packet: pings come over UDP, all others over TCP. Where it is unknown the signature decides.

    Raises
    ------
    DecodeError
        With code, field and offset of the first thing wrong.

    Examples
    --------
    >>> decode(bytes.fromhex("10cd1b004c494f5224000000ffffffff0000010001000000000000000000000040000000"))
    SessionAck(ack_sequence_number=1, recoverable_msg_ack_seq_number=0, recoverable_msg_ack_flags=0, \
user_msg_sequence_number=0, recoverable_msg_seq_number=0, window_size=64, refused=False)
    >>> decode(b"\\x10\\0\\0\\0LIOR")
    Traceback (most recent call last):
    msmqwire.errors.DecodeError: truncated: BaseHeader at byte 0: needs 16 bytes, 8 left
    """

def encode(packet: MessagePacket) -> bytes:
    """Write one packet; ``decode(encode(packet), strict=True) == packet``.

    Reserved bits and padding are zeros. A DebugHeader without a queue is written only with ``tracing``, and a packet is
    a multiple of four bytes long.

    Raises
    ------
    EncodeError
        The packet was decoded with violations, which no conforming sender produces.
    """
