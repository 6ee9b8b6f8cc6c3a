"""The C index of the table of PROPIDs, as Python sees it."""

from msmqwire.properties.table import Property

KINDS: tuple[int, ...]
"""VARTYPE codes by the number that kernels use for a kind of value; 0 for none."""

NUMBERED: tuple[Property, ...]
"""The PROPIDs whose number says which they are and whose value can be sized, in the order of the table."""

def type_of(propid: int) -> int | None:
    """VARTYPE code of the value of a PROPID as it stands in a notification, None where it cannot be sized.

    >>> type_of(105), type_of(24), type_of(100)
    (19, None, None)
    """
