"""Written by `make build` from the annotations in _selection.pyx; do not edit."""

from collections.abc import Iterable, Mapping

class PayloadSelection:
    def __init__(
        self,
        ports: Mapping[str, Iterable[int]],
        addresses: Iterable[str],
        since: int | None,
        until: int | None,
    ) -> None: ...
