from enum import IntEnum, IntFlag

NameKind: type[IntEnum]
NameProtocol: type[IntEnum]
NameQueueType: type[IntEnum]
NameSuffix: type[IntEnum]
Field: type[IntEnum]
Expected: type[IntEnum]

class Presence(IntFlag):
    HAS_GUID = 2
    HAS_PRIVATE_ID = 4
    HAS_PROTOCOL = 8
    HAS_ADDRESS = 16
    HAS_PORT = 32
    HAS_QUEUE_TYPE = 64
    HAS_QUEUE = 128
    HAS_SUBQUEUE = 256
    HAS_SUFFIX = 512
    HAS_DOMAIN = 1024
    HAS_ELEMENTS = 2048
