"""Columns from records, and records from columns."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from msmqwire.columns._batch cimport Batch
from msmqwire.wire.cursor cimport load_u16, load_u32, load_u64, store_u32
from msmqwire.wire.simd cimport wire_prefetch

from msmqwire.columns.fields import enumerators, row_columns, section_places
from msmqwire.columns.schema import UINT8, UINT32, Enumeration, ListOf, StructOf


cdef enum:
    SECTIONS_AT = 8   # of a record, after its presence and its violations
    FEW_COLUMNS = 16  # that are read or written side by side: processors foresee which bytes are next


cdef inline void copy_fields(
    const ColumnCopy* source, uint8_t* record, size_t stride, size_t count, uint8_t* values, size_t width, bint load
) noexcept nogil:
    """Fields of ``count`` records to the values of a column, or, with ``load``, the values to the fields.

    Records that are loaded have sections of their own, ``stride`` bytes apart as the records are.
    ``width`` and ``load`` are constants wherever this is called, here and below.
    """
    cdef uint8_t* place = record + source.place
    cdef size_t offset = source.offset
    cdef uint8_t* field = field_of(source, record)
    cdef size_t i
    for i in range(count):
        if load:
            memcpy(field, values + width * i, width)
            field += stride
        else:
            memcpy(values + width * i, (<uint8_t* const*>place)[0] + offset, width)
            place += stride


cdef inline void copy_values(
    const ColumnCopy* source, uint8_t* record, size_t stride, size_t count, uint8_t* values, size_t width, bint load
) noexcept nogil:
    cdef uint8_t* place = record + source.place
    cdef size_t i
    for i in range(count):
        if load:
            memcpy(place, values + width * i, width)
        else:
            memcpy(values + width * i, place, width)
        place += stride


# Some words of a block of records, in which columns of bits stand together
cdef struct Words:
    const ColumnCopy* source    # a column whose bits are in the words; NULL: none yet
    uint32_t mask           # bits of the words that were loaded from columns
    uint32_t[LARGEST_BLOCK] values


cdef inline bint in_words(const Words* words, const ColumnCopy* source) noexcept nogil:
    return words.source != NULL and words.source.place == source.place and words.source.offset == source.offset


cdef inline void put_bits(
    const ColumnCopy* source, const uint8_t* record, size_t stride, size_t count, uint8_t* values, Words* words
) noexcept nogil:
    """Bits of ``count`` records to the values of a column; columns of the same word stand one after the other."""
    cdef uint32_t shift = source.shift
    cdef uint32_t mask = source.mask
    cdef size_t i
    if not in_words(words, source):
        words.source = source
        for i in range(count):
            words.values[i] = load_u32(field_of(source, record + stride * i))
    if source.width == 1:
        for i in range(count):
            values[i] = <uint8_t>(words.values[i] >> shift & mask)
    else:
        for i in range(count):
            store_u32(values + 4 * i, words.values[i] >> shift & mask)


cdef inline void flush_words(const Words* words, uint8_t* record, size_t stride, size_t count) noexcept nogil:
    """The bits that were loaded from columns to the fields of records, whose other bits stay."""
    cdef uint32_t others = ~words.mask
    cdef uint8_t* field
    cdef size_t i
    if words.source != NULL:
        field = field_of(words.source, record)
        for i in range(count):
            store_u32(field, load_u32(field) & others | words.values[i])
            field += stride


cdef inline void load_bits(
    const ColumnCopy* source, uint8_t* record, size_t stride, size_t count, const uint8_t* values, Words* words
) noexcept nogil:
    """The values of a column to bits of words, which are stored when a column of another word follows."""
    cdef uint32_t shift = source.shift
    cdef uint32_t mask = source.mask
    cdef size_t i
    if not in_words(words, source):
        flush_words(words, record, stride, count)
        words.source = source
        words.mask = 0
        memset(words.values, 0, sizeof(words.values))
    words.mask |= mask << shift
    if source.width == 1:
        for i in range(count):
            words.values[i] |= (values[i] & mask) << shift
    else:
        for i in range(count):
            words.values[i] |= (load_u32(values + 4 * i) & mask) << shift


cdef inline void copy_seconds(
    const ColumnCopy* source, uint8_t* record, size_t stride, size_t count, uint8_t* values, bint load
) noexcept nogil:
    cdef int64_t* times = <int64_t*>values
    cdef uint8_t* field = field_of(source, record)
    cdef size_t i
    for i in range(count):
        if load:
            store_u32(field + stride * i, <uint32_t>(<uint64_t>times[i] // NANOSECONDS))
        else:
            times[i] = <int64_t>load_u32(field_of(source, record + stride * i)) * NANOSECONDS


cdef inline void copy_width(
    const ColumnCopy* source, uint8_t* record, size_t stride, size_t count, uint8_t* values, size_t width, bint load
) noexcept nogil:
    if source.form == COPY:
        copy_fields(source, record, stride, count, values, width, load)
    else:
        copy_values(source, record, stride, count, values, width, load)


cdef inline void copy_column(
    const ColumnCopy* source, uint8_t* record, size_t stride, size_t count, size_t row, bint load
) noexcept nogil:
    """The rows of a column that is no list and no bits, from ``row`` on, out of records or into them."""
    cdef uint8_t* values = source.column + source.width * row
    if source.form == SECONDS:
        copy_seconds(source, record, stride, count, values, load)
    elif source.width == 4:
        copy_width(source, record, stride, count, values, 4, load)
    elif source.width == 8:
        copy_width(source, record, stride, count, values, 8, load)
    elif source.width == 16:
        copy_width(source, record, stride, count, values, 16, load)
    elif source.width == 1:
        copy_width(source, record, stride, count, values, 1, load)
    elif source.width == 2:
        copy_width(source, record, stride, count, values, 2, load)
    else:
        copy_width(source, record, stride, count, values, 32, load)


cdef inline void put_list(
    const ColumnCopy* source, const uint8_t* record, size_t stride, size_t count, uint8_t* target, Items* items,
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


cdef inline uint32_t presence_of(const uint8_t* records, size_t stride, size_t count) noexcept nogil:
    """The bits of presence that at least one of the records has."""
    cdef uint32_t presence = 0
    cdef size_t i
    for i in range(count):
        presence |= load_u32(records + stride * i)
    return presence


cdef inline bint is_absent(const ColumnCopy* source, uint32_t presence) noexcept nogil:
    """Return True if none of the records that have these bits of presence together has a value for the column."""
    return source.presence and not source.presence & presence


cdef inline void put_ends(uint8_t* ends, size_t end, size_t count) noexcept nogil:
    """The ends of ``count`` empty lists."""
    cdef size_t i
    for i in range(count):
        (<int32_t*>ends)[i + 1] = <int32_t>end


cdef inline void put_bytes(ColumnCopy* source, uint8_t byte, size_t count, size_t row) noexcept nogil:
    """Rows all of whose bytes are ``byte``: rows known to have them are not written again."""
    if byte == source.filled and row + count <= source.known:
        return
    memset(source.column + source.width * row, byte, source.width * count)
    if row == 0:
        source.filled = byte
        source.known = count
    elif byte == source.filled and row <= source.known:
        source.known = row + count
    else:
        source.known = min(source.known, row)


cdef inline void put_absent(ColumnCopy* source, size_t count, size_t row, const Items* lists) noexcept nogil:
    """The rows of a column for which no record has a value."""
    cdef size_t end
    if source.form != LIST and source.form != LIST_END:
        put_bytes(source, source.absent, count, row)
        return
    end = lists[source.list].count
    if end == 0 and row + count <= source.known:
        return
    put_ends(source.column + source.width * row, end, count)
    if end:
        source.known = min(source.known, row)
    elif row <= source.known:
        source.known = row + count


cdef inline void put_column(
    const ColumnCopy* source, uint8_t* records, size_t stride, size_t count, size_t row, Items* lists, Words* words
) noexcept nogil:
    cdef uint8_t* ends = source.column + source.width * row
    if source.form == BITS:
        put_bits(source, records, stride, count, ends, words)
    elif source.form == LIST:
        if source.offset == 0:
            put_list(source, records, stride, count, ends, &lists[source.list], 0)
        elif lists[source.list].widths[0] == 16:
            put_list(source, records, stride, count, ends, &lists[source.list], 16)
        else:
            put_list(source, records, stride, count, ends, &lists[source.list], 4)
    elif source.form == LIST_END:
        copy_values(source, records, stride, count, ends + 4, 4, False)
    else:
        copy_column(source, records, stride, count, row, False)


cdef inline void prefetch_values(const ColumnCopy* source, size_t row, size_t count) noexcept nogil:
    """Load rows of a column, which may be beyond its end, into the cache before they are needed."""
    cdef const uint8_t* values = source.column + source.width * row
    cdef size_t at
    for at in range(0, source.width * count, 64):  # a cache line at a time
        wire_prefetch(values + at)


cdef void put_rows(Columns* columns, const void* records, size_t count) noexcept nogil:
    """Write the next ``count`` rows, at most ``LARGEST_BLOCK``, column by column."""
    cdef uint32_t presence = 0xFFFFFFFF
    cdef size_t row = columns.rows
    cdef ColumnCopy* source
    cdef Words words
    cdef size_t i
    words.source = NULL
    if columns.count > FEW_COLUMNS:
        presence = presence_of(<const uint8_t*>records, columns.stride, count)
    for i in range(columns.count):
        source = &columns.sources[i]
        if is_absent(source, presence):
            put_absent(source, count, row, columns.lists)
            continue
        if columns.count > FEW_COLUMNS:
            prefetch_values(source, row + count, count)
        source.known = min(source.known, row)
        put_column(source, <uint8_t*>records, columns.stride, count, row, columns.lists, &words)
    columns.rows += count


cdef void keep_header(
    const Columns* columns, void* record, const Fault* fault, const uint8_t* data, uint8_t* copy
) noexcept nogil:
    """Give a record the truncated header that a fault names: its bytes, copied to ``copy``, then zeros."""
    cdef const HeaderPlace* header = &columns.headers[fault.field]
    if header.section:
        memset(copy, 0, CUT_SIZE)
        memcpy(copy, data + fault.offset, min(<size_t>fault.available, <size_t>CUT_SIZE))
        (<const uint8_t**>(<uint8_t*>record + header.section))[0] = copy
        (<uint32_t*>record)[0] |= header.presence


cdef void repeat_row(Columns* columns, const void* record, size_t count) noexcept nogil:
    """Write ``count`` rows that are alike: without a value but for values of one byte, without items in their lists.

    Columns of a section whose address is NULL are left to the caller, and lists whose count in the record is not 0.
    """
    cdef const uint8_t* at
    cdef ColumnCopy* source
    cdef size_t row = columns.rows
    cdef size_t i
    for i in range(columns.count):
        source = &columns.sources[i]
        at = <const uint8_t*>record + source.place
        if source.form == LIST or source.form == LIST_END:
            if load_u32(at) == 0:
                put_absent(source, count, row, columns.lists)
                continue
        elif source.form == VALUE:
            put_bytes(source, at[0], count, row)
            continue
        elif (<const uint8_t* const*>at)[0] != NULL:
            put_absent(source, count, row, columns.lists)
            continue
        source.known = min(source.known, row)
    columns.rows += count


cdef int find_columns(Batch batch, void* found, size_t size) except -1:
    """Fill the structure ``RowColumns`` of a table's kernel, which has an address for each of ``row_columns``."""
    cdef uint8_t** addresses = <uint8_t**>found
    cdef dict names = row_columns(batch.table)
    cdef size_t i
    if <size_t>len(names) * sizeof(addresses[0]) != size:
        raise ImportError(f"the kernel of {batch.table.name} was built for other columns: run make build")
    for i, name in enumerate(names):
        addresses[i] = batch.data(name)
    return 0


