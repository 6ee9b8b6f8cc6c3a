"""Values of packets as Python has them, by the table that makes the columns of batches.

A column's type says what a value is: a number, a flag, a name of an enumeration, a ``uuid.UUID``, text, bytes, or a
format name of ``msmqwire.formatname``.
"""

from datetime import UTC, datetime, timedelta
from operator import index

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.columns._buffer cimport Buffer, allocate
from msmqwire.columns._convert cimport TextSpan
from msmqwire.columns._layout cimport Layout, ColumnCopy, field_of, largest_number, number_of, store_number
from msmqwire.columns._payloads cimport bytes_of
from msmqwire.mqqb.message._bodies cimport format_and_text
from msmqwire.mqqb._kernel cimport (
    ADMIN_QUEUE, DESTINATION_QUEUE, EXTENSION_DATA, HAS_ADMIN, HAS_DESTINATION, HAS_MULTI_QUEUE, HAS_PROPERTIES,
    HAS_RESPONSE_CODE, LARGEST_LABEL, QUEUE_COUNT, RESPONSE_QUEUE, USER, Packet, clear_draft, copy_draft,
)
from msmqwire.mqqb.message._kernel cimport largest_message, read_message, write_message
from msmqwire.mqqb.message._queues cimport (
    QUEUE_DIRECT, QUEUE_ELSEWHERE, QUEUE_ON_ADMIN_HOST, QUEUE_ON_DESTINATION, QUEUE_ON_SOURCE, QUEUE_PUBLIC,
    QUEUE_SAME_AS_ADMIN, QueueLists,
)
from msmqwire.mqqb.session._kernel cimport LARGEST_SESSION, write_session
from msmqwire.wire._fault cimport Fault
from msmqwire.wire._format_name cimport (
    DIRECT_NAME, DISTRIBUTION_LIST, PRIVATE_QUEUE, PUBLIC_QUEUE, FormatName
)
from msmqwire.wire._guid cimport guid_from_bytes, guid_to_bytes

import numpy as np

from msmqwire.errors import EncodeError, FormatNameError

from msmqwire.columns.schema import BOOL, BYTES, FORMAT_NAME, GUID, TEXT, TIMESTAMP, UINT32, Enumeration
from msmqwire.formatname import DirectName, DistributionListName, PrivateName, PublicName, parse
from msmqwire.formatname.model import sent_name
from msmqwire.mqqb._layout import MESSAGE_LAYOUT, SESSION_LAYOUT
from msmqwire.mqqb.message.readable import BODY_TYPES
from msmqwire.mqqb.schema import MESSAGES, SESSIONS


cdef class ValuePlace:
    """The source and the type of the values of a column."""
    cdef ColumnCopy source
    cdef uint32_t presence
    cdef object type

    def __cinit__(self, column, Layout layout, object type_=None):
        self.source = layout.source(column.name)
        self.presence = column.presence
        self.type = type_ or column.type


cdef dict MESSAGE_PLACES = {
    column.name: ValuePlace(column, MESSAGE_LAYOUT) for column in MESSAGES.columns if not column.derived
}
# The number that the time is on the wire
MESSAGE_PLACES["sent_time_seconds"] = ValuePlace(MESSAGES.select(["sent_time"])[0], MESSAGE_LAYOUT, UINT32)
cdef dict SESSION_PLACES = {column.name: ValuePlace(column, SESSION_LAYOUT) for column in SESSIONS.columns}

cdef object NUMPY_BOOL = np.bool_
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
cdef object SECOND = timedelta(seconds=1)
OF_BODY = ("body_format", "body_text")
OF_EXTENSION = ("extension_format", "extension_text")
cdef uint32_t[QUEUE_COUNT] QUEUE_PRESENCE
QUEUE_PRESENCE[DESTINATION_QUEUE] = HAS_DESTINATION
QUEUE_PRESENCE[ADMIN_QUEUE] = HAS_ADMIN
QUEUE_PRESENCE[RESPONSE_QUEUE] = HAS_RESPONSE_CODE
cdef tuple SECURITY_DATA = ("security_id", "encryption_key", "signature", "sender_certificate")

cdef enum:
    LARGEST_DIRECT_NAME = 0xFFFC    # bytes: Count has 16 bits and counts a U+0000
    LARGEST_SECURITY_DATA = 0xFFFF  # of all but ProviderInfo


