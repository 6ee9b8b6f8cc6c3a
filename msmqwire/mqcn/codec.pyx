"""MS-MQCN messages one at a time: [MS-MQCN] 2.2.4-2.2.6. The layout and the kernel are in codec.pxd."""

from typing import Any, NamedTuple

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from msmqwire.columns.payloads cimport address, steady_bytes
from msmqwire.mqcn.fields cimport (
    DISCARDABLE, DUPLICATE_PROPERTY, FIELD_COMMAND, FIELD_DATA, FIELD_GUID_IDENTIFIER, FIELD_GUID_MASTER_ID,
    FIELD_NUMBER_OF_PROPERTIES, FIELD_NUMBER_OF_UPDATES, FIELD_PATH_NAME, FIELD_PROPERTY_ID, FIELD_PROPERTY_VALUE,
    FIELD_RESERVED, FIELD_USE_GUID, FIELD_VERSION, NEVER_WRITTEN, NO_UPDATES, TRAILING_BYTES,
)
from msmqwire.mqcn.text cimport MAX_NAME_UNITS, Body, is_path_name, largest_body, read_body, write_body
from msmqwire.properties.lookup cimport KIND_NONE, property_kind, property_place
from msmqwire.propvariant.codec cimport (
    UNSIZED, decode_value, encode_value, text_size, value_fault, value_layouts, value_size
)
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire.fault cimport (
    BAD_COMMAND, BAD_COUNT, BAD_NAME, BAD_SIZE, BAD_TERMINATOR, BAD_USE_GUID, BAD_VERSION, TOO_LARGE, TRUNCATED,
    UNKNOWN_PROPERTY, decode_error, set_fault,
)
from msmqwire.wire.guid cimport GUID_SIZE, guid_from_bytes, guid_to_bytes

from msmqwire.errors import EncodeError

from msmqwire.mqcn.schema import FIELDS, OBJECTS, OPERATIONS, Violation
from msmqwire.properties.table import by_name

__all__ = [
    "ChangeNotificationMessage", "NotificationBody", "NotificationUpdate", "PropertyValue", "decode", "encode",
    "encode_body",
]

# The PROPIDs that a sender writes, [MS-MQCN] 3.3.5.2; the place of each is its bit
SENT = (
    # a create has the first fifteen, the change of a queue any of the first seven
    "Q_JOURNAL", "Q_QUOTA", "Q_BASEPRIORITY", "Q_JOURNAL_QUOTA", "Q_AUTHENTICATE", "Q_PRIV_LEVEL", "Q_SECURITY",
    "Q_TYPE", "Q_INSTANCE", "Q_CREATE_TIME", "Q_MODIFY_TIME", "Q_SCOPE", "Q_PATHNAME", "Q_LABEL", "Q_TRANSACTION",
    # the change of a queue has this one
    "Q_QMID",
    # the change of a machine has these two, and any of the rest
    "QM_MACHINE_ID", "QM_FOREIGN",
    "QM_QUOTA", "QM_JOURNAL_QUOTA", "QM_SECURITY", "QM_ADDRESS", "QM_CNS", "QM_MACHINE_TYPE", "QM_OS",
)

cdef enum:
    MAX_PAYLOAD = 0x7FFFFFFF  # what TextSpan and the base of unsized values allow


cdef int fill_entries() except -1:
    cdef PropertyEntry* entry
    cdef uint8_t kind
    cdef uint32_t propid
    cdef uint32_t bit
    assert len(SENT) == SENT_COUNT
    for propid in range(<uint32_t>PROPID_LIMIT + 1):
        entry = &property_entries[propid]
        kind = property_kind(propid)
        entry.kind = kind
        entry.width = UNSIZED if value_layouts[kind].mask else value_layouts[kind].base
        entry.bit = OTHERS
    for bit in range(<uint32_t>SENT_COUNT):
        propid = by_name("PROPID_" + SENT[bit]).number
        property_entries[propid].bit = <uint64_t>1 << bit
    return 0


