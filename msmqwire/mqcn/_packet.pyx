"""MS-MQCN messages one at a time: [MS-MQCN] 2.2.4-2.2.6. The layout is in _kernel.pxd."""

from collections.abc import Mapping
from inspect import signature

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from msmqwire.columns._packet cimport WirePacket
from msmqwire.columns._payloads cimport hold_payload
from msmqwire.mqcn._kernel cimport (
    COUNT_AT, DISCARDABLE, HEADER_SIZE, IDS_AT, MAX_NAME_UNITS, MAX_PROPERTIES, MAX_UPDATES, NEVER_WRITTEN, NO_COLUMNS,
    NO_UPDATES, PATH_NAME_SYNTAX, PROPERTY_COUNT, RESERVED_AT, SMALLEST_UPDATE, TRAILING_BYTES, USE_GUID, Body, Update,
    is_path_name, largest_body, no_update, read_body, read_header, read_update, violation_fault, write_body,
    write_update_head,
)
from msmqwire.properties._lookup cimport KIND_NONE, property_kind
from msmqwire.propvariant._codec cimport decode_value, encode_value, value_size
from msmqwire.wire.cursor cimport load_u32
from msmqwire.wire._fault cimport Fault, decode_error
from msmqwire.wire._guid cimport GUID_SIZE, guid_from_bytes, guid_to_bytes

from msmqwire.errors import EncodeError
from msmqwire.mqcn.property_sets import describe
from msmqwire.mqcn.schema import FIELDS, NOTIFICATIONS, OBJECTS, OPERATIONS, Violation
from msmqwire.mqcn.values import NotificationBody, PropertyValue
from msmqwire.properties.table import by_name

if False:  # for type checkers: see stubs.py
    import builtins
    from collections.abc import Iterable
    from typing import Any, Literal
    from uuid import UUID

    from typing_extensions import Buffer

    from msmqwire.mqcn.values import Object, Operation


cdef tuple violation_names(uint32_t violations):
    return tuple(flag.name.lower() for flag in Violation if violations & <uint32_t>flag)


# The bytes of an update before __init__, which need not be called
cdef bytes NO_UPDATE = bytes(SMALLEST_UPDATE)


