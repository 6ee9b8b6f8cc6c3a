"""The classes of message packets; written by `make docs` from the tables, do not edit."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from typing_extensions import Buffer

from msmqwire.columns import WirePacket
from msmqwire.formatname import FormatName
from msmqwire.mqqb.groups import (
    Acknowledgment,
    CompoundMessageHeader,
    MultiQueueFormatHeader,
    SecurityHeader,
    SessionHeader,
    SoapHeader,
    TransactionHeader,
    TransportName,
)

# fmt: off
READABLE: frozenset[str]
SESSION_READABLE: tuple[str, ...]

class MessagePacket(WirePacket):
    """The base class of all packets.

    A packet compares, hashes, prints and pickles as a value; reserved bytes and padding are not part of it. It keeps
    the bytes it was decoded from alive.
    """

    violations: Final[tuple[str, ...]]
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class UserMessage(MessagePacket):
    """A message: [MS-MQMQ] 2.2.20.

    Attributes have the names of the columns of the messages table. Those of an optional header are in an object, which
    is None when the packet lacks the header. A queue is a format name of ``msmqwire.formatname``; the text of a direct
    name that is not valid; or None where the packet names no queue, or not its host. Without a MessagePropertiesHeader,
    the attributes of its fields are None. An argument that is None counts as not given.

    Parameters
    ----------
    destination_queue, admin_queue, response_queue : FormatName or str, optional
        Format names. A private destination is on the queue manager that ``queue_manager_address`` names, which is taken
        from it unless given.
    debug_header : bool
        Set with ``tracing`` or ``debug_queue``; alone, it writes a DebugHeader without a queue.
    priority : int
        0 to 7; 3, for a transactional message 0.
    time_to_reach_queue, time_to_be_received : int
        Seconds; for ever unless given.
    sent_time : datetime or int
        With a time zone, cut to whole seconds; or seconds since 1970. The attribute is a datetime in UTC, the number
        is ``sent_time_seconds``.
    delivery_mode : {"express", "recoverable"}
        Recoverable for a transactional message.
    encryption_algorithm : int
        0x6801 (RC4); 0x6610 (AES-256) when ``privacy_level`` is 5.
    body, extension_data : bytes-like
    body_text : str
        In place of ``body``: its text, in the encoding of ``body_type``, which is VT_LPWSTR (31) unless given.
    body_type, message_class : int or str
        A number, or its name, as in the columns ``body_type_name`` and ``message_class_name``.
    srmp_envelope : str, optional
        With it or ``compound``, ``sent_over_http`` is set.
    transaction, security, compound, soap, multi_queue, session : optional
        The optional headers, or mappings of their fields.

    Raises
    ------
    EncodeError
        The specification does not let a sender send the packet.

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
        priority: int = 3,
        debug_header: bool = False,
        tracing: bool = False,
        time_to_reach_queue: int = 4294967295,
        source_queue_manager: UUID | str = ...,
        queue_manager_address: UUID | str = ...,
        time_to_be_received: int = 4294967295,
        sent_time: datetime | int = 0,
        message_id: int = 0,
        hop_count: int = 0,
        delivery_mode: Literal['express', 'recoverable'] = 'express',
        negative_source_journaling: bool = False,
        positive_source_journaling: bool = False,
        sent_over_http: bool = False,
        destination_queue: FormatName | str | None = None,
        admin_queue: FormatName | str | None = None,
        response_queue: FormatName | str | None = None,
        connector_type: UUID | str | None = None,
        positive_arrival_ack: bool = False,
        positive_receive_ack: bool = False,
        negative_arrival_ack: bool = False,
        negative_receive_ack: bool = False,
        label: str = '',
        message_class: int | str = 0,
        correlation_guid: UUID | str = ...,
        correlation_ordinal: int = 0,
        body_type: int | str = 0,
        application_tag: int = 0,
        allocation_body_size: int = 0,
        privacy_level: int = 0,
        hash_algorithm: int = 32772,
        encryption_algorithm: int = 26625,
        extension_data: Buffer = b'',
        body: Buffer = b'',
        debug_queue: UUID | str | None = None,
        srmp_envelope: str | None = None,
        body_text: str | None = None,
        transaction: TransactionHeader | Mapping[str, Any] | None = None,
        security: SecurityHeader | Mapping[str, Any] | None = None,
        compound: CompoundMessageHeader | Mapping[str, Any] | None = None,
        soap: SoapHeader | Mapping[str, Any] | None = None,
        multi_queue: MultiQueueFormatHeader | Mapping[str, Any] | None = None,
        session: SessionHeader | Mapping[str, Any] | None = None,
    ) -> None: ...
    kind: Final[Literal['user_message', 'order_ack', 'final_ack']]
    """an application's message, or an OrderAck or FinalAck packet"""
    packet_size: Final[int]
    """PacketSize: bytes without the SessionHeader after them"""
    priority: Final[int]
    """BaseHeader.Flags.PR, 0 to 7"""
    debug_header: Final[bool]
    """BaseHeader.Flags.DH: whether there is a DebugHeader, with or without a queue"""
    tracing: Final[bool]
    """BaseHeader.Flags.TR"""
    base_flags: Final[int]
    """BaseHeader.Flags as received"""
    time_to_reach_queue: Final[int]
    """TimeToReachQueue in seconds; 4294967295 is for ever"""
    source_queue_manager: Final[UUID]
    """SourceQueueManager"""
    queue_manager_address: Final[UUID]
    """QueueManagerAddress: the destination's, zeros for a direct name"""
    time_to_be_received: Final[int]
    """TimeToBeReceived in seconds; 4294967295 is for ever"""
    sent_time: Final[datetime]
    """SentTime, to the second"""
    message_id: Final[int]
    """MessageID"""
    hop_count: Final[int]
    """UserHeader.Flags.RC"""
    delivery_mode: Final[Literal['express', 'recoverable'] | None]
    """UserHeader.Flags.DM; null if neither"""
    negative_source_journaling: Final[bool]
    """UserHeader.Flags.JN"""
    positive_source_journaling: Final[bool]
    """UserHeader.Flags.JP"""
    sent_over_http: Final[bool]
    """UserHeader.Flags.AH"""
    user_flags: Final[int]
    """UserHeader.Flags as received"""
    destination_queue: Final[FormatName | str | None]
    """DestinationQueue"""
    admin_queue: Final[FormatName | str | None]
    """AdminQueue: where acknowledgments go"""
    response_queue: Final[FormatName | str | None]
    """ResponseQueue: where answers go"""
    connector_type: Final[UUID | None]
    """ConnectorType"""
    transaction_flags: Final[int | None]
    """TransactionHeader.Flags as received"""
    positive_arrival_ack: Final[bool]
    """MessagePropertiesHeader.Flags.PA"""
    positive_receive_ack: Final[bool]
    """MessagePropertiesHeader.Flags.PR"""
    negative_arrival_ack: Final[bool]
    """MessagePropertiesHeader.Flags.NA"""
    negative_receive_ack: Final[bool]
    """MessagePropertiesHeader.Flags.NR"""
    properties_flags: Final[int]
    """MessagePropertiesHeader.Flags as received"""
    label: Final[str]
    """Label, to its first U+0000"""
    message_class: Final[int]
    """MessageClass"""
    message_class_name: Final[str | None]
    """MessageClass by name, without MQMSG_CLASS_; null if it has none"""
    correlation_guid: Final[UUID]
    """CorrelationID, the first 16 bytes: of an acknowledgment the source"""
    correlation_ordinal: Final[int]
    """CorrelationID, the last 4 bytes: of an acknowledgment the MessageID"""
    body_type: Final[int]
    """BodyType, a VARTYPE"""
    body_type_name: Final[str | None]
    """BodyType by name; null if it has none"""
    application_tag: Final[int]
    """ApplicationTag"""
    message_size: Final[int]
    """MessageSize, the bytes of the body"""
    allocation_body_size: Final[int]
    """AllocationBodySize"""
    privacy_level: Final[int]
    """PrivacyLevel: 0 none, 1 40-bit, 3 128-bit, 5 AES"""
    hash_algorithm: Final[int]
    """HashAlgorithm"""
    encryption_algorithm: Final[int]
    """EncryptionAlgorithm"""
    extension_data: Final[memoryview]
    """ExtensionData"""
    extension_format: Final[str]
    """kind of ExtensionData, by its bytes"""
    extension_text: Final[str | None]
    """ExtensionData as text, such as headers of NServiceBus and Rebus; null if it is empty or binary"""
    body: Final[memoryview]
    """MessageBody"""
    body_format: Final[str]
    """kind of the body, by BodyType and its bytes"""
    body_text: Final[str | None]
    """the body as text, compound_body where MessageBody is empty; null if it is encrypted or binary"""
    debug_queue: Final[UUID | None]
    """DebugHeader.QueueIdentifier: the queue for reports"""
    srmp_envelope: Final[str | None]
    """SRMPEnvelopeHeader.Data, to its first U+0000"""
    notification: Final[Literal['plain', 'encrypted'] | None]
    """to the notify queue: whether its body, a change notification, can be read"""
    trailing: Final[memoryview | None]
    """bytes that belong to no known header"""
    transaction: Final[TransactionHeader | None]
    security: Final[SecurityHeader | None]
    compound: Final[CompoundMessageHeader | None]
    soap: Final[SoapHeader | None]
    multi_queue: Final[MultiQueueFormatHeader | None]
    session: Final[SessionHeader | None]
    sent_time_seconds: Final[int]
    """SentTime, the seconds since 1970"""
    acknowledged: Final[Acknowledgment | None]

