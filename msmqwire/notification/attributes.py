"""The attributes that each PROPID carries ([MS-MQCN] 3.1.1), and what is wrong with an update ([MS-MQCN] 3.2.5.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from msmqwire.directory.elements import NAME_ATTRIBUTES, DirectoryObject, PrivacyLevel, Queue, QueueManager, Scope
from msmqwire.errors import EncodeError, FormatNameError
from msmqwire.formatname import parse_path_name
from msmqwire.notification.audit import Rule
from msmqwire.properties import by_name, by_number
from msmqwire.propvariant import encode

__all__ = [
    "CREATED_QUEUE",
    "MAX_BYTES",
    "UPDATED_MACHINE",
    "UPDATED_QUEUE",
    "display_name",
    "first_values",
    "judge",
    "property_value",
    "read_attribute",
    "rule_against_pathname",
]

#: The largest number of bytes that the updates of one message may take.
# A packet has at most 4 MiB, each of four parts of its SecurityHeader 64 KiB, and all else before a body some 200 bytes
MAX_BYTES = 0x00400000 - 4 * 0x10000 - 0x1000

#: The values of an attribute that is a number on the wire, in the order of these numbers.
_NUMBERED: Mapping[type, tuple[Any, ...]] = {
    bool: (False, True),
    PrivacyLevel: (PrivacyLevel.NONE, PrivacyLevel.OPTIONAL, PrivacyLevel.BODY),
    Scope: (Scope.SITE, Scope.ENTERPRISE),
}
#: By class and name, the attributes of these types.
_NUMBERED_ATTRIBUTES = {
    (element, name): values
    for element in (Queue, QueueManager)
    for name in element.attribute_names()
    if (values := _NUMBERED.get(element.attribute_type(name)))
}


def _table(attributes: Mapping[str, str]) -> Mapping[int, str]:
    return MappingProxyType({by_name(name).number: attribute for name, attribute in attributes.items()})


#: The attributes of a created queue by PROPID ([MS-MQCN] 3.3.5.2).
CREATED_QUEUE = _table(
    {
        "PROPID_Q_TYPE": "type",
        "PROPID_Q_INSTANCE": "identifier",
        "PROPID_Q_BASEPRIORITY": "base_priority",
        "PROPID_Q_JOURNAL": "journaling",
        "PROPID_Q_QUOTA": "quota",
        "PROPID_Q_JOURNAL_QUOTA": "journal_quota",
        "PROPID_Q_CREATE_TIME": "create_time",
        "PROPID_Q_MODIFY_TIME": "modify_time",
        "PROPID_Q_SCOPE": "scope",
        "PROPID_Q_SECURITY": "security",
        "PROPID_Q_PATHNAME": "pathname",
        "PROPID_Q_LABEL": "label",
        "PROPID_Q_AUTHENTICATE": "authentication",
        "PROPID_Q_PRIV_LEVEL": "privacy_level",
        "PROPID_Q_TRANSACTION": "transactional",
    }
)

_CHANGEABLE = ("journaling", "quota", "base_priority", "journal_quota", "security", "authentication", "privacy_level")

#: The attributes that an update of a queue may change, by PROPID.
UPDATED_QUEUE: Mapping[int, str] = MappingProxyType(
    {propid: attribute for propid, attribute in CREATED_QUEUE.items() if attribute in _CHANGEABLE}
)

#: The attributes that an update of a queue manager may change, by PROPID.
UPDATED_MACHINE = _table(
    {
        "PROPID_QM_QUOTA": "queue_manager_quota",
        "PROPID_QM_JOURNAL_QUOTA": "journal_quota",
        "PROPID_QM_SECURITY": "security",
    }
)

_INSTANCE = by_name("PROPID_Q_INSTANCE").number
_PATHNAME = by_name("PROPID_Q_PATHNAME").number


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
    values = _NUMBERED_ATTRIBUTES.get((type(element), attribute))
    try:
        if values is not None:
            value = values.index(value)
        size = len(encode(by_number(propid).vt, value))
    except (ValueError, TypeError):
        raise EncodeError(attribute, f"{display_name(element)}: {value!r} is not a valid {attribute}") from None
    except EncodeError as error:
        raise EncodeError(attribute, f"{display_name(element)}: {error.reason}") from None
    if size > MAX_BYTES:
        raise EncodeError(attribute, f"{display_name(element)}: {size:,} bytes do not fit in a message")
    return value


def first_values(properties: Iterable[tuple[int, Any]]) -> dict[int, Any]:
    """The values of an update by PROPID. Of several values of one PROPID the first counts, as IndexOf has it."""
    found: dict[int, Any] = {}
    for propid, value in properties:
        found.setdefault(propid, value)
    return found


def judge(kind: str | None, command: str, path_name: str | None, values: Mapping[int, Any]) -> dict[str, Any] | Rule:
    """The attributes that an update sets; or the rule by which a receiver disregards the complete message.

    Parameters
    ----------
    kind : {"queue", "machine"} or None
        Of the object.
    command : {"create", "change", "delete"}
    path_name : str or None
        PathName, where it takes the place of the GUID.
    values : mapping of int to value
        As ``first_values`` returns them.
    """
    if kind is None or (command == "delete" and kind != "queue"):
        return Rule.OBJECT_TYPE
    if command == "delete":
        return {}
    if kind == "machine":
        return _attributes(QueueManager, UPDATED_MACHINE, values)
    try:
        if command == "change":
            return _attributes(Queue, UPDATED_QUEUE, values)
        # PROPID_Q_PATHNAME takes precedence over PathName
        pathname = values.get(_PATHNAME) or path_name
        if _INSTANCE not in values:
            return Rule.NO_IDENTIFIER
        return {**_attributes(Queue, CREATED_QUEUE, values), "pathname": pathname} if pathname else Rule.NO_PATHNAME
    except ValueError:
        return Rule.VALUE


def rule_against_pathname(pathname: str) -> Rule | None:
    r"""The rule by which no public queue can be created at a path, or None ([MS-MQDMPR] 3.1.7.1.3, step 1).

    >>> rule_against_pathname(r"here\private$\orders")
    <Rule.PRIVATE_QUEUE: 'private_queue'>
    """
    try:
        parsed = parse_path_name(pathname)
    except FormatNameError:
        return Rule.PATHNAME
    return None if parsed.queue_type == "public" else Rule.PRIVATE_QUEUE


def _attributes(
    element: type[Queue | QueueManager], table: Mapping[int, str], values: Mapping[int, Any]
) -> dict[str, Any]:
    return {name: _attribute(element, name, values[propid]) for propid, name in table.items() if propid in values}


def _attribute(element: type[Queue | QueueManager], name: str, value: Any) -> Any:
    numbered = _NUMBERED_ATTRIBUTES.get((element, name))
    if numbered is None:
        return value if isinstance(value, int | str | UUID) else bytes(value)
    if value not in range(len(numbered)):
        raise ValueError(f"{value!r} is not a valid {name}")
    return numbered[value]
