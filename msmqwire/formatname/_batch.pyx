"""Many format names: from a column of text to columns."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t
from libc.string cimport memset

from msmqwire.columns._batch cimport DECODED, Batch
from msmqwire.columns._convert cimport TextSpan
from msmqwire.columns._decoder cimport Decoder, decode_block, decode_payloads
from msmqwire.columns._layout cimport LARGEST_BLOCK, Items, Layout, place_of
from msmqwire.columns._payloads cimport Payloads
from msmqwire.columns.payload_table cimport Span
from msmqwire.formatname._kernel cimport (
    EXTENDED, HAS_ADDRESS, HAS_DOMAIN, HAS_ELEMENTS, HAS_GUID, HAS_PORT, HAS_PRIVATE_ID, HAS_PROTOCOL, HAS_QUEUE,
    HAS_QUEUE_TYPE, HAS_SUBQUEUE, HAS_SUFFIX, HTTP_SLASHES, KIND_DIRECT, KIND_MULTICAST, KIND_MULTIPLE_ELEMENT,
    KIND_PATH_NAME, KIND_PRIVATE, PATH_NAME, SPX, Name, read_element,
)
from msmqwire.wire._fault cimport Fault
from msmqwire.wire._transport cimport Transports

from msmqwire.formatname.schema import FORMAT_NAMES

if False:  # for type checkers: see stubs.py
    from collections.abc import Sequence
    from typing import Any

cdef enum:
    ELEMENTS = 0
    NO_VALUE = 0xFF  # of an enumeration


# The record of a row.
cdef struct Row:
    uint32_t presence
    uint32_t violations
    Name name
    uint32_t elements_end


cdef Row RECORD  # only the offsets of its fields are used

LAYOUT = Layout(
    FORMAT_NAMES,
    sizeof(Row),
    places={
        "kind": place_of(&RECORD, &RECORD.name.kind),
        "guid": place_of(&RECORD, &RECORD.name.guid),
        "private_id": place_of(&RECORD, &RECORD.name.private_id),
        "protocol": place_of(&RECORD, &RECORD.name.protocol),
        "address": place_of(&RECORD, &RECORD.name.address),
        "port": place_of(&RECORD, &RECORD.name.port),
        "queue_type": place_of(&RECORD, &RECORD.name.queue_type),
        "queue": place_of(&RECORD, &RECORD.name.queue),
        "subqueue": place_of(&RECORD, &RECORD.name.subqueue),
        "suffix": place_of(&RECORD, &RECORD.name.suffix),
        "domain": place_of(&RECORD, &RECORD.name.domain),
        "elements": place_of(&RECORD, &RECORD.elements_end),
    },
)


cdef inline void clear_name(Name* name) noexcept nogil:
    """A name that cannot be parsed."""
    memset(name, 0, sizeof(Name))
    name.kind = name.protocol = name.queue_type = name.suffix = NO_VALUE


cdef inline uint32_t presence_of(Name* name) noexcept nogil:
    """The presence of the parts of a name; enumerations without a value get ``NO_VALUE``."""
    cdef uint32_t presence = DECODED
    if name.kind == KIND_DIRECT:
        presence |= HAS_PROTOCOL | HAS_ADDRESS | HAS_QUEUE_TYPE
    elif name.kind == KIND_PATH_NAME:
        presence |= HAS_ADDRESS | HAS_QUEUE_TYPE
        name.protocol = NO_VALUE
    else:
        name.protocol = name.queue_type = NO_VALUE
        if name.kind == KIND_MULTICAST:
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
    else:
        name.suffix = NO_VALUE
    if name.domain.length:
        presence |= HAS_DOMAIN
    return presence


cdef inline int read_name(
    Span text, uint32_t options, TextSpan* elements, size_t* element, Name* name, Fault* fault
) noexcept nogil:
    """One name. The elements of a name with several are written from ``element`` on, which moves if all are valid."""
    cdef size_t at = 0
    cdef size_t start = 0
    cdef size_t count = element[0]
    if read_element(text.data, text.size, &at, options, name, fault) != 0:
        return -1
    if at > text.size:
        return 0
    while True:
        if elements != NULL:
            elements[count].offset = <uint32_t>start
            elements[count].length = <uint32_t>(at - 1 - start)
            count += 1
        if at > text.size:
            break
        start = at
        if read_element(text.data, text.size, &at, options, name, fault) != 0:
            return -1
    element[0] = count
    memset(name, 0, sizeof(Name))
    name.kind = KIND_MULTIPLE_ELEMENT
    return 0


cdef class NameDecoder(Decoder):
    cdef void clear(self, void* record) noexcept nogil:
        cdef Row* row = <Row*>record
        row.presence = 0
        clear_name(&row.name)
        row.elements_end = <uint32_t>self.columns.lists[ELEMENTS].count

    cdef void decode(self) noexcept nogil:
        cdef Row[LARGEST_BLOCK] rows
        cdef size_t row = 0
        while row < self.count:
            row = decode_block(self, row, rows, read_row, 0)


cdef inline int read_row(Decoder decoder, size_t row, const Span* text, void* record, Fault* fault) noexcept nogil:
    cdef Row* to = <Row*>record
    cdef Items* elements = &decoder.columns.lists[ELEMENTS]
    if read_name(text[0], decoder.options, <TextSpan*>elements.members[0], &elements.count, &to.name, fault) != 0:
        return -1
    to.presence = presence_of(&to.name)
    to.elements_end = <uint32_t>elements.count
    return 0


def parse_batch(
    texts: Any, *, bint extended=False, bint http_slashes=False, bint spx=False, bint path_names=False,
    columns: Sequence[str] | None = None, Batch out=None
) -> Batch:
    """Parse a column of format names into the columns of the format_names table: [MS-MQMQ] 2.1.

    Every text gives one row: a text that is not a format name a row with a fault, a null text a null row. Text in the
    columns is a view of the texts.

    Parameters
    ----------
    texts
        As for ``Payloads.of_texts``, less than 2 GiB.
    extended, http_slashes, spx : bool
        As for ``parse``.
    path_names : bool
        The texts are path names ([MS-MQMQ] 2.1.1), not format names.
    columns : sequence of str, optional
        Build only these columns.
    out : Batch, optional
        A batch to overwrite, with everything that its views show.

    Raises
    ------
    ValueError
        A column that does not exist, or an ``out`` with other columns.
    BufferError
        An Arrow consumer still holds ``out``.

    Examples
    --------
    >>> batch = parse_batch(["DIRECT=OS:server\\\\private$\\\\orders", "PUBLIC=?", "MULTICAST=234.1.1.1:8001"])
    >>> batch["queue"].text(0)
    'orders'
    >>> batch.fault(1)
    FaultEntry(code='bad_text', field='QueueGuid', offset=7, value=None, needed=None)
    >>> batch["port"]
    array([   0,    0, 8001], dtype=uint16)
    """
    cdef uint32_t options = (
        (EXTENDED if extended else 0) | (HTTP_SLASHES if http_slashes else 0) | (SPX if spx else 0)
        | (PATH_NAME if path_names else 0)
    )
    return decode_payloads(
        LAYOUT, NameDecoder, Payloads.of_texts(texts), Transports.__new__(Transports), False, columns, out, Batch,
        options,
    )
