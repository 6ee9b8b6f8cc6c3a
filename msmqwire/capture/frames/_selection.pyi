"""The selection of payloads by their ports, times and addresses."""

from collections.abc import Iterable, Mapping

class PayloadSelection:
    def __init__(
        self, ports: Mapping[str, Iterable[int]], addresses: Iterable[str], since: int | None, until: int | None
    ) -> None: ...