fill_entries()


# --- Cold paths: the message is at fault; where? ---


cdef int header_fault(const uint8_t* data, size_t size, Fault* fault) noexcept nogil:
    if size == 0:
        return set_fault(fault, TRUNCATED, FIELD_VERSION, 0, 1, 0)
    if data[0] != 1 and data[0] != 2:
        return set_fault(fault, BAD_VERSION, FIELD_VERSION, 0, 0, data[0])
    if size == 1:
        return set_fault(fault, TRUNCATED, FIELD_NUMBER_OF_UPDATES, 1, 1, 0)
    return set_fault(fault, BAD_COUNT, FIELD_NUMBER_OF_UPDATES, 1, 1, data[1])


cdef int item_fault(Fault* fault, uint32_t item) noexcept nogil:
    fault.item = item
    return -1


cdef int update_fault(const uint8_t* data, size_t size, size_t at, Fault* fault) noexcept nogil:
    """Walk the fields of an update in wire order to the one at fault; there is one."""
    cdef size_t needed
    cdef uint32_t count
    cdef uint32_t k
    cdef const uint8_t* ids
    cdef uint8_t kind
    if at == size:
        return set_fault(fault, TRUNCATED, FIELD_COMMAND, at, 1, 0)
    if data[at] > DELETE:
        return set_fault(fault, BAD_COMMAND, FIELD_COMMAND, at, 0, data[at])
    if size - at < 2:
        return set_fault(fault, TRUNCATED, FIELD_USE_GUID, at + 1, 1, 0)
    if data[at + 1] > 1:
        return set_fault(fault, BAD_USE_GUID, FIELD_USE_GUID, at + 1, 0, data[at + 1])
    at += 2
    if data[at - 1]:
        if size - at < GUID_SIZE:
            return set_fault(fault, TRUNCATED, FIELD_GUID_IDENTIFIER, at, GUID_SIZE, size - at)
        at += GUID_SIZE
    else:
        needed = text_size(data, size, at)
        if needed == 0:
            return set_fault(fault, BAD_TERMINATOR, FIELD_PATH_NAME, at, size - at, size - at)
        at += needed
    if size - at < GUID_SIZE:
        return set_fault(fault, TRUNCATED, FIELD_GUID_MASTER_ID, at, GUID_SIZE, size - at)
    if size - at < COUNT_AT:
        at += RESERVED_AT
        return set_fault(fault, TRUNCATED, FIELD_RESERVED, at, COUNT_AT - RESERVED_AT, size - at)
    if size - at < IDS_AT:
        return set_fault(fault, TRUNCATED, FIELD_NUMBER_OF_PROPERTIES, at + COUNT_AT, 1, 0)
    count = data[at + COUNT_AT]
    at += IDS_AT
    ids = data + at
    if 4 * <size_t>count > size - at:
        return set_fault(fault, TRUNCATED, FIELD_PROPERTY_ID, at, 4 * count, size - at)
    for k in range(count):
        if property_kind(load_u32(ids + 4 * k)) == KIND_NONE:
            set_fault(fault, UNKNOWN_PROPERTY, FIELD_PROPERTY_ID, at + 4 * k, 0, load_u32(ids + 4 * k))
            return item_fault(fault, k)
    at += 4 * count
    for k in range(count):
        kind = property_kind(load_u32(ids + 4 * k))
        needed = value_size(kind, data, size, at)
        if needed == 0:
            value_fault(kind, data, size, at, FIELD_PROPERTY_VALUE, fault)
            return item_fault(fault, k)
        at += needed
    return 0


cdef PropertyColumns NO_COLUMNS
NO_COLUMNS.ids = NULL
NO_COLUMNS.values = NULL


