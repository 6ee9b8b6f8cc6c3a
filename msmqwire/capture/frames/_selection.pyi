"""Written by `make build` from the annotations in _selection.pyx; do not edit."""

from collections.abc import Iterable, Mapping

class PayloadSelection:
    """The payloads that ``capture.open`` selects.

    Parameters
    ----------
    ports : mapping of str to iterable of int
        For ``"udp"``, ``"tcp"`` and ``"ipx"``: the sender's or the receiver's must be one of them.
    addresses : iterable of str
        Addresses and networks; the sender or the receiver must have one of them. Empty: all are selected.
    since, until : int or None
        Nanoseconds since 1970: the first that is selected, and the first after it that is not.

    Raises
    ------
    ValueError
        A text is neither an address nor a network.
    """

    def __init__(
        self,
        ports: Mapping[str, Iterable[int]],
        addresses: Iterable[str],
        since: int | None,
        until: int | None,
    ) -> None: ...
