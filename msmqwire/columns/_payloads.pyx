"""Payloads from one buffer with offsets, a sequence of bytes-like objects, or Arrow arrays.

Immutable bytes are not copied: objects of ``bytes`` and ``str``, and Arrow arrays.
"""

import sys
from inspect import signature
from pickle import PickleBuffer

from cpython.buffer cimport PyBuffer_FillInfo, PyObject_CheckBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromObject, PyMemoryView_GET_BUFFER
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.columns._arrow cimport ArrowNode, array_capsule, arrow_node, schema_capsule
from msmqwire.columns._buffer cimport Buffer, allocate
from msmqwire.columns._payload_arrays cimport (
    BINARY_FORMATS, TEXT_FORMATS, ImportedArray, imported_array, imported_stream
)
from msmqwire.columns.payload_table cimport OFFSETS32, OFFSETS64, SPANS, UNFRAMED, payload_at
from msmqwire.wire._fault cimport TOO_LARGE, Fault, decode_error, set_fault

import numpy as np

from msmqwire.errors import require

if False:  # for type checkers: see stubs.py
    from collections.abc import Iterable, Iterator
    from typing import Any, overload

    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Buffer as BytesLike

UNFRAMED_BIT: int = <uint32_t>UNFRAMED

cdef const uint8_t* EMPTY = <const uint8_t*>b""


cdef bytes bytes_of(object data):
    """A copy of the bytes of a buffer. Its items may be of any type but Python objects, and need not be contiguous."""
    cdef object view = PyMemoryView_FromObject(data)
    if is_number_or_text(view.obj):
        raise TypeError(f"{type(view.obj).__name__} of numpy is not bytes-like: its buffer is its memory")
    if getattr(getattr(view.obj, "dtype", None), "hasobject", False):
        raise TypeError("an array of Python objects is not bytes-like: it holds their addresses")
    return bytes(view)


cdef bint is_number_or_text(object data) except -1:
    """Return True if it is a scalar of numpy that has a buffer and is no bytes."""
    return isinstance(data, np.generic) and not isinstance(data, (bytes, np.void))


cdef tuple immutable_view(object data):
    """An immutable memoryview of the bytes of ``data``, or of a copy, and their number."""
    cdef object view = PyMemoryView_FromObject(data)
    if not view.c_contiguous:
        raise ValueError("payload buffers must be contiguous")
    if PyBytes_CheckExact(view.obj):
        view = view.cast("B")  # whose slices count bytes, not items
    else:  # the memory of a read-only view may be written through another view
        view = PyMemoryView_FromObject(bytes_of(view))
    return view, view.nbytes


cdef object hold_payload(object data, tuple fields, const uint8_t** start, size_t* size):
    """The owner of the immutable bytes of one payload; a DecodeError if there are too many for a decoder."""
    cdef Fault fault
    if PyBytes_CheckExact(data):
        owner = data
        size[0] = <size_t>PyBytes_GET_SIZE(data)
        start[0] = <const uint8_t*>PyBytes_AS_STRING(data)
    else:
        owner = PyMemoryView_FromObject(data)
        size[0] = <size_t>PyMemoryView_GET_BUFFER(owner).len
        if size[0] <= LARGEST_PAYLOAD:
            owner, _ = immutable_view(data)
            start[0] = address(owner)
    if size[0] > LARGEST_PAYLOAD:
        set_too_large(&fault, size[0])
        raise decode_error(&fault, fields)
    return owner


cdef void set_too_large(Fault* fault, size_t size) noexcept:
    """The fault of a payload above LARGEST_PAYLOAD, at its first field, which is the first of every table."""
    set_fault(fault, TOO_LARGE, 0, 0, LARGEST_PAYLOAD, size)


cdef const uint8_t* address(object view):
    cdef const uint8_t* data = <const uint8_t*>PyMemoryView_GET_BUFFER(view).buf
    return EMPTY if data == NULL else data


