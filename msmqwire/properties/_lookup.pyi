"""Written by `make build` from the annotations in _lookup.pyx; do not edit."""

def type_of(propid: int) -> int | None:
    """VARTYPE code of the value of a PROPID in a notification, None where the value cannot be sized.

    >>> type_of(105), type_of(24), type_of(100)
    (19, None, None)
    """
