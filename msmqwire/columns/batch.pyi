"""The columns that a decoder wrote."""

from typing import Any, NamedTuple, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from msmqwire.columns import names, views
from msmqwire.columns.payloads import Payloads
from msmqwire.columns.schema import GuidForm, Table

class FaultEntry(NamedTuple):
    """Why one payload cannot be decoded: code, field by its specification's name, byte offset in the payload."""

    code: str
    field: str
    offset: int

class Batch:
    """The columns of many decoded payloads, a row for each.

    A Batch owns its buffers and keeps the payloads alive; everything it hands out keeps what it needs alive. What a
    view shows changes when the Batch is written again through ``out=``.

    Examples
    --------
    >>> from msmqwire import mqsd
    >>> batch = mqsd.decode_batch([bytes.fromhex(
    ...     "0002000003a191f23ce34faba930be3a33e432dd01000000000000001200000062baeae6c6d1db11baac0003ff4e2d22"
    ...     "60baeae6c6d1db11baac0003ff4e2d22310030006e00740034007000650063000000"), b"oops"])
    >>> batch["servers"].values["name"].text(0)
    'nt4pec'
    >>> batch.fault(1)
    FaultEntry(code='bad_type', field='Type', offset=1)
    """

    table: Table
    columns: tuple[str, ...]
    """Names of the columns it holds, in the table's order."""
    payloads: Payloads

    def __len__(self) -> int: ...
    def _repr_html_(self) -> str: ...
    def _ipython_key_completions_(self) -> list[str]: ...
    @overload
    def __getitem__(self, name: names.Uint8) -> NDArray[np.uint8]: ...
    @overload
    def __getitem__(self, name: names.Uint16) -> NDArray[np.uint16]: ...
    @overload
    def __getitem__(self, name: names.Uint32) -> NDArray[np.uint32]: ...
    @overload
    def __getitem__(self, name: names.Uint64) -> NDArray[np.uint64]: ...
    @overload
    def __getitem__(self, name: names.Bool) -> NDArray[np.bool_]: ...
    @overload
    def __getitem__(self, name: names.Time) -> NDArray[np.datetime64]: ...
    @overload
    def __getitem__(self, name: names.Record) -> NDArray[np.void]: ...
    @overload
    def __getitem__(self, name: names.List) -> views.ListColumn: ...
    @overload
    def __getitem__(self, name: names.Text) -> views.TextColumn: ...
    @overload
    def __getitem__(self, name: names.Bytes) -> views.BytesColumn: ...
    @overload
    def __getitem__(self, name: names.Ascii) -> views.AsciiColumn: ...
    @overload
    def __getitem__(self, name: names.Utf8) -> views.Utf8Column: ...
    @overload
    def __getitem__(self, name: str) -> Any: ...
    def is_present(self, name: str) -> NDArray[np.bool_]:
        """Boolean array: the rows in which the packet carries ``name``; elsewhere the column is null."""
    @property
    def faults(self) -> NDArray[np.void]:
        """One entry for each faulty row, in order: row, code, field, item, offset, needed, available."""
    def fault(self, row: int) -> FaultEntry | None:
        """Why a row could not be decoded, or None."""
    @property
    def violations(self) -> NDArray[np.uint32]:
        """Bits of the table's violations, shape (n,)."""
    def violation_names(self, row: int) -> tuple[str, ...]:
        """The rules that a row breaks, by name."""
    def to_arrow(self, *, guid: GuidForm = "binary", dictionaries: bool = True) -> pa.RecordBatch:
        """The table as Arrow, in the schema of ``table.arrow_schema(columns, ...)`` with these options; needs pyarrow.

        Numbers and list offsets are handed out as they stand; while anything holds them, ``out=`` refuses this Batch.

        Parameters
        ----------
        guid : {"binary", "uuid", "text"}
            16 bytes in RFC 9562 order, the ``arrow.uuid`` extension type, or canonical lower-case text.
        dictionaries : bool
            Enumerations, addresses, files and queues are dictionaries of their values; if false, strings.
        """
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as a stream of one batch, for libraries that make tables of streams only; needs pyarrow."""
    def forget_payloads(self) -> None:
        """Let go of the payloads, which an Arrow export does not need; text and bytes can no longer be read here."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The table for any Arrow consumer, without pyarrow."""