# --- Out of a packet ---


cdef object derived_value(const Packet* packet, const uint8_t* data, str name):
    """The value of a column that is derived from the body, its type or ExtensionData; None where that is null."""
    cdef TextSpan body
    if not packet.presence & HAS_PROPERTIES:
        return None
    if name == "body_type_name":
        return BODY_TYPES.get(body_type_of(packet))
    if name in OF_EXTENSION:
        body = packet.parts[EXTENSION_DATA]
        return format_and_text(data + body.offset, body.length, 0, False, True)[OF_EXTENSION.index(name)]
    body = packet.parts[body_part(packet)]
    pair = format_and_text(data + body.offset, body.length, body_type_of(packet), is_encrypted(packet), False)
    return pair[OF_BODY.index(name)]


cdef object value_of(const Packet* packet, object owner, const uint8_t* data, str name, bint session):
    """The value that a packet, whose bytes are ``data`` of ``owner``, has in a column; None where that is null."""
    cdef ValuePlace place = (SESSION_PLACES if session else MESSAGE_PLACES).get(name)
    cdef TextSpan span
    cdef uint64_t number
    if place is None:
        return derived_value(packet, data, name)
    if place.presence and not packet.presence & place.presence:
        return None
    if place.type is TEXT or place.type is BYTES:
        span = (<const TextSpan*>(<const uint8_t*>packet + place.source.place))[0]
        if place.type is TEXT:
            return data[span.offset:span.offset + span.length].decode("utf-16-le", "surrogatepass")
        return memoryview(owner)[span.offset:span.offset + span.length]
    if place.type is FORMAT_NAME:
        return queue_of(<const FormatName*>(<const uint8_t*>packet + place.source.place), data)
    if place.type is GUID:
        return guid_from_bytes(field_of(&place.source, packet))
    number = number_of(&place.source, packet)
    if isinstance(place.type, Enumeration):
        return place.type.by_number[number]
    if place.type is TIMESTAMP:
        return datetime.fromtimestamp(number, UTC)
    return number != 0 if place.type is BOOL else number


cdef object queue_of(const FormatName* name, const uint8_t* data):
    """A format name; of a direct name that is not valid, the text."""
    if name.form == PUBLIC_QUEUE:
        return PublicName(guid_from_bytes(name.guid))
    if name.form == PRIVATE_QUEUE:
        return PrivateName(guid_from_bytes(name.guid), name.number)
    if name.form == DISTRIBUTION_LIST:
        return DistributionListName(guid_from_bytes(name.guid))
    if name.form != DIRECT_NAME:
        return None
    path = data[name.offset:name.offset + name.length].decode("utf-16-le", "surrogatepass")
    return sent_name(path)


cdef tuple queues_of(const Packet* packet, const uint8_t* data, size_t queue):
    """The queues of one list of a MultiQueueFormatHeader."""
    cdef QueueLists lists
    cdef Buffer names = allocate(packet.list_counts[queue] * sizeof(FormatName))
    cdef Packet second_read
    cdef Fault fault
    cdef uint32_t k
    memset(&lists, 0, sizeof(lists))
    lists.names[queue] = <FormatName*>names.data
    lists.most[queue] = packet.list_counts[queue]
    # The bytes were read before and cannot change, so this cannot fail
    read_message(data, packet.extent, False, &lists, &second_read, &fault)
    return tuple([queue_of(&lists.names[queue][k], data) for k in range(packet.list_counts[queue])])


# --- Into a packet ---


cdef object format_name_of(object name, str field):
    """A format name, given as one or as text."""
    if isinstance(name, str):
        try:
            name = parse(name, http_slashes=True, spx=True, any_letters=True)
        except FormatNameError as error:
            raise EncodeError(field, f"{name!r} is not a format name: {error}") from None
    if not isinstance(name, (DirectName, DistributionListName, PrivateName, PublicName)):
        raise EncodeError(field, f"{name} is of a kind that a packet cannot carry")
    if not isinstance(name, DirectName) and (getattr(name, "suffix", None) or getattr(name, "domain", None)):
        raise EncodeError(field, f"a packet cannot carry the part of {name} after its GUID")
    return name


