"""The code of the functions on workers: batches of a column in, batches of rows out.

One decoder serves every kind of function. Workers get its name and settings, and import its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, BinaryType, DataType, StringType, StructType

from msmqwire import formatname
from msmqwire.capture.table_rows import TABLES
from msmqwire.columns import Batch, Payloads, Table
from msmqwire.columns._guids import guid_texts
from msmqwire.columns.arrow_arrays import integers
from msmqwire.columns.display import payload_shown
from msmqwire.errors import DecodeError
from msmqwire.mqcn import NOTIFICATIONS, NotificationBatch
from msmqwire.mqqb import MESSAGES
from msmqwire.spark.executors import Sent, sent
from msmqwire.spark.schema import SparkGuid, arrow_schema, convert, spark_columns, struct_type

if TYPE_CHECKING:
    from msmqwire.columns.schema import GuidOrder

FunctionMode = Literal["PERMISSIVE", "FAILFAST"]
FUNCTION_MODES: tuple[FunctionMode, ...] = get_args(FunctionMode)

_SHOWN_CHARACTERS = 80


def _shown_text(text: memoryview) -> str:
    more = " ..." if len(text) > _SHOWN_CHARACTERS else ""
    return repr(bytes(text[:_SHOWN_CHARACTERS]).decode("utf-8", "replace")) + more


@dataclass(frozen=True)
class _Source:
    """How a function decodes a column: the table, the type of values, and how an error shows a value."""

    table: Table
    decode_batch: Callable[..., Batch]
    type: DataType = field(default_factory=BinaryType)
    values: Callable[[Any], Payloads] = Payloads.of
    shown: Callable[[memoryview], str] = payload_shown


_SOURCES: dict[str, _Source] = {
    **{name: _Source(kind.table, kind.decode_batch) for name, kind in TABLES.items()},
    # A body alone has no sender, and a packet alone no stream
    "notifications": _Source(NOTIFICATIONS, TABLES["notifications"].decode_batch),
    "messages": _Source(MESSAGES, TABLES["messages"].decode_batch),
    "format_names": _Source(
        formatname.FORMAT_NAMES, formatname.parse_batch, StringType(), Payloads.of_texts, _shown_text
    ),
}


def _payloads(column: Any, read: Callable[[Any], Payloads], type_: DataType, what: str) -> Payloads:
    """The payloads of the column that a function is called with, or of a list; an untyped NULL of SQL is a null.

    Raises
    ------
    TypeError
        The column has another type, or SQL calls the function without a column or with several.
    """
    if isinstance(column, tuple):
        raise TypeError(f"{what} are one column, and this call has {len(column)}")
    if isinstance(column, pa.NullArray):
        column = column.cast(pa.binary())
    try:
        return read(column)
    except TypeError:
        if not isinstance(column, pa.Array):
            raise
    given = from_arrow_type(column.type).simpleString()
    raise TypeError(f"{what} are {type_.simpleString()}, and this column is {given}")


def _is_failfast(mode: str) -> bool:
    if mode.upper() not in FUNCTION_MODES:
        raise ValueError(f"mode={mode!r} is not one of {', '.join(FUNCTION_MODES)}")
    return mode.upper() == "FAILFAST"


class Decoder(Sent):
    """Decodes payloads into rows of a table, for one function.

    ``options`` are options of the batch function. ``lists``: a payload becomes a list of rows.

    Raises
    ------
    ValueError
        There is no such table, mode, type of GUIDs or column, or an option has a value that it cannot have.
    TypeError
        There is no such option.
    """

    def __init__(
        self,
        table: str,
        *,
        mode: str = "PERMISSIVE",
        guid: SparkGuid = "text",
        columns: Iterable[str] | None = None,
        **options: Any,
    ) -> None:
        if table not in _SOURCES:
            raise ValueError(f"{table!r} is no table; there is {', '.join(_SOURCES)}")
        self.table = table
        self.failfast = _is_failfast(mode)
        self.guid = guid
        self.options = options
        self.lists = table == "notifications"
        selected = _SOURCES[table].table.select(columns)
        if not selected:
            raise ValueError("columns names no column; a row needs at least one")
        self.names = tuple(column.name for column in selected)
        self.columns = spark_columns(selected, guid)
        self.rows = 0
        # Wrong options fail on the driver, not on the first worker
        _SOURCES[table].decode_batch([], columns=self.names, **options)

    @property
    def payload_type(self) -> DataType:
        """The type of a payload."""
        return _SOURCES[self.table].type

    @property
    def row(self) -> StructType:
        """The requested columns of the table."""
        return struct_type(self.columns)

    @property
    def result(self) -> DataType:
        """The result type of a function."""
        return ArrayType(self.row) if self.lists else self.row

    def decode(self, payloads: Payloads) -> tuple[pa.RecordBatch, NDArray[np.int32] | None]:
        """The rows of a batch of payloads in Spark's types, and with lists the first row of each payload.

        Raises
        ------
        DecodeError
            In mode FAILFAST, for the first payload that cannot be decoded.
        """
        batch = _SOURCES[self.table].decode_batch(payloads, columns=self.names, **self.options)
        starts = batch.messages if isinstance(batch, NotificationBatch) else None
        if self.failfast and len(batch.faults):
            raise self._refusal(batch, payloads, starts)
        self.rows += len(payloads)
        return convert(batch.to_arrow(guid=self.guid, dictionaries=False), self.columns), starts

    def _refusal(self, batch: Batch, payloads: Payloads, starts: NDArray[np.int32] | None) -> DecodeError:
        at = int(batch.faults["row"][0])
        row = at if starts is None else int(np.searchsorted(starts, at, side="right")) - 1
        fault, payload = batch.fault(at), payloads[row]
        # A null payload has no fault
        assert fault is not None
        assert payload is not None
        place = f"row {self.rows + row} of its partition, {_SOURCES[self.table].shown(payload)}"
        return DecodeError(fault.code, fault.field, fault.offset, place, fault.value, fault.needed)

    def values(self, column: Any) -> Payloads:
        """The payloads of a column of Arrow, or of a list."""
        return _payloads(column, _SOURCES[self.table].values, self.payload_type, f"the payloads of {self.table}")

    # Spark evaluates these hints, and pa.Array takes no arguments at run time
    def arrow(self, batches: Iterator[pa.Array]) -> Iterator[pa.Array]:  # type: ignore[type-arg]
        """The body of an Arrow UDF; the result of a null payload is null."""
        for column in batches:
            payloads = self.values(column)
            yield self.array(payloads, column.is_null() if column.null_count else None)

    def frame(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The body of ``mapInArrow``: the first column has payloads, the others are kept before the rows."""
        for batch in batches:
            kept = batch.select(range(1, batch.num_columns))
            rows, starts = self.decode(self.values(batch.column(0)))
            if starts is not None and kept.num_columns:
                kept = kept.take(integers(np.repeat(np.arange(batch.num_rows), np.diff(starts))))
            yield pa.RecordBatch.from_arrays(
                [*kept.columns, *rows.columns], schema=pa.schema([*kept.schema, *rows.schema])
            )

    def array(self, payloads: Payloads, missing: Any) -> Any:
        """A struct or a list for each payload, null where ``missing`` is true."""
        rows, starts = self.decode(payloads)
        if starts is None:
            return pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema), mask=missing)
        structs = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
        # pyarrow's stubs lack this kind of list type
        type_: Any = pa.list_(pa.field("element", pa.struct(list(arrow_schema(self.columns)))))
        return pa.ListArray.from_arrays(integers(starts), structs, type=type_, mask=missing)