cdef int violation_fault(const uint8_t* data, size_t size, Fault* fault) noexcept nogil:
    """The first violation, in wire order, for which a conforming receiver disregards a message, as a fault."""
    cdef Update update = no_update()
    cdef Body body
    cdef size_t at = HEADER_SIZE
    cdef size_t properties = 0
    cdef size_t start
    if data[0] == 2:
        read_body(data, size, &body, fault)
        return set_fault(fault, BAD_SIZE, FIELD_DATA, body.end, body.end, size)
    for _ in range(data[1]):
        start = at
        read_update(data, size, &at, property_entries, &NO_COLUMNS, &properties, False, &update, fault)
        if update.violations & PATH_NAME_SYNTAX:
            return set_fault(
                fault, BAD_NAME, FIELD_PATH_NAME, start + 2, 0, load_u16(data + update.identifier_at)
            )
        if update.violations & PROPERTY_COUNT:
            return set_fault(
                fault, BAD_COUNT, FIELD_NUMBER_OF_PROPERTIES, update.master_at + COUNT_AT, MAX_PROPERTIES,
                update.property_count,
            )
    return set_fault(fault, BAD_SIZE, FIELD_DATA, at, at, size)


cdef uint32_t repeated_properties(const uint8_t* ids, uint32_t count) noexcept nogil:
    """DUPLICATE_PROPERTY when one of them is there twice, else 0."""
    cdef uint8_t[256] seen
    cdef uint32_t k
    cdef uint8_t place
    memset(seen, 0, sizeof(seen))
    for k in range(count):
        place = property_place(load_u32(ids + 4 * k))
        if seen[place]:
            return DUPLICATE_PROPERTY
        seen[place] = 1
    return 0


cdef uint32_t second_value(const uint8_t* data, size_t size, size_t values_at, uint32_t propid) noexcept nogil:
    """The one byte behind the value of the first property, whose PROPID this is."""
    return data[values_at + value_size(property_kind(propid), data, size, values_at)]


# --- Messages ---


class PropertyValue(NamedTuple):
    """A PROPID and its value."""

    id: int
    value: Any


cdef tuple violation_names(uint32_t violations):
    return tuple(flag.name.lower() for flag in Violation if violations & <uint32_t>flag)


# What an update reads before it has bytes of its own: __new__ can be called without __init__
cdef bytes NO_UPDATE = bytes(SMALLEST_UPDATE)


cdef class NotificationUpdate:
    cdef object owner          # keeps the bytes alive; its buffer begins at ``start``
    cdef const uint8_t* start
    cdef const uint8_t* data   # of this update
    cdef size_t size
    cdef Update header

    def __cinit__(self, *args, **kwargs):
        attach_update(self, NO_UPDATE)

    def __init__(
        self, *, command, guid_master_id, properties=(), path_name=None, guid_identifier=None
    ):
        attach_update(self, packed_update(command, guid_master_id, properties, path_name, guid_identifier))

    @property
    def command(self):
        return OPERATIONS[self.header.command]

    @property
    def use_guid(self):
        return self.header.use_guid != 0

    @property
    def path_name(self):
        if self.header.use_guid:
            return None
        path = self.data[self.header.identifier_at:self.header.identifier_at + self.header.identifier_size - 2]
        return path.decode("utf-16-le", "surrogatepass")

    @property
    def guid_identifier(self):
        return guid_from_bytes(self.data + self.header.identifier_at) if self.header.use_guid else None

    @property
    def guid_master_id(self):
        return guid_from_bytes(self.data + self.header.master_at)

    @property
    def object(self):
        return OBJECTS[self.header.object - 1] if self.header.object else None

    @property
    def violations(self):
        return violation_names(self.header.violations)

    @property
    def properties(self):
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
        """Its bytes as they are written: with a Reserved of zeros."""
        cdef bytes packed = self.data[:self.size]
        cdef uint8_t* copy = <uint8_t*>PyBytes_AS_STRING(packed)
        memset(copy + self.header.master_at + RESERVED_AT, 0, COUNT_AT - RESERVED_AT)
        return packed

    def __eq__(self, other):
        if not isinstance(other, NotificationUpdate):
            return NotImplemented
        return (
            self.header.violations == (<NotificationUpdate>other).header.violations
            and self.canonical() == (<NotificationUpdate>other).canonical()
        )

    def __hash__(self):
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


