from enum import IntEnum

TRANSPORT_NAMES: tuple[str, ...]

class Transport(IntEnum):
    UNKNOWN = 0
    UDP = 1
    TCP = 2
    IPX = 3
