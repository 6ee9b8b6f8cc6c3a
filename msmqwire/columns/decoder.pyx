"""Decode payloads with threads: reserve columns, share the payloads out, merge what the threads wrote.

The payloads are shared out evenly. A thread's columns begin where all payloads before its own must end, however many
rows and items those hold; merging moves them down to where those do end, and counts list ends on from there.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memmove

from msmqwire.columns.batch cimport Batch, prepare as prepare_batch
from msmqwire.columns.layout cimport (
    LIST, LIST_END, MOST_LISTS, Columns, Items, Layout, Source, copy_columns,
)
from msmqwire.columns.payloads cimport Payloads, set_too_large, without_large
from msmqwire.wire.fault cimport Fault
from msmqwire.wire.transport cimport Transports

from threading import Thread

cdef Payloads NOTHING = Payloads(b"", [0])


cdef class Decoder:
    cdef int prepare(self) except -1:
        """Find what ``decode`` needs from ``columns``; called once for each thread, before any starts."""
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
    whole.rows += rows


cdef int decode_into(
    Batch batch, Layout layout, type decoder, Transports transports, bint strict, uint32_t options,
    size_t threads,
) except -1:
    """Decode the payloads that the batch holds."""
    cdef Columns whole
    cdef Decoder part
    cdef list parts = []
    cdef size_t nbytes = 0
    cdef size_t i
    layout.reserve(batch, &whole)
    threads = max(min(threads, batch.length), <size_t>1)
    for i in range(threads):
        part = decoder.__new__(decoder)
        part.batch = batch
        part.payloads = batch.payloads
        part.transports = transports
        part.strict = strict
        part.options = options
        part.start = batch.length * i // threads
        part.stop = batch.length * (i + 1) // threads
        copy_columns(&part.columns, &whole)
        shift(&part.columns, layout.most_rows(part.start, nbytes), part.start, nbytes)
        part.prepare()
        if i + 1 < threads:
            nbytes += <size_t>batch.payloads[<Py_ssize_t>part.start:<Py_ssize_t>part.stop].nbytes
        parts.append(part)
    run_all(parts)
    copy_columns(&whole, &(<Decoder>parts[0]).columns)
    for part in parts[1:]:
        merge(&whole, part)
    if whole.groups != NULL:
        batch.groups = batch.buffers["groups"]
    batch.length = whole.rows
    batch.fault_count = whole.fault_count
    part = parts[0]
    copy_columns(&part.columns, &whole)
    for name, items, which in layout.lists:
        if name in batch.selected:
            batch.counts[items] = whole.lists[<size_t>which].count
    return part.finish(batch)


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


cdef int run_all(list parts) except -1:
    """Run every part to its end, the first one in this thread.

    An interrupt is raised after all threads have ended: until then they write into the columns. An interpreter that is
    ending starts no more threads; then this thread runs all parts.
    """
    cdef list threads = []
    interrupt = None
    for part in parts[1:]:
        thread = Thread(target=part.run, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            part.run()
        except KeyboardInterrupt as error:
            interrupt = error
        threads.append(thread)
    parts[0].run()
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
    cdef list large = []
    cdef Batch batch = prepare_batch(layout.table, without_large(payloads, large), columns, out, kind)
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
