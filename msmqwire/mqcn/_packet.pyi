"""Written by `make build` from the annotations in _packet.pyx; do not edit."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal
from uuid import UUID
import builtins

from typing_extensions import Buffer

from msmqwire.columns._packet import WirePacket
from msmqwire.mqcn.values import NotificationBody, Object, Operation, PropertyValue

class NotificationUpdate(WirePacket):
    def __init__(
        self,
        *,
        command: Operation,
        guid_master_id: UUID | str,
        properties: Mapping[Any, Any] | Iterable[PropertyValue | tuple[int | str, Any]] = (),
        path_name: str | None = None,
        guid_identifier: UUID | str | None = None,
    ) -> None: ...
    command: Final[Operation]
    use_guid: Final[bool]
    path_name: Final[str | None]
    guid_identifier: Final[UUID | None]
    guid_master_id: Final[UUID]
    reserved: Final[bytes]
    object: Final[Object | None]
    violations: Final[tuple[str, ...]]
    properties: Final[tuple[PropertyValue, ...]]
    def __eq__(self, other: builtins.object) -> bool: ...
    def __hash__(self) -> int: ...

class ChangeNotificationMessage(WirePacket):
    def __init__(
        self,
        version: Literal[1, 2],
        updates: Iterable[NotificationUpdate] = (),
        body: NotificationBody | None = None,
    ) -> None: ...
    version: Final[int]
    updates: Final[tuple[NotificationUpdate, ...]]
    body: Final[NotificationBody | None]
    violations: Final[tuple[str, ...]]
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def to_dict(self) -> dict[str, Any]: ...

def decode(data: Buffer, *, strict: bool = False) -> ChangeNotificationMessage: ...
def encode(message: ChangeNotificationMessage, *, closing_space: bool = True, enforce: bool = True) -> bytes: ...
def encode_body(message: ChangeNotificationMessage, *, closing_space: bool = True, enforce: bool = True) -> bytes: ...