cdef bint same_rows(Layout layout, Batch one, Batch other, str column) except -1:
    """Return True if two batches have the same bytes in a column and in its items."""
    cdef ColumnLayout line = layout.lines[column]
    cdef bint is_list = line.source.form == LIST or line.source.form == LIST_END
    cdef size_t size = line.source.width * (one.length + is_list)
    if memcmp(one.data(column), other.data(column), size) != 0:
        return False
    for path, width in line.members or ():
        size = <size_t>width * <size_t>(<int32_t*>one.data(column))[one.length]
        if memcmp(one.data(path), other.data(path), size) != 0:
            return False
    return True


# --- Numbers of a record ---


cdef uint64_t largest_number(const ColumnCopy* source) noexcept nogil:
    """The largest number that the field of a column can hold."""
    if source.form == BITS:
        return source.mask
    if source.form == SECONDS or source.width == 4:
        return 0xFFFFFFFF
    if source.width == 8:
        return <uint64_t>0xFFFFFFFFFFFFFFFF
    return 0xFFFF if source.width == 2 else 0xFF


cdef uint64_t number_of(const ColumnCopy* source, const void* record) noexcept nogil:
    """The number that a record has for a column."""
    cdef const uint8_t* at
    at = <const uint8_t*>record + source.place if source.form == VALUE else field_of(source, record)
    if source.form == BITS:
        return load_u32(at) >> source.shift & source.mask
    if source.form == SECONDS or source.width == 4:
        return load_u32(at)
    if source.width == 8:
        return load_u64(at)
    return load_u16(at) if source.width == 2 else at[0]


