"""Written by `make build` from the annotations in _codec.pyx; do not edit."""

from typing import Any

from numpy.typing import NDArray
from typing_extensions import Buffer

def size(vt: int, data: Buffer) -> int:
    """Bytes of the value at the start of ``data``.

    >>> size(31, b"a\\0b\\0\\0\\0and more")
    6
    """

def view(vt: int, data: Buffer) -> NDArray[Any] | tuple[NDArray[Any], ...]:
    """A numpy view of the value at the start of ``data``, which may have any address.

    Numbers have shape (1,), VT_CLSID (16,) uint8, vectors of GUIDs (n, 16) uint8. VT_LPWSTR gives its code units as
    uint16 without the last, a vector of texts a tuple of these.

    Raises
    ------
    DecodeError
        As ``decode`` does.
    """

def decode(vt: int, data: Buffer, *, exact: bool = True) -> Any:
    """Decode the value of type ``vt`` in ``data``: [MS-MQCN] 2.2.3.

    Integers become int, VT_BOOL bool, VT_CLSID ``uuid.UUID``, VT_LPWSTR str (lone surrogates stay), a vector of
    texts a tuple of str. VT_BLOB and VT_UI1|VT_VECTOR become a uint8 view of ``data``, VT_UI4|VT_VECTOR a uint32
    view, VT_CLSID|VT_VECTOR a view of shape (n, 16) in wire order.

    Parameters
    ----------
    vt : int
        VARTYPE code.
    data : bytes-like
        Viewed where it is ``bytes``, else copied.
    exact : bool
        Whether bytes after the value are a fault.

    Raises
    ------
    DecodeError
        ``truncated``, ``bad_count``, ``bad_terminator``, ``bad_value`` or, for bytes after the value, ``bad_size``.
    ValueError
        The type has no value codec.

    Examples
    --------
    >>> from msmqwire.propvariant import VT_LPWSTR, VT_UI4, VT_VECTOR
    >>> decode(VT_LPWSTR, b"a\\0b\\0\\0\\0")
    'ab'
    >>> decode(VT_UI4 | VT_VECTOR, b"\\x02\\0\\0\\0" b"\\x01\\0\\0\\0" b"\\xff\\0\\0\\0").tolist()
    [1, 255]
    """

def encode(vt: int, value: Any) -> bytes:
    """Encode a value as change notifications carry it: what ``decode`` returns, or any sequence of the same elements.

    Raises
    ------
    EncodeError
        An integer out of range, a wrong type, U+0000 inside a text, or more than 2^32-1 elements.

    Examples
    --------
    >>> encode(19, 1024).hex()
    '00040000'
    """
