"""Format names by the million: the kernel of kernel.pxd in one loop, from a column of text to columns."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memmove, memset

from msmqwire.columns.batch cimport DECODED, Batch, prepare
from msmqwire.columns.convert cimport TextSpan
from msmqwire.columns.payloads cimport Payloads, PayloadTable, Span, decodable, payload_at
from msmqwire.formatname.kernel cimport (
    EXTENDED, HTTP_SLASHES, KIND_DIRECT, KIND_MULTICAST, KIND_MULTIPLE_ELEMENT, KIND_PATH_NAME, KIND_PRIVATE,
    PATH_NAME, SPX, Name, read_element,
)
from msmqwire.wire.fault cimport Fault

from msmqwire.columns.parallel import run_parts
from msmqwire.formatname.schema import FORMAT_NAMES

__all__ = ["parse_batch"]

cdef Payloads NOTHING = Payloads(b"", [0])

# The bits of a row's presence above DECODED, as schema.py has them
cdef enum:
    HAS_GUID = 2
    HAS_PRIVATE_ID = 4
    HAS_PROTOCOL = 8
    HAS_ADDRESS = 16
    HAS_PORT = 32
    HAS_QUEUE_TYPE = 64
    HAS_QUEUE = 128
    HAS_SUBQUEUE = 256
    HAS_SUFFIX = 512
    HAS_DOMAIN = 1024
    HAS_ELEMENTS = 2048

cdef enum:
    SMALLEST_ELEMENT = 13  # DIRECT=OS:a\b


# Where the columns are written; NULL for those not asked for.
cdef struct NameColumns:
    uint32_t* presence
    uint8_t* kind
    uint8_t* guid
    uint32_t* private_id
    uint8_t* protocol
    TextSpan* address
    uint16_t* port
    uint8_t* queue_type
    TextSpan* queue
    TextSpan* subqueue
    uint8_t* suffix
    TextSpan* domain
    int32_t* element_offsets
    TextSpan* elements
    Fault* faults


# Rows [start, stop) of one thread, and how many elements and faults it has written.
cdef struct Chunk:
    size_t start
    size_t stop
    size_t elements
    size_t faults


cdef inline uint32_t presence_of(const Name* name) noexcept nogil:
    cdef uint32_t presence = DECODED
    if name.kind == KIND_DIRECT:
        presence |= HAS_PROTOCOL | HAS_ADDRESS | HAS_QUEUE_TYPE
    elif name.kind == KIND_PATH_NAME:
        presence |= HAS_ADDRESS | HAS_QUEUE_TYPE
    elif name.kind == KIND_MULTICAST:
        presence |= HAS_ADDRESS | HAS_PORT
    elif name.kind == KIND_MULTIPLE_ELEMENT:
        presence |= HAS_ELEMENTS
    else:
        presence |= HAS_GUID | (HAS_PRIVATE_ID if name.kind == KIND_PRIVATE else 0)
    if name.queue.length:
        presence |= HAS_QUEUE
    if name.subqueue.length:
        presence |= HAS_SUBQUEUE
    if name.suffix:
        presence |= HAS_SUFFIX
    if name.domain.length:
        presence |= HAS_DOMAIN
    return presence


cdef inline void put_name(const NameColumns* columns, size_t row, const Name* name, uint32_t presence) noexcept nogil:
    """A row. What a kind does not have is zero, so that no column shows what an earlier batch held."""
    columns.presence[row] = presence
    if columns.kind != NULL:
        columns.kind[row] = name.kind
    if columns.guid != NULL:
        memcpy(columns.guid + 16 * row, name.guid, 16)
    if columns.private_id != NULL:
        columns.private_id[row] = name.private_id
    if columns.protocol != NULL:
        columns.protocol[row] = name.protocol
    if columns.address != NULL:
        columns.address[row] = name.address
    if columns.port != NULL:
        columns.port[row] = name.port
    if columns.queue_type != NULL:
        columns.queue_type[row] = name.queue_type
    if columns.queue != NULL:
        columns.queue[row] = name.queue
    if columns.subqueue != NULL:
        columns.subqueue[row] = name.subqueue
    if columns.suffix != NULL:
        columns.suffix[row] = name.suffix
    if columns.domain != NULL:
        columns.domain[row] = name.domain


cdef inline int read_row(
    Span text, uint32_t options, const NameColumns* columns, Name* name, Chunk* chunk, Fault* fault
) noexcept nogil:
    """One name, or the elements of one with several, which are written at once and counted when all are good."""
    cdef size_t at = 0
    cdef size_t start = 0
    cdef size_t count = chunk.elements
    if read_element(text.data, text.size, &at, options, name, fault) != 0:
        return -1
    if at > text.size:
        return 0
    while True:
        if columns.elements != NULL:
            columns.elements[count].offset = <uint32_t>start
            columns.elements[count].length = <uint32_t>(at - 1 - start)
            count += 1
        if at > text.size:
            break
        start = at
        if read_element(text.data, text.size, &at, options, name, fault) != 0:
            return -1
    chunk.elements = count
    memset(name, 0, sizeof(Name))
    name.kind = KIND_MULTIPLE_ELEMENT
    return 0


cdef void parse_rows(
    const PayloadTable* payloads, const NameColumns* columns, uint32_t options, Chunk* chunk
) noexcept nogil:
    """Parse the rows of a chunk; its elements count from 0 at the address that ``columns`` gives."""
    cdef Name nothing
    cdef Name name
    cdef Fault fault
    cdef Span text
    cdef size_t row
    memset(&nothing, 0, sizeof(Name))
    for row in range(chunk.start, chunk.stop):
        text = payload_at(payloads, row)
        if text.data == NULL:
            put_name(columns, row, &nothing, 0)
        elif read_row(text, options, columns, &name, chunk, &fault) != 0:
            put_name(columns, row, &nothing, 0)
            fault.row = <uint32_t>row
            columns.faults[chunk.faults] = fault
            chunk.faults += 1
        else:
            put_name(columns, row, &name, presence_of(&name))
        if columns.element_offsets != NULL:
            columns.element_offsets[row + 1] = <int32_t>chunk.elements


cdef NameColumns reserve_columns(Batch batch) except *:
    """Room for every column asked for, and for as many elements as the bytes of the texts can hold."""
    cdef NameColumns columns
    cdef size_t rows = batch.length
    cdef size_t elements = <size_t>batch.payloads.nbytes // SMALLEST_ELEMENT
    columns.presence = <uint32_t*>batch.reserve("presence", 4 * rows)
    columns.kind = batch.reserve_column("kind", rows)
    columns.guid = batch.reserve_column("guid", 16 * rows)
    columns.private_id = <uint32_t*>batch.reserve_column("private_id", 4 * rows)
    columns.protocol = batch.reserve_column("protocol", rows)
    columns.address = <TextSpan*>batch.reserve_column("address", sizeof(TextSpan) * rows)
    columns.port = <uint16_t*>batch.reserve_column("port", 2 * rows)
    columns.queue_type = batch.reserve_column("queue_type", rows)
    columns.queue = <TextSpan*>batch.reserve_column("queue", sizeof(TextSpan) * rows)
    columns.subqueue = <TextSpan*>batch.reserve_column("subqueue", sizeof(TextSpan) * rows)
    columns.suffix = batch.reserve_column("suffix", rows)
    columns.domain = <TextSpan*>batch.reserve_column("domain", sizeof(TextSpan) * rows)
    columns.element_offsets = <int32_t*>batch.reserve_column("elements", 4 * (rows + 1))
    columns.elements = <TextSpan*>batch.reserve_column("elements[]", sizeof(TextSpan) * elements)
    columns.faults = batch.reserve_faults()
    if columns.element_offsets != NULL:
        columns.element_offsets[0] = 0
    return columns


# --- One chunk a thread ---


cdef class Part:
    """The work of one thread."""
    cdef Payloads payloads
    cdef NameColumns columns
    cdef uint32_t options
    cdef Chunk chunk

    def run(self):
        with nogil:
            parse_rows(&self.payloads.table, &self.columns, self.options, &self.chunk)


cdef list parts_of(Payloads payloads, NameColumns columns, uint32_t options, size_t threads):
    """Chunks of rows, each with the room for elements that its own bytes ask for, so that no two can meet."""
    cdef size_t rows = payloads.table.count
    cdef size_t nbytes = 0
    cdef list parts = []
    cdef Part part
    cdef size_t i
    for i in range(threads):
        part = Part.__new__(Part)
        part.payloads = payloads
        part.options = options
        memset(&part.chunk, 0, sizeof(part.chunk))
        part.chunk.start = rows * i // threads
        part.chunk.stop = rows * (i + 1) // threads
        part.columns = columns
        part.columns.faults += part.chunk.start
        if columns.elements != NULL:
            part.columns.elements += nbytes // SMALLEST_ELEMENT
        if i + 1 < threads:
            nbytes += <size_t>payloads[<Py_ssize_t>part.chunk.start:<Py_ssize_t>part.chunk.stop].nbytes
        parts.append(part)
    return parts


cdef void close_up(
    const NameColumns* columns, const NameColumns* source, const Chunk* chunk, Chunk* whole
) noexcept nogil:
    """Move elements and faults of a chunk down behind those of the chunks before it, and count on from theirs."""
    cdef size_t row
    if columns.elements != NULL:
        memmove(columns.elements + whole.elements, source.elements, sizeof(TextSpan) * chunk.elements)
        for row in range(chunk.start, chunk.stop):
            columns.element_offsets[row + 1] += <int32_t>whole.elements
    memmove(columns.faults + whole.faults, source.faults, sizeof(Fault) * chunk.faults)
    whole.elements += chunk.elements
    whole.faults += chunk.faults


cdef int parse_into(Batch batch, uint32_t options, size_t threads) except -1:
    """Parse the texts that the batch holds."""
    cdef NameColumns target = reserve_columns(batch)
    cdef list parts = parts_of(batch.payloads, target, options, max(min(threads, batch.length), <size_t>1))
    cdef Chunk whole
    cdef Part part
    run_parts(parts)
    whole = (<Part>parts[0]).chunk
    for part in parts[1:]:
        close_up(&target, &part.columns, &part.chunk, &whole)
    batch.fault_count = whole.faults
    batch.counts = {"elements[]": whole.elements}
    return 0


def parse_batch(
    texts, *, bint extended=False, bint http_slashes=False, bint spx=False, bint path_names=False, columns=None,
    Batch out=None, int threads=1
):
    cdef Payloads source = decodable(Payloads.of_texts(texts), None, threads)
    cdef uint32_t options = (
        (EXTENDED if extended else 0) | (HTTP_SLASHES if http_slashes else 0) | (SPX if spx else 0)
        | (PATH_NAME if path_names else 0)
    )
    cdef Batch batch = prepare(FORMAT_NAMES, source, columns, out)
    batch.writing = True
    try:
        parse_into(batch, options, <size_t>threads)
    except BaseException:
        # Memory ran out: a batch never says that it has rows for which it has no columns
        batch.hold_payloads(NOTHING)
        parse_into(batch, 0, 1)
        raise
    finally:
        batch.writing = False
    return batch
