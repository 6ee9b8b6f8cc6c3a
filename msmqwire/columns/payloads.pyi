"""Many payloads, wherever they lie."""

from collections.abc import Iterator
from typing import Any, overload

from numpy.typing import ArrayLike
from typing_extensions import Buffer

class Payloads:
    """Many payloads without copies: what every ``decode_batch`` takes.

    Parameters
    ----------
    data : bytes-like
        All payloads. It is viewed where it is ``bytes``, else copied.
    offsets : array of integers, shape (n + 1,)
        Payload ``i`` is ``data[offsets[i]:offsets[i + 1]]``. int32 is fastest; anything but int32 is kept as int64.

    Raises
    ------
    ValueError
        The offsets fall, or leave the data.

    Examples
    --------
    >>> payloads = Payloads(b"abcdef", [0, 2, 6])
    >>> [bytes(payload) for payload in payloads]
    [b'ab', b'cdef']
    >>> bytes(payloads[1:][0])
    b'cdef'
    """

    nbytes: int
    """Bytes of all payloads together."""

    def __init__(self, data: Buffer, offsets: ArrayLike) -> None: ...
    @staticmethod
    def of(payloads: Any, offsets: ArrayLike | None = None) -> Payloads:
        """Payloads of whatever holds some.

        Parameters
        ----------
        payloads
            Payloads; one bytes-like object with ``offsets``; a sequence of bytes-like objects and None; or anything
            with ``__arrow_c_array__`` or ``__arrow_c_stream__`` of Binary, LargeBinary or BinaryView.

        Raises
        ------
        TypeError
            None of these.
        """
    @staticmethod
    def of_texts(texts: Any) -> Payloads:
        """Payloads that are texts, in UTF-8: what functions over columns of text take.

        Parameters
        ----------
        texts
            Payloads; a sequence of str and None; or anything with ``__arrow_c_array__`` or ``__arrow_c_stream__`` of
            strings, or of UTF-8 as binary.

        Raises
        ------
        TypeError
            None of these.
        """
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> memoryview | None: ...
    @overload
    def __getitem__(self, index: slice) -> Payloads: ...
    def __iter__(self) -> Iterator[memoryview | None]: ...
    def take(self, rows: ArrayLike) -> Payloads:
        """The payloads of these rows, in this order, not copied.

        Parameters
        ----------
        rows : array of unsigned integers

        Raises
        ------
        IndexError
            There is no such row.

        Examples
        --------
        >>> [bytes(payload) for payload in Payloads(b"abcdef", [0, 2, 5, 6]).take([2, 0])]
        [b'f', b'ab']
        """
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The payloads as an Arrow LargeBinary array of its own."""
