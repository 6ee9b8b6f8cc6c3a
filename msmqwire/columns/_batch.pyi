"""Written by `make build` from the annotations in _batch.pyx; do not edit."""

from collections.abc import Iterator
from typing import Any, Final, overload
from uuid import UUID

from numpy.typing import NDArray
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from msmqwire.columns import names, views
from msmqwire.columns._packet import WirePacket
from msmqwire.columns._payloads import Payloads
from msmqwire.columns.schema import GuidForm, Table

class Batch:
    """The columns of many decoded payloads, a row for each.

    A Batch owns its buffers and keeps the payloads alive; its views keep the Batch alive. When the Batch is overwritten
    through ``out=``, its arrays show the new rows, and text, bytes and lists that were taken before are a ValueError.

    Examples
    --------
    >>> from msmqwire import mqsd
    >>> batch = mqsd.decode_batch([bytes.fromhex(
    ...     "0002000003a191f23ce34faba930be3a33e432dd01000000000000001200000062baeae6c6d1db11baac0003ff4e2d22"
    ...     "60baeae6c6d1db11baac0003ff4e2d22310030006e00740034007000650063000000"), b"oops"])
    >>> batch["servers"].values["name"].text(0)
    'nt4pec'
    >>> batch.fault(1)
    FaultEntry(code='bad_type', field='Type', offset=1, value=111, needed=None)

    Attributes
    ----------
    table : Table
    columns : tuple of str
        Names of the columns that it holds, in the order in which they were requested.
    payloads : Payloads
    """

    table: Final[Table]
    columns: Final[tuple[str, ...]]
    payloads: Final[Payloads]
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
    def __contains__(self, name: object) -> bool:
        """Return True if ``name`` is the name of a column that this Batch has."""

    def is_valid(self, name: str) -> NDArray[np.bool_]:
        """Boolean array: the rows in which the column has a value, as Arrow has it; elsewhere it is null.

        ``name`` may be one of the table's ``presence_bits`` as well.

        Raises
        ------
        ValueError
            No such column.
        KeyError
            The column is derived from others, and was not requested.
        """

    def names(self, name: str) -> list[str | None]:
        """The names of an enumeration, a row each; None where the column is null.

        Raises
        ------
        KeyError
            No such column, or it was not requested.
        TypeError
            The column has no names.
        """

    def uuids(self, name: str) -> list[UUID | None] | list[list[UUID] | None]:
        """The GUIDs of a column, a row each, or a list of them; None where the column is null.

        ``batch[name]`` has their bytes in the order of packets, where the first three numbers of a GUID are
        little-endian; Arrow has them in the order of the text.

        Raises
        ------
        KeyError
            No such column, or it was not requested.
        TypeError
            The column has no GUIDs.
        """

    def equals(self, name: str, value: object) -> NDArray[np.bool_]:
        """Boolean array: the rows whose value is ``value``, a name of an enumeration or a ``uuid.UUID``; no null row.

        Raises
        ------
        KeyError
            No such column, or it was not requested.
        ValueError
            The enumeration has no such name.
        TypeError
            ``value`` is of another type than the column, or the column has neither names nor GUIDs.

        Examples
        --------
        >>> from msmqwire import mqsd
        >>> batch = mqsd.decode_batch([bytes.fromhex("00010000") + bytes(48), b"oops"])
        >>> batch.equals("type", "request")
        array([ True, False])
        """

    faults: Final[NDArray[np.void]]
    """One entry for each faulty row, in order: row, code, field, item, offset, needed, available."""
    def fault(self, row: int) -> views.FaultEntry | None:
        """Why a row could not be decoded, or None."""

    def packet(self, row: int) -> WirePacket:
        """Decode the packet of one row; of a change, its complete message.

        Raises
        ------
        DecodeError
            The row has a fault.
        ValueError
            The payload is null, or ``forget_payloads`` has released it.
        TypeError
            The rows of the table are not packets.

        Examples
        --------
        >>> from msmqwire import mqsd
        >>> mqsd.decode_batch([bytes.fromhex("00010000") + bytes(48)]).packet(0).type
        'request'
        """

    violations: Final[NDArray[np.uint32]]
    """Bits of the table's violations, shape (n,)."""
    def violation_names(self, row: int) -> tuple[str, ...]:
        """The rules that a row breaks, by name."""

    def to_arrow(self, *, guid: GuidForm = "binary", dictionaries: bool = True) -> pa.RecordBatch:
        """The table as Arrow, in the schema of ``table.arrow_schema(columns, ...)`` with these options; needs pyarrow.

        Numbers and list offsets are not copied; while a consumer holds them, ``out=`` refuses this Batch.

        Parameters
        ----------
        guid : {"binary", "uuid", "text"}
            16 bytes in RFC 9562 order, the ``arrow.uuid`` extension type, or canonical lower-case text.
        dictionaries : bool
            Enumerations, addresses, files and queues are dictionaries of their values; if false, strings.

        Raises
        ------
        ValueError
            ``forget_payloads`` has released the payloads, which text, bytes and queues are parts of; or ``guid`` is
            none of the three.
        """

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts by the names of the columns, GUIDs and times as text; needs pyarrow.

        Raises
        ------
        ValueError
            ``forget_payloads`` has released the payloads.

        Examples
        --------
        >>> from msmqwire import mqsd
        >>> mqsd.decode_batch([bytes.fromhex("00010000") + bytes(48)], columns=["type", "site_id"]).to_pylist()
        [{'type': 'request', 'site_id': '00000000-0000-0000-0000-000000000000'}]
        """

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """The rows as a DataFrame of pandas, GUIDs as text; needs pyarrow.

        A column of uint64 with nulls is of pandas' UInt64, unless an option says otherwise: other numbers with nulls
        are floats, which have 53 bits.

        Parameters
        ----------
        **options
            Those of ``pyarrow.Table.to_pandas``.
        """

    def to_polars(self) -> pl.DataFrame:
        """The rows as a DataFrame of polars, GUIDs as text; needs pyarrow."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, as ``to_pylist`` has them."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The table for any Arrow consumer, without pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as a stream of one batch, for libraries that make tables of streams only, without pyarrow."""

    def forget_payloads(self) -> None:
        """Release the payloads, which Arrow exports that were made do not need.

        Afterwards columns of text, bytes and queues cannot be read or exported, and the batch cannot be encoded: a
        ValueError.

        Raises
        ------
        BufferError
            Another thread is decoding, exporting or encoding the batch.
        """

def concat_columns(first: Batch, last: Batch, *, guid: GuidForm, dictionaries: bool) -> pa.RecordBatch:
    """Return one pyarrow.RecordBatch with the columns of two batches of the same rows."""

def take(column: views.SpanColumn, rows: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return the values of a ``SpanColumn`` in some rows: their ends (int32, shape (n + 1,)) and their bytes (uint8).

    Text is in UTF-8, with U+FFFD for a lone surrogate. A null value is empty.
    """

def take_rows(batch: Batch, rows: NDArray[np.uint32], columns: tuple[str, ...]) -> Batch:
    """Some rows of some columns as a new Batch: of columns with one value a row that is not in the payloads."""
