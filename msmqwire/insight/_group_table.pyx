"""Groups of rows with equal keys: an open hash table of records of 64-bit words.

A value is a number. A key is a number, a GUID or a text, and has all of its bytes in the record, except for long texts:
each table copies these once and numbers them. Captures choose the keys, so the hash has secret factors.

Many groups do not fit into the cache, so the memory of the groups of some rows is fetched before they are counted.
"""

from inspect import signature

from cpython.mem cimport PyMem_RawFree
from cython cimport final
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.columns._buffer cimport Buffer, allocate
from msmqwire.columns._payloads cimport payloads_of_spans
from msmqwire.columns.payload_table cimport Span
from msmqwire.insight._column cimport GUID_SIZE, INT64_SIZE, LONG, NO_TEXT, SIZE_AT, Column
from msmqwire.insight._values cimport ABSENT, BYTES_OF_SLOTS, Slots, Texts, enlarge, entry_of, grown, mixed, slot_of
from msmqwire.wire.simd cimport wire_prefetch

import numpy as np

if False:  # for type checkers: see stubs.py
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from msmqwire.columns import Payloads

cdef enum:
    PLACES = 10          # of a group that are kept
    MOST_VALUES = 16
    MOST_WORDS = 3 * MOST_VALUES  # of a key
    AHEAD = 32           # rows whose groups are fetched before they are counted
    CACHE_LINE = 64
    FEW_GROUPS = 2048    # which stay in the cache
    FIRST_RECORDS = 16
    BLOCK_BITS = 10
    BLOCK_RECORDS = 1 << BLOCK_BITS

cdef int64_t NO_PLACE = -1

#: The places of a group that are kept: the first ones.
MOST_PLACES: int = PLACES

cdef enum Operation:
    SUM
    MIN
    MAX
    OR

#: How the values of a group are aggregated; ``or`` is that of bits.
OPERATIONS: tuple[str, ...] = ("sum", "min", "max", "or")


cdef struct Place:
    int64_t place
    int64_t next       # of the same group; NO_PLACE after the last one

# How many words of a record a key has
cdef enum Kind:
    NUMBER = 1
    TEXT = 2
    GUID = 3  # 0, or ABSENT if it is null, and its bytes

# A column of keys or values, and the numbers of those of its long texts that were looked up
cdef struct Input:
    const int64_t* numbers
    size_t step
    Kind kind
    const Span* texts
    const int64_t* words
    int64_t* known
    const uint8_t* guids

# A row that waits to be counted, with the words of its key
cdef struct Waiting:
    size_t row
    uint32_t hash
    bint is_new        # the row before it has another key
    int64_t[MOST_WORDS] key

# A record is the words of its key, its rows, its values, and these words
cdef enum:
    FIRST         # the first of its places; NO_PLACE while there is only one, as most groups have
    LAST          # the last one
    LAST_VALUE    # that place itself: most rows come after it, and need no more
    KEPT          # the number of its places
    AFTER_VALUES  # the number of these words


