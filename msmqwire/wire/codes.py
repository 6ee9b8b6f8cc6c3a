"""The codes of faults; ``make build`` writes the enumeration of ``_fault.pxd`` from them."""

from __future__ import annotations

#: Codes of DecodeError and of the ``fault`` column, in the order of their numbers from 1, and their meanings.
FAULTS = {
    "truncated": "the payload, or the part of it that a length bounds, ends inside the field",
    "bad_type": "the type of a packet, or of a part of it, is not one that the specification has",
    "bad_version": "the version is not one that the specification has",
    "bad_count": "a count is out of its range, or more than the remaining bytes can hold",
    "bad_size": "a size is impossible: odd where code units are counted, too small, or not the size of the contents",
    "bad_flag": "a flag has a value that the specification does not allow",
    "bad_name": "a name is empty, or does not follow its grammar",
    "bad_terminator": "a text lacks the U+0000 at its end, or has one before it",
    "bad_command": "Command of a notification update is above 2",
    "bad_use_guid": "UseGuid of a notification update is above 1",
    "unknown_property": "a PROPID is not in the specification, so the length of its value is unknown",
    "bad_value": "a field has a value for which a receiver discards the packet",
    "bad_text": "text does not follow its grammar",
    "bad_signature": "the constant that begins the packet or a part of it is another",
    "bad_header": "a part of the packet has another identifier than the one that belongs there",
    "too_large": "a size is above the limit of the specification, or a payload has 2 GiB or more",
    "incomplete": "the stream or the capture lost bytes of the field; the columns of earlier fields have their values",
}
#: The names of the codes by number; empty for no fault.
FAULT_NAMES = ("", *FAULTS)
