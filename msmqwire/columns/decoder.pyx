"""Decode payloads with threads: reserve columns, share the payloads out, merge what the threads wrote.

The payloads are shared out evenly. A thread's columns begin where all payloads before its own must end, however many
rows and items those hold; merging moves them down to where those do end, and counts list ends on from there.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memmove

from msmqwire.columns.batch cimport Batch, prepare as prepare_batch
from msmqwire.columns.layout cimport (
    LIST, LIST_END, MOST_LISTS, Columns, Items, Layout, Source, clear_counts, copy_columns, forget_zeros,
)
from msmqwire.columns.payloads cimport Payloads, Whole, fit_batch, set_too_large, without_large
from msmqwire.wire.fault cimport Fault
from msmqwire.wire.transport cimport Transports

from threading import Thread

cdef Payloads NOTHING = Payloads(b"", [0])


cdef class Decoder:
    cdef int prepare(self) except -1:
        """Find what ``decode`` needs from ``columns``; called whenever their memory changes."""
        return 0

    cdef void decode(self) noexcept nogil:
        """Decode the payloads [start, stop)."""
        pass

    cdef int finish(self, Batch batch) except -1:
        """Write what can be written only when all rows have been: lists whose items have no smallest size."""
        return 0

    def run(self):
        with nogil:
            self.decode()


cdef void shift(Columns* columns, size_t rows, size_t payloads, size_t nbytes) noexcept:
    """The columns for payloads that ``payloads`` others precede, which have ``nbytes`` bytes and at most ``rows``."""
    cdef Items* items
    cdef size_t i
    cdef size_t k
    for i in range(columns.count):
        columns.sources[i].column += columns.sources[i].width * rows
    for i in range(<size_t>MOST_LISTS):
        items = &columns.lists[i]
        if items.smallest:
            for k in range(items.member_count):
                items.members[k] += nbytes // items.smallest * items.widths[k]
    columns.faults += payloads
    if columns.wholes != NULL:
        columns.wholes += payloads


cdef void merge(Columns* whole, Decoder part) noexcept:
    """Move the rows, items and faults of a part down to the end of those before it."""
    cdef Source* source
    cdef Source* target
    cdef uint8_t* column
    cdef int32_t items
    cdef size_t rows = part.columns.rows
    cdef size_t i
    cdef size_t k
    for i in range(whole.count):
        source = &part.columns.sources[i]
        target = &whole.sources[i]
        column = target.column + target.width * whole.rows
        if source.form == LIST or source.form == LIST_END:
            items = <int32_t>whole.lists[source.list].count
            for k in range(1, rows + 1):
                (<int32_t*>column)[k] = (<int32_t*>source.column)[k] + items
        elif column != source.column:
            memmove(column, source.column, source.width * rows)
    for i in range(<size_t>MOST_LISTS):
        if whole.lists[i].smallest:
            for k in range(whole.lists[i].member_count):
                memmove(
                    whole.lists[i].members[k] + whole.lists[i].widths[k] * whole.lists[i].count,
                    part.columns.lists[i].members[k], whole.lists[i].widths[k] * part.columns.lists[i].count,
                )
        whole.lists[i].count += part.columns.lists[i].count
    memmove(whole.faults + whole.fault_count, part.columns.faults, sizeof(Fault) * part.columns.fault_count)
    for k in range(whole.fault_count, whole.fault_count + part.columns.fault_count):
        whole.faults[k].row += <uint32_t>whole.rows
    if whole.groups != NULL:
        for k in range(part.start, part.stop):
            whole.groups[k + 1] += <int32_t>whole.rows
    whole.fault_count += part.columns.fault_count
    if part.columns.whole_count:
        memmove(
            whole.wholes + whole.whole_count, part.columns.wholes, sizeof(Whole) * part.columns.whole_count
        )
        for k in range(whole.whole_count, whole.whole_count + part.columns.whole_count):
            whole.wholes[k].row += whole.rows
        whole.whole_count += part.columns.whole_count
    whole.rows += rows


cdef Decoder first_decoder(Batch batch, Layout layout, type decoder):
    """The first decoder of a batch: its columns have room for the payloads, and nothing is written in them."""
    cdef Decoder first = batch.decoder
    cdef size_t nbytes = <size_t>batch.payloads.nbytes
    if (
        first is not None and batch.length <= first.most_payloads and nbytes <= first.most_bytes
        and (batch.payloads.table.lost == NULL or first.columns.wholes != NULL)
    ):
        clear_counts(&first.columns)
        return first
    batch.decoder = None  # until all columns have their memory
    first = decoder.__new__(decoder)
    layout.reserve(batch, &first.columns)
    first.most_payloads = batch.length
    first.most_bytes = nbytes
    first.lists = tuple([(items, which) for name, items, which in layout.lists if name in batch.selected])
    first.prepare()
    batch.decoder = first
    return first


cdef int decode_into(
    Batch batch, Layout layout, type decoder, Transports transports, bint strict, uint32_t options,
    size_t threads,
) except -1:
    """Decode the payloads that the batch holds."""
    cdef Decoder first = first_decoder(batch, layout, decoder)
    cdef Decoder part = first
    cdef list others = []
    cdef size_t nbytes = 0
    cdef size_t i
    threads = max(min(threads, batch.length), <size_t>1)
    first.payloads = batch.payloads
    first.transports = transports
    first.strict = strict
    first.options = options
    first.start = 0
    first.stop = batch.length // threads
    if threads > 1:
        forget_zeros(&first.columns)
    for i in range(1, threads):
        nbytes += <size_t>batch.payloads[<Py_ssize_t>part.start:<Py_ssize_t>part.stop].nbytes
        part = decoder.__new__(decoder)
        part.payloads = batch.payloads
        part.transports = transports
        part.strict = strict
        part.options = options
        part.start = batch.length * i // threads
        part.stop = batch.length * (i + 1) // threads
        copy_columns(&part.columns, &first.columns)
        shift(&part.columns, layout.most_rows(part.start, nbytes), part.start, nbytes)
        part.prepare()
        others.append(part)
    run_all(first, others)
    for part in others:
        merge(&first.columns, part)
    first.payloads = None
    if first.columns.groups != NULL:
        batch.groups = batch.buffers["groups"]
    batch.length = first.columns.rows
    batch.fault_count = first.columns.fault_count
    batch.whole_count = first.columns.whole_count
    for items, which in first.lists:
        batch.counts[items] = first.columns.lists[<size_t>which].count
    return first.finish(batch)


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


cdef int run_all(Decoder first, list others) except -1:
    """Run every decoder to its end, the first one in this thread.

    An interrupt is raised after all threads have ended: until then they write into the columns. An interpreter that is
    ending starts no more threads; then this thread runs them all.
    """
    cdef list threads
    if not others:
        with nogil:
            first.decode()
        return 0
    threads = []
    interrupt = None
    for part in others:
        thread = Thread(target=part.run, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            part.run()
        except KeyboardInterrupt as error:
            interrupt = error
        threads.append(thread)
    first.run()
    for thread in threads:
        while thread.is_alive():
            try:
                thread.join()
            except KeyboardInterrupt as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt
    return 0


cdef Batch decode_payloads(
    Layout layout, type decoder, Payloads payloads, Transports transports, bint strict, object columns, Batch out,
    int threads, type kind=Batch, uint32_t options=0,
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
        decode_into(batch, layout, decoder, transports, strict, options, <size_t>threads)
        if large:
            report_large(batch, large)
            batch.payloads = payloads
    except BaseException:
        # Memory ran out: a batch never has rows without their columns
        batch.hold_payloads(NOTHING)
        decode_into(batch, layout, decoder, Transports.__new__(Transports), False, 0, 1)
        raise
    finally:
        batch.writing = False
    return batch
