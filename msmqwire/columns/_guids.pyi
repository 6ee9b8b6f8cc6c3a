"""Written by `make build` from the annotations in _guids.pyx; do not edit."""

from typing import Any, Final, Literal

GuidOrder = Literal["text", "packet"]
GUID_ORDERS: tuple[str, ...]

class GuidTexts:
    malformed: Final[int | None]
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...

def guid_texts(guids: Any, *, order: GuidOrder = "text") -> GuidTexts: ...
