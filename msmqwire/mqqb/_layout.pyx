"""The columns of both tables by the bytes they are made of: [MS-MQMQ] 2.2.19-2.2.20, [MS-MQQB] 2.2."""

from msmqwire.columns._layout cimport Layout, place_of
from msmqwire.mqqb._kernel cimport HAS_PROPERTIES, HAS_RESPONSE_CODE, HAS_SECURITY, Packet

from msmqwire.mqqb.schema import MESSAGES, SESSIONS

cdef Packet RECORD  # only the offsets of its fields are used

cdef dict ARRAYS = {
    "codes": place_of(&RECORD, RECORD.codes),
    "numbers": place_of(&RECORD, RECORD.numbers),
    "parts": place_of(&RECORD, RECORD.parts),
    "queues": place_of(&RECORD, RECORD.queues),
    "lists": place_of(&RECORD, RECORD.list_counts),
}
cdef tuple TABLES = (MESSAGES, SESSIONS)

# Values that are null in tables stand in records: a queue on an unknown host, numbers without a name
MESSAGE_LAYOUT = Layout(
    MESSAGES,
    sizeof(Packet),
    arrays=ARRAYS,
    records=TABLES,
    presence={
        "response_queue": HAS_RESPONSE_CODE,
        "delivery_mode": 0,
        "sender_id_type": HAS_SECURITY,
        "message_class_name": HAS_PROPERTIES,
    },
)
SESSION_LAYOUT = Layout(SESSIONS, sizeof(Packet), arrays=ARRAYS, records=TABLES)