cdef class NotificationUpdate(WirePacket):
    """One change to one object: [MS-MQCN] 2.2.6.

    An update compares, hashes, prints and pickles as a value, without its Reserved bytes.

    Parameters
    ----------
    command : {"create", "change", "delete"}
    guid_master_id : uuid.UUID or its text
        The directory server that made the change.
    properties : mapping, or iterable of pairs
        PROPIDs or their names, with their values, at most 255.
    path_name : str, optional
        The queue, as a QueuePathName. Give either this or ``guid_identifier``.
    guid_identifier : uuid.UUID or its text, optional
        The object.

    Raises
    ------
    EncodeError
        A value that the field or the type of the PROPID cannot hold.

    Examples
    --------
    >>> update = NotificationUpdate(
    ...     command="change",
    ...     guid_identifier="00000000-0000-0000-0000-000000000001",
    ...     guid_master_id="00000000-0000-0000-0000-000000000002",
    ...     properties={"PROPID_Q_QMID": "00000000-0000-0000-0000-000000000003", "PROPID_Q_QUOTA": 1024},
    ... )
    >>> update.object, update.properties[1], update.violations
    ('queue', PropertyValue(id=105, value=1024), ())
    """

    __signature__ = signature(
        lambda *, command, guid_master_id, properties=(), path_name=None, guid_identifier=None: None
    )
    table = NOTIFICATIONS
    cdef object owner          # keeps the bytes alive; its buffer begins at ``start``
    cdef const uint8_t* start
    cdef const uint8_t* data   # of this update
    cdef size_t size
    cdef Update header

    def __cinit__(self, *args, **kwargs):
        attach_update(self, NO_UPDATE)

    def __init__(
        self, *, command: Operation, guid_master_id: UUID | str,
        properties: Mapping[Any, Any] | Iterable[PropertyValue | tuple[int | str, Any]] = (),
        path_name: str | None = None, guid_identifier: UUID | str | None = None
    ) -> None:
        attach_update(self, packed_update(command, guid_master_id, properties, path_name, guid_identifier))

    @property
    def command(self) -> Operation:
        """Command: ``"create"``, ``"change"`` or ``"delete"``."""
        return OPERATIONS[self.header.command]

    @property
    def use_guid(self) -> bool:
        """UseGuid: whether ``guid_identifier`` and not ``path_name`` names the object."""
        return self.header.use_guid != 0

    @property
    def path_name(self) -> str | None:
        """PathName; lone surrogates stay lone surrogates."""
        if self.header.use_guid:
            return None
        path = self.data[self.header.identifier_at:self.header.identifier_at + self.header.identifier_size - 2]
        return path.decode("utf-16-le", "surrogatepass")

    @property
    def guid_identifier(self) -> UUID | None:
        """GuidIdentifier."""
        return guid_from_bytes(self.data + self.header.identifier_at) if self.header.use_guid else None

    @property
    def guid_master_id(self) -> UUID:
        """GuidMasterId: the directory server that made the change."""
        return guid_from_bytes(self.data + self.header.master_at)

    @property
    def reserved(self) -> bytes:
        """Reserved: 24 bytes, which receivers ignore."""
        cdef size_t at = self.header.master_at + RESERVED_AT
        return self.data[at:at + COUNT_AT - RESERVED_AT]

    @property
    def object(self) -> Object | None:
        """What is changed, ``"queue"`` or ``"machine"``: [MS-MQCN] 3.2.5.1. None where a receiver disregards it."""
        return OBJECTS[self.header.object - 1] if self.header.object else None

    @property
    def violations(self) -> tuple[str, ...]:
        """Names of the rules that the update breaks; empty for a conforming update."""
        return violation_names(self.header.violations)

    @property
    def properties(self) -> tuple[PropertyValue, ...]:
        """PropertyId and PropertyValue; blobs and vectors are views of the message's bytes."""
        cdef const uint8_t* ids = self.data + self.header.master_at + IDS_AT
        cdef size_t at = self.header.master_at + IDS_AT + 4 * self.header.property_count
        cdef list found = []
        cdef uint32_t k
        cdef uint32_t propid
        cdef uint8_t kind
        cdef size_t needed
        for k in range(self.header.property_count):
            propid = load_u32(ids + 4 * k)
            kind = property_kind(propid)
            needed = value_size(kind, self.data, self.size, at)
            found.append(
                PropertyValue(propid, decode_value(kind, self.data + at, needed, self.owner, self.start))
            )
            at += needed
        return tuple(found)

    cdef bytes canonical(self):
        """The bytes to write, with a Reserved of zeros."""
        cdef bytes packed = self.data[:self.size]
        cdef uint8_t* copy = <uint8_t*>PyBytes_AS_STRING(packed)
        memset(copy + self.header.master_at + RESERVED_AT, 0, COUNT_AT - RESERVED_AT)
        return packed

    def __eq__(self, other: builtins.object) -> bool:
        if not isinstance(other, NotificationUpdate):
            return NotImplemented
        return (
            self.header.violations == (<NotificationUpdate>other).header.violations
            and self.canonical() == (<NotificationUpdate>other).canonical()
        )

    def __hash__(self) -> int:
        return hash((self.header.violations, self.canonical()))

    def __repr__(self):
        identifier = f"path_name={self.path_name!r}"
        if self.header.use_guid:
            identifier = f"guid_identifier={self.guid_identifier!r}"
        properties = ", ".join(f"({one.id}, {shown(one.value)!r})" for one in self.properties)
        return (
            f"NotificationUpdate(command={self.command!r}, {identifier}, guid_master_id={self.guid_master_id!r}, "
            f"properties=[{properties}])"
        )

    def __reduce__(self):
        return restore_update, (self.data[:self.size], self.header.violations)

    cdef tuple payload(self):
        return b"\1\1" + self.data[:self.size], {}


