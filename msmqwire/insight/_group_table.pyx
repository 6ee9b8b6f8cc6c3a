"""Groups of rows with equal keys: an open hash table of records of 64-bit words.

A key or a value is a number. Texts and GUIDs are numbered in a column, and again in each table of groups, which copies
every text once and looks up each distinct text of a column once. Captures choose the keys, so the hash has secret
factors.
"""

from inspect import signature

from cpython.mem cimport PyMem_RawFree
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.columns._arrow cimport ArrowArray, ArrowSchema
from msmqwire.columns._buffer cimport Buffer, allocate
from msmqwire.columns._payloads cimport Span, payloads_of_spans
from msmqwire.insight._values cimport (
    ABSENT, BYTES_OF_SLOTS, Slots, Texts, enlarge, grown, is_text, mixed, read_numbers, read_texts, slot_of
)

import numpy as np

cdef enum:
    PLACES = 10          # of a group that are kept
    MOST_VALUES = 16
    INT64_SIZE = 8

cdef int64_t NO_PLACE = -1

#: The number of a null key or value.
NULL_NUMBER = ABSENT
#: The places of a group that are kept: the first ones.
MOST_PLACES = PLACES

cdef enum Operation:
    SUM
    MIN
    MAX
    OR

#: How the values of a group are aggregated; ``or`` is that of bits.
OPERATIONS = ("sum", "min", "max", "or")


# --- Columns ---

cdef class Column:
    """The values of a column for groups: numbers, or texts and GUIDs with their places among the distinct ones.

    Parameters
    ----------
    array : pyarrow.Array
        Integers, booleans, times, strings, binary values, or dictionaries of strings.

    Attributes
    ----------
    type : pyarrow.DataType
        Of the values.
    """

    __signature__ = signature(lambda array: None)

    cdef readonly object type
    cdef size_t count
    cdef const int64_t* numbers   # the value of each row; of texts its place among ``values``
    cdef size_t step              # 0: all rows have the first number
    cdef const Span* values       # NULL: the numbers are the values
    cdef size_t distinct
    cdef Buffer memory            # of the numbers, if they are our own
    cdef object owner

    def __init__(self, array):
        cdef const ArrowSchema* schema
        cdef const ArrowArray* values
        cdef const ArrowArray* texts
        cdef Buffer spans
        cdef int64_t* numbers
        cdef size_t i
        capsules = array.__arrow_c_array__()
        schema = <const ArrowSchema*>PyCapsule_GetPointer(capsules[0], "arrow_schema")
        values = <const ArrowArray*>PyCapsule_GetPointer(capsules[1], "arrow_array")
        self.type = array.type
        self.count = <size_t>values.length
        self.step = 1
        self.memory = allocate(self.count * INT64_SIZE)
        numbers = <int64_t*>self.memory.data
        self.numbers = numbers
        self.owner = capsules
        if schema.dictionary != NULL:
            self.type = array.type.value_type
            read_numbers(schema.format, values, numbers)
            texts = values.dictionary
            if not is_text(schema.dictionary.format):
                raise TypeError(f"rows cannot be grouped by a dictionary of {self.type}")
            spans = read_texts(schema.dictionary.format, texts)
            self.distinct = <size_t>texts.length
        elif is_text(schema.format):
            spans = read_texts(schema.format, values)
            self.distinct = self.count
            for i in range(self.count):
                numbers[i] = <int64_t>i
        else:
            read_numbers(schema.format, values, numbers)
            return
        self.values = <const Span*>spans.data
        self.owner = (capsules, spans)
        for i in range(self.count):
            if numbers[i] == ABSENT:
                continue
            if not 0 <= numbers[i] < <int64_t>self.distinct:
                raise ValueError(f"index {i} of the Arrow dictionary is outside its values")
            if self.values[numbers[i]].data == NULL:
                numbers[i] = ABSENT
        if schema.dictionary == NULL:
            self.encode(numbers)

    cdef int encode(self, int64_t* numbers) except -1:
        """Give equal texts the place of the first of them."""
        cdef Texts texts = Texts()
        cdef Buffer first = allocate(self.count * INT64_SIZE)
        cdef int64_t* row = <int64_t*>first.data
        cdef int64_t number
        cdef size_t found
        cdef size_t i
        for i in range(self.count):
            if numbers[i] != ABSENT:
                found = texts.count
                number = texts.number(self.values[i].data, self.values[i].size)
                if <size_t>number == found:
                    row[number] = <int64_t>i
                numbers[i] = row[number]
        return 0

    def __len__(self):
        return <Py_ssize_t>self.count

    @staticmethod
    def of_numbers(numbers, type):
        """The column of a contiguous array of int64, which is not copied."""
        cdef const int64_t[::1] view = numbers
        cdef Column column = Column.__new__(Column)
        column.type = type
        column.count = <size_t>view.shape[0]
        column.numbers = &view[0] if column.count else NULL
        column.step = 1
        column.owner = numbers
        return column

    def repeated(self, Py_ssize_t count):
        """The column with its first value in so many rows."""
        cdef Column column = Column.__new__(Column)
        if self.count == 0:
            raise ValueError("there is no first value")
        column.type, column.count, column.numbers, column.step = self.type, <size_t>count, self.numbers, 0
        column.values, column.distinct = self.values, self.distinct
        column.memory, column.owner = self.memory, self.owner
        return column

    @property
    def array(self):
        """The numbers of the rows as int64: values, or places of texts; ``NULL_NUMBER`` where they are null."""
        if self.memory is None:
            return self.owner
        return np.frombuffer(self.memory, np.int64)