class SessionPacket(MessagePacket):
    """The base class of the packets of sessions."""

    kind: Final[Literal['ping', 'establish_connection', 'connection_parameters', 'session_ack']]
    """which packet"""
    packet_size: Final[int | None]
    """PacketSize; null for a ping"""
    base_flags: Final[int | None]
    """BaseHeader.Flags as received"""
    internal_flags: Final[int | None]
    """InternalHeader.Flags as received"""
    trailing: Final[memoryview | None]
    """bytes that belong to no known field"""

class Ping(SessionPacket):
    """The datagram that asks whether a session would be accepted, and the answer to it: [MS-MQQB] 2.2.7."""

    def __init__(
        self,
        *,
        cookie: int,
        queue_manager: UUID | str,
        initiator_is_client: bool = False,
        refused: bool = False,
    ) -> None: ...
    cookie: Final[int]
    """ping: Cookie, which the answer repeats"""
    queue_manager: Final[UUID]
    """ping: QMGuid"""
    initiator_is_client: Final[bool]
    """ping: Flags.RC, the initiator is not a server"""
    refused: Final[bool]
    """ping: Flags.RF; else InternalHeader.Flags.CS"""

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
        client_guid: UUID | str,
        server_guid: UUID | str = ...,
        time_stamp: int = 0,
        operating_system: int = 784,
        refused: bool = False,
    ) -> None: ...
    refused: Final[bool]
    """ping: Flags.RF; else InternalHeader.Flags.CS"""
    client_guid: Final[UUID]
    """connection: ClientGuid"""
    server_guid: Final[UUID]
    """connection: ServerGuid, zeros for a direct name"""
    time_stamp: Final[int]
    """connection: TimeStamp in milliseconds"""
    operating_system: Final[int]
    """connection: OperatingSystem"""

