"""Which PROPID carries which attribute of an element, and in what form: [MS-MQCN] 3.1.1.2.1, 3.1.1.3."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msmqwire.directory.elements import NAME_ATTRIBUTES, DirectoryObject, PrivacyLevel, Queue, QueueManager, Scope
from msmqwire.errors import EncodeError
from msmqwire.properties import by_name, by_number
from msmqwire.propvariant import encode

__all__ = [
    "CREATED_QUEUE",
    "MOST_BYTES",
    "UPDATED_MACHINE",
    "UPDATED_QUEUE",
    "attribute_value",
    "enumeration",
    "property_value",
    "read",
    "spoken_name",
]

#: The bytes that updates take in one message at most.
# A packet has at most 4 MiB, each of four parts of its SecurityHeader 64 KiB, and all else before a body some 200 bytes
MOST_BYTES = 0x00400000 - 4 * 0x10000 - 0x1000

#: The values of enumerations, in the order of their numbers on the wire.
_ENUMERATIONS: Mapping[type, tuple[Any, ...]] = {
    bool: (False, True),
    PrivacyLevel: (PrivacyLevel.NONE, PrivacyLevel.OPTIONAL, PrivacyLevel.BODY),
    Scope: (Scope.SITE, Scope.ENTERPRISE),
}


def _table(attributes: Mapping[str, str]) -> Mapping[int, str]:
    return MappingProxyType({by_name(name).number: attribute for name, attribute in attributes.items()})


#: What a created queue is told with, by PROPID ([MS-MQCN] 3.3.5.2).
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

#: What can be told of a changed queue.
UPDATED_QUEUE: Mapping[int, str] = MappingProxyType(
    {propid: attribute for propid, attribute in CREATED_QUEUE.items() if attribute in _CHANGEABLE}
)

#: What can be told of a changed machine.
UPDATED_MACHINE = _table(
    {
        "PROPID_QM_QUOTA": "queue_manager_quota",
        "PROPID_QM_JOURNAL_QUOTA": "journal_quota",
        "PROPID_QM_SECURITY": "security",
    }
)


def spoken_name(element: DirectoryObject) -> str:
    r"""What errors call an object: its kind and its name, or its identifier where the name was not read.

    >>> from uuid import UUID
    >>> print(spoken_name(Queue(identifier=UUID(int=1), pathname=r"ledger\orders")))
    queue ledger\orders
    """
    kind = "queue" if isinstance(element, Queue) else "queue manager"
    known = element.attributes()
    return f"{kind} {known.get(NAME_ATTRIBUTES[type(element)], known.get('identifier', 'without a name'))}"


def property_value(element: Queue | QueueManager, attribute: str, propid: int) -> Any:
    """The value of a PROPID, from the attribute that it carries.

    Raises
    ------
    EncodeError
        The attribute was not read, or its value is none that the PROPID can have; the error names both object and
        attribute.
    """
    value = read(element, attribute)
    values = enumeration(type(element), attribute)
    try:
        if values is not None:
            value = values.index(value)
        size = len(encode(by_number(propid).vt, value))
    except (ValueError, TypeError):
        raise EncodeError(attribute, f"{spoken_name(element)}: {value!r} is no value of {attribute}") from None
    except EncodeError as error:
        raise EncodeError(attribute, f"{spoken_name(element)}: {error.reason}") from None
    if size > MOST_BYTES:
        raise EncodeError(attribute, f"{spoken_name(element)}: {size:,} bytes do not fit in a message")
    return value


def read(element: Queue | QueueManager, attribute: str) -> Any:
    """An attribute of an element; EncodeError where the element was read without it."""
    known = element.attributes()
    if attribute not in known:
        raise EncodeError(attribute, f"{spoken_name(element)}: was not read")
    return known[attribute]


def attribute_value(element: type[Queue | QueueManager], attribute: str, value: Any) -> Any:
    """The value of an attribute, from that of its PROPID.

    Raises
    ------
    ValueError
        The number stands for nothing.
    """
    values = enumeration(element, attribute)
    if values is None:
        return value
    if value not in range(len(values)):
        raise ValueError(f"{value!r} is no value of {attribute}")
    return values[value]


def enumeration(element: type[Queue | QueueManager], attribute: str) -> tuple[Any, ...] | None:
    """The values of an attribute that is a number on the wire, in the order of these; None where it stays as it is."""
    return _ENUMERATIONS.get(element.attribute_type(attribute))
