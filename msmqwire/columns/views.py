"""What ``batch["name"]`` gives for columns that are more than one array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from msmqwire.columns.payloads import Payloads

__all__ = ["ADDRESS_DTYPE", "FAULT_DTYPE", "SPAN_DTYPE", "ListColumn", "TextColumn"]

FAULT_DTYPE = np.dtype(
    [
        ("row", "<u4"),
        ("code", "<u4"),
        ("field", "<u4"),
        ("item", "<u4"),
        ("offset", "<u8"),
        ("needed", "<u8"),
        ("available", "<u8"),
    ]
)
SPAN_DTYPE = np.dtype([("offset", "<u4"), ("length", "<u4")])
ADDRESS_DTYPE = np.dtype([("bytes", "u1", 16), ("family", "<u2")])


@dataclass(frozen=True)
class ListColumn:
    """A list a row: the items of row ``i`` are ``values[offsets[i]:offsets[i + 1]]``.

    Attributes
    ----------
    offsets : ndarray of int32, shape (n + 1,)
    values : ndarray, TextColumn, ListColumn, or dict of these by member name for a list of structs
    """

    offsets: NDArray[np.int32]
    values: Any

    def __len__(self) -> int:
        return len(self.offsets) - 1


class TextColumn:
    """Text that stays in the payloads: where each value lies, and its code units when asked for.

    Attributes
    ----------
    offset : ndarray of uint32
        Bytes from the start of the row's own payload.
    length : ndarray of uint32
        In bytes, twice the number of code units.
    """

    def __init__(self, spans: NDArray[np.void], payloads: Payloads, parents: tuple[NDArray[np.int32], ...]) -> None:
        self.offset: NDArray[np.uint32] = spans["offset"]
        self.length: NDArray[np.uint32] = spans["length"]
        self._payloads = payloads
        self._parents = parents

    def __len__(self) -> int:
        return len(self.offset)

    def __getitem__(self, index: int) -> NDArray[np.uint16]:
        """The code units of one value: a view into its payload, lone surrogates and all."""
        row = range(len(self))[index]
        start, length = int(self.offset[row]), int(self.length[row])
        for offsets in self._parents:
            row = int(np.searchsorted(offsets, row, side="right")) - 1
        payload = self._payloads[row]
        if payload is None:
            raise ValueError(f"row {row} is null and holds no text")
        return np.frombuffer(payload, "<u2", length // 2, start)

    def text(self, index: int) -> str:
        """One value as a string; lone surrogates stay lone surrogates."""
        return self[index].tobytes().decode("utf-16-le", "surrogatepass")