cdef class Payloads:
    """Many payloads without copies, the input of every ``decode_batch``.

    Parameters
    ----------
    data : bytes-like
        All payloads. It is viewed where it is ``bytes``, else copied.
    offsets : array of integers, shape (n + 1,)
        Payload ``i`` is ``data[offsets[i]:offsets[i + 1]]``. int32 is fastest; anything but int32 is kept as int64.

    Raises
    ------
    ValueError
        The offsets decrease, or are outside the data.

    Examples
    --------
    >>> payloads = Payloads(b"abcdef", [0, 2, 6])
    >>> [bytes(payload) for payload in payloads]
    [b'ab', b'cdef']
    >>> bytes(payloads[1:][0])
    b'cdef'

    Attributes
    ----------
    nbytes : int
        Bytes of all payloads together.
    """

    nbytes: int

    __signature__ = signature(lambda data, offsets: None)

    def __init__(self, data: BytesLike, offsets: ArrayLike) -> None:
        cdef const int32_t[::1] narrow
        cdef const int64_t[::1] wide
        cdef Py_ssize_t size
        if self.owner is not None:
            raise TypeError("Payloads are made once")
        view, size = immutable_view(data)
        given = np.asarray(offsets)
        if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
            raise ValueError("offsets must be a one-dimensional array of integers, one more than there are payloads")
        kept = given.astype(np.int32 if given.dtype == np.int32 else np.int64, order="C", copy=True)
        if kept[0] < 0 or kept[-1] > size or (kept[1:] < kept[:-1]).any():
            raise ValueError(f"offsets must rise from 0 or more to at most {size}, the size of the data")
        self.owner = (view, kept)
        self.table.data = address(view)
        self.table.count = <size_t>(kept.size - 1)
        if kept.dtype == np.int32:
            narrow = kept
            self.table.layout = OFFSETS32
            self.table.offsets32 = &narrow[0]
        else:
            wide = kept
            self.table.layout = OFFSETS64
            self.table.offsets64 = &wide[0]
        self.nbytes = int(kept[-1] - kept[0])

    @staticmethod
    def of(payloads: Any, offsets: ArrayLike | None = None, lost: ArrayLike | None = None) -> Payloads:
        """Make Payloads of any object that holds payloads.

        Parameters
        ----------
        payloads
            Payloads; one bytes-like object with ``offsets``; a sequence (or numpy array, or Series of pandas) of
            bytes-like objects and None; an array of numpy of uint8 with shape (n, size), of ``S`` or of records, whose
            items are payloads of one size; or anything with ``__arrow_c_array__`` or ``__arrow_c_stream__`` of Binary,
            LargeBinary, BinaryView or FixedSizeBinary, or of dictionaries of these. ``pandas.NA`` and NaN are nulls as
            None is.
        offsets : array of integers, optional
            As for ``Payloads``.
        lost : array of integers, shape (n,), optional
            Bytes that each payload had after those that were captured: decoded as ``incomplete``, not ``truncated``.
            With the bit ``UNFRAMED_BIT`` (2147483648), the payload is the first of bytes in which no packet begins.

        Raises
        ------
        TypeError
            None of these.
        ValueError
            ``lost`` has another length, or a number below 0 or above 4294967295; or the Arrow array or stream was
            consumed before.

        Examples
        --------
        >>> from msmqwire import mqsd
        >>> mqsd.decode_batch(Payloads.of([bytes.fromhex("0001000001020304")], lost=[44])).fault(0)
        FaultEntry(code='incomplete', field='EnterpriseID', offset=4, value=None, needed=16)
        """
        if lost is not None:
            return of_incomplete(Payloads.of(payloads, offsets), lost)
        if offsets is not None:
            return Payloads(payloads, offsets)
        if isinstance(payloads, Payloads):
            # An encoder may overwrite its own payloads, unless a slice of them is held
            return payloads if type(payloads) is Payloads else part(payloads, 0, len(payloads))
        if hasattr(payloads, "__arrow_c_array__"):
            return payloads_of_array(imported_array(payloads, BINARY_FORMATS))
        if hasattr(payloads, "__arrow_c_stream__"):
            return payloads_of_array(imported_stream(payloads, BINARY_FORMATS))
        if isinstance(payloads, np.ndarray) and is_of_one_size(payloads):
            size = payloads.shape[1] if payloads.ndim == 2 else payloads.itemsize
            return Payloads(payloads.tobytes(), size * np.arange(len(payloads) + 1))
        if PyObject_CheckBuffer(payloads) and not (isinstance(payloads, np.ndarray) and payloads.dtype == object):
            raise TypeError("one buffer of many payloads needs offsets=; for a single payload use decode()")
        return from_items(payloads, texts=False)

    @staticmethod
    def of_texts(texts: Any) -> Payloads:
        """Make Payloads of texts, in UTF-8, the input of functions over columns of text.

        Parameters
        ----------
        texts
            Payloads; a sequence of str, and of nulls as for ``of``; or anything with ``__arrow_c_array__`` or
            ``__arrow_c_stream__`` of strings, or of UTF-8 as binary, or of dictionaries of these.

        Raises
        ------
        TypeError
            None of these.
        ValueError
            The Arrow array or stream was consumed before.
        """
        if isinstance(texts, Payloads):
            return Payloads.of(texts)
        if hasattr(texts, "__arrow_c_array__"):
            return payloads_of_array(imported_array(texts, TEXT_FORMATS))
        if hasattr(texts, "__arrow_c_stream__"):
            return payloads_of_array(imported_stream(texts, TEXT_FORMATS))
        if isinstance(texts, (str, bytes)):
            raise TypeError("texts must be many: a list of one, or a column")
        return from_items(texts, texts=True)

    @staticmethod
    def concat(parts: Iterable[Any]) -> Payloads:
        """Make Payloads of several, one after the other, not copied.

        Parameters
        ----------
        parts
            Each as for ``of``.

        Examples
        --------
        >>> payloads = Payloads(b"abcdef", [0, 2, 6])
        >>> [bytes(payload) for payload in Payloads.concat([payloads, [b"gh"]])]
        [b'ab', b'cdef', b'gh']
        """
        cdef list all_parts = [Payloads.of(each) for each in parts]
        cdef Payloads one, joined
        cdef size_t count = 0
        cdef size_t i
        cdef Py_ssize_t nbytes = 0
        for one in all_parts:
            count += one.table.count
            nbytes += one.nbytes
        cdef Buffer spans = allocate(count * sizeof(Span))
        cdef Span* span = <Span*>spans.data
        for one in all_parts:
            for i in range(one.table.count):
                span[i] = payload_at(&one.table, i)
            span += one.table.count
        joined = payloads_of_spans(<Span*>spans.data, count, nbytes, (spans, all_parts))
        losses = [one.lost for one in all_parts]
        if all([lost is None for lost in losses]):
            return joined
        none = [np.zeros(len(each), np.uint32) for each in all_parts]
        known = [zeros if lost is None else lost for lost, zeros in zip(losses, none, strict=True)]
        return of_incomplete(joined, np.concatenate(known))

    def __len__(self) -> int:
        return <Py_ssize_t>self.table.count

    def __repr__(self):
        return f"<{len(self)} payloads, {self.nbytes} bytes>"

    def __reduce_ex__(self, int protocol):
        """The bytes of all payloads as one buffer, which ``pickle`` of protocol 5 can leave out of the pickle."""
        data, offsets, nulls = one_buffer(self)
        return restore_payloads, (PickleBuffer(data) if protocol >= 5 else bytes(data), offsets, nulls, self.lost)

    if False:
        @overload
        def __getitem__(self, index: int) -> memoryview | None: ...
        @overload
        def __getitem__(self, index: slice) -> Payloads: ...

    def __getitem__(self, index):
        cdef Py_ssize_t start, stop, step, i
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return part(self, start, max(start, stop)) if step == 1 else self.take(np.arange(start, stop, step))
        i = index
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(f"payload {index} of {len(self)}")
        return payload_view(self, i)

    def __iter__(self) -> Iterator[memoryview | None]:
        cdef Py_ssize_t i
        for i in range(len(self)):
            yield payload_view(self, i)

    def take(self, rows: ArrayLike) -> Payloads:
        """The payloads of these rows, in this order, not copied.

        Parameters
        ----------
        rows : array of integers, shape (m,), or of bool, shape (n,)
            The numbers of the rows, or a mask that is true for them.

        Raises
        ------
        IndexError
            There is no such row, or the mask has another length.
        ValueError
            The rows are something else.

        Examples
        --------
        >>> payloads = Payloads(b"abcdef", [0, 2, 5, 6])
        >>> [bytes(payload) for payload in payloads.take([2, 0])]
        [b'f', b'ab']
        >>> [bytes(payload) for payload in payloads.take([True, False, True])]
        [b'ab', b'f']
        """
        given = np.asarray(rows)
        if given.ndim == 1 and given.dtype == bool:
            if given.size != len(self):
                raise IndexError(f"a mask of {given.size} rows for {len(self)} payloads")
            given = np.flatnonzero(given)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ValueError("rows must be a one-dimensional array of integers, or a mask")
        outside = given[(given < 0) | (given >= len(self))]
        if outside.size:
            raise IndexError(f"payload {outside[0]} of {len(self)}")
        cdef const uint32_t[::1] wanted = given.astype(np.uint32, order="C")
        cdef size_t count = <size_t>wanted.shape[0]
        cdef Buffer spans = allocate(count * sizeof(Span))
        cdef Buffer missing
        cdef Payloads taken
        cdef Span* span = <Span*>spans.data
        cdef Py_ssize_t nbytes = 0
        cdef size_t i
        for i in range(count):
            span[i] = payload_at(&self.table, wanted[i])
            nbytes += <Py_ssize_t>span[i].size
        taken = payloads_of_spans(span, count, nbytes, (spans, self.owner))
        if self.table.lost != NULL:
            missing = allocate(count * sizeof(uint32_t))
            for i in range(count):
                (<uint32_t*>missing.data)[i] = self.table.lost[wanted[i]]
            taken = with_lost(taken, <const uint32_t*>missing.data, missing)
        return taken

    @property
    def lost(self) -> NDArray[np.uint32] | None:
        """Bytes that each payload had after those captured, shape (n,) uint32; None if all payloads are complete.

        With the bit ``UNFRAMED_BIT``, bytes of a stream in which no packet begins, beside those in the payload.
        """
        if self.table.lost == NULL:
            return None
        found = np.empty(len(self), np.uint32)
        cdef uint32_t[::1] target = found
        cdef size_t i
        for i in range(self.table.count):
            target[i] = self.table.lost[i]
        return found

    def to_pylist(self) -> list[bytes | None]:
        """The payloads as ``bytes``, copied; None for a null."""
        return [None if payload is None else bytes(payload) for payload in self]

    def to_arrow(self) -> pa.LargeBinaryArray:
        """The payloads as a pyarrow array of LargeBinary, copied; needs pyarrow."""
        return require("pyarrow", "to_arrow").array(self)

    def to_pandas(self) -> pd.Series[Any]:
        """The payloads as a Series of pandas, of ``bytes`` and None."""
        return require("pandas", "to_pandas").Series(self.to_pylist(), dtype=object)

    def to_polars(self) -> pl.Series:
        """The payloads as a Series of polars, of binary."""
        pl = require("polars", "to_polars")
        return pl.Series(self.to_pylist(), dtype=pl.Binary)

    def __arrow_c_schema__(self) -> object:
        return schema_capsule(payload_node(self, empty=True))

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return the payloads as an Arrow array of LargeBinary."""
        cdef ArrowNode node = payload_node(self, empty=False)
        return schema_capsule(node), array_capsule(node, self)


cdef bint is_of_one_size(object array) except -1:
    """Return True if an array of numpy has a payload in each row, or in each item."""
    if array.ndim == 2:
        return array.dtype == np.uint8
    return array.ndim == 1 and array.dtype.kind in "SV" and not array.dtype.hasobject


cdef tuple one_buffer(Payloads payloads):
    """All payloads one after the other, their offsets, and the numbers of null ones; copied if not in one buffer."""
    cdef PayloadTable* table = &payloads.table
    cdef Buffer joined
    cdef Window window = Window.__new__(Window)
    cdef list nulls = []
    cdef Span span
    cdef size_t i
    cdef const uint8_t* start = NULL
    offsets = np.zeros(len(payloads) + 1, np.int64)
    cdef int64_t[::1] end = offsets
    for i in range(table.count):
        span = payload_at(table, i)
        end[i + 1] = end[i] + <int64_t>span.size
        if span.data == NULL:
            nulls.append(i)
        elif start == NULL:
            start = span.data - end[i]
    window.span.size = <size_t>end[table.count]
    if table.layout == SPANS or nulls:
        joined = allocate(window.span.size)
        for i in range(table.count):
            span = payload_at(table, i)
            if span.size:
                memcpy(joined.data + end[i], span.data, span.size)
        window.owner, window.span.data = joined, joined.data
    else:
        window.owner, window.span.data = payloads.owner, start if start != NULL else EMPTY
    return memoryview(window), offsets, nulls


def restore_payloads(data, offsets, list nulls, lost):
    """Unpickle payloads."""
    cdef Payloads payloads = Payloads(data, offsets)
    cdef Buffer spans
    cdef Span* span
    cdef size_t i
    if nulls:
        spans = allocate(payloads.table.count * sizeof(Span))
        span = <Span*>spans.data
        for i in range(payloads.table.count):
            span[i] = payload_at(&payloads.table, i)
        for i in nulls:
            span[i].data = NULL
        payloads = payloads_of_spans(span, payloads.table.count, payloads.nbytes, (spans, payloads.owner))
    return payloads if lost is None else of_incomplete(payloads, lost)


cdef Payloads of_incomplete(Payloads payloads, object lost):
    """Return the payloads with the number of bytes that each has lost."""
    cdef const uint32_t[::1] sizes
    given = np.asarray(lost)
    if given.shape != (len(payloads),) or given.dtype.kind not in "iu":
        raise ValueError(f"lost= must be an array of {len(payloads)} integers, one for each payload")
    if given.size and not 0 <= given.min() <= given.max() <= 0xFFFFFFFF:
        raise ValueError("lost= has a number below 0 or above 4294967295")
    kept = given.astype(np.uint32, order="C", copy=True)
    sizes = kept
    result = part(payloads, 0, len(payloads))
    return with_lost(result, &sizes[0], kept) if given.size else result


cdef Payloads without_large(Payloads payloads, list large):
    """The payloads with each one above LARGEST_PAYLOAD empty, its index and size added to ``large``."""
    cdef size_t count = payloads.table.count
    cdef Buffer spans = allocate(count * sizeof(Span))
    cdef Span* span = <Span*>spans.data
    cdef Py_ssize_t nbytes = 0
    cdef size_t i
    for i in range(count):
        span[i] = payload_at(&payloads.table, i)
        if span[i].size > LARGEST_PAYLOAD:
            large.append((i, span[i].size))
            span[i].size = 0
        nbytes += <Py_ssize_t>span[i].size
    if nbytes > LARGEST_PAYLOAD or count >= <size_t>0x7FFFFFFF:
        raise ValueError(f"{nbytes} bytes in {count} payloads: a batch holds less than 2 GiB; decode in slices")
    return payloads_of_spans(span, count, nbytes, (spans, payloads.owner))


cdef object payload_view(Payloads payloads, Py_ssize_t i):
    cdef Span span = payload_at(&payloads.table, <size_t>i)
    if span.data == NULL:
        return None
    window = Window.__new__(Window)
    (<Window>window).span = span
    (<Window>window).owner = payloads.owner
    return memoryview(window)


cdef class Window:
    """The bytes of one payload; a view of them keeps their owner alive."""
    cdef Span span
    cdef object owner

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, <void*>self.span.data, <Py_ssize_t>self.span.size, 1, flags)


cdef Payloads part(Payloads whole, Py_ssize_t start, Py_ssize_t stop):
    cdef Payloads result = Payloads.__new__(Payloads)
    cdef PayloadTable* table = &result.table
    cdef Py_ssize_t i
    table[0] = whole.table
    table.count = <size_t>(stop - start)
    table.validity_offset += <size_t>start
    if table.lost != NULL:
        table.lost += start
    result.owner = whole.owner
    if table.layout == OFFSETS32:
        table.offsets32 += start
        result.nbytes = table.offsets32[stop - start] - table.offsets32[0]
    elif table.layout == OFFSETS64:
        table.offsets64 += start
        result.nbytes = table.offsets64[stop - start] - table.offsets64[0]
    else:
        table.spans += start
        result.nbytes = 0
        for i in range(stop - start):
            result.nbytes += <Py_ssize_t>table.spans[i].size
    return result


cdef Payloads payloads_of_spans(const Span* spans, size_t count, Py_ssize_t nbytes, object owner):
    cdef Payloads result = Payloads.__new__(Payloads)
    result.table.layout = SPANS
    result.table.spans = spans
    result.table.count = count
    result.nbytes = nbytes
    result.owner = owner
    return result


cdef Payloads payloads_of_array(ImportedArray imported):
    cdef Payloads result = Payloads.__new__(Payloads)
    result.table = imported.table
    result.nbytes = imported.nbytes
    result.owner = imported
    return result


cdef Payloads with_lost(Payloads payloads, const uint32_t* lost, object owner):
    """Return the same payloads, some of which lost bytes at their ends; ``owner`` keeps the numbers alive."""
    payloads.table.lost = lost
    payloads.owner = (payloads.owner, owner)
    return payloads


cdef int attach_offsets32(
    Payloads payloads, const uint8_t* data, const int32_t* offsets, size_t count, object owner
) except -1:
    """Let ``payloads`` be slices of one buffer, by valid offsets."""
    payloads.table.layout = OFFSETS32
    payloads.table.data = data
    payloads.table.offsets32 = offsets
    payloads.table.count = count
    payloads.nbytes = offsets[count] - offsets[0]
    payloads.owner = owner
    return 0


cdef Payloads from_items(object payloads, bint texts):
    """A sequence of bytes-like objects and None; with ``texts`` of strings, as their UTF-8, and None."""
    cdef list items = list(payloads)
    cdef Py_ssize_t count = len(items)
    cdef Buffer spans = allocate(<size_t>count * sizeof(Span))
    cdef Span* span = <Span*>spans.data
    cdef Py_ssize_t nbytes = 0
    cdef Py_ssize_t i, size
    # How an iterator of pandas gives a null, beside NaN
    cdef object null = getattr(sys.modules.get("pandas"), "NA", None)
    for i in range(count):
        item = items[i]
        if not texts and PyBytes_CheckExact(item):
            span[i].data = <const uint8_t*>PyBytes_AS_STRING(item)
            size = PyBytes_GET_SIZE(item)
        elif item is None or item is null or (isinstance(item, float) and item != item):
            span[i].data = NULL
            size = 0
        elif texts:
            if not isinstance(item, str):
                raise TypeError(f"text {i} is {type(item).__name__}, not str or None")
            try:
                span[i].data = <const uint8_t*>PyUnicode_AsUTF8AndSize(item, &size)
            except UnicodeEncodeError:  # a lone surrogate is written like any other character
                item = items[i] = (<str>item).encode("utf-8", "surrogatepass")
                span[i].data = <const uint8_t*>PyBytes_AS_STRING(item)
                size = PyBytes_GET_SIZE(item)
        elif PyObject_CheckBuffer(item) and not is_number_or_text(item):
            view = PyMemoryView_FromObject(item)
            size = PyMemoryView_GET_BUFFER(view).len
            if size <= LARGEST_PAYLOAD:  # no decoder reads a larger one
                view, size = immutable_view(item)
            items[i] = view
            span[i].data = address(view)
        else:
            raise TypeError(f"payload {i} is {type(item).__name__}, not bytes-like or None")
        span[i].size = <size_t>size
        nbytes += size
    return payloads_of_spans(span, <size_t>count, nbytes, (spans, items))


cdef ArrowNode payload_node(Payloads payloads, bint empty):
    """A copy of the payloads as one LargeBinary array, since their memory may be reused."""
    cdef size_t count = 0 if empty else payloads.table.count
    cdef Buffer offsets = allocate((count + 1) * sizeof(int64_t))
    cdef Buffer data = allocate(0 if empty else <size_t>payloads.nbytes)
    cdef Buffer validity = allocate((count + 7) // 8)
    cdef int64_t* end = <int64_t*>offsets.data
    cdef Py_ssize_t nulls = 0
    cdef Span span
    cdef size_t i
    memset(validity.data, 0, validity.size)
    end[0] = 0
    for i in range(count):
        span = payload_at(&payloads.table, i)
        if span.data == NULL:
            nulls += 1
        else:
            memcpy(data.data + end[i], span.data, span.size)
            validity.data[i >> 3] |= <uint8_t>(1 << (i & 7))
        end[i + 1] = end[i] + <int64_t>span.size
    return arrow_node("", "Z", <Py_ssize_t>count, validity, nulls, [offsets, data])