cdef class Builder:
    def __cinit__(self, bint session=False):
        self.payload = bytearray()
        self.session = session
        self.lists = [None] * QUEUE_COUNT
        clear_draft(&self.draft)

    cdef int begin_like(self, Builder other) except -1:
        """Begin with the values of another, which can be put anew."""
        copy_draft(&self.draft, &other.draft)
        self.payload[:] = other.payload
        return 0

    cdef TextSpan append(self, bytes data):
        cdef TextSpan span
        span.offset = <uint32_t>len(self.payload)
        span.length = <uint32_t>len(data)
        self.payload += data
        return span

    cdef int put(self, str name, object value) except -1:
        """Store the value of a column in the draft, and set its presence."""
        cdef ValuePlace place = (SESSION_PLACES if self.session else MESSAGE_PLACES)[name]
        cdef uint8_t[16] guid
        self.draft.packet.presence |= place.presence
        if place.type is TEXT or place.type is BYTES:
            packed = encodable_text(name, value) if place.type is TEXT else encodable_bytes(name, value)
            if name in SECURITY_DATA and len(packed) > LARGEST_SECURITY_DATA:
                raise EncodeError(name, f"has {len(packed)} bytes, at most {LARGEST_SECURITY_DATA}")
            if name == "label" and len(packed) > 2 * LARGEST_LABEL:
                raise EncodeError(name, f"has {len(packed) // 2} code units, at most {LARGEST_LABEL - 1}")
            (<TextSpan*>(<uint8_t*>&self.draft.packet + place.source.place))[0] = self.append(packed)
        elif place.type is GUID:
            guid_to_bytes(value, name, guid)
            memcpy(field_of(&place.source, &self.draft.packet), guid, 16)
        else:
            number = encodable_number(name, place.type, value, largest_number(&place.source))
            store_number(&place.source, &self.draft.packet, number)
        return 0

    cdef FormatName record_of(self, object name):
        cdef FormatName record
        cdef TextSpan path
        memset(&record, 0, sizeof(record))
        if isinstance(name, DirectName):
            path = self.append(encodable_text("direct name", name.path))
            if path.length > LARGEST_DIRECT_NAME:
                raise EncodeError("Count", f"{name} is too long for a packet")
            record.form = DIRECT_NAME
            record.offset = path.offset
            record.length = path.length
            return record
        guid_to_bytes(name.guid, "GUID", record.guid)
        if isinstance(name, PrivateName):
            record.form = PRIVATE_QUEUE
            record.number = name.private_id
        else:
            record.form = PUBLIC_QUEUE if isinstance(name, PublicName) else DISTRIBUTION_LIST
        record.code = record.form
        return record

    cdef int put_queue(self, size_t queue, object name, str field) except -1:
        """A queue of the UserHeader, private ones by the host that they are on."""
        cdef FormatName* record = &self.draft.packet.queues[queue]
        cdef const FormatName* admin = &self.draft.packet.queues[ADMIN_QUEUE]
        name = format_name_of(name, field)
        if isinstance(name, DistributionListName):
            raise EncodeError(field, "a distribution list can be in a MultiQueueFormatHeader only")
        record[0] = self.record_of(name)
        if record.form == DIRECT_NAME:
            record.code = QUEUE_DIRECT
        elif record.form == PUBLIC_QUEUE:
            record.code = QUEUE_PUBLIC
        elif record.guid[:16] == self.draft.sections[USER][16:32]:
            record.code = QUEUE_ON_DESTINATION
        elif queue == DESTINATION_QUEUE:
            raise EncodeError(field, "a private queue must be on the queue manager that queue_manager_address names")
        elif record.guid[:16] == self.draft.sections[USER][:16]:
            record.code = QUEUE_ON_SOURCE
        elif queue == RESPONSE_QUEUE and admin.code == QUEUE_ELSEWHERE and record.guid[:16] == admin.guid[:16]:
            record.code = QUEUE_ON_ADMIN_HOST
        else:
            record.code = QUEUE_ELSEWHERE
        self.draft.packet.presence |= QUEUE_PRESENCE[queue]
        return 0

    cdef int put_queues(self, object destination, object admin, object response) except -1:
        """The queues of the UserHeader, whose GUIDs have been put."""
        if destination is not None:
            self.put_queue(DESTINATION_QUEUE, destination, "destination_queue")
        if admin is not None:
            self.put_queue(ADMIN_QUEUE, admin, "admin_queue")
        if response is not None and response == admin:
            self.draft.packet.queues[RESPONSE_QUEUE] = self.draft.packet.queues[ADMIN_QUEUE]
            self.draft.packet.queues[RESPONSE_QUEUE].code = QUEUE_SAME_AS_ADMIN
            self.draft.packet.presence |= QUEUE_PRESENCE[RESPONSE_QUEUE]
        elif response is not None:
            self.put_queue(RESPONSE_QUEUE, response, "response_queue")
        return 0

    cdef int put_list(self, size_t queue, object names) except -1:
        """The queues of one list of a MultiQueueFormatHeader."""
        cdef list models = [format_name_of(name, "MultiQueueFormatHeader") for name in names]
        cdef Buffer records = allocate(<size_t>len(models) * sizeof(FormatName))
        cdef Py_ssize_t k
        for k in range(len(models)):
            (<FormatName*>records.data)[k] = self.record_of(models[k])
        self.lists[queue] = records
        self.draft.packet.list_counts[queue] = <uint32_t>len(models)
        return 0

    cdef bytes packed(self):
        """The bytes of the packet."""
        cdef FormatName* lists[QUEUE_COUNT]
        cdef size_t queue
        if self.session:
            return packed_session(&self.draft.packet)
        for queue in range(<size_t>QUEUE_COUNT):
            lists[queue] = NULL if self.lists[queue] is None else <FormatName*>(<Buffer>self.lists[queue]).data
        return packed_message(&self.draft.packet, <const uint8_t*>PyByteArray_AS_STRING(self.payload), lists)


