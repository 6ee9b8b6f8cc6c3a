"""Written by `make build` from the annotations in _payloads.pyx; do not edit."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, overload

from numpy.typing import ArrayLike, NDArray
from typing_extensions import Buffer as BytesLike
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

UNFRAMED_BIT: int

class Payloads:
    """Many payloads without copies, the input of every ``decode_batch``.

    Parameters
    ----------
    data : bytes-like
        All payloads. It is viewed where it is ``bytes``, else copied.
    offsets : array of integers, shape (n + 1,)
        Payload ``i`` is ``data[offsets[i]:offsets[i + 1]]``. int32 is fastest; anything but int32 is kept as int64.

    Raises
    ------
    ValueError
        The offsets decrease, or are outside the data.

    Examples
    --------
    >>> payloads = Payloads(b"abcdef", [0, 2, 6])
    >>> [bytes(payload) for payload in payloads]
    [b'ab', b'cdef']
    >>> bytes(payloads[1:][0])
    b'cdef'

    Attributes
    ----------
    nbytes : int
        Bytes of all payloads together.
    """

    nbytes: Final[int]
    def __init__(self, data: BytesLike, offsets: ArrayLike) -> None: ...
    @staticmethod
    def of(payloads: Any, offsets: ArrayLike | None = None, lost: ArrayLike | None = None) -> Payloads:
        """Make Payloads of any object that holds payloads.

        Parameters
        ----------
        payloads
            Payloads; one bytes-like object with ``offsets``; a sequence (or numpy array, or Series of pandas) of
            bytes-like objects and None; an array of numpy of uint8 with shape (n, size), of ``S`` or of records, whose
            items are payloads of one size; or anything with ``__arrow_c_array__`` or ``__arrow_c_stream__`` of Binary,
            LargeBinary, BinaryView or FixedSizeBinary, or of dictionaries of these. ``pandas.NA`` and NaN are nulls as
            None is.
        offsets : array of integers, optional
            As for ``Payloads``.
        lost : array of integers, shape (n,), optional
            Bytes that each payload had after those that were captured: decoded as ``incomplete``, not ``truncated``.
            With the bit ``UNFRAMED_BIT`` (2147483648), the payload is the first of bytes in which no packet begins.

        Raises
        ------
        TypeError
            None of these.
        ValueError
            ``lost`` has another length, or a number below 0 or above 4294967295; or the Arrow array or stream was
            consumed before.

        Examples
        --------
        >>> from msmqwire import mqsd
        >>> mqsd.decode_batch(Payloads.of([bytes.fromhex("0001000001020304")], lost=[44])).fault(0)
        FaultEntry(code='incomplete', field='EnterpriseID', offset=4, value=None, needed=16)
        """

    @staticmethod
    def of_texts(texts: Any) -> Payloads:
        """Make Payloads of texts, in UTF-8, the input of functions over columns of text.

        Parameters
        ----------
        texts
            Payloads; a sequence of str, and of nulls as for ``of``; or anything with ``__arrow_c_array__`` or
            ``__arrow_c_stream__`` of strings, or of UTF-8 as binary, or of dictionaries of these.

        Raises
        ------
        TypeError
            None of these.
        ValueError
            The Arrow array or stream was consumed before.
        """

    @staticmethod
    def concat(parts: Iterable[Any]) -> Payloads:
        """Make Payloads of several, one after the other, not copied.

        Parameters
        ----------
        parts
            Each as for ``of``.

        Examples
        --------
        >>> payloads = Payloads(b"abcdef", [0, 2, 6])
        >>> [bytes(payload) for payload in Payloads.concat([payloads, [b"gh"]])]
        [b'ab', b'cdef', b'gh']
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
        rows : array of integers, shape (m,), or of bool, shape (n,)
            The numbers of the rows, or a mask that is true for them.

        Raises
        ------
        IndexError
            There is no such row, or the mask has another length.
        ValueError
            The rows are something else.

        Examples
        --------
        >>> payloads = Payloads(b"abcdef", [0, 2, 5, 6])
        >>> [bytes(payload) for payload in payloads.take([2, 0])]
        [b'f', b'ab']
        >>> [bytes(payload) for payload in payloads.take([True, False, True])]
        [b'ab', b'f']
        """

    lost: Final[NDArray[np.uint32] | None]
    """Bytes that each payload had after those captured, shape (n,) uint32; None if all payloads are complete.

    With the bit ``UNFRAMED_BIT``, bytes of a stream in which no packet begins, beside those in the payload.
    """
    def to_pylist(self) -> list[bytes | None]:
        """The payloads as ``bytes``, copied; None for a null."""

    def to_arrow(self) -> pa.LargeBinaryArray:
        """The payloads as a pyarrow array of LargeBinary, copied; needs pyarrow."""

    def to_pandas(self) -> pd.Series[Any]:
        """The payloads as a Series of pandas, of ``bytes`` and None."""

    def to_polars(self) -> pl.Series:
        """The payloads as a Series of polars, of binary."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return the payloads as an Arrow array of LargeBinary."""
