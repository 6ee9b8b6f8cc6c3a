"""Parts of change notifications as values."""

from __future__ import annotations

import contextlib
from typing import Any, Literal, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from msmqwire.properties.table import by_number

Operation = Literal["create", "change", "delete"]
Object = Literal["queue", "machine"]

#: Event by its operation and its object ([MS-MQCN] 2.2.5).
EVENTS: dict[tuple[Operation, Object], int] = {
    ("create", "queue"): 1,
    ("change", "queue"): 2,
    ("delete", "queue"): 3,
    ("change", "machine"): 4,
}
_BY_EVENT = {event: key for key, event in EVENTS.items()}


class PropertyValue(NamedTuple):
    """A PROPID and its value, as ``propvariant.decode`` returns it for the PROPID's type.

    It is equal to any pair of the same PROPID and the same value; of an array, the bytes count.
    """

    id: int
    value: Any

    @property
    def name(self) -> str:
        """The name of the PROPID; its number where it has none."""
        with contextlib.suppress(KeyError):
            return by_number(self.id).name
        return str(self.id)

    # A tuple compares and hashes its members, which arrays do not support
    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and _comparable(self) == _comparable(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(_comparable(self))


def _comparable(pair: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(bytes(each) if isinstance(each, np.ndarray | bytearray | memoryview) else each for each in pair)


class PropertyColumn(NamedTuple):
    """One property of a complete batch: its values, and the row of each value."""

    values: Any
    rows: NDArray[np.uint32]


class NotificationBody(NamedTuple):
    """The change of a message of version 2: [MS-MQCN] 2.2.5.

    ``event`` is 1 when a queue was created, 2 changed, 3 deleted, and 4 when a machine was changed.
    """

    event: int
    object_guid: UUID
    domain_controller: str

    @property
    def operation(self) -> Operation:
        """The operation of Event: ``"create"``, ``"change"`` or ``"delete"``."""
        return _BY_EVENT[self.event][0]

    @property
    def object(self) -> Object:
        """What is changed: ``"queue"``, or ``"machine"`` for Event 4."""
        return _BY_EVENT[self.event][1]
