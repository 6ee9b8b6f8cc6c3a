"""PROPVARIANT values one at a time: [MS-MQCN] 2.2.3. The layouts and the kernel are in _codec.pxd."""

import numbers

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.columns._payloads cimport address, bytes_of, immutable_view
from msmqwire.properties._lookup cimport (
    KIND_BLOB, KIND_BOOL, KIND_CLSID, KIND_CLSID_VECTOR, KIND_COUNT, KIND_I1, KIND_I2, KIND_I4, KIND_I8, KIND_LPWSTR,
    KIND_LPWSTR_VECTOR, KIND_UI1, KIND_UI1_VECTOR, KIND_UI2, KIND_UI4, KIND_UI4_VECTOR, KIND_UI8,
    kind_of_type,
)
from msmqwire.wire.cursor cimport load_u64
from msmqwire.wire._fault cimport (
    BAD_COUNT, BAD_SIZE, BAD_TERMINATOR, BAD_VALUE, TRUNCATED, decode_error, set_fault
)
from msmqwire.wire._guid cimport GUID_SIZE, guid_from_bytes, guid_to_bytes

import numpy as np

from msmqwire.errors import EncodeError
from msmqwire.properties.table import KINDS
from msmqwire.properties.vartype import TYPE_NAMES

if False:  # for type checkers: see stubs.py
    from typing import Any

    from numpy.typing import NDArray
    from typing_extensions import Buffer

cdef tuple FIELDS = ("PropertyValue",)
cdef enum:
    FIELD_VALUE = 0
    BOOL_TRUE = 0xFFFF
    MAX_COUNT = 0xFFFFFFFF

# numpy's type of a value, or of the elements after its count
cdef dict DTYPES = {
    KIND_I2: np.dtype("<i2"), KIND_I4: np.dtype("<i4"), KIND_BOOL: np.dtype("<u2"), KIND_I1: np.dtype("i1"),
    KIND_UI1: np.dtype("u1"), KIND_UI2: np.dtype("<u2"), KIND_UI4: np.dtype("<u4"), KIND_I8: np.dtype("<i8"),
    KIND_UI8: np.dtype("<u8"), KIND_CLSID: np.dtype("16u1"), KIND_BLOB: np.dtype("u1"),
    KIND_UI1_VECTOR: np.dtype("u1"), KIND_UI4_VECTOR: np.dtype("<u4"), KIND_CLSID_VECTOR: np.dtype("16u1"),
}


cdef int fill_layouts() except -1:
    cdef uint8_t kind
    for kind in range(KIND_COUNT):
        width = DTYPES[kind].itemsize if kind in DTYPES else <size_t>UNSIZED
        counted = kind in DTYPES and kind >= KIND_BLOB
        value_layouts[kind].base = COUNT_SIZE if counted else width
        value_layouts[kind].mask = 0xFFFFFFFF if counted else 0
        value_layouts[kind].shift = width.bit_length() - 1 if counted else 0
    return 0


fill_layouts()


cdef object dtype_of(uint8_t kind):
    return DTYPES[kind]


# --- Cold paths ---


cdef size_t texts_size(const uint8_t* data, size_t size, size_t at) noexcept nogil:
    """Bytes of a VT_LPWSTR|VT_VECTOR; 0 when its count or one of its texts exceeds the data."""
    cdef size_t start = at
    cdef size_t one
    cdef uint32_t count
    if size - at < COUNT_SIZE:
        return 0
    count = load_u32(data + at)
    at += COUNT_SIZE
    if count > (size - at) // 2:
        return 0
    while count:
        one = text_size(data, size, at)
        if one == 0:
            return 0
        at += one
        count -= 1
    return at - start


