"""Columns of which groups are made: a number for each row, and the GUIDs or texts that the numbers stand for.

A text has two words: its bytes and its size if it has at most 15 bytes, and else only that it is longer.
"""

from inspect import signature

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uintptr_t
from libc.string cimport memcpy

from msmqwire.columns._buffer cimport Buffer, allocate, allocate_zeroed
from msmqwire.columns._payloads cimport Payloads
from msmqwire.columns.payload_table cimport Span, payload_at
from msmqwire.insight._values cimport ABSENT

import numpy as np
import pyarrow as pa
from pyarrow import types

from msmqwire.insight import arrays

if False:  # for type checkers: see stubs.py
    from typing import Any

    from numpy.typing import NDArray

#: The number of a null value.
NULL_NUMBER: int = ABSENT
cdef object GUIDS = pa.binary(GUID_SIZE)


cdef bint is_text(object type):
    return types.is_string(type) or types.is_large_string(type) or types.is_binary(type) or types.is_large_binary(type)


cdef bint is_number(object type):
    return types.is_integer(type) or types.is_boolean(type) or types.is_timestamp(type) or types.is_null(type)


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
    array : array of int64
        The numbers of the rows: values, places of texts, 0 for GUIDs; ``NULL_NUMBER`` for null.
    """

    type: Any
    array: NDArray[np.int64]

    __signature__ = signature(lambda array: None)

    def __init__(self, array: Any) -> None:
        cdef int64_t[::1] places
        cdef size_t i
        self.type = array.type
        if types.is_dictionary(array.type):
            self.type = array.type.value_type
            if not is_text(self.type):
                raise TypeError(f"rows cannot be grouped by a dictionary of {self.type}")
            self.hold_texts(Payloads.of_texts(array.dictionary))
            self.hold_numbers(np.require(arrays.numbers(array.indices, NULL_NUMBER), requirements="W"))
        elif is_text(self.type):
            self.hold_texts(Payloads.of_texts(array))
            self.hold_numbers(np.arange(len(array)))
        elif self.type == GUIDS:
            # An array without rows may have no bytes
            self.guids = b""
            if len(array):
                self.guids = <const uint8_t*><uintptr_t>array.buffers()[1].address + GUID_SIZE * <size_t>array.offset
            self.owner = array
            self.hold_numbers(np.zeros(len(array), np.int64))
            if array.null_count:
                self.array[arrays.truths(array.is_null())] = NULL_NUMBER
            return
        elif is_number(self.type):
            self.hold_numbers(arrays.numbers(array, NULL_NUMBER))
            return
        else:
            raise TypeError(f"rows cannot be grouped by {self.type}")
        places = self.array
        for i in range(self.count):
            if places[i] == ABSENT:
                continue
            if not 0 <= places[i] < <int64_t>self.distinct:
                raise ValueError(f"index {i} of the Arrow dictionary is outside its values")
            if self.values[places[i]].data == NULL:
                places[i] = ABSENT

    cdef int hold_numbers(self, object numbers) except -1:
        """Have a contiguous array of int64."""
        cdef const int64_t[::1] view = numbers
        self.array, self.count, self.step = numbers, <size_t>view.shape[0], 1
        self.numbers = &view[0] if self.count else NULL
        return 0

    cdef int hold_texts(self, Payloads texts) except -1:
        """Have texts, and their words."""
        cdef size_t distinct = texts.table.count
        cdef Buffer spans = allocate(distinct * sizeof(Span))
        cdef Buffer words = allocate_zeroed(distinct * TEXT_SIZE)
        cdef uint8_t* word = words.data
        cdef Span* text = <Span*>spans.data
        cdef size_t i
        self.values, self.words, self.distinct = text, <const int64_t*>words.data, distinct
        for i in range(distinct):
            text[0] = payload_at(&texts.table, i)
            if text.size > SIZE_AT:
                word[SIZE_AT] = LONG
                self.has_long = True
            elif text.data != NULL:
                memcpy(word, text.data, text.size)
                word[SIZE_AT] = <uint8_t>text.size
            word += TEXT_SIZE
            text += 1
        self.owner = (texts, spans, words)
        return 0

    def __len__(self) -> int:
        return <Py_ssize_t>self.count

    @staticmethod
    def of_numbers(numbers: NDArray[np.int64], type: Any) -> Column:
        """The column of a contiguous array of int64, which is not copied."""
        cdef Column column = Column.__new__(Column)
        column.type = type
        column.hold_numbers(numbers)
        return column

    @staticmethod
    def either(mask: NDArray[np.bool_], Column one, Column other) -> Column:
        """The values of one column where the mask is true, and of the other elsewhere; both have texts."""
        cdef const uint8_t[::1] choice = mask.view(np.uint8)
        cdef Column column = Column.__new__(Column)
        cdef Buffer spans = allocate((one.distinct + other.distinct) * sizeof(Span))
        cdef Buffer words = allocate((one.distinct + other.distinct) * TEXT_SIZE)
        cdef int64_t[::1] places
        cdef int64_t shift = <int64_t>one.distinct
        cdef int64_t first, second
        cdef size_t i
        if one.values == NULL or other.values == NULL:
            raise TypeError(f"texts are needed, not {one.type} and {other.type}")
        if not <size_t>choice.shape[0] == one.count == other.count:
            raise ValueError("columns have different lengths")
        memcpy(spans.data, one.values, one.distinct * sizeof(Span))
        memcpy(spans.data + one.distinct * sizeof(Span), other.values, other.distinct * sizeof(Span))
        memcpy(words.data, one.words, one.distinct * TEXT_SIZE)
        memcpy(words.data + one.distinct * TEXT_SIZE, other.words, other.distinct * TEXT_SIZE)
        column.type = one.type
        column.hold_numbers(np.empty(one.count, np.int64))
        column.values, column.words = <const Span*>spans.data, <const int64_t*>words.data
        column.distinct, column.has_long = one.distinct + other.distinct, one.has_long or other.has_long
        column.owner = (spans, words, one, other)
        places = column.array
        for i in range(column.count):
            # Both are read, so that no branch depends on the mask
            first, second = one.numbers[i * one.step], other.numbers[i * other.step]
            second += 0 if second == ABSENT else shift
            places[i] = first if choice[i] else second
        return column

    def repeated(self, Py_ssize_t count) -> Column:
        """The column with its first value in so many rows."""
        cdef Column column = Column.__new__(Column)
        if self.count == 0:
            raise ValueError("there is no first value")
        column.type, column.count, column.numbers, column.step = self.type, <size_t>count, self.numbers, 0
        column.values, column.words, column.distinct = self.values, self.words, self.distinct
        column.has_long, column.guids = self.has_long, self.guids
        column.array, column.owner = self.array, self.owner
        return column
