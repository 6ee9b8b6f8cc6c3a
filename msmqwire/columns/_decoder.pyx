"""Decode payloads into the columns of a batch: reserve the columns, run the kernel, take its counts."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset

from msmqwire.columns._batch cimport Batch, prepare as prepare_batch
from msmqwire.columns._buffer cimport Buffer
from msmqwire.columns._layout cimport Columns, Layout, clear_counts, same_rows
from msmqwire.columns._payloads cimport Payloads, fit_batch, set_too_large, without_large
from msmqwire.wire._fault cimport Fault
from msmqwire.wire._transport cimport Transports

cdef Payloads NOTHING = Payloads(b"", [0])


cdef class Decoder:
    cdef int prepare(self, Batch batch) except -1:
        """Find what ``decode`` needs from ``columns`` and the batch; called whenever their memory changes."""
        return 0

    cdef void decode(self) noexcept nogil:
        """Decode the payloads."""
        pass

    cdef void clear(self, void* record) noexcept nogil:
        """Make the record of a payload that is null or at fault."""
        pass

    cdef int keep(
        self, size_t row, const Span* payload, int status, void* record, Fault* fault, uint8_t* header
    ) noexcept nogil:
        """The ``status`` of a payload that lost bytes at its end; at fault, its record keeps the complete fields.

        What there is of a truncated header is in ``header``.
        """
        return status

    cdef int finish(self, Batch batch) except -1:
        """Write what can be written only when all rows have been: lists whose items have no smallest size."""
        return 0


cdef Decoder decoder_of(Batch batch, Layout layout, type decoder_type):
    """The decoder of a batch: its columns have room for the payloads, and nothing is written in them."""
    cdef Decoder decoder = batch.decoder
    cdef size_t nbytes = <size_t>batch.payloads.nbytes
    if decoder is not None and batch.length <= decoder.most_payloads and nbytes <= decoder.most_bytes:
        clear_counts(&decoder.columns)
        return decoder
    batch.decoder = None  # until all columns have their memory
    decoder = decoder_type.__new__(decoder_type)
    layout.reserve(batch, &decoder.columns)
    decoder.most_payloads = batch.length
    decoder.most_bytes = nbytes
    decoder.lists = tuple([(items, which) for name, items, which in layout.lists if name in batch.selected])
    decoder.prepare(batch)
    batch.decoder = decoder
    return decoder


cdef int decode_into(
    Batch batch, Layout layout, type decoder_type, Transports transports, bint strict, uint32_t options
) except -1:
    """Decode the payloads that the batch holds."""
    cdef Decoder decoder = decoder_of(batch, layout, decoder_type)
    decoder.payloads = batch.payloads
    decoder.transports = batch.transports = transports
    decoder.strict = strict
    decoder.options = options
    decoder.count = batch.length
    with nogil:
        decoder.decode()
    decoder.payloads = None
    if decoder.columns.groups != NULL:
        batch.groups = batch.buffers["groups"]
    batch.length = decoder.columns.rows
    batch.fault_count = decoder.columns.fault_count
    for items, which in decoder.lists:
        batch.counts[items] = decoder.columns.lists[<size_t>which].count
    return decoder.finish(batch)


cdef int report_large(Batch batch, list large) except -1:
    """Let the faults of payloads that were decoded as empty ones, as they are too large, say so."""
    cdef Fault* fault = <Fault*>batch.data("faults")
    cdef const int32_t* groups = NULL
    cdef size_t payload
    cdef size_t size
    cdef uint32_t row
    if batch.groups is not None:
        groups = <const int32_t*>batch.groups.data
    for payload, size in large:
        row = <uint32_t>payload if groups == NULL else <uint32_t>groups[payload]
        while fault.row != row:
            fault += 1
        set_too_large(fault, size)
    return 0


cdef Batch decode_payloads(
    Layout layout, type decoder_type, Payloads payloads, Transports transports, bint strict, object columns, Batch out,
    type kind=Batch, uint32_t options=0,
):
    """A batch of class ``kind`` with the rows of the payloads: ``out`` written again, or a new one."""
    cdef list large = None
    cdef Payloads decodable = payloads
    cdef Batch batch
    if not fit_batch(payloads):
        large = []
        decodable = without_large(payloads, large)
    batch = prepare_batch(layout.table, decodable, columns, out, kind)
    batch.writing = True
    try:
        decode_into(batch, layout, decoder_type, transports, strict, options)
        if large:
            report_large(batch, large)
            batch.payloads = payloads
    except BaseException:
        # Memory ran out: a batch never has rows without their columns
        batch.hold_payloads(NOTHING)
        decode_into(batch, layout, decoder_type, Transports.__new__(Transports), False, 0)
        raise
    finally:
        batch.writing = False
    return batch


# --- Checks of hand-written paths, when their modules are imported ---


cdef Batch decoded_over(Layout layout, type decoder_type, list payloads, int old):
    """The rows of payloads, in memory that held the byte ``old`` everywhere."""
    cdef Batch batch = prepare_batch(layout.table, Payloads.of(payloads), None, None)
    cdef Columns columns
    cdef Buffer buffer
    layout.reserve(batch, &columns)
    for buffer in batch.buffers.values():
        memset(buffer.data, old, buffer.size)
    decode_into(batch, layout, decoder_type, Transports.__new__(Transports), False, 0)
    return batch


cdef int check_run(Layout layout, type run, type general, list payloads) except -1:
    """Check that a decoder that writes columns by hand writes the columns of another decoder, with the same values.

    A column that it leaves out would show what its memory held before: rows of another capture.

    Raises
    ------
    ImportError
        It does not decode all of the payloads, or a column of the layout is missing.
    """
    cdef Batch found = decoded_over(layout, run, payloads, 0xA5)
    cdef Batch expected = decoded_over(layout, general, payloads, 0x5A)
    if found.length != expected.length or found.fault_count:
        raise ImportError(f"{run.__name__} does not decode its own {layout.table.name}")
    missing = [name for name in layout.lines if not same_rows(layout, found, expected, name)]
    if missing:
        raise ImportError(f"{run.__name__} does not write the columns {', '.join(missing)} of {layout.table.name}")
    return 0
