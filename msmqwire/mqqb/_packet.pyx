"""Message packets one at a time: [MS-MQMQ] 2.2.20, [MS-MQQB] 2.2. Readers and writers are in
``message/_kernel.pxd`` and ``session/_kernel.pxd``.

A packet is a value over the bytes it was decoded from. Its attributes have the names of the columns and are loaded on
access, through the layout that makes the columns.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from inspect import Parameter, Signature

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject_GenericGetAttr
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.columns._packet cimport WirePacket
from msmqwire.columns._payloads cimport hold_payload
from msmqwire.mqqb._kernel cimport HAS_ACKNOWLEDGED, KIND, Packet, blank_sections, clear_packet, read_base_header
from msmqwire.mqqb.framing cimport BASE_HEADER_SIZE, FLAG_INTERNAL, NOT_A_PACKET, frame_packet
from msmqwire.mqqb.message._kernel cimport read_message
from msmqwire.mqqb.session._kernel cimport is_ping, read_session
from msmqwire.mqqb._values cimport (
    Builder, encodable_view, format_name_of, packed_session, queues_of, rewritten_message, value_of
)
from msmqwire.wire._fault cimport Fault, decode_error
from msmqwire.wire._transport cimport Transport, accepted_transports, transport_code

from msmqwire.errors import DecodeError, EncodeError, meant, similar
from msmqwire.mqqb.groups import GROUP_FIELDS, GROUPS, MESSAGE_DEFAULTS, NAMED, SESSION_DEFAULTS, Acknowledgment
from msmqwire.mqqb.message._bodies import write_body
from msmqwire.mqqb.message.schema import NIL
from msmqwire.mqqb.rules import SessionViolation, Violation, refusal
from msmqwire.mqqb.schema import FIELDS, MESSAGES, SESSIONS, TRANSPORTS
from msmqwire.mqqb.session.schema import SESSION_KINDS
from msmqwire.properties.vartype import VT_LPWSTR

cdef dict ACCEPTED = accepted_transports(TRANSPORTS)
AES = 5    # PrivacyLevel
cdef tuple QUEUES = ("destination_queue", "admin_queue", "response_queue")
cdef tuple LISTS = ("destination_queues", "admin_queues", "response_queues")

cdef set REQUIRED = {
    field.name for group in GROUPS.values() for field in fields(group)
    if field.default is MISSING and field.default_factory is MISSING
}

cdef dict GROUP_BITS = {name: MESSAGES.presence_bits[f"HAS_{name.upper()}"] for name in GROUPS}

# The columns that are attributes of a packet, but for those in optional headers
READABLE = frozenset(["sent_time_seconds", *[
    column.name for column in MESSAGES.columns
    if not any([column.name in GROUP_FIELDS[group] or hasattr(group, column.name) for group in GROUP_FIELDS])
]])
cdef set SESSION_KEYWORDS = {name for defaults in SESSION_DEFAULTS.values() for name in defaults}
SESSION_READABLE = tuple([column.name for column in SESSIONS.columns if column.name not in SESSION_KEYWORDS])


cdef object keywords(dict defaults):
    """The signature of a class that takes these keywords; one whose default is ``...`` is required."""
    return Signature([
        Parameter(name, Parameter.KEYWORD_ONLY, default=Parameter.empty if default is ... else default)
        for name, default in defaults.items()
    ])


cdef Builder default_message():
    """A message of which only the defaults that do not follow from others are given."""
    cdef Builder builder = Builder()
    for name, value in MESSAGE_DEFAULTS.items():
        if name not in QUEUES and value is not None:
            builder.put(name, value)
    return builder


cdef Builder DEFAULT_MESSAGE = default_message()


cdef enum:
    RESERVED_SECURITY_FLAGS = 0xF000


cdef class MessagePacket(WirePacket):
    """The base class of all packets.

    A packet compares, hashes, prints and pickles as a value; reserved bytes and padding are not part of it. It keeps
    the bytes it was decoded from alive.
    """

    cdef object owner            # keeps the bytes alive
    cdef const uint8_t* data
    cdef Packet header

    def __cinit__(self, *args, **kwargs):
        self.owner = b""
        self.data = <const uint8_t*>PyBytes_AS_STRING(self.owner)
        blank_sections(&self.header)

    __signature__ = keywords({})

    def __init__(self):
        raise TypeError("decode() makes packets; to write one, build one of the packets of msmqwire.mqqb")

    @property
    def violations(self):
        """Names of the rules that the packet breaks; empty for a conforming one."""
        if not self.header.violations:
            return ()
        flags = Violation if isinstance(self, UserMessage) else SessionViolation
        return tuple([flag.name.lower() for flag in flags if self.header.violations & <uint32_t>flag])

    cdef bytes canonical(self):
        """Return the packet without reserved bytes and padding, which are no part of its value."""
        if isinstance(self, UserMessage):
            return rewritten_message(&self.header, self.data)
        return packed_session(&self.header)

    cdef tuple value(self):
        """What a packet is compared by: its violations and its fields, however these are written."""
        cdef list parts = [self.header.violations]
        for name, part in self._parts():
            if name == "security":
                part = replace(part, security_flags=part.security_flags & ~<int>RESERVED_SECURITY_FLAGS)
            parts.append((name, part))
        return tuple(parts)

    def __eq__(self, other):
        if not isinstance(other, MessagePacket):
            return NotImplemented
        return type(self) is type(other) and self.value() == (<MessagePacket>other).value()

    def __hash__(self):
        return hash((type(self), self.value()))

    def __repr__(self):
        shown = ", ".join([f"{name}={value!r}" for name, value in self._parts()])
        return f"{type(self).__name__}({shown})"

    def __reduce__(self):
        return restore, (bytes(self.owner), self.transport())

    cdef str transport(self):
        return "udp" if isinstance(self, Ping) else "tcp"

    cdef tuple payload(self):
        return bytes(self.owner), {} if isinstance(self, UserMessage) else {"transport": self.transport()}

    cdef str layout(self):
        return "ping" if isinstance(self, Ping) else self.table.name

    def __dir__(self):
        return [*object.__dir__(self), *self._readable()]


cdef class UserMessage(MessagePacket):
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

    cdef dict groups

    __signature__ = keywords({**MESSAGE_DEFAULTS, "body_text": None, **dict.fromkeys(GROUPS)})
    table = MESSAGES

    def __init__(self, **values):
        cdef Builder builder = Builder()
        groups = {name: header_of(name, values.pop(name, None)) for name in GROUPS}
        text = values.pop("body_text", None)
        if not MESSAGE_DEFAULTS.keys() >= values.keys():
            unknown = values.keys() - MESSAGE_DEFAULTS.keys()
            like = meant(similar(min(unknown), [*MESSAGE_DEFAULTS, *GROUPS, "body_text"]))
            raise TypeError(f"UserMessage has no {', '.join(map(repr, sorted(unknown)))}{like}")
        values = {name: value for name, value in values.items() if value is not None}
        for name, numbers in NAMED.items():
            if isinstance(values.get(name), str):
                if values[name] not in numbers:
                    raise EncodeError(name, f"{values[name]!r} is not the name of one, such as {next(iter(numbers))!r}")
                values[name] = numbers[values[name]]
        if text is not None:
            if "body" in values:
                raise EncodeError("body_text", "give body or body_text, not both")
            values.setdefault("body_type", VT_LPWSTR)
            values["body"] = write_body(text, values["body_type"])
        for name in QUEUES:
            if name in values:
                values[name] = format_name_of(values[name], name)
        builder.begin_like(DEFAULT_MESSAGE)
        values = {**derived_defaults(values, groups), **values}
        for name, value in values.items():
            if name not in QUEUES and value is not MESSAGE_DEFAULTS[name]:
                builder.put(name, value)
        builder.put_queues(values.get("destination_queue"), values.get("admin_queue"), values.get("response_queue"))
        for name, group in groups.items():
            if group is not None:
                put_group(builder, name, group)
        attach(self, builder.packed())

    def replace(self, **changes):
        """Return a copy with other values; see ``WirePacket.replace``. A new ``body_text`` replaces ``body``."""
        if changes.get("body_text") is not None:
            changes.setdefault("body", None)
        return MessagePacket.replace(self, **changes)

    def __getattribute__(self, str name):
        # Not in __getattr__, which Python calls after it has made an AttributeError
        if name in READABLE:
            return value_of(&self.header, self.owner, self.data, name, False)
        if name in GROUPS:
            return self.group(name) if self.header.presence & <uint32_t>GROUP_BITS[name] else None
        return PyObject_GenericGetAttr(self, name)

    def __getattr__(self, str name):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    cdef object group(self, str name):
        """An optional header that the packet has; its value cannot change, and takes long to make."""
        if self.groups is None:
            self.groups = {}
        if name not in self.groups:
            self.groups[name] = group_of(self, GROUPS[name])
        return self.groups[name]

    @property
    def acknowledged(self):
        """What an OrderAck or FinalAck packet acknowledges; None for other messages."""
        return group_of(self, Acknowledgment) if self.header.presence & HAS_ACKNOWLEDGED else None

    def _readable(self):
        return [*READABLE, *GROUPS]

    def _parts(self):
        """The keywords that build it: the values that differ from their defaults."""
        groups = {name: getattr(self, name) for name in GROUPS}
        given = {
            "body": self.body or b"", "destination_queue": self.destination_queue, "tracing": self.tracing,
            "debug_queue": self.debug_queue,
            "privacy_level": self.privacy_level, "srmp_envelope": self.srmp_envelope,
        }
        defaults = {**MESSAGE_DEFAULTS, **derived_defaults(given, groups)}
        for name, default in defaults.items():
            value = getattr(self, name)
            value = bytes(value) if isinstance(value, memoryview) else value
            if (self.sent_time_seconds if name == "sent_time" else value) != default:
                yield name, value
        for name, group in groups.items():
            if group is not None:
                yield name, group


cdef dict derived_defaults(dict values, dict groups):
    """Return the defaults of a message that follow from its other values."""
    destination = values.get("destination_queue")
    return {
        "debug_header": bool(values.get("tracing")) or values.get("debug_queue") is not None,
        "priority": 0 if groups["transaction"] is not None else 3,
        "delivery_mode": "recoverable" if groups["transaction"] is not None else "express",
        "queue_manager_address": destination.guid if getattr(destination, "kind", "") == "private" else NIL,
        "encryption_algorithm": 0x6610 if values.get("privacy_level") == AES else 0x6801,
        "allocation_body_size": encodable_view("body", values.get("body", b"")).nbytes,
        "sent_over_http": groups["compound"] is not None or values.get("srmp_envelope") is not None,
    }


cdef object header_of(str name, object given):
    """An optional header, given as one or as a mapping of its fields."""
    if given is None or isinstance(given, GROUPS[name]) or not isinstance(given, Mapping):
        return given
    kind = GROUPS[name]
    if unknown := given.keys() - {*GROUP_FIELDS[kind]}:
        raise TypeError(f"{kind.__name__} has no {', '.join(map(repr, sorted(unknown)))}")
    if missing := {field for field in GROUP_FIELDS[kind] if field in REQUIRED} - given.keys():
        raise TypeError(f"{kind.__name__} needs {', '.join(sorted(missing))}")
    return kind(**given)


cdef object group_of(UserMessage message, object group):
    """An optional header as a value."""
    cdef dict values = {}
    for name in GROUP_FIELDS[group]:
        if name in LISTS:
            values[name] = queues_of(&message.header, message.data, <size_t>LISTS.index(name))
        else:
            value = value_of(&message.header, message.owner, message.data, name, False)
            values[name] = bytes(value) if isinstance(value, memoryview) else value
    return group(**values)


cdef int put_group(Builder builder, str name, object group) except -1:
    kind = GROUPS[name]
    if not isinstance(group, kind):
        raise EncodeError(name, f"must be a {kind.__name__} or a mapping of its fields, not {type(group).__name__}")
    builder.draft.packet.presence |= <uint32_t>GROUP_BITS[name]
    for field in GROUP_FIELDS[kind]:
        value = getattr(group, field)
        if field in LISTS:
            builder.put_list(<size_t>LISTS.index(field), value)
        elif value is not None:
            builder.put(field, value)
        elif field in REQUIRED:
            raise EncodeError(field, f"is required in a {kind.__name__}")
    return 0


cdef class SessionPacket(MessagePacket):
    """The base class of the packets of sessions."""

    table = SESSIONS

    def __init__(self, **values):
        cdef Builder builder = Builder(session=True)
        cdef str kind = kind_of(type(self))
        cdef dict defaults = SESSION_DEFAULTS[kind]
        unknown = values.keys() - defaults.keys()
        missing = [name for name, default in defaults.items() if default is ... and name not in values]
        if unknown or missing:
            wrong = f"needs {', '.join(missing)}"
            if unknown:
                wrong = f"has no {', '.join(sorted(unknown))}{meant(similar(min(unknown), defaults))}"
            raise TypeError(f"{type(self).__name__} {wrong}")
        builder.put("kind", kind)
        for name, value in {**defaults, **values}.items():
            builder.put(name, value)
        attach(self, builder.packed())

    def __getattr__(self, str name):
        if name in SESSION_READABLE or name in SESSION_DEFAULTS[kind_of(type(self))]:
            return value_of(&self.header, self.owner, self.data, name, True)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _readable(self):
        return [*SESSION_READABLE, *SESSION_DEFAULTS[kind_of(type(self))]]

    def _parts(self):
        for name in SESSION_DEFAULTS[kind_of(type(self))]:
            yield name, getattr(self, name)


cdef class EstablishConnection(SessionPacket):
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

    __signature__ = keywords(SESSION_DEFAULTS["establish_connection"])


cdef class ConnectionParameters(SessionPacket):
    """Timeouts in milliseconds and the window of a session in messages: [MS-MQQB] 2.2.2.

    Examples
    --------
    >>> parameters = ConnectionParameters(recoverable_ack_timeout=1496, ack_timeout=120000, window_size=64)
    >>> len(encode(parameters))
    32
    """

    __signature__ = keywords(SESSION_DEFAULTS["connection_parameters"])


cdef class SessionAck(SessionPacket):
    """What has arrived in a session: [MS-MQQB] 2.2.6."""

    __signature__ = keywords(SESSION_DEFAULTS["session_ack"])


cdef class Ping(SessionPacket):
    """The datagram that asks whether a session would be accepted, and the answer to it: [MS-MQQB] 2.2.7."""

    __signature__ = keywords(SESSION_DEFAULTS["ping"])


cdef dict SESSION_CLASSES = dict(zip(SESSION_DEFAULTS, (Ping, EstablishConnection, ConnectionParameters, SessionAck)))


cdef str kind_of(type class_):
    for kind, known in SESSION_CLASSES.items():
        if known is class_:
            return kind


# --- decode and encode ---


cdef int read_packet(MessagePacket packet, size_t size, uint32_t transport, bint strict) except -1:
    """Read the bytes that the packet holds."""
    cdef Fault fault
    cdef int status
    if isinstance(packet, UserMessage):
        status = read_message(packet.data, size, strict, NULL, &packet.header, &fault)
    else:
        status = read_session(packet.data, size, transport, strict, &packet.header, &fault)
    if status != 0:
        raise decode_error(&fault, FIELDS)
    return 0


cdef int attach(MessagePacket packet, bytes data) except -1:
    """Give a packet under construction the bytes just written for it; refuse one that breaks a rule."""
    cdef uint32_t transport = Transport.UDP if isinstance(packet, Ping) else Transport.TCP
    packet.owner = data
    packet.data = <const uint8_t*>PyBytes_AS_STRING(data)
    try:
        read_packet(packet, <size_t>len(data), transport, False)
    except DecodeError as error:
        clear_packet(&packet.header)
        raise EncodeError(error.field, f"{error.code}: {error.detail}") from None
    return refuse_violations(packet)


cdef int refuse_violations(MessagePacket packet) except -1:
    for name in packet.violations:
        if name != "unresolved_queue":
            raise refusal(name)
    return 0


def decode(data, *, bint strict=False, str transport="unknown"):
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
    SessionAck(ack_sequence_number=1, recoverable_msg_ack_seq_number=0, recoverable_msg_ack_flags=0, \
user_msg_sequence_number=0, recoverable_msg_seq_number=0, window_size=64, refused=False)
    >>> decode(b"\\x10\\0\\0\\0LIOR")
    Traceback (most recent call last):
    msmqwire.errors.DecodeError: truncated: BaseHeader at byte 0: needs 16 bytes, 8 left
    """
    cdef MessagePacket packet
    cdef const uint8_t* start
    cdef size_t size
    cdef uint32_t code = transport_code(transport, ACCEPTED)
    cdef type class_
    owner = hold_payload(data, FIELDS, &start, &size)
    class_ = UserMessage
    if is_ping(start, size, code):
        class_ = Ping
    elif size > 2 and start[2] & FLAG_INTERNAL:
        class_ = EstablishConnection
    packet = class_.__new__(class_)
    packet.owner = owner
    packet.data = start
    read_packet(packet, size, code, strict)
    if class_ is EstablishConnection:
        packet = of_its_kind(packet)
    return packet


