"""The selection of payloads by their times and addresses."""

from collections.abc import Iterable

class PayloadSelection:
    def __init__(self, addresses: Iterable[str], since: int | None, until: int | None) -> None: ...
