"""The columns of both tables by the bytes they are made of: [MS-MQMQ] 2.2.19-2.2.20, [MS-MQQB] 2.2."""

from libc.stddef cimport size_t

from msmqwire.columns._convert cimport TextSpan
from msmqwire.columns._layout cimport LIST, VALUE, Layout, place_of
from msmqwire.mqqb._kernel cimport (
    HAS_RESPONSE_CODE, IS_ESTABLISH, IS_PARAMETERS, IS_PING, IS_SESSION_ACK, Packet
)
from msmqwire.wire._format_name cimport FormatName

from msmqwire.columns.fields import enumerators
from msmqwire.mqqb.schema import MESSAGES, SESSIONS

cdef Packet RECORD  # only the offsets of its fields are used

# The arrays of a record: place, and bytes of an element
cdef dict MEMBERS = {
    "derived": (place_of(&RECORD, RECORD.derived), 1),
    "parts": (place_of(&RECORD, RECORD.parts), sizeof(TextSpan)),
    "queues": (place_of(&RECORD, RECORD.queues), sizeof(FormatName)),
    "list_counts": (place_of(&RECORD, RECORD.list_counts), 4),
}
cdef tuple TABLES = (MESSAGES, SESSIONS)
cdef dict ENUMERATORS = enumerators(TABLES)


cdef dict stored(object table):
    """The lines of the columns whose values are in arrays of a record."""
    cdef dict sources = {}
    cdef size_t which
    for header in table.headers:
        for row in header.fields:
            member, _, name = row.store.partition(".")
            if not name:
                continue
            which = ENUMERATORS[member].index(name)
            start, size = MEMBERS[member]
            # The items of a list are written when all have been counted
            others = (0, which) if member == "list_counts" else ()
            sources[row.column] = (LIST if others else VALUE, start + size * which, *others)
    return sources


MESSAGE_LAYOUT = Layout(
    MESSAGES, stored(MESSAGES), sizeof(Packet), records=TABLES, presence={"response_queue": HAS_RESPONSE_CODE}
)
SESSION_LAYOUT = Layout(SESSIONS, stored(SESSIONS), sizeof(Packet), records=TABLES, whole={
    "kind": IS_PING | IS_ESTABLISH | IS_PARAMETERS | IS_SESSION_ACK,
    "refused": IS_PING | IS_ESTABLISH | IS_PARAMETERS | IS_SESSION_ACK,
})