cdef object shown(object value):
    """A value in a form that the constructor takes and that prints without numpy."""
    if not hasattr(value, "tobytes"):
        return value
    if value.ndim == 2:
        return [guid_from_bytes(row) for row in map(bytes, value)]
    return value.tobytes() if value.itemsize == 1 else value.tolist()


cdef int attach_update(NotificationUpdate update, bytes data) except -1:
    """Let an update under construction read ``data``."""
    cdef size_t at = 0
    cdef size_t properties = 0
    cdef Fault fault
    update.owner = data
    update.start = <const uint8_t*>PyBytes_AS_STRING(data)
    update.data = update.start
    update.size = <size_t>len(data)
    if read_update(update.data, update.size, &at, &NO_COLUMNS, &properties, False, &update.header, &fault) != 0:
        raise decode_error(&fault, FIELDS)
    return 0


def restore_update(bytes data, uint32_t violations):
    """Unpickle an update; its violations can depend on the bytes after it."""
    cdef NotificationUpdate update = NotificationUpdate.__new__(NotificationUpdate)
    attach_update(update, data)
    update.header.violations = violations
    return update


cdef class ChangeNotificationMessage(WirePacket):
    """A Change Notification Message: [MS-MQCN] 2.2.4.

    A message compares, hashes, prints and pickles as a value. It keeps the bytes it was decoded from alive.

    Parameters
    ----------
    version : {1, 2}
        1 from a directory service, with ``updates``; 2 from a queue manager, with a ``body``.
    updates : iterable of NotificationUpdate
        1 to 255 updates.
    body : NotificationBody, optional

    Raises
    ------
    EncodeError
        A value that its field cannot hold.

    Examples
    --------
    >>> from uuid import UUID
    >>> message = ChangeNotificationMessage(2, body=NotificationBody(2, UUID(int=1), "dc1"))
    >>> decode(encode(message)).body.operation
    'change'
    """

    __signature__ = signature(lambda version, updates=(), body=None: None)
    table = NOTIFICATIONS
    cdef object owner           # keeps the bytes alive
    cdef const uint8_t* data
    cdef size_t size            # of the message, without the bytes after it
    cdef uint32_t found         # violations
    cdef Body text
    cdef tuple parts            # its updates, after their first use

    def __cinit__(self, *args, **kwargs):
        attach_message(self, b"\1\0")

    def __init__(
        self, version: Literal[1, 2], updates: Iterable[NotificationUpdate] = (), body: NotificationBody | None = None
    ) -> None:
        if version == 1 and body is None:
            attach_message(self, packed_updates(tuple(updates)))
        elif version == 2 and body is not None and not tuple(updates):
            attach_message(self, packed_body(body))
        else:
            raise EncodeError("Version", f"{version!r}: version 1 needs updates, version 2 a body")

    @property
    def version(self) -> int:
        """Version: 1 or 2."""
        return self.data[0]

    @property
    def updates(self) -> tuple[NotificationUpdate, ...]:
        """The changes of a message of version 1; empty for version 2."""
        if self.parts is None:
            self.parts = updates_of(self)
        return self.parts

    @property
    def body(self) -> NotificationBody | None:
        """The change of a message of version 2; None for version 1."""
        if self.data[0] == 1:
            return None
        name = self.data[self.text.name_at:self.text.name_at + self.text.name_size].decode("utf-16-le")
        return NotificationBody(self.text.event, guid_from_bytes(self.text.guid), name)

    @property
    def violations(self) -> tuple[str, ...]:
        """Names of the rules that the message or a part of it breaks; empty for a conforming message."""
        return violation_names(self.found)

    cdef bytes canonical(self, bint closing_space):
        """The bytes to write."""
        cdef bytearray packed
        cdef size_t written
        if self.data[0] == 1:
            return self.data[:HEADER_SIZE] + b"".join([(<NotificationUpdate>one).canonical() for one in self.updates])
        packed = bytearray(HEADER_SIZE + largest_body(self.text.name_size))
        packed[:HEADER_SIZE] = b"\2\1"
        written = write_body(
            <uint8_t*>packed + HEADER_SIZE, self.text.event, self.text.guid, self.data + self.text.name_at,
            self.text.name_size, closing_space,
        )
        return bytes(packed[:HEADER_SIZE + written])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ChangeNotificationMessage):
            return NotImplemented
        return (
            self.found == (<ChangeNotificationMessage>other).found
            and self.canonical(True) == (<ChangeNotificationMessage>other).canonical(True)
        )

    def __hash__(self) -> int:
        return hash((self.found, self.canonical(True)))

    def __repr__(self):
        if self.data[0] == 1:
            return f"ChangeNotificationMessage(1, {list(self.updates)!r})"
        return f"ChangeNotificationMessage(2, body={self.body!r})"

    def __reduce__(self):
        return decode, (bytes(self.owner),)

    cdef tuple payload(self):
        return bytes(self.owner), {}

    def to_dict(self) -> dict[str, Any]:
        """Return ``version``, ``violations`` and ``changes``, a row of JSON for each change; needs pyarrow.

        The rows are those that ``msmqwire decode`` writes, without the columns of captures.
        """
        return {"version": self.version, "changes": self._rows(), "violations": [*self.violations]}


