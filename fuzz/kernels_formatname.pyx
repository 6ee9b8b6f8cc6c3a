# cython: language_level=3
"""The fuzz target of the grammar of format names: see checks.pxd."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from fuzz.checks cimport exact_copy, mix, must
from msmqwire.columns._convert cimport TextSpan
from msmqwire.formatname._kernel cimport (
    EXTENDED, HTTP_SLASHES, KIND_DIRECT, KIND_MULTICAST, KIND_PATH_NAME, KIND_PUBLIC, PATH_NAME, PROTOCOL_HTTPS,
    PROTOCOL_TCP, QUEUE_SYSTEM, SPX, SUFFIX_XACTONLY, Name, read_element,
)
from msmqwire.wire._fault cimport Fault

cdef enum:
    COMMA = 0x2C
    DELETE = 0x7F
    SPACE = 0x20


# What one reading of a text gave.
cdef struct Reading:
    int status
    size_t elements
    uint64_t checksum  # over the elements
    Fault fault


cdef void check_span(
    const uint8_t* text, TextSpan span, size_t start, size_t end, uint64_t* checksum
) noexcept nogil:
    """A part of a name lies in its element, and is visible ASCII."""
    cdef size_t i
    mix(checksum, span.length)
    if span.length == 0:
        return
    must(start <= span.offset and span.offset < end and span.length <= end - span.offset)
    mix(checksum, span.offset - start)
    for i in range(span.length):
        must(SPACE < text[span.offset + i] <= DELETE)


cdef uint64_t check_name(const uint8_t* text, size_t start, size_t end, const Name* name) noexcept nogil:
    """The parts are those of the kind; a checksum over them, wherever the name stands."""
    cdef uint64_t checksum = name.kind
    cdef bint queue = name.kind == KIND_DIRECT or name.kind == KIND_PATH_NAME
    cdef size_t i
    must(KIND_PUBLIC <= name.kind <= KIND_PATH_NAME and name.suffix <= SUFFIX_XACTONLY)
    must((name.protocol != 0) == (name.kind == KIND_DIRECT) and name.protocol <= PROTOCOL_HTTPS)
    must((name.protocol == 0) or name.protocol >= PROTOCOL_TCP)
    must((name.queue_type != 0) == queue and name.queue_type <= QUEUE_SYSTEM)
    must((name.address.length != 0) == (queue or name.kind == KIND_MULTICAST))
    must(queue or (name.queue.length == 0 and name.subqueue.length == 0))
    must(not queue or (name.queue.length == 0) == (name.queue_type == QUEUE_SYSTEM and name.kind == KIND_DIRECT))
    check_span(text, name.address, start, end, &checksum)
    check_span(text, name.queue, start, end, &checksum)
    check_span(text, name.subqueue, start, end, &checksum)
    check_span(text, name.domain, start, end, &checksum)
    mix(&checksum, name.protocol)
    mix(&checksum, name.queue_type)
    mix(&checksum, name.suffix)
    mix(&checksum, name.private_id)
    mix(&checksum, name.port)
    for i in range(16):
        mix(&checksum, name.guid[i])
    return checksum


cdef void check_alone(
    const uint8_t* text, size_t start, size_t end, uint32_t options, uint64_t expected
) noexcept nogil:
    """An element is the same name when nothing stands around it."""
    cdef uint8_t* alone = exact_copy(text + start, end - start, 1)
    cdef size_t at = 0
    cdef Fault fault
    cdef Name name
    must(read_element(alone + 1, end - start, &at, options, &name, &fault) == 0)
    must(at == end - start + 1)
    must(check_name(alone + 1, 0, end - start, &name) == expected)
    free(alone)


cdef void read_names(const uint8_t* text, size_t size, uint32_t options, Reading* reading) noexcept nogil:
    cdef uint64_t checksum
    cdef size_t at = 0
    cdef size_t start
    cdef Name name
    memset(reading, 0, sizeof(reading[0]))
    while at <= size:
        start = at
        reading.status = read_element(text, size, &at, options, &name, &reading.fault)
        if reading.status != 0:
            must(reading.status == -1 and reading.fault.code != 0)
            must(start <= reading.fault.offset and reading.fault.offset <= size)
            return
        must(start + 1 < at and at <= size + 1)
        must(at == size + 1 or text[at - 1] == COMMA)
        checksum = check_name(text, start, at - 1, &name)
        if not options & PATH_NAME and (start != 0 or at <= size):
            check_alone(text, start, at - 1, options, checksum)
        mix(&reading.checksum, checksum)
        reading.elements += 1


cdef public int fuzz_format_names(const uint8_t* data, size_t size) noexcept nogil:
    """The input is a text behind a byte with the options of the grammar."""
    cdef uint8_t* aligned
    cdef uint8_t* shifted
    cdef uint32_t options
    cdef Reading first
    cdef Reading second
    if size == 0:
        return 0
    options = data[0] & (EXTENDED | HTTP_SLASHES | SPX)
    if data[0] & PATH_NAME:
        options = PATH_NAME
    aligned = exact_copy(data + 1, size - 1, 0)
    shifted = exact_copy(data + 1, size - 1, 1)
    read_names(aligned, size - 1, options, &first)
    read_names(shifted + 1, size - 1, options, &second)
    must(first.status == second.status and first.elements == second.elements)
    must(first.checksum == second.checksum)
    if first.status != 0:
        must(first.fault.code == second.fault.code and first.fault.offset == second.fault.offset)
        must(first.fault.field == second.fault.field and first.fault.needed == second.fault.needed)
    free(aligned)
    free(shifted)
    return 0