cdef int value_fault(
    uint8_t kind, const uint8_t* data, size_t size, size_t at, uint32_t field, Fault* fault
) noexcept nogil:
    cdef const ValueLayout* layout = &value_layouts[kind]
    cdef size_t left = size - at
    cdef size_t smallest
    cdef uint32_t count
    if kind == KIND_LPWSTR:
        return set_fault(fault, BAD_TERMINATOR, field, at, left, left)
    if kind != KIND_LPWSTR_VECTOR and layout.mask == 0:
        return set_fault(fault, TRUNCATED, field, at, layout.base, left)
    if left < COUNT_SIZE:
        return set_fault(fault, TRUNCATED, field, at, COUNT_SIZE, left)
    count = load_u32(data + at)
    smallest = 2 if kind == KIND_LPWSTR_VECTOR else <size_t>1 << layout.shift
    if count > (left - COUNT_SIZE) // smallest:
        return set_fault(fault, BAD_COUNT, field, at, (left - COUNT_SIZE) // smallest, count)
    return set_fault(fault, BAD_TERMINATOR, field, at, left, left)


# --- From bytes to Python ---


cdef uint8_t known_kind(object vt) except 0:
    cdef uint8_t kind = kind_of_type(vt)
    if kind == 0:
        raise ValueError(f"vt={vt!r} has no value codec; those of [MS-MQCN] 2.2.3 and VT_UI1|VT_VECTOR have")
    return kind


cdef size_t sized(uint8_t kind, const uint8_t* data, size_t size, bint exact) except? 0:
    """Bytes of the value at the start of ``data``."""
    cdef Fault fault
    cdef size_t needed
    if size >= COUNT_SIZE:
        needed = value_size(kind, data, size, 0)
    else:
        needed = value_layouts[kind].base
        if kind == KIND_LPWSTR:
            needed = text_size(data, size, 0)
        if needed > size:
            needed = 0
    if needed == 0:
        value_fault(kind, data, size, 0, FIELD_VALUE, &fault)
        raise decode_error(&fault, FIELDS)
    if kind == KIND_BOOL and load_u16(data) != 0 and load_u16(data) != BOOL_TRUE:
        set_fault(&fault, BAD_VALUE, FIELD_VALUE, 0, 0, load_u16(data))
        raise decode_error(&fault, FIELDS)
    if exact and needed != size:
        set_fault(&fault, BAD_SIZE, FIELD_VALUE, needed, needed, size)
        raise decode_error(&fault, FIELDS)
    return needed


cdef object view_at(uint8_t kind, const uint8_t* value, size_t size, object owner, const uint8_t* start):
    """A numpy view of a value of known size; the buffer of ``owner`` begins at ``start``."""
    cdef Py_ssize_t offset = value - start
    cdef size_t used
    cdef size_t one
    if kind == KIND_LPWSTR:
        return np.frombuffer(owner, "<u2", <Py_ssize_t>size // 2 - 1, offset)
    if kind == KIND_LPWSTR_VECTOR:
        texts = []
        used = COUNT_SIZE
        while used < size:
            one = text_size(value, size, used)
            texts.append(np.frombuffer(owner, "<u2", <Py_ssize_t>one // 2 - 1, offset + <Py_ssize_t>used))
            used += one
        return tuple(texts)
    if kind == KIND_CLSID:
        return np.frombuffer(owner, np.uint8, GUID_SIZE, offset)
    if value_layouts[kind].mask:
        offset += COUNT_SIZE
        size -= COUNT_SIZE
    dtype = DTYPES[kind]
    return np.frombuffer(owner, dtype, <Py_ssize_t>size // dtype.itemsize, offset)


cdef object decode_value(uint8_t kind, const uint8_t* value, size_t size, object owner, const uint8_t* start):
    """The Python value of a value of known size; arrays view ``owner``, whose buffer begins at ``start``."""
    if kind == KIND_BOOL:
        return load_u16(value) != 0
    if kind == KIND_UI8:
        return load_u64(value)
    if kind < KIND_CLSID:
        return load_number(kind, value)
    if kind == KIND_CLSID:
        return guid_from_bytes(value)
    if kind == KIND_LPWSTR:
        return value[:size - 2].decode("utf-16-le", "surrogatepass")
    if kind == KIND_LPWSTR_VECTOR:
        texts = value[COUNT_SIZE:size].decode("utf-16-le", "surrogatepass").split("\0")
        return tuple(texts[:-1])
    return view_at(kind, value, size, owner, start)


def size(vt: int, data: Buffer) -> int:
    """Bytes of the value at the start of ``data``.

    >>> size(31, b"a\\0b\\0\\0\\0and more")
    6
    """
    view, length = immutable_view(data)
    return sized(known_kind(vt), address(view), <size_t>length, False)


def view(vt: int, data: Buffer) -> NDArray[Any] | tuple[NDArray[Any], ...]:
    """A numpy view of the value at the start of ``data``, which may have any address.

    Numbers have shape (1,), VT_CLSID (16,) uint8, vectors of GUIDs (n, 16) uint8. VT_LPWSTR gives its code units as
    uint16 without the last, a vector of texts a tuple of these.

    Raises
    ------
    DecodeError
        As ``decode`` does.
    """
    cdef uint8_t kind = known_kind(vt)
    kept, length = immutable_view(data)
    cdef const uint8_t* start = address(kept)
    return view_at(kind, start, sized(kind, start, <size_t>length, False), kept, start)


def decode(vt: int, data: Buffer, *, bint exact=True) -> Any:
    """Decode the value of type ``vt`` in ``data``: [MS-MQCN] 2.2.3.

    Integers become int, VT_BOOL bool, VT_CLSID ``uuid.UUID``, VT_LPWSTR str (lone surrogates stay), a vector of
    texts a tuple of str. VT_BLOB and VT_UI1|VT_VECTOR become a uint8 view of ``data``, VT_UI4|VT_VECTOR a uint32
    view, VT_CLSID|VT_VECTOR a view of shape (n, 16) in wire order.

    Parameters
    ----------
    vt : int
        VARTYPE code.
    data : bytes-like
        Viewed where it is ``bytes``, else copied.
    exact : bool
        Whether bytes after the value are a fault.

    Raises
    ------
    DecodeError
        ``truncated``, ``bad_count``, ``bad_terminator``, ``bad_value`` or, for bytes after the value, ``bad_size``.
    ValueError
        The type has no value codec.

    Examples
    --------
    >>> from msmqwire.propvariant import VT_LPWSTR, VT_UI4, VT_VECTOR
    >>> decode(VT_LPWSTR, b"a\\0b\\0\\0\\0")
    'ab'
    >>> decode(VT_UI4 | VT_VECTOR, b"\\x02\\0\\0\\0" b"\\x01\\0\\0\\0" b"\\xff\\0\\0\\0").tolist()
    [1, 255]
    """
    cdef uint8_t kind = known_kind(vt)
    kept, length = immutable_view(data)
    cdef const uint8_t* start = address(kept)
    return decode_value(kind, start, sized(kind, start, <size_t>length, exact), kept, start)


# --- From Python to bytes ---


def encode(vt: int, value: Any) -> bytes:
    """Encode a value as change notifications carry it: what ``decode`` returns, or any sequence of the same elements.

    Raises
    ------
    EncodeError
        An integer out of range, a wrong type, U+0000 inside a text, or more than 2^32-1 elements.

    Examples
    --------
    >>> encode(19, 1024).hex()
    '00040000'
    """
    return encode_value(known_kind(vt), value, "PropertyValue")


cdef bytes encode_value(uint8_t kind, object value, str field):
    """The bytes of a value; an EncodeError names ``field``."""
    cdef uint8_t[GUID_SIZE] guid
    if kind == KIND_BOOL:
        if not isinstance(value, (bool, np.bool_)):
            raise EncodeError(field, f"must be a bool, not {type(value).__name__}")
        return b"\xff\xff" if value else b"\0\0"
    if kind < KIND_CLSID:
        return encode_number(kind, value, field)
    if kind == KIND_CLSID:
        guid_to_bytes(value, field, guid)
        return guid[:GUID_SIZE]
    if kind == KIND_LPWSTR:
        return encode_text(value, field)
    if kind == KIND_BLOB or kind == KIND_UI1_VECTOR:
        return counted(encode_bytes(value, field), 1, field)
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise EncodeError(field, f"must be a sequence for {TYPE_NAMES[KINDS[kind]]}, not {type(value).__name__}")
    if hasattr(value, "__len__") and len(value) > MAX_COUNT:
        raise too_many(len(value), field)
    if kind == KIND_UI4_VECTOR:
        return counted(b"".join([encode_number(KIND_UI4, number, field) for number in value]), 4, field)
    if kind == KIND_CLSID_VECTOR:
        return counted(encode_guids(value, field), GUID_SIZE, field)
    texts = [encode_text(text, field) for text in value]
    return len(texts).to_bytes(COUNT_SIZE, "little") + b"".join(texts)


cdef object too_many(object count, str field):
    return EncodeError(field, f"has {count} elements, at most {MAX_COUNT}")


cdef bytes counted(bytes packed, size_t width, str field):
    """Elements after their count."""
    cdef size_t count = <size_t>len(packed) // width
    if count > MAX_COUNT:
        raise too_many(count, field)
    return count.to_bytes(COUNT_SIZE, "little") + packed


cdef bytes encode_number(uint8_t kind, object value, str field):
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise EncodeError(field, f"must be an integer, not {type(value).__name__}")
    try:
        return int(value).to_bytes(value_layouts[kind].base, "little", signed=DTYPES[kind].kind == "i")
    except OverflowError:
        raise EncodeError(field, f"{value} is out of the range of {TYPE_NAMES[KINDS[kind]]}") from None


cdef bytes encode_text(object value, str field):
    if not isinstance(value, str) or "\0" in value:
        raise EncodeError(field, f"{value!r} must be text without U+0000")
    return value.encode("utf-16-le", "surrogatepass") + b"\0\0"


cdef bytes encode_bytes(object value, str field):
    try:
        return bytes_of(value)
    except TypeError:
        raise EncodeError(field, f"must be bytes-like, not {type(value).__name__}") from None


cdef bytes encode_guids(object value, str field):
    cdef uint8_t[GUID_SIZE] guid
    cdef list parts = []
    if isinstance(value, np.ndarray):
        if value.dtype != np.uint8 or value.ndim != 2 or value.shape[1] != GUID_SIZE:
            raise EncodeError(field, "an array of GUIDs must be of uint8 with shape (n, 16)")
        return value.tobytes()
    for one in value:
        guid_to_bytes(one, field, guid)
        parts.append(guid[:GUID_SIZE])
    return b"".join(parts)