cdef tuple updates_of(ChangeNotificationMessage message):
    cdef list parts = []
    cdef NotificationUpdate update
    cdef size_t at = HEADER_SIZE
    cdef size_t start
    cdef size_t properties
    cdef Fault fault
    if message.data[0] == 2:
        return ()
    for _ in range(message.data[1]):
        update = NotificationUpdate.__new__(NotificationUpdate)
        update.owner = message.owner
        update.start = message.data
        update.data = message.data + at
        start = 0
        properties = 0
        read_update(
            update.data, message.size - at, &start, &NO_COLUMNS, &properties, False, &update.header, &fault
        )
        update.size = start
        at += start
        parts.append(update)
    if parts and message.found & TRAILING_BYTES:
        update = parts[len(parts) - 1]
        update.header.violations |= TRAILING_BYTES
    return tuple(parts)


cdef int read_message(
    const uint8_t* data, size_t size, bint strict, ChangeNotificationMessage message, Fault* fault
) noexcept:
    """Check a complete message and let ``message`` show it. 0, or -1 with ``fault`` set."""
    cdef Update update = no_update()
    cdef size_t at = HEADER_SIZE
    cdef size_t properties = 0
    cdef uint32_t found = 0
    if read_header(data, size, fault) != 0:
        return -1
    if data[0] == 2:
        if read_body(data, size, &message.text, fault) != 0:
            return -1
        found = message.text.violations
        at = message.text.end
    else:
        for _ in range(data[1]):
            if read_update(data, size, &at, &NO_COLUMNS, &properties, False, &update, fault) != 0:
                return -1
            found |= update.violations
        if data[1] == 0:
            found = NO_UPDATES
        if size - at > 1:
            found |= TRAILING_BYTES
    if strict and found & DISCARDABLE:
        return violation_fault(data, size, fault)
    message.data = data
    message.size = at
    message.found = found
    message.parts = None
    return 0


cdef int attach_message(ChangeNotificationMessage message, bytes data) except -1:
    """Let a message under construction read ``data``."""
    cdef Fault fault
    message.owner = data
    if read_message(<const uint8_t*>PyBytes_AS_STRING(data), <size_t>len(data), False, message, &fault) != 0:
        raise decode_error(&fault, FIELDS)
    return 0