cdef MessagePacket of_its_kind(MessagePacket read):
    """Return a packet with InternalHeader; its class follows from its type."""
    cdef type class_ = SESSION_CLASSES[SESSION_KINDS[read.header.codes[KIND]]]
    cdef MessagePacket packet
    if class_ is EstablishConnection:
        return read
    packet = class_.__new__(class_)
    packet.owner = read.owner
    packet.data = read.data
    packet.header = read.header
    return packet


def restore(bytes data, str transport):
    """Unpickle a packet; its bytes alone do not say whether it is a ping."""
    return decode(data, transport=transport)


def packet_extent(bytes start not None):
    """The size of the packet that begins with these bytes, its SessionHeader included; 16 for a part of a BaseHeader.

    Raises
    ------
    DecodeError
        As soon as the bytes show that no packet begins here.
    """
    cdef uint8_t[BASE_HEADER_SIZE] header
    cdef size_t size = min(<size_t>len(start), <size_t>BASE_HEADER_SIZE)
    cdef size_t total = 0
    cdef Packet packet
    cdef Fault fault
    memset(header, 0, sizeof(header))
    memcpy(header, PyBytes_AS_STRING(start), size)
    if frame_packet(header, size, &total) == NOT_A_PACKET:
        read_base_header(header, BASE_HEADER_SIZE, 0, &packet, &fault)
        raise decode_error(&fault, FIELDS)
    return total


def encode(MessagePacket packet not None):
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
    if packet.header.extent == 0:
        raise EncodeError("PacketSize", "the packet was never built")
    refuse_violations(packet)
    return packet.canonical()