cdef object shown(object value):
    """A value as a constructor takes it, without numpy's way of printing arrays."""
    if not hasattr(value, "tobytes"):
        return value
    if value.ndim == 2:
        return [guid_from_bytes(row) for row in map(bytes, value)]
    return value.tobytes() if value.itemsize == 1 else value.tolist()


cdef int attach_update(NotificationUpdate update, bytes data) except -1:
    """Give an update under construction the bytes just written for it."""
    cdef size_t at = 0
    cdef size_t properties = 0
    cdef Fault fault
    update.owner = data
    update.start = <const uint8_t*>PyBytes_AS_STRING(data)
    update.data = update.start
    update.size = <size_t>len(data)
    if read_update(
        update.data, update.size, &at, property_entries, &NO_COLUMNS, &properties, False, &update.header, &fault
    ) != 0:
        raise decode_error(&fault, FIELDS)
    return 0


def restore_update(bytes data, uint32_t violations):
    """Unpickle an update: what its message had against it is not told by its own bytes."""
    cdef NotificationUpdate update = NotificationUpdate.__new__(NotificationUpdate)
    attach_update(update, data)
    update.header.violations = violations
    return update


class NotificationBody(NamedTuple):
    """What a message of version 2 says: [MS-MQCN] 2.2.5."""

    event: int
    object_guid: Any
    domain_controller: str

    @property
    def operation(self):
        """What Event stands for: ``"create"``, ``"change"`` or ``"delete"``."""
        return OPERATIONS[(CREATE, CHANGE, DELETE, CHANGE)[self.event - 1]]

    @property
    def object(self):
        """What is changed: ``"queue"``, or ``"machine"`` for Event 4."""
        return OBJECTS[1] if self.event == 4 else OBJECTS[0]