@dataclass(frozen=True)
class TableFunction(Sent):
    """An Arrow table function: decodes a table of payloads and kept columns."""

    decoder: Decoder
    kept: tuple[str, ...]

    @property
    def handler(self) -> type:
        """The class that Spark instantiates on a worker, without arguments. It is pickled by value."""
        rows = sent(self.rows)

        class Handler:
            def eval(self, table: Any) -> Any:
                return rows(table)

        return Handler

    def rows(self, table: pa.RecordBatch | pa.Array) -> Iterator[pa.RecordBatch]:  # type: ignore[type-arg]
        """The rows of a batch of the table, or of a single payload."""
        if isinstance(table, pa.Array):
            table = pa.record_batch([table], names=["payload"])
        names = table.schema.names
        lower = {name.lower(): name for name in names}
        kept = [name if name in names else lower.get(name.lower(), name) for name in self.kept]
        payloads = [name for name in names if name not in kept]
        if len(payloads) != 1 or not {*kept} <= {*names}:
            wanted = f"{', '.join(self.kept)} and payloads" if self.kept else "payloads alone"
            raise ValueError(f"the table has {', '.join(names)}; this function takes {wanted}")
        batch = table.select([*payloads, *kept]).rename_columns([*payloads, *self.kept])
        yield from self.decoder.frame(iter([batch]))


class GuidFormatter(Sent):
    """Formats GUIDs of 16 bytes as text."""

    def __init__(self, *, order: GuidOrder = "text", mode: str = "PERMISSIVE") -> None:
        guid_texts([], order=order)
        self.order = order
        self.failfast = _is_failfast(mode)
        self.rows = 0

    def values(self, column: Any) -> Payloads:
        """The GUIDs of a column of Arrow, or of a list."""
        return _payloads(column, Payloads.of, BinaryType(), "GUIDs")

    def format(self, guids: Payloads) -> Any:
        """The texts of a batch; null where a value is not a GUID.

        Raises
        ------
        DecodeError
            In mode FAILFAST, for the first value that does not have 16 bytes.
        """
        # pyarrow's stubs lack the attributes of this array
        texts: Any = guid_texts(guids, order=self.order)
        if self.failfast and texts.malformed is not None:
            malformed = guids[texts.malformed]
            assert malformed is not None
            place = f"row {self.rows + texts.malformed} of its partition, {payload_shown(malformed)}"
            raise DecodeError("bad_size", "GUID", 0, place)
        self.rows += len(texts)
        return pa.array(texts)

    def arrow(self, batches: Iterator[pa.Array]) -> Iterator[pa.Array]:  # type: ignore[type-arg]
        """The body of an Arrow UDF."""
        for guids in batches:
            yield self.format(self.values(guids))