cdef void store_number(const ColumnCopy* source, void* record, uint64_t number) noexcept nogil:
    """Store a number, at most ``largest_number``, in a record whose sections can be written, over another."""
    cdef uint8_t* at
    cdef uint32_t bits
    if source.form == VALUE:
        (<uint8_t*>record)[source.place] = <uint8_t>number
        return
    at = field_of(source, record)
    if source.form == BITS:
        bits = <uint32_t>largest_number(source) << source.shift
        store_u32(at, (load_u32(at) & ~bits) | <uint32_t>number << source.shift)
    else:
        memcpy(at, &number, 4 if source.form == SECONDS else source.width)


cdef void load_rows(const Columns* columns, size_t row, size_t count, void* records) noexcept nogil:
    """Load the values of rows, at most ``LARGEST_BLOCK``, column by column, into records with sections of their own.

    Of a list only the count is loaded. A column for which none of the rows has a value is not loaded: what the records
    have there is left from other rows. The presence is the first of the columns.
    """
    cdef uint32_t presence = 0xFFFFFFFF
    cdef const ColumnCopy* source
    cdef const uint8_t* ends
    cdef uint8_t* place
    cdef Words words
    cdef size_t i
    cdef size_t j
    words.source = NULL
    for i in range(columns.count):
        source = &columns.sources[i]
        if is_absent(source, presence):
            continue
        prefetch_values(source, row + count, count)
        if source.form == BITS:
            load_bits(
                source, <uint8_t*>records, columns.stride, count, source.column + source.width * row, &words
            )
            continue
        if source.form != LIST:
            copy_column(source, <uint8_t*>records, columns.stride, count, row, True)
            if i == 0:
                presence = presence_of(<const uint8_t*>records, columns.stride, count)
            continue
        ends = source.column + 4 * row
        place = <uint8_t*>records + source.place
        for j in range(count):
            store_u32(place + columns.stride * j, load_u32(ends + 4 * j + 4) - load_u32(ends + 4 * j))
    flush_words(&words, <uint8_t*>records, columns.stride, count)