# --- Groups ---

cdef struct Place:
    int64_t place
    int64_t next       # of the same group; NO_PLACE after the last one

# A column of keys or values, and the numbers of those of its texts that were looked up
cdef struct Input:
    const int64_t* numbers
    size_t step
    const Span* texts
    int64_t* known

# A record is its keys, its rows, its values, and these words
cdef enum:
    FIRST         # the first of its places
    LAST          # the last one
    LAST_VALUE    # that place itself: most rows come after it, and need no more
    KEPT          # the number of its places
    AFTER_VALUES  # the number of these words


cdef class GroupTable:
    """Groups in the order of their appearance.

    Parameters
    ----------
    keys : int
        The number of key columns.
    operations : sequence of str
        How each value is aggregated: ``OPERATIONS``.
    """

    __signature__ = signature(lambda keys, operations: None)

    cdef size_t keys
    cdef size_t values
    cdef size_t width             # words of a record
    cdef list operations
    cdef int[MOST_VALUES] operation
    cdef bint[MOST_VALUES] texts_of   # which keys are texts
    cdef Texts texts
    cdef int64_t* records
    cdef size_t count
    cdef size_t most              # records that there is room for
    cdef Slots table
    cdef Place* places
    cdef size_t place_count
    cdef size_t most_places

    def __init__(self, size_t keys, operations):
        self.operations = list(operations)
        if keys > MOST_VALUES or len(self.operations) > MOST_VALUES:
            raise ValueError(f"at most {MOST_VALUES} keys and as many values")
        self.keys, self.values = keys, <size_t>len(self.operations)
        for i, name in enumerate(self.operations):
            self.operation[i] = OPERATIONS.index(name)
        self.width = keys + 1 + self.values + AFTER_VALUES
        self.texts = Texts()
        self.most, self.most_places = 16, 16
        self.records = <int64_t*>grown(self.records, self.most * self.width * INT64_SIZE)
        self.places = <Place*>grown(self.places, self.most_places * sizeof(Place))
        enlarge(&self.table, 32)

    def __dealloc__(self):
        PyMem_RawFree(self.records)
        PyMem_RawFree(self.table.slots)
        PyMem_RawFree(self.places)

    def __len__(self):
        return <Py_ssize_t>self.count

    @property
    def nbytes(self):
        """The bytes that the groups take."""
        return (
            self.count * (self.width * INT64_SIZE + BYTES_OF_SLOTS)
            + self.place_count * sizeof(Place) + self.texts.nbytes()
        )

    cdef inline uint64_t hash_of(self, const int64_t* key) noexcept:
        cdef uint64_t hash = <uint64_t>self.keys
        cdef size_t i
        for i in range(self.keys):
            hash = mixed(hash, <uint64_t>key[i])
        return hash

    cdef int64_t* record_of(self, const int64_t* key) except NULL:
        """The record of a key; a new record for a new key."""
        cdef uint32_t hash = <uint32_t>self.hash_of(key)
        cdef size_t at = hash & (self.table.count - 1)
        cdef size_t i
        cdef int64_t* record
        cdef int64_t* tail
        cdef bint differs
        while self.table.slots[at]:
            if self.table.slots[at] >> 32 == hash:
                record = self.records + (<size_t>(self.table.slots[at] & 0xFFFFFFFF) - 1) * self.width
                differs = False
                for i in range(self.keys):
                    differs |= record[i] != key[i]
                if not differs:
                    return record
            at = (at + 1) & (self.table.count - 1)
        if self.count == self.most:
            self.records = <int64_t*>grown(self.records, 2 * self.most * self.width * INT64_SIZE)
            self.most *= 2
        record = self.records + self.count * self.width
        memcpy(record, key, self.keys * INT64_SIZE)
        record[self.keys] = 0
        for i in range(self.values):
            record[self.keys + 1 + i] = 0 if self.operation[i] in (SUM, OR) else ABSENT
        tail = record + self.width - AFTER_VALUES
        tail[FIRST], tail[LAST], tail[LAST_VALUE], tail[KEPT] = NO_PLACE, NO_PLACE, 0, 0
        self.table.slots[at] = slot_of(hash, self.count)
        self.count += 1
        if 2 * self.count > self.table.count:
            enlarge(&self.table, 2 * self.table.count)
        return record

    cdef inline void aggregate(self, int64_t* value, size_t i, int64_t number) noexcept:
        if number == ABSENT:
            return
        if self.operation[i] == SUM:
            value[0] += number
        elif self.operation[i] == OR:
            value[0] |= number
        elif value[0] == ABSENT or (number < value[0]) == (self.operation[i] == MIN):
            value[0] = number

    cdef inline int64_t number_of(self, const Input* given, size_t row) except? -1:
        """The number of a value: for a text, its number in ``texts``."""
        cdef int64_t number = given.numbers[row * given.step]
        cdef const Span* text
        if given.texts == NULL or number == ABSENT:
            return number
        if given.known[number] < 0:
            text = &given.texts[number]
            given.known[number] = self.texts.number(text.data, text.size)
        return given.known[number]

    cdef int64_t new_place(self, int64_t place, int64_t next) except -1:
        if self.place_count == self.most_places:
            self.places = <Place*>grown(self.places, 2 * self.most_places * sizeof(Place))
            self.most_places *= 2
        self.places[self.place_count].place, self.places[self.place_count].next = place, next
        self.place_count += 1
        return <int64_t>self.place_count - 1

    cdef int see(self, int64_t* record, int64_t place) except -1:
        """Keep a place of a group, in order, if it is among the first ones."""
        cdef int64_t* tail = record + self.width - AFTER_VALUES
        cdef int64_t before, at, made
        if tail[KEPT] and place >= tail[LAST_VALUE]:
            if tail[KEPT] < PLACES and place > tail[LAST_VALUE]:
                made = self.new_place(place, NO_PLACE)
                self.places[tail[LAST]].next = made
                tail[LAST], tail[LAST_VALUE] = made, place
                tail[KEPT] += 1
            return 0
        before, at = NO_PLACE, tail[FIRST]
        while at != NO_PLACE and self.places[at].place < place:
            before, at = at, self.places[at].next
        if at != NO_PLACE and self.places[at].place == place:
            return 0
        made = self.new_place(place, at) if tail[KEPT] < PLACES else self.without_last(tail)
        # The place after it may have been the last one
        at = tail[FIRST] if before == NO_PLACE else self.places[before].next
        if at == made:
            at = NO_PLACE
        self.places[made].place, self.places[made].next = place, at
        if before == NO_PLACE:
            tail[FIRST] = made
        else:
            self.places[before].next = made
        if at == NO_PLACE:
            tail[LAST], tail[LAST_VALUE] = made, place
        tail[KEPT] += 1
        return 0

    cdef int64_t without_last(self, int64_t* tail) noexcept:
        """Remove the last of several places; its number, for another place."""
        cdef int64_t removed = tail[LAST]
        cdef int64_t at = tail[FIRST]
        while self.places[at].next != removed:
            at = self.places[at].next
        self.places[at].next = NO_PLACE
        tail[LAST], tail[LAST_VALUE] = at, self.places[at].place
        tail[KEPT] -= 1
        return removed

    def add(self, list keys, list values, Column places, mask=None, Column rows=None, Column ends=None):
        """Count rows.

        Parameters
        ----------
        keys, values : list of Column
        places : Column
            The place of each row.
        mask : array of bool, optional
            The rows that count.
        rows : Column, optional
            How many rows each row stands for; 1 without it.
        ends : Column, optional
            The places of row ``i`` are ``places[ends[i]:ends[i + 1]]``.
        """
        cdef size_t count = places.count if ends is None else ends.count - (ends.count > 0)
        cdef const uint8_t[::1] chosen
        cdef const uint8_t* choice = NULL
        cdef const int64_t* place = places.numbers
        cdef Column column
        cdef Input[2 * MOST_VALUES] inputs
        cdef Input* given
        cdef list held = []
        cdef Buffer memory
        cdef int64_t[MOST_VALUES] key
        cdef int64_t* record = NULL
        cdef int64_t number, at
        cdef bint is_new
        cdef size_t i, k
        if <size_t>len(keys) != self.keys or <size_t>len(values) != self.values:
            raise ValueError("there are other keys or values than those of the groups")
        for k, column in enumerate([*keys, *values]):
            if column.count != count:
                raise ValueError("columns have different lengths")
            given = &inputs[k]
            given.numbers, given.step, given.texts, given.known = column.numbers, column.step, column.values, NULL
            if k < self.keys and column.values != NULL:
                self.texts_of[k] = True
                memory = allocate(column.distinct * INT64_SIZE)
                memset(memory.data, 0xFF, memory.size)
                given.known = <int64_t*>memory.data
                held.append(memory)
        if ends is not None:
            if not (ends.step and places.step):
                raise ValueError("places and their ends cannot be repeated")
            for i in range(count):
                if not 0 <= ends.numbers[i] <= ends.numbers[i + 1] <= <int64_t>places.count:
                    raise ValueError("the ends of places do not rise from 0 to their number")
        if rows is not None and rows.count != count:
            raise ValueError("columns have different lengths")
        if mask is not None and count:
            chosen = mask.view(np.uint8)
            if <size_t>chosen.shape[0] != count:
                raise ValueError("columns have different lengths")
            choice = &chosen[0]
        for i in range(count):
            if choice != NULL and not choice[i]:
                continue
            is_new = record == NULL
            for k in range(self.keys):
                number = self.number_of(&inputs[k], i)
                is_new |= key[k] != number
                key[k] = number
            if is_new:
                record = self.record_of(key)
            record[self.keys] += 1 if rows is None else rows.numbers[i * rows.step]
            for k in range(self.values):
                given = &inputs[self.keys + k]
                self.aggregate(record + self.keys + 1 + k, k, given.numbers[i * given.step])
            if ends is None:
                self.see(record, place[i * places.step])
            else:
                for at in range(ends.numbers[i], ends.numbers[i + 1]):
                    self.see(record, place[at])

    def take(self, const int64_t[::1] chosen):
        """Another table with these groups, in this order; a copy."""
        cdef GroupTable made = GroupTable(self.keys, self.operations)
        cdef int64_t[MOST_VALUES] key
        cdef const int64_t* record
        cdef int64_t* copy
        cdef int64_t at
        cdef size_t i, k, text
        made.texts_of = self.texts_of
        for i in range(<size_t>chosen.shape[0]):
            if not 0 <= chosen[i] < <int64_t>self.count:
                raise IndexError(f"group {chosen[i]} of {self.count}")
            record = self.records + <size_t>chosen[i] * self.width
            for k in range(self.keys):
                key[k] = record[k]
                if self.texts_of[k] and key[k] != ABSENT:
                    text = <size_t>key[k]
                    key[k] = made.texts.number(
                        self.texts.data + self.texts.ends[text], self.texts.ends[text + 1] - self.texts.ends[text]
                    )
            copy = made.record_of(key)
            memcpy(copy + self.keys, record + self.keys, (1 + self.values) * INT64_SIZE)
            at = record[self.width - AFTER_VALUES + FIRST]
            while at != NO_PLACE:
                made.see(copy, self.places[at].place)
                at = self.places[at].next
        return made

    cdef object words(self, size_t word):
        """One word of each record."""
        cdef Buffer buffer = allocate(self.count * INT64_SIZE)
        cdef size_t i
        for i in range(self.count):
            (<int64_t*>buffer.data)[i] = self.records[i * self.width + word]
        return np.frombuffer(buffer, np.int64)

    def key(self, size_t k):
        """A key of each group: int64, or Payloads where it is a text."""
        cdef Buffer spans, texts
        cdef Span* span
        cdef size_t size = 0
        cdef int64_t number
        cdef size_t i
        if k >= self.keys:
            raise IndexError(f"key {k} of {self.keys}")
        if not self.texts_of[k]:
            return self.words(k)
        spans = allocate(self.count * sizeof(Span))
        span = <Span*>spans.data
        for i in range(self.count):
            number = self.records[i * self.width + k]
            span[i].data, span[i].size = NULL, 0
            if number != ABSENT:
                span[i].data = self.texts.data + self.texts.ends[number]
                span[i].size = self.texts.ends[number + 1] - self.texts.ends[number]
                size += span[i].size
        # Copied: the texts of the table move when there are more
        texts = allocate(size)
        size = 0
        for i in range(self.count):
            if span[i].data != NULL:
                memcpy(texts.data + size, span[i].data, span[i].size)
                span[i].data = texts.data + size
                size += span[i].size
        return payloads_of_spans(span, self.count, <Py_ssize_t>size, (spans, texts))

    def value(self, size_t v):
        """A value of each group, int64."""
        if v >= self.values:
            raise IndexError(f"value {v} of {self.values}")
        return self.words(self.keys + 1 + v)

    @property
    def rows(self):
        """The rows of each group, int64."""
        return self.words(self.keys)

    @property
    def kept_places(self):
        """The first places of each group: where those of each begin and end, and all of them; int64."""
        cdef Buffer ends = allocate((self.count + 1) * INT64_SIZE)
        cdef int64_t* end = <int64_t*>ends.data
        cdef Buffer found
        cdef int64_t at
        cdef size_t written = 0
        cdef size_t i
        end[0] = 0
        for i in range(self.count):
            end[i + 1] = end[i] + self.records[(i + 1) * self.width - AFTER_VALUES + KEPT]
        found = allocate(<size_t>end[self.count] * INT64_SIZE)
        for i in range(self.count):
            at = self.records[(i + 1) * self.width - AFTER_VALUES + FIRST]
            while at != NO_PLACE:
                (<int64_t*>found.data)[written] = self.places[at].place
                written += 1
                at = self.places[at].next
        return np.frombuffer(ends, np.int64), np.frombuffer(found, np.int64)
