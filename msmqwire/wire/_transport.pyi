"""Written by `make build` from the annotations in _transport.pyx; do not edit."""

from enum import IntEnum

class Transport(IntEnum):
    UNKNOWN = 0
    UDP = 1
    TCP = 2
    IPX = 3

TRANSPORT_NAMES: tuple[str, ...]
