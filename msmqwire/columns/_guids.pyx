"""The texts of a column of GUIDs of 16 bytes."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t

from msmqwire.columns._arrow cimport ArrowNode, array_capsule, arrow_node, schema_capsule
from msmqwire.columns._buffer cimport Buffer, allocate, allocate_zeroed
from msmqwire.columns._payloads cimport Payloads
from msmqwire.columns.payload_table cimport Span, payload_at
from msmqwire.wire._guid cimport GUID_SIZE, GUID_TEXT_SIZE, format_guid, swap_guid

if False:  # for type checkers: see stubs.py
    from typing import Any

    from msmqwire.columns.schema import GuidOrder

GUID_ORDERS: tuple[str, ...] = ("text", "packet")

cdef enum:
    INT32_MAX = 0x7FFFFFFF


cdef class GuidTexts:
    """Canonical lower-case texts, an Arrow string array; null where there is no GUID of 16 bytes.

    Attributes
    ----------
    malformed : int or None
        The first row whose value is neither null nor of 16 bytes.
    """

    cdef ArrowNode node
    cdef readonly object malformed

    malformed: int | None

    def __len__(self) -> int:
        return <Py_ssize_t>self.node.length

    def __arrow_c_schema__(self) -> object:
        return schema_capsule(self.node)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The texts for any Arrow consumer, without a copy."""
        return schema_capsule(self.node), array_capsule(self.node, self)


def guid_texts(guids: Any, *, order: GuidOrder = "text") -> GuidTexts:
    """The canonical texts of GUIDs.

    Parameters
    ----------
    guids
        Payloads of 16 bytes each, in any form that ``Payloads.of`` takes.
    order : {"text", "packet"}
        The order of their bytes: that of the text (RFC 9562), or that of packets and of the Windows structure, where
        the first three fields are little-endian ([MS-DTYP] 2.3.4.2).

    Raises
    ------
    ValueError
        There is no such order.
    OverflowError
        They are more than an Arrow string array holds.

    Examples
    --------
    >>> import pyarrow as pa
    >>> texts = guid_texts([bytes(range(16)), None, b"short"], order="packet")
    >>> pa.array(texts).to_pylist(), texts.malformed
    (['03020100-0504-0706-0809-0a0b0c0d0e0f', None, None], 2)
    """
    cdef Payloads source = Payloads.of(guids)
    cdef size_t count = source.table.count
    cdef bint ordered = order == "text"
    cdef GuidTexts texts = GuidTexts.__new__(GuidTexts)
    cdef Buffer offsets, text, validity
    cdef int32_t* end
    cdef uint8_t* out
    cdef uint8_t[GUID_SIZE] swapped
    cdef size_t malformed = count
    cdef size_t written = 0
    cdef Span guid
    cdef size_t i
    if order not in GUID_ORDERS:
        raise ValueError(f"order={order!r} is not one of {', '.join(map(repr, GUID_ORDERS))}")
    if count > INT32_MAX // GUID_TEXT_SIZE:
        raise OverflowError(f"{count} GUIDs as text exceed an Arrow string array; format them in slices")
    offsets = allocate((count + 1) * sizeof(int32_t))
    text = allocate(count * GUID_TEXT_SIZE)
    validity = allocate_zeroed((count + 7) // 8)
    end = <int32_t*>offsets.data
    out = text.data
    with nogil:
        for i in range(count):
            end[i] = <int32_t>written
            guid = payload_at(&source.table, i)
            if guid.data == NULL:
                continue
            if guid.size != GUID_SIZE:
                malformed = min(malformed, i)
                continue
            if ordered:
                swap_guid(guid.data, swapped)
                guid.data = swapped
            format_guid(guid.data, out + written)
            written += GUID_TEXT_SIZE
            validity.data[i >> 3] |= <uint8_t>(1 << (i & 7))
        end[count] = <int32_t>written
    texts.malformed = None if malformed == count else malformed
    texts.node = arrow_node(
        "", "u", <Py_ssize_t>count, validity, <Py_ssize_t>(count - written // GUID_TEXT_SIZE), [offsets, text]
    )
    return texts
