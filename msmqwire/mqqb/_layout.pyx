"""The columns of both tables by the bytes they are made of: [MS-MQMQ] 2.2.19-2.2.20, [MS-MQQB] 2.2."""

from msmqwire.columns._layout cimport Layout, place_of
from msmqwire.mqqb._kernel cimport (
    HAS_RESPONSE_CODE, IS_ESTABLISH, IS_PARAMETERS, IS_PING, IS_SESSION_ACK, Packet
)

from msmqwire.mqqb.schema import MESSAGES, SESSIONS

cdef Packet RECORD  # only the offsets of its fields are used

cdef dict ARRAYS = {
    "codes": place_of(&RECORD, RECORD.codes),
    "parts": place_of(&RECORD, RECORD.parts),
    "queues": place_of(&RECORD, RECORD.queues),
    "lists": place_of(&RECORD, RECORD.list_counts),
}
cdef tuple TABLES = (MESSAGES, SESSIONS)

MESSAGE_LAYOUT = Layout(
    MESSAGES, sizeof(Packet), arrays=ARRAYS, records=TABLES, presence={"response_queue": HAS_RESPONSE_CODE}
)
SESSION_LAYOUT = Layout(
    SESSIONS,
    sizeof(Packet),
    arrays=ARRAYS,
    records=TABLES,
    whole=dict.fromkeys(("kind", "refused"), IS_PING | IS_ESTABLISH | IS_PARAMETERS | IS_SESSION_ACK),
)
