"""The columns of a topology batch, as the decoder writes them and the encoder reads them."""

from libc.stdint cimport int32_t, uint8_t, uint32_t

from msmqwire.mqsd.codec cimport ServerColumns
from msmqwire.wire.fault cimport Fault

# The bits of a presence byte above DECODED, as schema.py has them
cdef enum:
    HAS_REQUEST = 2
    HAS_REPLY = 4
    HAS_IPX = 8
    HAS_REMOTE = 16

cdef enum:
    SMALLEST_SERVER = 8  # bytes of an entry with the code unit that closes it


# Where the columns are written; NULL for those not asked for.
cdef struct TopologyColumns:
    uint8_t* presence
    uint8_t* type
    uint8_t* version
    uint8_t* enterprise_id
    uint8_t* request_id
    uint8_t* site_id
    int32_t* ipx_offsets
    uint8_t* ipx_networks
    uint8_t* correlation_id
    uint32_t* mask
    int32_t* network_offsets
    uint8_t* networks
    uint8_t* responding_site_id
    int32_t* server_offsets
    ServerColumns servers
    uint32_t* violations
    Fault* faults