# --- Layouts ---


cdef tuple members_of(str path, object type_):
    """The buffers for the items of a list: path and bytes of a value."""
    if isinstance(type_, StructOf):
        return tuple([(f"{path}[].{name}", member.width) for name, member in type_.members])
    return ((path + "[]", type_.width),)


cdef ColumnLayout line_at(uint32_t place, object type_):
    """The line of a value, or of a list whose items the reader writes, that stands in the record."""
    cdef ColumnLayout line = ColumnLayout.__new__(ColumnLayout)
    memset(&line.source, 0, sizeof(line.source))
    line.source.form = LIST_END if isinstance(type_, ListOf) else VALUE
    line.source.place = place
    line.source.width = <uint32_t>type_.width
    line.source.absent = 0xFF if isinstance(type_, Enumeration) else 0
    return line


cdef ColumnLayout line_in_array(str store, object type_, dict arrays, dict enumerated):
    """The line of a column whose value, or the count of its items, has a place in an array of the record."""
    cdef ColumnLayout line
    cdef size_t which
    member, _, name = store.partition(".")
    which = enumerated[member].index(name)
    line = line_at(arrays[member] + type_.width * which, type_)
    if isinstance(type_, ListOf):
        line.source.list = <uint32_t>which
        if not isinstance(type_.item, StructOf):
            line.source.form = LIST
        if line.source.form == LIST and "items" in arrays:
            line.source.offset = arrays["items"] + sizeof(void*) * which
            if type_.item.width not in (4, 16):  # GUIDs and u32 numbers are copied
                raise ValueError(f"items of {name} must have 4 or 16 bytes")
    return line


