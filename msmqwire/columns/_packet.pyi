"""Written by `make build` from the annotations in _packet.pyx; do not edit."""

from typing import Any, Self

class WirePacket:
    def replace(self, **changes: Any) -> Self: ...
    def __replace__(self, **changes: Any) -> Self: ...
