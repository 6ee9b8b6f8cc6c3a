"""Columns from records, and records from columns."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.columns.batch cimport Batch
from msmqwire.wire.cursor cimport load_u16, load_u32, load_u64, store_u32

from msmqwire.columns.schema import UINT32, ListOf, Scalar, StructOf


cdef inline void copy_fields(
    const Source* source, const uint8_t* record, size_t stride, size_t count, uint8_t* target, size_t width
) noexcept nogil:
    """``width`` is a constant wherever this is called, here and below."""
    cdef const uint8_t* place = record + source.place
    cdef size_t offset = source.offset
    cdef size_t i
    for i in range(count):
        memcpy(target + width * i, (<const uint8_t* const*>place)[0] + offset, width)
        place += stride


cdef inline void copy_values(
    const Source* source, const uint8_t* record, size_t stride, size_t count, uint8_t* target, size_t width
) noexcept nogil:
    cdef const uint8_t* place = record + source.place
    cdef size_t i
    for i in range(count):
        memcpy(target + width * i, place, width)
        place += stride


cdef inline void put_bits(
    const Source* source, const uint8_t* record, size_t stride, size_t count, uint8_t* target
) noexcept nogil:
    cdef const uint8_t* place = record + source.place
    cdef size_t offset = source.offset
    cdef uint32_t shift = source.shift
    cdef uint32_t mask = source.mask
    cdef size_t i
    if source.width == 1:
        for i in range(count):
            target[i] = <uint8_t>(load_u32((<const uint8_t* const*>place)[0] + offset) >> shift & mask)
            place += stride
    else:
        for i in range(count):
            (<uint32_t*>target)[i] = load_u32((<const uint8_t* const*>place)[0] + offset) >> shift & mask
            place += stride


cdef inline void put_list(
    const Source* source, const uint8_t* record, size_t stride, size_t count, uint8_t* target, Items* items,
    size_t width,
) noexcept nogil:
    """The ends of lists from ``target`` on, and their items; ``width`` is 0 where those are written elsewhere."""
    cdef const uint8_t* place = record + source.place
    cdef const uint8_t* address = record + source.offset
    cdef uint8_t* start = items.members[0]
    cdef uint8_t* to = start + width * items.count
    cdef const uint8_t* item
    cdef size_t total = items.count
    cdef size_t length
    cdef size_t i
    cdef size_t j
    for i in range(count):
        length = load_u32(place)
        if width:
            item = (<const uint8_t* const*>address)[0]  # not set for an empty list
            for j in range(length):
                memcpy(to + width * j, item + width * j, width)
            to += width * length
            address += stride
        total += length
        (<int32_t*>target)[i + 1] = <int32_t>total
        place += stride
    items.count = total


cdef inline void put_column(
    const Source* source, const uint8_t* records, size_t stride, size_t count, size_t row, Items* lists
) noexcept nogil:
    cdef uint8_t* target = source.column + source.width * row
    cdef size_t i
    if source.form == COPY:
        if source.width == 4:
            copy_fields(source, records, stride, count, target, 4)
        elif source.width == 16:
            copy_fields(source, records, stride, count, target, 16)
        elif source.width == 2:
            copy_fields(source, records, stride, count, target, 2)
        elif source.width == 8:
            copy_fields(source, records, stride, count, target, 8)
        else:
            copy_fields(source, records, stride, count, target, 1)
    elif source.form == BITS:
        put_bits(source, records, stride, count, target)
    elif source.form == VALUE:
        if source.width == 8:
            copy_values(source, records, stride, count, target, 8)
        elif source.width == 1:
            copy_values(source, records, stride, count, target, 1)
        elif source.width == 4:
            copy_values(source, records, stride, count, target, 4)
        elif source.width == 32:
            copy_values(source, records, stride, count, target, 32)
        elif source.width == 16:
            copy_values(source, records, stride, count, target, 16)
        else:
            copy_values(source, records, stride, count, target, 2)
    elif source.form == LIST:
        if source.offset == 0:
            put_list(source, records, stride, count, target, &lists[source.list], 0)
        elif lists[source.list].widths[0] == 16:
            put_list(source, records, stride, count, target, &lists[source.list], 16)
        else:
            put_list(source, records, stride, count, target, &lists[source.list], 4)
    elif source.form == LIST_END:
        copy_values(source, records, stride, count, target + 4, 4)
    else:
        for i in range(count):
            (<int64_t*>target)[i] = <int64_t>load_u32(field_of(source, records + stride * i)) * NANOSECONDS


cdef void put_rows(Columns* columns, const void* records, size_t count) noexcept nogil:
    """Write the next ``count`` rows, column by column."""
    cdef size_t i
    for i in range(columns.count):
        put_column(
            &columns.sources[i], <const uint8_t*>records, columns.stride, count, columns.rows, columns.lists
        )
    columns.rows += count


cdef void fill_rows(Columns* columns, const void* record, size_t count) noexcept nogil:
    """Write ``count`` rows that are alike: all zeros but for values of one byte, without items in their lists.

    Columns of a section whose address is NULL are left to the caller.
    """
    cdef const uint8_t* at
    cdef const Source* source
    cdef int32_t* ends
    cdef int32_t end
    cdef size_t i
    cdef size_t row
    for i in range(columns.count):
        source = &columns.sources[i]
        at = <const uint8_t*>record + source.place
        if source.form == LIST or source.form == LIST_END:
            end = <int32_t>columns.lists[source.list].count
            ends = <int32_t*>source.column + columns.rows + 1  # a local copy, which no store can change
            for row in range(count):
                ends[row] = end
        elif source.form == VALUE:
            memset(source.column + source.width * columns.rows, at[0], source.width * count)
        elif (<const uint8_t* const*>at)[0] != NULL:
            memset(source.column + source.width * columns.rows, 0, source.width * count)
    columns.rows += count


cdef uint8_t* column_of(const Columns* columns, const Source* wanted) noexcept nogil:
    """Where the column with this source is written; NULL when it is not requested."""
    cdef size_t i
    for i in range(columns.count):
        if columns.sources[i].place == wanted.place and columns.sources[i].offset == wanted.offset:
            return columns.sources[i].column
    return NULL


# --- Numbers of a record ---


cdef uint64_t largest_number(const Source* source) noexcept nogil:
    """The largest number that the field of a column can hold."""
    if source.form == BITS:
        return source.mask
    if source.form == SECONDS or source.width == 4:
        return 0xFFFFFFFF
    if source.width == 8:
        return <uint64_t>0xFFFFFFFFFFFFFFFF
    return 0xFFFF if source.width == 2 else 0xFF


cdef uint64_t number_of(const Source* source, const void* record) noexcept nogil:
    """The number that a record has for a column."""
    cdef const uint8_t* at
    if source.form == VALUE:
        return (<const uint8_t*>record)[source.place]
    at = field_of(source, record)
    if source.form == BITS:
        return load_u32(at) >> source.shift & source.mask
    if source.form == SECONDS or source.width == 4:
        return load_u32(at)
    if source.width == 8:
        return load_u64(at)
    return load_u16(at) if source.width == 2 else at[0]


cdef void store_number(const Source* source, void* record, uint64_t number) noexcept nogil:
    """Store a number, at most ``largest_number``, in a record whose sections can be written."""
    cdef uint8_t* at
    if source.form == VALUE:
        (<uint8_t*>record)[source.place] = <uint8_t>number
        return
    at = field_of(source, record)
    if source.form == BITS:
        store_u32(at, load_u32(at) | <uint32_t>number << source.shift)
    else:
        memcpy(at, &number, 4 if source.form == SECONDS else source.width)


cdef inline void copy(uint8_t* target, const uint8_t* value, uint32_t width) noexcept nogil:
    if width == 4:
        memcpy(target, value, 4)
    elif width == 16:
        memcpy(target, value, 16)
    elif width == 8:
        memcpy(target, value, 8)
    elif width == 1:
        target[0] = value[0]
    elif width == 32:
        memcpy(target, value, 32)
    else:
        memcpy(target, value, 2)


cdef void load_row(const Columns* columns, size_t row, void* record) noexcept nogil:
    """Load the values of a row, as they were decoded, into a record whose sections can be written."""
    cdef const Source* source
    cdef const uint8_t* value
    cdef uint8_t* field
    cdef uint32_t number
    cdef size_t i
    for i in range(columns.count):
        source = &columns.sources[i]
        value = source.column + source.width * row
        if source.form == COPY:
            copy(field_of(source, record), value, source.width)
        elif source.form == BITS:
            number = value[0] if source.width == 1 else load_u32(value)
            field = field_of(source, record)
            store_u32(field, load_u32(field) | number << source.shift)
        elif source.form == VALUE:
            copy(<uint8_t*>record + source.place, value, source.width)
        elif source.form == LIST:
            (<uint32_t*>(<uint8_t*>record + source.place))[0] = load_u32(value + 4) - load_u32(value)
        else:
            bits = <uint32_t>(<uint64_t>((<const int64_t*>value)[0]) // NANOSECONDS)
            memcpy(field_of(source, record), &bits, 4)


# --- Layouts ---


cdef tuple members_of(str path, object type_):
    """The buffers for the items of a list: path and bytes of a value."""
    if isinstance(type_, StructOf):
        return tuple([(f"{path}[].{name}", width_of(member)) for name, member in type_.members])
    return ((path + "[]", width_of(type_)),)


cdef size_t width_of(object type_) except? 0:
    """Bytes of a row in the column: an enumeration has one, a list the end of its items."""
    if isinstance(type_, Scalar):
        return type_.width
    return 4 if isinstance(type_, ListOf) else 1


cdef class Layout:
    def __init__(self, table, dict sources, size_t stride, *, dict written=None, size_t smallest_row=0):
        self.table = table
        self.sources = {
            **sources,
            "presence": (VALUE, 0),
            "violations": (VALUE, 4),
        }
        self.written = {
            **{column.name: column.type for column in table.columns if not column.derived},
            "violations": UINT32,
            **(written or {}),
        }
        self.stride = stride
        self.smallest_row = smallest_row
        for name, (form, _, *others) in sources.items():
            # Items that are copied are GUIDs or u32 numbers
            if form == LIST and others[0] and width_of(self.written[name].item) not in (4, 16):
                raise ValueError(f"items of {name} must have 4 or 16 bytes")
        missing = [column.name for column in table.columns if column.name not in sources and not column.derived]
        if missing:
            raise ValueError(f"the layout of {table.name} lacks {', '.join(missing)}")
        self.lines = {name: self.line(name) for name in self.sources}
        self.lists = tuple([
            (name, name + "[]", self.sources[name][3]) for name, (form, *_) in sources.items()
            if form == LIST or form == LIST_END
        ])

    cdef Source source(self, str column) except *:
        return (<Line>self.lines[column]).source

    cdef Line line(self, str column):
        cdef Line line = Line.__new__(Line)
        cdef Source source
        form, place, *others = self.sources[column]
        memset(&source, 0, sizeof(source))
        source.form = form
        source.place = place
        if form == LIST or form == LIST_END:
            source.offset, source.list = others
        elif others:
            source.offset, source.shift, source.mask = (*others, 0, 0)[:3]
        source.width = <uint32_t>(
            self.table.presence_width if column == "presence" else width_of(self.written[column])
        )
        line.source = source
        if form == LIST or form == LIST_END:
            line.members = members_of(column, self.written[column].item)
            line.smallest = self.written[column].smallest
        return line

    cdef size_t most_rows(self, size_t payloads, size_t nbytes):
        """At least a row a payload; more of them only where rows have a smallest size."""
        return payloads + (nbytes // self.smallest_row if self.smallest_row else 0)

    cdef int reserve(self, Batch batch, Columns* columns) except -1:
        """Reserve memory for every requested column; lists get as many items as the payloads can hold."""
        cdef Line line
        cdef Source source
        cdef size_t nbytes = <size_t>batch.payloads.nbytes
        cdef size_t rows = self.most_rows(batch.length, nbytes)
        cdef Items* items
        clear_columns(columns)
        columns.stride = self.stride
        for name in ("presence", *batch.columns):
            line = self.lines.get(name)
            if line is None:
                continue
            source = line.source
            if source.form == LIST or source.form == LIST_END:
                source.column = batch.reserve(name, 4 * (rows + 1))
                (<int32_t*>source.column)[0] = 0
                items = &columns.lists[source.list]
                items.smallest = line.smallest
                for path, width in line.members:
                    items.widths[items.member_count] = width
                    if items.smallest:
                        items.members[items.member_count] = batch.reserve(path, nbytes // items.smallest * width)
                    items.member_count += 1
            else:
                source.column = batch.reserve(name, source.width * rows)
            columns.sources[columns.count] = source
            columns.count += 1
        if self.smallest_row:
            columns.groups = <int32_t*>batch.reserve("groups", 4 * (batch.length + 1))
            columns.groups[0] = 0
        columns.faults = batch.reserve_faults()
        return 0

    cdef list attach(self, Batch batch, object names, Columns* columns):
        """Point at the columns ``names`` of a batch that was decoded; their names in the order of ``columns.sources``.

        ``presence`` and ``violations`` are always among them.
        """
        cdef Source source
        cdef Items* items
        cdef list attached = []
        clear_columns(columns)
        columns.stride = self.stride
        for name in ("presence", "violations", *names):
            source = self.source(name)
            source.column = batch.data(name)
            if source.form == LIST or source.form == LIST_END:
                items = &columns.lists[source.list]
                for path, width in (<Line>self.lines[name]).members:
                    items.widths[items.member_count] = width
                    items.members[items.member_count] = batch.data(path)
                    items.member_count += 1
            columns.sources[columns.count] = source
            columns.count += 1
            attached.append(name)
        return attached
