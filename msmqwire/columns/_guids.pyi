"""Written by `make build` from the annotations in _guids.pyx; do not edit."""

from typing import Any, Final

from msmqwire.columns.schema import GuidOrder

GUID_ORDERS: tuple[str, ...]

class GuidTexts:
    """Canonical lower-case texts, an Arrow string array; null where there is no GUID of 16 bytes.

    Attributes
    ----------
    malformed : int or None
        The first row whose value is neither null nor of 16 bytes.
    """

    malformed: Final[int | None]
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The texts for any Arrow consumer, without a copy."""

def guid_texts(guids: Any, *, order: GuidOrder = "text") -> GuidTexts:
    """The canonical texts of GUIDs.

    Parameters
    ----------
    guids
        Payloads of 16 bytes each, in any form that ``Payloads.of`` takes.
    order : {"text", "packet"}
        The order of their bytes: that of the text (RFC 9562), or that of packets and of the Windows structure, where
        the first three fields are little-endian ([MS-DTYP] 2.3.4.2).

    Raises
    ------
    ValueError
        There is no such order.
    OverflowError
        They are more than an Arrow string array holds.

    Examples
    --------
    >>> import pyarrow as pa
    >>> texts = guid_texts([bytes(range(16)), None, b"short"], order="packet")
    >>> pa.array(texts).to_pylist(), texts.malformed
    (['03020100-0504-0706-0809-0a0b0c0d0e0f', None, None], 2)
    """
