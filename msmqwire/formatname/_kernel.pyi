from enum import IntEnum
from typing import Any

NameKind: type[IntEnum]
NameProtocol: type[IntEnum]
NameQueueType: type[IntEnum]
NameSuffix: type[IntEnum]
Field: type[IntEnum]
Expected: type[IntEnum]
Presence: Any
