"""One text by the kernel of kernel.pxd, as Python values: what the model is made of."""

from uuid import UUID

from cpython.unicode cimport PyUnicode_DecodeASCII
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.columns.convert cimport TextSpan
from msmqwire.formatname.kernel cimport (
    EXTENDED, HTTP_SLASHES, KIND_DIRECT, KIND_MULTICAST, KIND_PATH_NAME, KIND_PRIVATE, PATH_NAME, SPX, Name,
    read_element,
)
from msmqwire.wire.fault cimport Fault
from msmqwire.wire.guid cimport GUID_SIZE

from msmqwire.errors import FormatNameError
from msmqwire.formatname.schema import EXPECTED, FIELDS, KINDS, PROTOCOLS, QUEUE_TYPES, SUFFIXES
from msmqwire.wire.fault import FAULT_NAMES

__all__ = ["Parts", "scan"]


class Parts:
    """What the kernel finds in one name, as Python values; None where a kind has no such part."""

    __slots__ = (
        "address", "computer", "domain", "guid", "kind", "port", "private_id", "protocol", "queue", "queue_type",
        "subqueue", "suffix",
    )


cdef object text_of(const uint8_t* text, TextSpan span):
    return PyUnicode_DecodeASCII(<const char*>text + span.offset, span.length, NULL) if span.length else None


cdef object parts_of(const uint8_t* text, const Name* name):
    parts = Parts()
    kind = name.kind
    has_guid = kind not in (KIND_DIRECT, KIND_MULTICAST, KIND_PATH_NAME)
    parts.kind = KINDS[kind]
    parts.guid = UUID(bytes_le=name.guid[:GUID_SIZE]) if has_guid else None
    parts.private_id = name.private_id if kind == KIND_PRIVATE else None
    parts.protocol = PROTOCOLS[name.protocol] or None
    parts.queue_type = QUEUE_TYPES[name.queue_type] or None
    parts.suffix = SUFFIXES[name.suffix] or None
    parts.address = text_of(text, name.address) if kind != KIND_PATH_NAME else None
    parts.computer = text_of(text, name.address) if kind == KIND_PATH_NAME else None
    parts.queue = text_of(text, name.queue)
    parts.subqueue = text_of(text, name.subqueue)
    parts.domain = text_of(text, name.domain)
    parts.port = name.port if kind == KIND_MULTICAST else None
    return parts


def scan(str text not None, *, bint extended=False, bint http_slashes=False, bint spx=False, bint path_name=False):
    cdef uint32_t options = (
        (EXTENDED if extended else 0) | (HTTP_SLASHES if http_slashes else 0) | (SPX if spx else 0)
        | (PATH_NAME if path_name else 0)
    )
    # A lone surrogate is no more at home in a name than any other character beyond ASCII
    cdef bytes encoded = text.encode("utf-8", "surrogatepass")
    cdef const uint8_t* data = <const uint8_t*>encoded
    cdef size_t size = <size_t>len(encoded)
    cdef size_t at = 0
    cdef Name name
    cdef Fault fault
    cdef list names = []
    while at <= size:
        if read_element(data, size, &at, options, &name, &fault) != 0:
            raise FormatNameError(
                FAULT_NAMES[fault.code], FIELDS[fault.field], fault.offset, EXPECTED[fault.needed], text
            )
        names.append(parts_of(data, &name))
    return names