cdef class ChangeNotificationMessage:
    cdef object owner           # keeps the bytes alive
    cdef const uint8_t* data
    cdef size_t size            # of what the message itself accounts for
    cdef uint32_t found         # violations
    cdef Body text
    cdef tuple parts            # its updates, once asked for

    def __cinit__(self, *args, **kwargs):
        attach_message(self, b"\1\0")

    def __init__(self, version, updates=(), body=None):
        if version == 1 and body is None:
            attach_message(self, packed_updates(tuple(updates)))
        elif version == 2 and body is not None and not tuple(updates):
            attach_message(self, packed_body(body))
        else:
            raise EncodeError("Version", f"{version!r}: 1 goes with updates, 2 with a body")

    @property
    def version(self):
        return self.data[0]

    @property
    def updates(self):
        if self.parts is None:
            self.parts = updates_of(self)
        return self.parts

    @property
    def body(self):
        if self.data[0] == 1:
            return None
        name = self.data[self.text.name_at:self.text.name_at + self.text.name_size].decode("utf-16-le")
        return NotificationBody(self.text.event, guid_from_bytes(self.text.guid), name)

    @property
    def violations(self):
        return violation_names(self.found)

    cdef bytes canonical(self, bint closing_space):
        """The message as it is written."""
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

    def __eq__(self, other):
        if not isinstance(other, ChangeNotificationMessage):
            return NotImplemented
        return (
            self.found == (<ChangeNotificationMessage>other).found
            and self.canonical(True) == (<ChangeNotificationMessage>other).canonical(True)
        )

    def __hash__(self):
        return hash((self.found, self.canonical(True)))

    def __repr__(self):
        if self.data[0] == 1:
            return f"ChangeNotificationMessage(1, {list(self.updates)!r})"
        return f"ChangeNotificationMessage(2, body={self.body!r})"

    def __reduce__(self):
        return decode, (bytes(self.owner),)


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
        # It was read before, so it is good
        read_update(
            update.data, message.size - at, &start, property_entries, &NO_COLUMNS, &properties, False, &update.header,
            &fault,
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
    """Check a whole message and note what ``message`` needs to show it. 0, or -1 with ``fault`` set."""
    cdef Update update = no_update()
    cdef size_t at = HEADER_SIZE
    cdef size_t properties = 0
    cdef uint32_t found = 0
    if size > MAX_PAYLOAD:
        return set_fault(fault, TOO_LARGE, FIELD_DATA, 0, MAX_PAYLOAD, size)
    if read_header(data, size, fault) != 0:
        return -1
    if data[0] == 2:
        if read_body(data, size, &message.text, fault) != 0:
            return -1
        found = message.text.violations
        at = message.text.end
    else:
        for _ in range(data[1]):
            if read_update(data, size, &at, property_entries, &NO_COLUMNS, &properties, False, &update, fault) != 0:
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
    """Give a message under construction the bytes just written for it."""
    cdef Fault fault
    message.owner = data
    if read_message(<const uint8_t*>PyBytes_AS_STRING(data), <size_t>len(data), False, message, &fault) != 0:
        raise decode_error(&fault, FIELDS)
    return 0


def decode(data, *, bint strict=False):
    cdef ChangeNotificationMessage message = ChangeNotificationMessage.__new__(ChangeNotificationMessage)
    cdef Fault fault
    owner, size = steady_bytes(data)
    if read_message(address(owner), <size_t>size, strict, message, &fault) != 0:
        raise decode_error(&fault, FIELDS)
    message.owner = owner
    return message


def encode(ChangeNotificationMessage message not None, *, bint closing_space=True, bint enforce=True):
    cdef uint32_t refused = message.found if enforce else message.found & NEVER_WRITTEN
    if refused:
        raise EncodeError(violated_field(refused), f"the message has {', '.join(violation_names(refused))}")
    return message.canonical(closing_space)


def encode_body(message, *, bint closing_space=True, bint enforce=True):
    return encode(message, closing_space=closing_space, enforce=enforce) + b"\0"


cdef str violated_field(uint32_t violations):
    if violations & NO_UPDATES:
        return "NumberOfUpdateNotifications"
    if violations & PATH_NAME_SYNTAX:
        return "PathName"
    if violations & TRAILING_BYTES:
        return "Data"
    if violations & PROPERTY_COUNT:
        return "NumberOfProperties"
    return "UseGuid" if violations & USE_GUID else "PropertyId"


# --- What the specification lets an encoder write ---


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
        raise EncodeError("UseGuid", "give either path_name or guid_identifier")
    guid_to_bytes(guid_master_id, "GuidMasterId", master)
    if guid is not None:
        guid_to_bytes(guid, "GuidIdentifier", identifier)
    else:
        path = encodable_path(path_name)
    for given in properties:
        try:
            number, value = given
        except (TypeError, ValueError):
            raise EncodeError(f"PropertyId[{len(ids)}]", "must be a pair of PROPID and value") from None
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
    if isinstance(path_name, str) and "\0" not in path_name:
        path = path_name.encode("utf-16-le", "surrogatepass")
        if is_path_name(<const uint8_t*>path, <size_t>len(path) // 2):
            return path
    raise EncodeError("PathName", f"{path_name!r} is not a QueuePathName of [MS-MQMQ] 2.1.1")


cdef uint32_t encodable_propid(object number, object place) except 0:
    if not isinstance(number, int) or not 0 <= number <= 0xFFFFFFFF or property_kind(number) == KIND_NONE:
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
    event, object_guid, domain_controller = body
    if not isinstance(event, int) or not 1 <= event <= 4:
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