cdef bytes packed_message(const Packet* packet, const uint8_t* payload, FormatName** lists):
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>largest_message(packet, lists))
    return packed[:write_message(packet, payload, lists, <uint8_t*>PyBytes_AS_STRING(packed))]


cdef bytes packed_session(const Packet* packet):
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, LARGEST_SESSION)
    return packed[:write_session(packet, <uint8_t*>PyBytes_AS_STRING(packed))]


cdef bytes rewritten_message(const Packet* packet, const uint8_t* data):
    """Return the message in ``data``, in the form in which it is written."""
    cdef QueueLists lists
    cdef list names = []
    cdef Buffer buffer
    cdef Packet second_read
    cdef Fault fault
    cdef size_t queue
    for queue in range(<size_t>QUEUE_COUNT):
        buffer = allocate(packet.list_counts[queue] * sizeof(FormatName))
        names.append(buffer)
        lists.names[queue] = <FormatName*>buffer.data
        lists.most[queue] = packet.list_counts[queue]
    if packet.presence & HAS_MULTI_QUEUE:
        read_message(data, packet.extent, False, &lists, &second_read, &fault)
    return packed_message(packet, data, lists.names)


cdef bytes encodable_text(str name, object text):
    if not isinstance(text, str) or "\0" in text:
        raise EncodeError(name, f"{text!r} must be text without U+0000")
    return text.encode("utf-16-le", "surrogatepass")


cdef bytes encodable_bytes(str name, object data):
    view = encodable_view(name, data)
    try:
        return bytes_of(view)
    except TypeError as error:
        raise EncodeError(name, str(error)) from None


cdef object encodable_view(str name, object data):
    try:
        return memoryview(data)
    except TypeError:
        raise EncodeError(name, f"must be bytes, not {type(data).__name__}") from None


cdef uint64_t encodable_number(str name, object type_, object value, uint64_t largest) except? 0xFFFFFFFFFFFFFFFF:
    if isinstance(type_, Enumeration):
        if value not in type_.names:
            raise EncodeError(name, f"{value!r} is not one of {', '.join(map(repr, type_.names))}")
        return type_.by_name[value]
    if type_ is TIMESTAMP and isinstance(value, datetime):
        if value.utcoffset() is None:
            raise EncodeError(name, f"{value!r} has no time zone")
        value = (value - EPOCH) // SECOND
    try:
        number = index(bool(value) if isinstance(value, NUMPY_BOOL) else value)
    except TypeError:
        number = -1
    if not 0 <= number <= largest:
        raise EncodeError(name, f"{value!r} must be an integer from 0 to {largest}")
    return number
