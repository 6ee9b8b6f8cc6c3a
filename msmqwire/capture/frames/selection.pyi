"""Which payloads are wanted, by when they were captured and where they go from and to."""

from collections.abc import Iterable

class PayloadSelection:
    """What ``capture.open`` is asked to give.

    Parameters
    ----------
    addresses : iterable of str
        Addresses and networks, of which one must have the sender or the receiver; empty for all.
    since, until : int or None
        Nanoseconds since 1970: the first wanted, and the first that is not.

    Raises
    ------
    ValueError
        What is neither an address nor a network.
    """

    def __init__(self, addresses: Iterable[str], since: int | None, until: int | None) -> None: ...
