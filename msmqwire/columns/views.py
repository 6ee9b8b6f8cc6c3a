"""What ``batch["name"]`` gives for columns that are more than one array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from msmqwire.columns._payloads import Payloads

#: The error of columns whose payloads are gone.
RELEASED = "forget_payloads() released the payloads of the batch: decode them again"
#: The error of columns whose values are no longer those of their payloads.
OVERWRITTEN = "the batch was overwritten through out= after this column was taken: take it again"

FAULT_DTYPE = np.dtype(
    [
        ("row", "<u4"),
        ("code", "<u4"),
        ("field", "<u4"),
        ("item", "<u4"),
        ("offset", "<u8"),
        ("needed", "<u8"),
        ("available", "<u8"),
        ("value", "<u8"),
    ]
)
SPAN_DTYPE = np.dtype([("offset", "<u4"), ("length", "<u4")])
ADDRESS_DTYPE = np.dtype([("bytes", "u1", 16), ("family", "<u2")])
FORMAT_NAME_DTYPE = np.dtype(
    [
        ("form", "u1"),
        ("code", "u1"),
        ("reserved", "<u2"),
        ("number", "<u4"),
        ("offset", "<u4"),
        ("length", "<u4"),
        ("guid", "u1", 16),
    ]
)
"""A queue: ``form`` 0 none, 1 public, 2 private, 3 direct, 6 distribution list, 255 private on an unnamed host;
``code`` as the packet has it; a direct name lies at ``offset`` of the row's own payload."""


class FaultEntry(NamedTuple):
    """Why one payload cannot be decoded: code, field by its name in the specification, byte offset in the payload.

    ``value`` is the number that was read and ``needed`` the one that was needed, as of ``DecodeError``.
    """

    code: str
    field: str
    offset: int
    value: int | None = None
    needed: int | None = None


class Contents:
    """The contents of a batch as its columns show them, until the batch is overwritten.

    A column is read first and checked then, as another thread can overwrite the batch while it is read.
    """

    overwritten = False

    def check(self) -> None:
        """Refuse what was read from a batch that has been overwritten: parts of it may be of other payloads."""
        if self.overwritten:
            raise ValueError(OVERWRITTEN)


#: Of columns with memory of their own.
LASTING = Contents()


@dataclass(frozen=True, eq=False)
class ListColumn:
    """A list a row: the items of row ``i`` are ``values[offsets[i]:offsets[i + 1]]``; ``[i]`` is a list of them.

    Attributes
    ----------
    offsets : ndarray of int32, shape (n + 1,)
    values : ndarray, TextColumn, ListColumn, or dict of these by member name for a list of structs
    """

    offsets: NDArray[np.int32]
    values: Any
    _contents: Contents = field(default=LASTING, repr=False)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_pylist(self) -> list[list[Any]]:
        """The lists as Python values: a struct is a dict by the names of its members, a GUID 16 bytes in wire order.

        Raises
        ------
        ValueError
            The batch was overwritten after the column was taken.
        """
        return self._lists(0, len(self))

    def __getitem__(self, row: int) -> list[Any]:
        """The list of one row, as ``to_pylist`` has it.

        Raises
        ------
        ValueError
            The batch was overwritten after the column was taken.
        """
        (found,) = self._lists(start := range(len(self))[row], start + 1)
        return found

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(self.to_pylist())

    def _lists(self, start: int, end: int) -> list[list[Any]]:
        """The lists of the rows from ``start`` to ``end``."""
        offsets = self.offsets[start : end + 1].tolist()
        self._contents.check()  # before offsets are used, which may be those of other rows
        items = _python_values(self.values, offsets[0], offsets[-1])
        self._contents.check()
        return [items[first - offsets[0] : last - offsets[0]] for first, last in pairwise(offsets)]


def _python_values(values: Any, start: int, end: int) -> list[Any]:
    """The values from ``start`` to ``end`` of a column or of the members of one."""
    if isinstance(values, dict):
        members = {name: _python_values(each, start, end) for name, each in values.items()}
        return [dict(zip(members, each, strict=True)) for each in zip(*members.values(), strict=True)]
    if isinstance(values, np.ndarray):
        part = values[start:end]
        return [row.tobytes() for row in part] if part.ndim == 2 else part.tolist()
    if isinstance(values, ListColumn):
        return values._lists(start, end)
    found: list[Any] = values._python(start, end)
    return found


