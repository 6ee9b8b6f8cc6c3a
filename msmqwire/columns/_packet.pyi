"""Written by `make build` from the annotations in _packet.pyx; do not edit."""

from typing import Any, Final, Self

from msmqwire.columns.schema import Table

class WirePacket:
    table: Final[Table]
    def replace(self, **changes: Any) -> Self: ...
    def __replace__(self, **changes: Any) -> Self: ...
    def to_dict(self) -> dict[str, Any]: ...
