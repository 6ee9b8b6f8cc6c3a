import builtins
from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from typing_extensions import Buffer

Operation = Literal["create", "change", "delete"]
Object = Literal["queue", "machine"]

class PropertyValue(NamedTuple):
    id: int
    value: Any

class NotificationUpdate:
    def __init__(
        self,
        *,
        command: Operation,
        guid_master_id: UUID,
        properties: Iterable[PropertyValue | tuple[int, Any]] = (),
        path_name: str | None = None,
        guid_identifier: UUID | None = None,
    ) -> None: ...
    command: Final[Operation]
    use_guid: Final[bool]
    path_name: Final[str | None]
    guid_identifier: Final[UUID | None]
    reserved: Final[bytes]
    guid_master_id: Final[UUID]
    properties: Final[tuple[PropertyValue, ...]]
    object: Final[Object | None]
    violations: Final[tuple[str, ...]]
    def __eq__(self, other: builtins.object) -> bool: ...
    def __hash__(self) -> int: ...

class NotificationBody(NamedTuple):
    event: int
    object_guid: UUID
    domain_controller: str
    @property
    def operation(self) -> Operation: ...
    @property
    def object(self) -> Object: ...

class ChangeNotificationMessage:
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

def decode(data: Buffer, *, strict: bool = False) -> ChangeNotificationMessage: ...
def encode(message: ChangeNotificationMessage, *, closing_space: bool = True, enforce: bool = True) -> bytes: ...
def encode_body(message: ChangeNotificationMessage, *, closing_space: bool = True, enforce: bool = True) -> bytes: ...