cdef ColumnLayout line_in_section(object row, uint32_t section, object type_):
    """The line of a column that is loaded from a field of fixed size."""
    cdef ColumnLayout line = line_at(SECTIONS_AT + sizeof(void*) * section, type_)
    line.source.form = COPY
    line.source.offset = row.at
    if row.type == "bits":
        line.source.form = BITS
        line.source.shift = row.bits[0]
        line.source.mask = (1 << row.bits[1]) - 1
    elif row.time == "unix":
        line.source.form = SECONDS
    return line


cdef class Layout:
    def __init__(
        self, table, size_t stride, *, dict arrays=None, dict places=None, dict written=None,
        dict presence=None, size_t smallest_row=0, tuple records=(),
    ):
        """Find where a record has the columns of a table.

        ``places`` are those of its columns in the record, or ``arrays`` those of the arrays that ``Column.store``
        names; ``written`` has the types that a kernel writes where a table shows others, ``presence`` the bits of a
        record where they are not those of the column.
        """
        cdef ColumnLayout line
        cdef dict types = written or {}
        cdef dict bits = presence or {}
        cdef dict sections = section_places(records or (table,))
        cdef dict enumerated = enumerators(records or (table,))
        cdef dict rows = {
            column.name: (row, sections.get(header.section))
            for header in table.headers for column, row in header.columns
        }
        self.table = table
        self.stride = stride
        self.smallest_row = smallest_row
        self.lines = {"presence": line_at(0, UINT8 if table.presence_width == 1 else UINT32)}
        if table.violations is not None:
            self.lines["violations"] = line_at(4, UINT32)
        for column in table.columns:
            if column.derived:
                continue
            type_ = types.get(column.name, column.type)
            if places:
                line = line_at(places[column.name], type_)
            elif column.store:
                line = line_in_array(column.store, type_, arrays, enumerated)
            else:
                row, section = rows[column.name]
                line = line_in_section(row, section, type_)
            if line.source.form != LIST_END:
                line.source.presence = bits.get(column.name, column.presence)
            if isinstance(type_, ListOf):
                line.members = members_of(column.name, type_.item)
                line.smallest = type_.smallest
            self.lines[column.name] = line
        self.find_headers(sections)
        self.lists = tuple([
            (name, name + "[]", (<ColumnLayout>line).source.list) for name, line in self.lines.items() if line.members
        ])

    cdef int find_headers(self, dict sections) except -1:
        """Fill ``headers``, by the names that faults have for headers."""
        cdef size_t number
        if len(self.table.fields) > MOST_FIELDS:
            raise ValueError(f"faults of {self.table.name} can name {len(self.table.fields)} fields")
        memset(self.headers, 0, sizeof(self.headers))
        for header in self.table.headers:
            if header.section and header.faults:
                number = self.table.fields.index(header.faults[0])
                self.headers[number].section = SECTIONS_AT + sizeof(void*) * <size_t>sections[header.section]
                self.headers[number].presence = self.table.presence_bits.get(header.presence, 0)
        return 0

    cdef ColumnCopy source(self, str column) except *:
        return (<ColumnLayout>self.lines[column]).source

    cdef int reserve(self, Batch batch, Columns* columns) except -1:
        """Reserve memory for every requested column; lists get as many items as the payloads can hold."""
        cdef ColumnLayout line
        cdef ColumnCopy source
        cdef size_t nbytes = <size_t>batch.payloads.nbytes
        cdef size_t rows = batch.length + (nbytes // self.smallest_row if self.smallest_row else 0)
        cdef Items* items
        clear_columns(columns)
        columns.stride = self.stride
        columns.headers = self.headers
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
        cdef ColumnCopy source
        cdef Items* items
        cdef list attached = []
        clear_columns(columns)
        columns.stride = self.stride
        for name in ("presence", "violations", *names):
            source = self.source(name)
            source.column = batch.data(name)
            if source.form == LIST or source.form == LIST_END:
                items = &columns.lists[source.list]
                for path, width in (<ColumnLayout>self.lines[name]).members:
                    items.widths[items.member_count] = width
                    items.members[items.member_count] = batch.data(path)
                    items.member_count += 1
            columns.sources[columns.count] = source
            columns.count += 1
            attached.append(name)
        return attached