@final
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
    cdef size_t key_size          # words of a key
    cdef size_t width             # words of a record
    cdef list operations
    cdef int[MOST_VALUES] operation
    cdef Kind[MOST_VALUES] kinds  # of the keys
    cdef Texts texts
    cdef int64_t** blocks         # of records, which have BLOCK_RECORDS each, the first one less while it is alone
    cdef size_t block_count
    cdef size_t count
    cdef size_t most              # records that there is room for
    cdef Slots table
    cdef Place* places
    cdef size_t place_count
    cdef size_t most_places

    def __init__(self, size_t keys, operations: Sequence[str]) -> None:
        self.operations = list(operations)
        if keys > MOST_VALUES or len(self.operations) > MOST_VALUES:
            raise ValueError(f"at most {MOST_VALUES} keys and as many values")
        self.keys, self.values = keys, <size_t>len(self.operations)
        for i, name in enumerate(self.operations):
            self.operation[i] = OPERATIONS.index(name)
        self.texts = Texts()
        self.most_places = 16
        for k in range(keys):
            self.kinds[k] = NUMBER
        self.lay_out()
        self.places = <Place*>grown(self.places, self.most_places * sizeof(Place))
        enlarge(&self.table, 32)

    def __dealloc__(self):
        self.free_records()
        PyMem_RawFree(self.blocks)
        PyMem_RawFree(self.table.slots)
        PyMem_RawFree(self.places)

    def __len__(self) -> int:
        return <Py_ssize_t>self.count

    @property
    def nbytes(self) -> int:
        """The bytes that the groups take."""
        return (
            self.count * (self.width * INT64_SIZE + BYTES_OF_SLOTS)
            + self.place_count * sizeof(Place) + self.texts.nbytes()
        )

    cdef int lay_out(self) except -1:
        """Begin records whose keys have the words of their columns."""
        self.key_size = self.word_of(self.keys)
        self.width = self.key_size + 1 + self.values + AFTER_VALUES
        self.free_records()
        return 0

    cdef void free_records(self) noexcept:
        cdef size_t i
        for i in range(self.block_count):
            PyMem_RawFree(self.blocks[i])
        self.block_count = self.most = 0

    cdef int add_block(self, size_t records) except -1 nogil:
        self.blocks = <int64_t**>grown(self.blocks, (self.block_count + 1) * sizeof(int64_t*))
        self.blocks[self.block_count] = <int64_t*>grown(NULL, records * self.width * INT64_SIZE)
        self.block_count += 1
        self.most += records
        return 0

    cdef int make_room(self) except -1 nogil:
        """Make room for more records. Those of a full block stay where they are: a copy costs more than to add them."""
        if self.block_count == 0 or self.most >= BLOCK_RECORDS:
            return self.add_block(BLOCK_RECORDS if self.block_count else FIRST_RECORDS)
        self.blocks[0] = <int64_t*>grown(self.blocks[0], 2 * self.most * self.width * INT64_SIZE)
        self.most *= 2
        return 0

    cdef inline int64_t* record_at(self, size_t i) noexcept nogil:
        """The record of group ``i``."""
        return self.blocks[i >> BLOCK_BITS] + (i & (BLOCK_RECORDS - 1)) * self.width

    cdef inline uint32_t hash_of(self, const int64_t* key) noexcept nogil:
        cdef uint64_t hash = <uint64_t>self.keys
        cdef size_t i
        for i in range(self.key_size):
            hash = mixed(hash, <uint64_t>key[i])
        return <uint32_t>hash

    cdef inline int64_t* record_in(self, size_t slot) noexcept nogil:
        """The record of a slot that is not empty."""
        return self.record_at(entry_of(self.table.slots[slot]))

    cdef int64_t* record_of(self, const int64_t* key, uint32_t hash) except NULL nogil:
        """The record of a key; a new record for a new key."""
        cdef size_t at = hash & (self.table.count - 1)
        cdef size_t i
        cdef int64_t* record
        cdef int64_t* tail
        while self.table.slots[at]:
            if self.table.slots[at] >> 32 == hash:
                record = self.record_in(at)
                if self.same(record, key):
                    return record
            at = (at + 1) & (self.table.count - 1)
        if self.count == self.most:
            self.make_room()
        record = self.record_at(self.count)
        memcpy(record, key, self.key_size * INT64_SIZE)
        record[self.key_size] = 0
        for i in range(self.values):
            record[self.key_size + 1 + i] = 0 if self.operation[i] in (SUM, OR) else ABSENT
        tail = record + self.width - AFTER_VALUES
        tail[FIRST], tail[LAST], tail[LAST_VALUE], tail[KEPT] = NO_PLACE, NO_PLACE, 0, 0
        self.table.slots[at] = slot_of(hash, self.count)
        self.count += 1
        if 2 * self.count > self.table.count:
            enlarge(&self.table, 2 * self.table.count)
        return record

    cdef inline void aggregate(self, int64_t* value, size_t i, int64_t number) noexcept nogil:
        if number == ABSENT:
            return
        if self.operation[i] == SUM:
            value[0] += number
        elif self.operation[i] == OR:
            value[0] |= number
        elif value[0] == ABSENT or (number < value[0]) == (self.operation[i] == MIN):
            value[0] = number

    cdef int64_t number_of(self, const Input* given, int64_t place) except -1 nogil:
        """The number of a long text."""
        cdef const Span* text = &given.texts[place]
        if given.known[place] < 0:
            given.known[place] = self.texts.number(text.data, text.size)
        return given.known[place]

    cdef int64_t new_place(self, int64_t place, int64_t next) except -1 nogil:
        if self.place_count == self.most_places:
            self.places = <Place*>grown(self.places, 2 * self.most_places * sizeof(Place))
            self.most_places *= 2
        self.places[self.place_count].place, self.places[self.place_count].next = place, next
        self.place_count += 1
        return <int64_t>self.place_count - 1

    cdef int see(self, int64_t* record, int64_t place) except -1 nogil:
        """Keep a place of a group, in order, if it is among the first ones."""
        cdef int64_t* tail = record + self.width - AFTER_VALUES
        cdef int64_t before, at, made
        if tail[KEPT] == 0:
            tail[LAST_VALUE], tail[KEPT] = place, 1
            return 0
        if tail[FIRST] == NO_PLACE:
            if place == tail[LAST_VALUE]:
                return 0
            tail[FIRST] = tail[LAST] = self.new_place(tail[LAST_VALUE], NO_PLACE)
        if place >= tail[LAST_VALUE]:
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

    cdef size_t places_of(self, const int64_t* record, int64_t* found) noexcept nogil:
        """Write the places of a group that are kept, in order, and return their number."""
        cdef const int64_t* tail = record + self.width - AFTER_VALUES
        cdef int64_t at = tail[FIRST]
        cdef size_t count = 0
        if at == NO_PLACE and tail[KEPT]:
            found[0] = tail[LAST_VALUE]
            return 1
        while at != NO_PLACE:
            found[count] = self.places[at].place
            count += 1
            at = self.places[at].next
        return count

    cdef int64_t without_last(self, int64_t* tail) noexcept nogil:
        """Remove the last of several places; its number, for another place."""
        cdef int64_t removed = tail[LAST]
        cdef int64_t at = tail[FIRST]
        while self.places[at].next != removed:
            at = self.places[at].next
        self.places[at].next = NO_PLACE
        tail[LAST], tail[LAST_VALUE] = at, self.places[at].place
        tail[KEPT] -= 1
        return removed

    def add(
        self, list keys: list[Column], list values: list[Column], Column places, mask: NDArray[np.bool_] | None = None,
        Column rows=None, Column ends=None
    ) -> None:
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
        cdef Input[2 * MOST_VALUES] inputs
        cdef const Input* given
        cdef Waiting[AHEAD] waiting
        cdef const int64_t* key = NULL
        cdef int64_t* record = NULL
        cdef int64_t at
        cdef size_t filled
        cdef size_t row = 0
        cdef size_t i, v
        _held = self.bind(keys, values, count, inputs)
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
        while row < count:
            filled = 0
            while row < count and filled < AHEAD:
                if choice == NULL or choice[row]:
                    self.read_key(inputs, row, key, &waiting[filled])
                    key = waiting[filled].key
                    filled += 1
                row += 1
            if self.count > FEW_GROUPS:
                self.fetch(waiting, filled)
            for i in range(filled):
                if waiting[i].is_new:
                    record = self.record_of(waiting[i].key, waiting[i].hash)
                at = <int64_t>waiting[i].row
                record[self.key_size] += 1 if rows is None else rows.numbers[<size_t>at * rows.step]
                for v in range(self.values):
                    given = &inputs[self.keys + v]
                    self.aggregate(record + self.key_size + 1 + v, v, given.numbers[<size_t>at * given.step])
                if ends is None:
                    self.see(record, place[<size_t>at * places.step])
                else:
                    for at in range(ends.numbers[waiting[i].row], ends.numbers[waiting[i].row + 1]):
                        self.see(record, place[at])

    cdef list bind(self, list keys, list values, size_t count, Input* inputs):
        """Columns of ``count`` rows as inputs, which are valid while the result is."""
        cdef Column column
        cdef Input* given
        cdef list held = [keys, values]
        cdef Buffer memory
        cdef size_t k
        if <size_t>len(keys) != self.keys or <size_t>len(values) != self.values:
            raise ValueError("there are other keys or values than those of the groups")
        for k, column in enumerate([*keys, *values]):
            if column.count != count:
                raise ValueError("columns have different lengths")
            given = &inputs[k]
            given.numbers, given.step, given.known = column.numbers, column.step, NULL
            given.texts, given.words, given.guids = column.values, column.words, column.guids
            given.kind = NUMBER if column.values == NULL else TEXT
            if column.guids != NULL:
                given.kind = GUID
            if k >= self.keys:
                continue
            if given.kind != self.kinds[k]:
                if self.count:
                    raise TypeError(f"key {k} cannot be {column.type}: in other rows it is of another kind")
                self.kinds[k] = given.kind
                self.lay_out()
            if column.has_long:
                memory = allocate(column.distinct * INT64_SIZE)
                memset(memory.data, 0xFF, memory.size)
                given.known = <int64_t*>memory.data
                held.append(memory)
        return held

    cdef inline int read_key(
        self, const Input* inputs, size_t row, const int64_t* before, Waiting* waiting
    ) except -1 nogil:
        """Read the key of a row; ``before`` is that of the row before it, NULL for the first."""
        cdef const Input* given
        cdef int64_t* word = waiting.key
        cdef int64_t number
        cdef size_t at, k
        waiting.row = row
        for k in range(self.keys):
            given = &inputs[k]
            at = row * given.step
            number = given.numbers[at]
            if given.kind == NUMBER:
                word[0] = number
            elif given.kind == GUID:
                word[0] = number
                word[1] = word[2] = 0
                if number != ABSENT:
                    memcpy(word + 1, given.guids + GUID_SIZE * at, GUID_SIZE)
            elif number == ABSENT:
                word[0] = word[1] = 0
                (<uint8_t*>word)[SIZE_AT] = NO_TEXT
            else:
                word[0], word[1] = given.words[2 * number], given.words[2 * number + 1]
                if (<uint8_t*>word)[SIZE_AT] == LONG:
                    word[0] = self.number_of(given, number)
            word += <size_t>given.kind
        waiting.is_new = before == NULL or not self.same(waiting.key, before)
        if waiting.is_new:
            waiting.hash = self.hash_of(waiting.key)
            wire_prefetch(self.table.slots + (waiting.hash & (self.table.count - 1)))
        return 0

    cdef inline bint same(self, const int64_t* one, const int64_t* other) noexcept nogil:
        """Whether two keys are equal."""
        cdef bint differs = False
        cdef size_t i
        for i in range(self.key_size):
            differs |= one[i] != other[i]
        return not differs

    cdef void fetch(self, const Waiting* waiting, size_t count) noexcept nogil:
        """Fetch the groups of rows into the cache, as far as their first slots have them, and their last places."""
        cdef const int64_t* record
        cdef const int64_t* tail
        cdef size_t slot
        cdef size_t i
        for i in range(count):
            if waiting[i].is_new:
                slot = waiting[i].hash & (self.table.count - 1)
                if self.table.slots[slot]:
                    record = self.record_in(slot)
                    wire_prefetch(record)
                    wire_prefetch(<const uint8_t*>record + CACHE_LINE)
                    wire_prefetch(record + self.width - 1)
        for i in range(count):
            if waiting[i].is_new:
                slot = waiting[i].hash & (self.table.count - 1)
                if self.table.slots[slot]:
                    tail = self.record_in(slot) + self.width - AFTER_VALUES
                    if 1 < tail[KEPT] < PLACES:
                        wire_prefetch(&self.places[tail[LAST]])

    def take(self, const int64_t[::1] chosen: NDArray[np.int64]) -> GroupTable:
        """Another table with these groups, in this order; a copy."""
        cdef GroupTable made = GroupTable(self.keys, self.operations)
        cdef int64_t[MOST_WORDS] key
        cdef Span text
        cdef const int64_t* record
        cdef int64_t* copy
        cdef int64_t[PLACES] places
        cdef size_t i, k, word
        made.kinds = self.kinds
        made.lay_out()
        for i in range(<size_t>chosen.shape[0]):
            if not 0 <= chosen[i] < <int64_t>self.count:
                raise IndexError(f"group {chosen[i]} of {self.count}")
            record = self.record_at(<size_t>chosen[i])
            memcpy(key, record, self.key_size * INT64_SIZE)
            for k in range(self.keys):
                word = self.word_of(k)
                if self.kinds[k] == TEXT and (<const uint8_t*>(key + word))[SIZE_AT] == LONG:
                    text = self.text_of(record + word)
                    key[word] = made.texts.number(text.data, text.size)
            copy = made.record_of(key, made.hash_of(key))
            memcpy(copy + self.key_size, record + self.key_size, (1 + self.values) * INT64_SIZE)
            for k in range(self.places_of(record, places)):
                made.see(copy, places[k])
        return made

    cdef size_t word_of(self, size_t k) noexcept nogil:
        """The first word of a key of one column."""
        cdef size_t word = 0
        cdef size_t i
        for i in range(k):
            word += <size_t>self.kinds[i]
        return word

    cdef Span text_of(self, const int64_t* word) noexcept nogil:
        """The text with these words in a record; NULL if it is null."""
        cdef const uint8_t* data = <const uint8_t*>word
        cdef Span text
        text.data, text.size = data, data[SIZE_AT]
        if data[SIZE_AT] == LONG:
            text.data = self.texts.data + self.texts.ends[word[0]]
            text.size = self.texts.ends[word[0] + 1] - self.texts.ends[word[0]]
        elif data[SIZE_AT] == NO_TEXT:
            text.data, text.size = NULL, 0
        return text

    cdef object words(self, size_t word):
        """One word of each record."""
        cdef Buffer buffer = allocate(self.count * INT64_SIZE)
        cdef size_t i
        for i in range(self.count):
            (<int64_t*>buffer.data)[i] = self.record_at(i)[word]
        return np.frombuffer(buffer, np.int64)

    def key(self, size_t k) -> NDArray[np.int64] | Payloads:
        """A key of each group: int64, or Payloads where it is a text or a GUID."""
        cdef Buffer spans, texts
        cdef Span* span
        cdef const int64_t* record
        cdef size_t size = 0
        cdef size_t word
        cdef size_t i
        if k >= self.keys:
            raise IndexError(f"key {k} of {self.keys}")
        word = self.word_of(k)
        if self.kinds[k] == NUMBER:
            return self.words(word)
        spans = allocate(self.count * sizeof(Span))
        span = <Span*>spans.data
        for i in range(self.count):
            record = self.record_at(i) + word
            if self.kinds[k] == TEXT:
                span[i] = self.text_of(record)
            else:
                span[i].data, span[i].size = NULL, 0
                if record[0] != ABSENT:
                    span[i].data, span[i].size = <const uint8_t*>(record + 1), GUID_SIZE
            size += span[i].size
        # Copied: the memory of the table moves when there are more groups
        texts = allocate(size)
        size = 0
        for i in range(self.count):
            if span[i].data != NULL:
                memcpy(texts.data + size, span[i].data, span[i].size)
                span[i].data = texts.data + size
                size += span[i].size
        return payloads_of_spans(span, self.count, <Py_ssize_t>size, (spans, texts))

    def value(self, size_t v) -> NDArray[np.int64]:
        """A value of each group, int64."""
        if v >= self.values:
            raise IndexError(f"value {v} of {self.values}")
        return self.words(self.key_size + 1 + v)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows of each group, int64."""
        return self.words(self.key_size)

    @property
    def kept_places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first places of each group: where those of each begin and end, and all of them; int64."""
        cdef Buffer ends = allocate((self.count + 1) * INT64_SIZE)
        cdef int64_t* end = <int64_t*>ends.data
        cdef Buffer found
        cdef size_t i
        end[0] = 0
        for i in range(self.count):
            end[i + 1] = end[i] + self.record_at(i)[self.width - AFTER_VALUES + KEPT]
        found = allocate(<size_t>end[self.count] * INT64_SIZE)
        for i in range(self.count):
            self.places_of(self.record_at(i), <int64_t*>found.data + end[i])
        return np.frombuffer(ends, np.int64), np.frombuffer(found, np.int64)
