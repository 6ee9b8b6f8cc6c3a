"""Columns of which groups are made: a number for each row, and the GUIDs or texts that the numbers stand for.

A text has two words: its bytes and its size if it has at most 15 bytes, and else only that it is longer.
"""

from inspect import signature

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset

from msmqwire.columns._arrow cimport ArrowArray, ArrowSchema
from msmqwire.columns._buffer cimport Buffer, allocate, allocate_zeroed
from msmqwire.columns.payload_table cimport Span
from msmqwire.insight._values cimport ABSENT, is_text, read_numbers, read_texts

import numpy as np

if False:  # for type checkers: see stubs.py
    from typing import Any

    from numpy.typing import NDArray

#: The number of a null value.
NULL_NUMBER: int = ABSENT


cdef class Column:
    """The values of a column for groups: numbers, GUIDs, or texts.

    Parameters
    ----------
    array : pyarrow.Array
        Integers, booleans, times, strings, binary values, or dictionaries of strings.

    Attributes
    ----------
    type : pyarrow.DataType
        Of the values.
    """

    type: Any

    __signature__ = signature(lambda array: None)

    def __init__(self, array: Any) -> None:
        cdef const ArrowSchema* schema
        cdef const ArrowArray* values
        cdef const ArrowArray* texts
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
            self.hold_texts(read_texts(schema.dictionary.format, texts), <size_t>texts.length)
        elif schema.format == b"w:16":
            self.hold_guids(values, numbers)
            return
        elif is_text(schema.format):
            self.hold_texts(read_texts(schema.format, values), self.count)
            for i in range(self.count):
                numbers[i] = <int64_t>i
        else:
            read_numbers(schema.format, values, numbers)
            return
        for i in range(self.count):
            if numbers[i] == ABSENT:
                continue
            if not 0 <= numbers[i] < <int64_t>self.distinct:
                raise ValueError(f"index {i} of the Arrow dictionary is outside its values")
            if self.values[numbers[i]].data == NULL:
                numbers[i] = ABSENT

    cdef int hold_guids(self, const ArrowArray* array, int64_t* numbers) except -1:
        cdef const uint8_t* bits = <const uint8_t*>array.buffers[0]
        cdef size_t offset = <size_t>array.offset
        cdef size_t i
        memset(numbers, 0, self.count * INT64_SIZE)
        if bits != NULL:
            for i in range(self.count):
                if not bits[(offset + i) >> 3] >> ((offset + i) & 7) & 1:
                    numbers[i] = ABSENT
        # An array without rows may have no bytes
        self.guids = <const uint8_t*>b"" if self.count == 0 else <const uint8_t*>array.buffers[1] + GUID_SIZE * offset
        return 0

    cdef int hold_texts(self, Buffer spans, size_t distinct) except -1:
        """Have texts, and their words."""
        cdef const Span* texts = <const Span*>spans.data
        cdef Buffer words = allocate_zeroed(distinct * TEXT_SIZE)
        cdef uint8_t* word = words.data
        cdef size_t i
        for i in range(distinct):
            if texts[i].size > SIZE_AT:
                word[SIZE_AT] = LONG
                self.has_long = True
            elif texts[i].data != NULL:
                memcpy(word, texts[i].data, texts[i].size)
                word[SIZE_AT] = <uint8_t>texts[i].size
            word += TEXT_SIZE
        self.values, self.words, self.distinct = texts, <const int64_t*>words.data, distinct
        self.owner = (self.owner, spans, words)
        return 0

    def __len__(self) -> int:
        return <Py_ssize_t>self.count

    @staticmethod
    def of_numbers(numbers: NDArray[np.int64], type: Any) -> Column:
        """The column of a contiguous array of int64, which is not copied."""
        cdef const int64_t[::1] view = numbers
        cdef Column column = Column.__new__(Column)
        column.type = type
        column.count = <size_t>view.shape[0]
        column.numbers = &view[0] if column.count else NULL
        column.step = 1
        column.owner = numbers
        return column

    @staticmethod
    def either(mask: NDArray[np.bool_], Column one, Column other) -> Column:
        """The values of one column where the mask is true, and of the other elsewhere; both have texts."""
        cdef const uint8_t[::1] choice = mask.view(np.uint8)
        cdef Column column = Column.__new__(Column)
        cdef Buffer spans = allocate((one.distinct + other.distinct) * sizeof(Span))
        cdef Buffer words = allocate((one.distinct + other.distinct) * TEXT_SIZE)
        cdef int64_t* numbers
        cdef int64_t number
        cdef size_t i
        if one.values == NULL or other.values == NULL:
            raise TypeError(f"texts are needed, not {one.type} and {other.type}")
        if not <size_t>choice.shape[0] == one.count == other.count:
            raise ValueError("columns have different lengths")
        memcpy(spans.data, one.values, one.distinct * sizeof(Span))
        memcpy(spans.data + one.distinct * sizeof(Span), other.values, other.distinct * sizeof(Span))
        memcpy(words.data, one.words, one.distinct * TEXT_SIZE)
        memcpy(words.data + one.distinct * TEXT_SIZE, other.words, other.distinct * TEXT_SIZE)
        column.memory = allocate(one.count * INT64_SIZE)
        numbers = <int64_t*>column.memory.data
        column.type, column.count, column.numbers, column.step = one.type, one.count, numbers, 1
        column.values, column.words = <const Span*>spans.data, <const int64_t*>words.data
        column.distinct, column.has_long = one.distinct + other.distinct, one.has_long or other.has_long
        column.owner = (spans, words, one, other)
        for i in range(column.count):
            number = one.numbers[i * one.step] if choice[i] else other.numbers[i * other.step]
            numbers[i] = number if choice[i] or number == ABSENT else number + <int64_t>one.distinct
        return column

    def repeated(self, Py_ssize_t count) -> Column:
        """The column with its first value in so many rows."""
        cdef Column column = Column.__new__(Column)
        if self.count == 0:
            raise ValueError("there is no first value")
        column.type, column.count, column.numbers, column.step = self.type, <size_t>count, self.numbers, 0
        column.values, column.words, column.distinct = self.values, self.words, self.distinct
        column.has_long, column.guids = self.has_long, self.guids
        column.memory, column.owner = self.memory, self.owner
        return column

    @property
    def array(self) -> NDArray[np.int64]:
        """The numbers of the rows as int64: values, places of texts, 0 for GUIDs; ``NULL_NUMBER`` for null."""
        if self.memory is None:
            return self.owner
        return np.frombuffer(self.memory, np.int64)
