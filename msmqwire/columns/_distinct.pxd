"""The distinct values of a column, whose texts are then made once."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from msmqwire.columns.payload_table cimport PayloadTable
from msmqwire.wire._format_name cimport FormatName


cdef tuple distinct_addresses(const uint8_t* values, size_t count, const uint8_t* validity)
cdef tuple distinct_format_names(
    const FormatName* names, size_t count, const PayloadTable* payloads, const uint32_t* rows, const uint8_t* validity
)
cdef const uint64_t* secret_factors() noexcept nogil