def decode(data: Buffer, *, bint strict=False) -> ChangeNotificationMessage:
    """Decode one Change Notification Message, with or without the unused byte after it: [MS-MQCN] 2.2.4, 3.3.5.3.

    Parameters
    ----------
    data : bytes-like
        The body of an MSMQ message. Viewed where it is ``bytes``, else copied.
    strict : bool
        Raise for what a conforming receiver disregards, instead of noting a violation.

    Raises
    ------
    DecodeError
        With code, field and offset of the first fault.

    Examples
    --------
    >>> message = decode(bytes.fromhex(
    ...     "0101020133221100554477668899aabbccddeeff11ea26c6b6e6499795959150557358d1"
    ...     "000000000000000000000000000000000000000000000000027b0500007c0500000101"
    ... ))
    >>> message.updates[0].command, message.updates[0].object, message.updates[0].guid_identifier
    ('delete', 'queue', UUID('00112233-4455-6677-8899-aabbccddeeff'))
    >>> decode(b"\\1\\1\\3")
    Traceback (most recent call last):
    msmqwire.errors.DecodeError: bad_command: Command at byte 2: is 0x3
    """
    cdef ChangeNotificationMessage message = ChangeNotificationMessage.__new__(ChangeNotificationMessage)
    cdef Fault fault
    cdef const uint8_t* start
    cdef size_t size
    owner = hold_payload(data, FIELDS, &start, &size)
    if read_message(start, size, strict, message, &fault) != 0:
        raise decode_error(&fault, FIELDS)
    message.owner = owner
    return message


def encode(ChangeNotificationMessage message not None, *, bint closing_space=True, bint enforce=True) -> bytes:
    """Encode one message; ``decode(encode(message), strict=True) == message``.

    With ``enforce=False`` it also writes what a conforming receiver ignores or reads in part: other PROPIDs than those
    of the command (``property_set``), and a PROPID twice, of which the first counts (``duplicate_property``). Whether a
    receiver applies a change at all depends on its sender and on the objects that it knows ([MS-MQCN] 3.2.5).

    Parameters
    ----------
    closing_space : bool
        Close ObjectGuid of a body with a space, as its grammar says.
    enforce : bool
        Refuse updates without the PROPIDs of their command ([MS-MQCN] 3.3.5.2).

    Raises
    ------
    EncodeError
        The message has violations, so no conforming sender produces it.
    """
    cdef uint32_t refused = message.found if enforce else message.found & NEVER_WRITTEN
    if refused:
        names = describe(violation_names(refused), enumerate(message.updates))
        raise EncodeError(violated_field(refused), f"the message has {names}")
    return message.canonical(closing_space)


def encode_body(message: ChangeNotificationMessage, *, bint closing_space=True, bint enforce=True) -> bytes:
    """Encode one message as the body of an MSMQ message: followed by the unused byte of [MS-MQCN] 3.3.5.3."""
    return encode(message, closing_space=closing_space, enforce=enforce) + b"\0"


def violated_field(uint32_t violations):
    """The field that an encoder names for the first of these violations."""
    if violations & NO_UPDATES:
        return "NumberOfUpdateNotifications"
    if violations & PATH_NAME_SYNTAX:
        return "PathName"
    if violations & TRAILING_BYTES:
        return "Data"
    if violations & PROPERTY_COUNT:
        return "NumberOfProperties"
    return "UseGuid" if violations & USE_GUID else "PropertyId"


# --- From values to bytes ---