class ConnectionParameters(SessionPacket):
    """Timeouts in milliseconds and the window of a session in messages: [MS-MQQB] 2.2.2.

    Examples
    --------
    >>> parameters = ConnectionParameters(recoverable_ack_timeout=1496, ack_timeout=120000, window_size=64)
    >>> len(encode(parameters))
    32
    """

    def __init__(
        self,
        *,
        recoverable_ack_timeout: int,
        ack_timeout: int,
        window_size: int,
        refused: bool = False,
    ) -> None: ...
    refused: Final[bool]
    """ping: Flags.RF; else InternalHeader.Flags.CS"""
    recoverable_ack_timeout: Final[int]
    """parameters: RecoverableAckTimeout in milliseconds"""
    ack_timeout: Final[int]
    """parameters: AckTimeout in milliseconds"""
    window_size: Final[int]
    """parameters and acknowledgment: WindowSize in messages"""

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
    refused: Final[bool]
    """ping: Flags.RF; else InternalHeader.Flags.CS"""
    window_size: Final[int]
    """parameters and acknowledgment: WindowSize in messages"""
    ack_sequence_number: Final[int]
    """acknowledgment: AckSequenceNumber"""
    recoverable_msg_ack_seq_number: Final[int]
    """acknowledgment: RecoverableMsgAckSeqNumber"""
    recoverable_msg_ack_flags: Final[int]
    """acknowledgment: RecoverableMsgAckFlags"""
    user_msg_sequence_number: Final[int]
    """acknowledgment: UserMsgSequenceNumber"""
    recoverable_msg_seq_number: Final[int]
    """acknowledgment: RecoverableMsgSeqNumber"""

def decode(data: Buffer, *, strict: bool = False, transport: TransportName = "unknown") -> (
    UserMessage | EstablishConnection | ConnectionParameters | SessionAck | Ping
):
    """Decode one message packet: [MS-MQMQ] 2.2.20, [MS-MQQB] 2.2.

    Parameters
    ----------
    data : bytes-like
        One packet, with the SessionHeader that follows it if there is one. It is viewed
        where it is ``bytes``, else copied.
    strict : bool
        Fault for what a conforming receiver refuses, instead of noting a violation.
    transport : {"unknown", "udp", "tcp"}
        The transport of the packet: pings come over UDP, all others over TCP. If it is unknown the signature decides.

    Raises
    ------
    DecodeError
        With code, field and offset of the first fault.

    Examples
    --------
    >>> decode(bytes.fromhex("10cd1b004c494f5224000000ffffffff0000010001000000000000000000000040000000"))
    SessionAck(ack_sequence_number=1, recoverable_msg_ack_seq_number=0, recoverable_msg_ack_flags=0, user_msg_sequence_number=0, recoverable_msg_seq_number=0, window_size=64, refused=False)
    >>> decode(b"\\x10\\0\\0\\0LIOR")
    Traceback (most recent call last):
    msmqwire.errors.DecodeError: truncated: BaseHeader at byte 0: needs 16 bytes, 8 left
    """

def encode(packet: MessagePacket) -> bytes:
    """Write one packet; ``decode(encode(packet), strict=True) == packet``.

    Reserved bits and padding are zeros, and a packet is a multiple of four bytes long. Of the violations it accepts
    ``unresolved_queue``: a receiver cannot answer to such a response queue. A receiver judges a message by more than
    its bytes: it discards one that is a duplicate, too old, for a queue that it does not have, or not the next of its
    transactional sequence ([MS-MQQB] 3.1.5.8).

    Raises
    ------
    EncodeError
        The packet was decoded with violations, which no conforming sender produces.
    """

def packet_extent(start: bytes) -> int:
    """The size of the packet that begins with these bytes, its SessionHeader included; 16 for a part of a BaseHeader.

    Raises
    ------
    DecodeError
        As soon as the bytes show that no packet begins here.
    """