class SpanColumn:
    """Values that stay in the payloads: where each lies, and its bytes when asked for.

    A value cannot be read after the batch was overwritten through ``out=``: a ValueError.

    Attributes
    ----------
    offset : ndarray of uint32
        Bytes from the start of the row's own payload.
    length : ndarray of uint32
        In bytes.
    payloads : Payloads
    """

    def __init__(
        self,
        spans: NDArray[np.void],
        payloads: Payloads,
        parents: tuple[NDArray[np.int32], ...],
        rows: NDArray[np.integer] | None = None,
        contents: Contents = LASTING,
    ) -> None:
        self.offset: NDArray[np.uint32] = spans["offset"]
        self.length: NDArray[np.uint32] = spans["length"]
        self.payloads = payloads
        self._parents = parents
        self._rows = rows
        self._contents = contents

    def __len__(self) -> int:
        return len(self.offset)

    def places(self, indices: NDArray[np.integer]) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
        """The places of some values: the numbers of their payloads, offsets in these and lengths."""
        owners = indices if self._rows is None else self._rows[indices]
        for offsets in self._parents:
            owners = np.searchsorted(offsets, owners, side="right") - 1
        found = owners.astype(np.uint32), self.offset[indices], self.length[indices]
        self._contents.check()
        return found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} values>"

    def to_pylist(self) -> list[Any]:
        """All values as Python has them, str or bytes; None where the payload is null. A missing value is empty."""
        return self._python(0, len(self))

    def _python(self, start: int, end: int) -> list[Any]:
        """The values from ``start`` to ``end``."""
        places = [each.tolist() for each in self.places(np.arange(start, end))]
        return [
            None if (payload := self._payload(owner)) is None else self._value(payload[first : first + length])
            for owner, first, length in zip(*places, strict=True)
        ]

    def _payload(self, owner: int) -> memoryview | None:
        if owner >= len(self.payloads):  # an IndexError would end a loop over the column without a value
            raise ValueError(RELEASED)
        return self.payloads[owner]

    def _value(self, value: memoryview) -> Any:
        return bytes(value)

    def _bytes(self, index: int) -> NDArray[np.uint8]:
        row = range(len(self))[index]
        (owner,), (start,), (length,) = [each.tolist() for each in self.places(np.array([row]))]
        payload = self._payload(owner)
        if payload is None:
            raise ValueError(f"payload {owner} is null and holds no value")
        return np.frombuffer(payload, np.uint8, length, start)


class TextColumn(SpanColumn):
    """Text that stays in the payloads; ``length`` is twice the number of code units."""

    def __getitem__(self, index: int) -> NDArray[np.uint16]:
        """The code units of one value: a view into its payload, lone surrogates and all."""
        return self._bytes(index).view("<u2")

    def text(self, index: int) -> str:
        """One value as a string; lone surrogates stay lone surrogates."""
        return self._value(self._bytes(index).data)

    def _value(self, value: memoryview) -> str:
        return str(value, "utf-16-le", "surrogatepass")


class BytesColumn(SpanColumn):
    """Bytes that stay in the payloads."""

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        """One value: a view into its payload."""
        return self._bytes(index)


class AsciiColumn(BytesColumn):
    """ASCII text that stays in payloads of UTF-8."""

    def text(self, index: int) -> str:
        """One value as a string."""
        return self._value(self._bytes(index).data)

    def _value(self, value: memoryview) -> str:
        return str(value, "ascii")


class Utf8Column:
    """Texts that were made for the column, one after the other.

    Attributes
    ----------
    offsets : ndarray of int32, shape (n + 1,)
        The UTF-8 text of row ``i`` is ``values[offsets[i]:offsets[i + 1]]``; that of a null is empty.
    values : ndarray of uint8
    """

    def __init__(self, offsets: NDArray[np.int32], values: NDArray[np.uint8]) -> None:
        self.offsets = offsets
        self.values = values

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        """One value in UTF-8: a view."""
        row = range(len(self))[index]
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def text(self, index: int) -> str:
        """One value as a string."""
        return str(self[index].data, "utf-8")

    def to_pylist(self) -> list[str]:
        """Return all values as strings; a null is an empty string."""
        return self._python(0, len(self))

    def _python(self, start: int, end: int) -> list[str]:
        """The values from ``start`` to ``end``."""
        return [self.text(index) for index in range(start, end)]

    def __repr__(self) -> str:
        return f"<Utf8Column of {len(self)} values>"
