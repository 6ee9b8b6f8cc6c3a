"""The parts of one text as Python values, read by the kernel."""

import re
from uuid import UUID

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from msmqwire.columns._convert cimport TextSpan
from msmqwire.formatname._kernel cimport (
    EXTENDED, HTTP_SLASHES, KIND_DIRECT, KIND_MULTICAST, KIND_PATH_NAME, KIND_PRIVATE, PATH_NAME, SPX, Name,
    read_element,
)
from msmqwire.wire._fault cimport Fault
from msmqwire.wire._guid cimport GUID_SIZE

from msmqwire.errors import FormatNameError
from msmqwire.formatname.schema import EXPECTED, FIELDS, KINDS, PROTOCOLS, QUEUE_TYPES, SUFFIXES
from msmqwire.wire.codes import FAULT_NAMES

if False:  # for type checkers: see stubs.py
    from typing import Any


SEPARATOR = re.compile(r"([\\;])")


cdef str plain_part(str part):
    """A part of a name, with ``_`` for each blank within it, and for each printable character other than ASCII."""
    if part != part.strip(" ") or (part.isascii() and " " not in part):
        return part
    return "".join(["_" if each.isprintable() and not "!" <= each <= "~" else each for each in part])


cdef str plain_text(str text):
    """Return a text of the same length, in which names of queues in direct names are as in the grammar."""
    elements = []
    for element in text.split(","):
        place, separator, name = element.partition("\\")
        if place[:7].lower() == "direct=":
            name = "".join([plain_part(part) for part in SEPARATOR.split(name)])
        elements.append(f"{place}{separator}{name}")
    return ",".join(elements)


cdef object text_of(str text, TextSpan span):
    return text[span.offset:span.offset + span.length] if span.length else None


cdef dict parts_of(str text, const Name* name):
    kind = name.kind
    has_guid = kind not in (KIND_DIRECT, KIND_MULTICAST, KIND_PATH_NAME)
    address = text_of(text, name.address)
    return {
        "kind": KINDS.by_number[kind],
        "guid": UUID(bytes_le=name.guid[:GUID_SIZE]) if has_guid else None,
        "private_id": name.private_id if kind == KIND_PRIVATE else None,
        "protocol": PROTOCOLS.by_number.get(name.protocol),
        "queue_type": QUEUE_TYPES.by_number.get(name.queue_type),
        "suffix": SUFFIXES.by_number.get(name.suffix),
        "address": address,
        "computer": address,
        "queue": text_of(text, name.queue),
        "subqueue": text_of(text, name.subqueue),
        "domain": text_of(text, name.domain),
        "port": name.port if kind == KIND_MULTICAST else None,
    }


def scan(
    text: str,
    *,
    bint extended=False,
    bint http_slashes=False,
    bint spx=False,
    bint path_name=False,
    bint any_letters=False,
) -> list[dict[str, Any]]:
    """The parts of each element of a format name, or of a path name; None where a kind has no such part.

    Only a multiple-element name has more than one element.

    Raises
    ------
    FormatNameError
        The text is not such a name.
    """
    cdef uint32_t options = (
        (EXTENDED if extended else 0) | (HTTP_SLASHES if http_slashes else 0) | (SPX if spx else 0)
        | (PATH_NAME if path_name else 0)
    )
    if not isinstance(text, str):
        raise TypeError(f"a name must be str, not {type(text).__name__}")
    text = str.__str__(text)  # of a subclass, as numpy has one
    # The grammar refuses lone surrogates as it does any other character beyond ASCII
    cdef bytes encoded = (plain_text(text) if any_letters else text).encode("utf-8", "surrogatepass")
    cdef const uint8_t* data = <const uint8_t*>encoded
    cdef size_t size = <size_t>len(encoded)
    cdef size_t at = 0
    cdef Name name
    cdef Fault fault
    cdef list names = []
    while at <= size:
        if read_element(data, size, &at, options, &name, &fault) != 0:
            raise FormatNameError(
                FAULT_NAMES[fault.code], FIELDS[fault.field], fault.offset, EXPECTED[fault.available], text
            )
        names.append(parts_of(text, &name))
    return names