cdef bytes packed_update(object command, object guid_master_id, object properties, object path_name, object guid):
    cdef uint8_t[16] master
    cdef uint8_t[16] identifier
    cdef bytes path = b""
    cdef list ids = []
    cdef list values = []
    cdef bytearray head
    cdef size_t size
    cdef uint32_t propid
    if command not in OPERATIONS:
        raise EncodeError("Command", f"{command!r} is not one of {', '.join(map(repr, OPERATIONS))}")
    if (path_name is None) == (guid is None):
        raise EncodeError("UseGuid", "give path_name or guid_identifier, not both")
    guid_to_bytes(guid_master_id, "GuidMasterId", master)
    if guid is not None:
        guid_to_bytes(guid, "GuidIdentifier", identifier)
    else:
        path = encodable_path(path_name)
    for given in properties.items() if isinstance(properties, Mapping) else properties:
        try:
            number, value = given
        except (TypeError, ValueError):
            raise EncodeError(f"PropertyId[{len(ids)}]", "must be a pair of a PROPID and its value") from None
        propid = encodable_propid(number, len(ids))
        ids.append(propid.to_bytes(4, "little"))
        values.append(encode_value(property_kind(propid), value, f"PropertyValue[{len(values)}]"))
    if len(ids) > MAX_PROPERTIES:
        raise EncodeError("NumberOfProperties", f"is {len(ids)}, at most {MAX_PROPERTIES}")
    head = bytearray(2 + GUID_SIZE + len(path) + 2 + IDS_AT)
    size = write_update_head(
        <uint8_t*>head, <uint32_t>OPERATIONS.index(command), identifier if guid is not None else NULL,
        <const uint8_t*>path, <size_t>len(path), master, <uint32_t>len(ids),
    )
    return b"".join([bytes(head[:size]), *ids, *values])


cdef bytes encodable_path(object path_name):
    cdef bytes path
    cdef size_t wrong = 0
    if isinstance(path_name, str):
        path = path_name.encode("utf-16-le", "surrogatepass")
        if is_path_name(<const uint8_t*>path, <size_t>len(path) // 2, &wrong):
            return path
    raise EncodeError("PathName", f"{path_name!r} is not a QueuePathName of [MS-MQMQ] 2.1.1 (at character {wrong})")


cdef uint32_t encodable_propid(object number, object place) except 0:
    if isinstance(number, str):
        try:
            number = by_name(number).number
        except KeyError:
            raise EncodeError(f"PropertyId[{place}]", f"{number!r} is not the name of a PROPID") from None
    if not hasattr(number, "__index__") or not 0 <= number <= 0xFFFFFFFF or property_kind(number) == KIND_NONE:
        raise EncodeError(f"PropertyId[{place}]", f"{number!r} is not a PROPID whose value has a known type")
    return number


cdef bytes packed_updates(tuple updates):
    if not 1 <= len(updates) <= MAX_UPDATES:
        raise EncodeError("NumberOfUpdateNotifications", f"is {len(updates)}, must be 1 to {MAX_UPDATES}")
    for update in updates:
        if not isinstance(update, NotificationUpdate):
            raise EncodeError("Data", f"{type(update).__name__} is not a NotificationUpdate")
    return bytes((1, len(updates))) + b"".join([(<NotificationUpdate>update).canonical() for update in updates])


cdef bytes packed_body(object body):
    cdef uint8_t[16] guid
    cdef bytearray packed
    cdef bytes name
    cdef size_t size
    try:
        event, object_guid, domain_controller = body
    except (TypeError, ValueError):
        raise EncodeError("Data", f"{body!r} is not a NotificationBody") from None
    if not hasattr(event, "__index__") or not 1 <= event <= 4:
        raise EncodeError("Event", f"{event!r} must be 1 to 4")
    guid_to_bytes(object_guid, "ObjectGuid", guid)
    if not isinstance(domain_controller, str) or not 1 <= len(domain_controller) <= MAX_NAME_UNITS:
        raise EncodeError("DomainController", f"{domain_controller!r} must have 1 to {MAX_NAME_UNITS} characters")
    if not all("\x21" <= one <= "\x7e" for one in domain_controller):
        raise EncodeError("DomainController", f"{domain_controller!r} must be visible ASCII without spaces")
    name = domain_controller.encode("utf-16-le")
    packed = bytearray(HEADER_SIZE + largest_body(<size_t>len(name)))
    packed[:HEADER_SIZE] = b"\2\1"
    size = write_body(
        <uint8_t*>packed + HEADER_SIZE, event, guid, <const uint8_t*>name, <size_t>len(name), True
    )
    return bytes(packed[:HEADER_SIZE + size])
