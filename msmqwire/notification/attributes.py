"""The values of the attributes that notifications carry, from and for the elements of a directory ([MS-MQCN] 3.1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from msmqwire.directory.elements import NAME_ATTRIBUTES, DirectoryObject, Queue, QueueManager
from msmqwire.errors import EncodeError
from msmqwire.notification.carried_attributes import CREATED_QUEUE, MEANINGS, UPDATED_MACHINE, UPDATED_QUEUE
from msmqwire.properties import PROPID_Q_PATHNAME, by_number
from msmqwire.propvariant import encode

#: The largest number of bytes that the updates of one message may take.
# A packet has at most 4 MiB, each of four parts of its SecurityHeader 64 KiB, and all else before a body some 200 bytes
MAX_BYTES = 0x00400000 - 4 * 0x10000 - 0x1000


def display_name(element: DirectoryObject) -> str:
    r"""Kind and name of an object for error messages; the identifier where the name was not read.

    >>> from uuid import UUID
    >>> print(display_name(Queue(identifier=UUID(int=1), pathname=r"ledger\orders")))
    queue ledger\orders
    """
    kind = "queue" if isinstance(element, Queue) else "queue manager"
    known = element.attributes()
    return f"{kind} {known.get(NAME_ATTRIBUTES[type(element)], known.get('identifier', 'without a name'))}"


def read_attribute(element: Queue | QueueManager, attribute: str) -> Any:
    """An attribute of an element; EncodeError if the element was read without it."""
    known = element.attributes()
    if attribute not in known:
        raise EncodeError(attribute, f"{display_name(element)}: was not read")
    return known[attribute]


def property_value(element: Queue | QueueManager, attribute: str, propid: int) -> Any:
    """The value that a PROPID has for an attribute of an element.

    Raises
    ------
    EncodeError
        The attribute was not read, or the PROPID cannot have its value. The error names object and attribute.
    """
    value = read_attribute(element, attribute)
    meanings = MEANINGS.get(propid)
    try:
        if meanings is not None:
            value = meanings.index(value)
        size = len(encode(by_number(propid).vt, value))
    except EncodeError as error:
        raise EncodeError(attribute, f"{display_name(element)}: {error.reason}") from None
    except (ValueError, TypeError):
        raise EncodeError(attribute, f"{display_name(element)}: {value!r} is not a valid {attribute}") from None
    if size > MAX_BYTES:
        raise EncodeError(attribute, f"{display_name(element)}: {size:,} bytes do not fit in a message")
    return value


def notified_attributes(
    kind: str | None, command: str, path_name: str | None, values: Mapping[int, Any]
) -> dict[str, Any]:
    """The attributes that an update sets, which is judged not to be disregarded.

    Parameters
    ----------
    kind : {"queue", "machine"} or None
        Of the object.
    command : {"create", "change", "delete"}
    path_name : str or None
        PathName, where it takes the place of the GUID.
    values : mapping of int to value
        As ``judgement.first_values`` returns them.
    """
    if command == "delete":
        return {}
    if kind == "machine":
        return _attributes(UPDATED_MACHINE, values)
    if command == "change":
        return _attributes(UPDATED_QUEUE, values)
    # PROPID_Q_PATHNAME takes precedence over PathName
    return {**_attributes(CREATED_QUEUE, values), "pathname": values.get(PROPID_Q_PATHNAME) or path_name}


def _attributes(table: Mapping[int, str], values: Mapping[int, Any]) -> dict[str, Any]:
    return {name: _attribute(propid, values[propid]) for propid, name in table.items() if propid in values}


def _attribute(propid: int, value: Any) -> Any:
    if propid in MEANINGS:
        return MEANINGS[propid][value]
    return value if isinstance(value, int | str | UUID) else bytes(value)
