"""Functions over columns of payloads or names, used as ``pyspark.sql.functions`` and after the manner of ``from_avro``.

>>> from msmqwire.spark.functions import msmq_decode_topology
>>> packets = df.select(msmq_decode_topology("payload").alias("packet"))  # doctest: +SKIP
>>> packets.select("packet.request_id", "packet.fault.code")  # doctest: +SKIP

A function is an Arrow UDF or, for those who prefer it, a pandas UDF with the same results, somewhat slower; both take
whole batches. A row whose payload cannot be decoded says so in its ``fault``.

A packet or a name is one row and gives a struct; a change notification tells of several changes and gives an array of
structs. ``decode_frame`` gives the rows themselves, and is the fastest way over a column of payloads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, when
from pyspark.sql.pandas.functions import arrow_udf, pandas_udf
from pyspark.sql.types import ArrayType, BinaryType, DataType, StringType, StructType

from msmqwire import formatname
from msmqwire.capture.tables import TABLES
from msmqwire.columns import Batch, Payloads, Table
from msmqwire.errors import DecodeError
from msmqwire.mqcn import NotificationBatch
from msmqwire.spark.schema import SparkGuid, arrow_schema, convert, spark_columns, struct_type

__all__ = [
    "Decoder",
    "decode_frame",
    "decoder_udf",
    "msmq_decode_message",
    "msmq_decode_notification",
    "msmq_decode_topology",
    "msmq_parse_format_name",
    "shown",
]

Form = Literal["arrow", "pandas"]
FunctionMode = Literal["PERMISSIVE", "FAILFAST"]
FUNCTION_MODES = ("PERMISSIVE", "FAILFAST")

_SHOWN_BYTES = 32
_SHOWN_CHARACTERS = 80


def shown(payload: memoryview) -> str:
    """A payload as an error message shows it: its size and first bytes."""
    more = " ..." if len(payload) > _SHOWN_BYTES else ""
    return f"{len(payload)} bytes: {payload[:_SHOWN_BYTES].hex(' ', 4)}{more}"


def _shown_text(text: memoryview) -> str:
    more = " ..." if len(text) > _SHOWN_CHARACTERS else ""
    return repr(bytes(text[:_SHOWN_CHARACTERS]).decode("utf-8", "replace")) + more


@dataclass(frozen=True)
class _Source:
    """What a function makes of a column: rows of which table, out of what, and how an error shows a value of it."""

    table: Table
    decode_batch: Callable[..., Batch]
    type: DataType = field(default_factory=BinaryType)
    values: Callable[[Any], Payloads] = Payloads.of
    shown: Callable[[memoryview], str] = shown


_SOURCES: dict[str, _Source] = {
    **{name: _Source(kind.table, kind.decode_batch) for name, kind in TABLES.items()},
    "format_names": _Source(
        formatname.FORMAT_NAMES, formatname.parse_batch, StringType(), Payloads.of_texts, _shown_text
    ),
}


class _ArrowColumn(pd.arrays.ArrowExtensionArray):
    """A column of a frame that stays in Arrow on its way through Spark.

    Spark maps a conversion over lists and structs, one Python object at a time, to make of them what Arrow accepts.
    Ours come from Arrow: for them it is the identity.
    """

    def map(self, mapper: Any, na_action: Any = None) -> _ArrowColumn:
        return self


class Decoder:
    """What a worker runs for one function: batches of payloads in, batches of rows out.

    Sent to workers as a name and these settings; the code is imported there. ``options`` are those of the batch
    function. ``lists`` says that a payload gives a list of rows instead of one.
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
        if mode.upper() not in FUNCTION_MODES:
            raise ValueError(f"mode={mode!r} is not one of {', '.join(FUNCTION_MODES)}")
        if table not in _SOURCES:
            raise ValueError(f"{table!r} is no table; there is {', '.join(_SOURCES)}")
        self.table = table
        self.failfast = mode.upper() == "FAILFAST"
        self.guid = guid
        self.options = options
        self.lists = table == "notifications"
        selected = _SOURCES[table].table.select(columns)
        self.names = tuple(column.name for column in selected)
        self.columns = spark_columns(selected, guid)
        self.rows = 0
        # Options that do not exist are refused on the driver, not by the first worker
        _SOURCES[table].decode_batch([], columns=self.names, **options)

    @property
    def row(self) -> StructType:
        """A row of the table, or as much of it as was asked for."""
        return struct_type(self.columns)

    @property
    def result(self) -> DataType:
        """What a function gives for a payload."""
        return ArrayType(self.row) if self.lists else self.row

    def decode(self, payloads: Payloads) -> tuple[pa.RecordBatch, NDArray[np.int32] | None]:
        """The rows of one batch of payloads, in Spark's types; with lists also where those of each payload begin.

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
        return convert(batch.to_arrow(guid=self.guid), self.columns), starts

    def _refusal(self, batch: Batch, payloads: Payloads, starts: NDArray[np.int32] | None) -> DecodeError:
        at = int(batch.faults["row"][0])
        row = at if starts is None else int(np.searchsorted(starts, at, side="right")) - 1
        fault, payload = batch.fault(at), payloads[row]
        # faults has this row, and a null payload has no fault
        assert fault is not None
        assert payload is not None
        place = f"row {self.rows + row} of its partition, {_SOURCES[self.table].shown(payload)}"
        return DecodeError(*fault, place)

    def _values(self, column: Any) -> Payloads:
        return _SOURCES[self.table].values(column)

    # Spark reads these hints when it runs, and pa.Array takes no arguments then
    def arrow(self, batches: Iterator[pa.Array]) -> Iterator[pa.Array]:  # type: ignore[type-arg]
        """The body of an Arrow UDF; the row of a null payload is null."""
        for payloads in batches:
            yield self._array(self._values(payloads), payloads.is_null() if payloads.null_count else None)

    def pandas(self, batches: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
        """The body of a pandas UDF. A frame has no null rows: there all members are null."""
        for payloads in batches:
            rows, _ = self.decode(self._values(payloads.tolist()))
            columns = {name: _ArrowColumn(array) for name, array in zip(rows.schema.names, rows.columns, strict=True)}
            yield pd.DataFrame(columns, copy=False)

    def pandas_lists(self, batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        """The body of a pandas UDF whose results are lists; that of a null payload is null."""
        for payloads in batches:
            missing = payloads.isna().to_numpy()
            array = self._array(self._values(payloads.tolist()), pa.array(missing) if missing.any() else None)
            yield pd.Series(_ArrowColumn(array), copy=False)

    def frame(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The body of ``mapInArrow``: payloads are the first column, and the others stand in front of their rows."""
        for batch in batches:
            rows, starts = self.decode(self._values(batch.column(0)))
            kept = batch.select(range(1, batch.num_columns))
            if starts is not None:
                kept = kept.take(np.repeat(np.arange(batch.num_rows), np.diff(starts)))
            yield pa.RecordBatch.from_arrays(
                [*kept.columns, *rows.columns], schema=pa.schema([*kept.schema, *rows.schema])
            )

    def _array(self, payloads: Payloads, missing: Any) -> Any:
        """One value for each payload, null where ``missing`` says so."""
        rows, starts = self.decode(payloads)
        if starts is None:
            return pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema), mask=missing)
        structs = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
        # pyarrow's stubs know a type of lists of one kind only
        type_: Any = pa.list_(pa.field("element", pa.struct(list(arrow_schema(self.columns)))))
        return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), structs, type=type_, mask=missing)


def decoder_udf(table: str, *, form: Form = "arrow", **settings: Any) -> Any:
    """The user-defined function that decodes payloads into rows of ``table``; ``settings`` are those of ``Decoder``."""
    decoder = Decoder(table, **settings)
    # Spark's stubs know neither structs as results nor type hints in the place of functionType
    forms: dict[str, tuple[Any, Any]] = {
        "arrow": (arrow_udf, decoder.arrow),
        "pandas": (pandas_udf, decoder.pandas_lists if decoder.lists else decoder.pandas),
    }
    if form not in forms:
        raise ValueError(f"form={form!r} is neither 'arrow' nor 'pandas'")
    make, body = forms[form]
    return make(body, decoder.result)


def decode_frame(
    df: DataFrame,
    payload: Column | str,
    table: str,
    *,
    keep: Iterable[Column | str] = (),
    columns: Iterable[str] | None = None,
    mode: FunctionMode = "PERMISSIVE",
    guid: SparkGuid = "text",
    **options: Any,
) -> DataFrame:
    """Decode a column of payloads into the rows of a table, with columns of ``df`` in front: the fastest way.

    A payload gives a row; a change notification gives one for each of its changes, and one that says so where it has
    none or cannot be decoded. A null payload gives one row with nothing but what is kept.

    Parameters
    ----------
    df : DataFrame
        Classic or Connect.
    payload : Column or str
        Payloads, binary; of ``format_names`` the names, string.
    table : str
        ``topology``, ``notifications``, ``messages``, ``sessions`` or ``format_names``.
    keep : iterable of Column or str
        Columns of ``df`` that go along.
    columns : iterable of str, optional
        The columns of the table to build, all of them by default; they come in the table's order.
    mode, guid
        As for ``msmq_decode_topology``.
    **options
        Those of the function that decodes a column into this table, such as ``strict``.

    Raises
    ------
    ValueError
        There is no such table or column, or two columns would have one name.
    TypeError
        The payloads are of another type, or there is no such option.

    Examples
    --------
    >>> decode_frame(df, "payload", "topology", keep=["time"], columns=["request_id", "fault"])  # doctest: +SKIP
    """
    decoder = Decoder(table, mode=mode, guid=guid, columns=columns, **options)
    kept = (keep,) if isinstance(keep, (Column, str)) else tuple(keep)
    selected = df.select(_column(payload), *kept)
    given, *fields = selected.schema.fields
    if given.dataType != _SOURCES[table].type:
        there, needed = given.dataType.simpleString(), _SOURCES[table].type.simpleString()
        raise TypeError(f"the payloads of {table} are {needed}, and this column is {there}")
    schema = StructType([*fields, *decoder.row.fields])
    twice = [name for name, count in Counter(name.lower() for name in schema.names).items() if count > 1]
    if twice:
        raise ValueError(
            f"two columns called {', '.join(map(repr, twice))}: keep one under an alias, or leave it out of columns"
        )
    # mapInArrow looks its columns up by name, and trips over one that stands there twice or has a dot
    numbered = selected.toDF(*map(str, range(1 + len(fields))))
    return numbered.mapInArrow(decoder.frame, schema)


def _column(column: Column | str) -> Column:
    return col(column) if isinstance(column, str) else column


def _apply(table: str, payload: Column | str, form: Form, settings: Mapping[str, Any]) -> Column:
    column = _column(payload)
    decoded: Column = decoder_udf(table, form=form, **settings)(column)
    # What a frame cannot say
    return when(column.isNotNull(), decoded) if form == "pandas" else decoded


def msmq_decode_topology(
    payload: Column | str,
    *,
    mode: FunctionMode = "PERMISSIVE",
    guid: SparkGuid = "text",
    columns: Iterable[str] | None = None,
    strict: bool = False,
    transport: Literal["unknown", "udp", "ipx"] = "unknown",
    form: Form = "arrow",
) -> Column:
    """Decode MS-MQSD packets into a struct with the columns of the topology table: [MS-MQSD] 2.2.

    Parameters
    ----------
    payload : Column or str
        UDP or IPX payloads, binary. A null payload gives a null.
    mode : {"PERMISSIVE", "FAILFAST"}
        Keep a payload that cannot be decoded as a row with its ``fault``, or fail the job at the first one.
    guid : {"text", "binary"}
        GUIDs as canonical text, or as their 16 bytes in the order that the text shows.
    columns : iterable of str, optional
        Members of the struct; what is not named is not built and not shipped.
    strict : bool
        Fault what a conforming receiver discards, instead of noting it as a violation.
    transport : {"unknown", "udp", "ipx"}
        What carried the packets; some rules depend on it.
    form : {"arrow", "pandas"}
        The kind of user-defined function; the results are the same.
    """
    settings = {"mode": mode, "guid": guid, "columns": columns, "strict": strict, "transport": transport}
    return _apply("topology", payload, form, settings)


def msmq_decode_message(
    payload: Column | str,
    *,
    mode: FunctionMode = "PERMISSIVE",
    guid: SparkGuid = "text",
    columns: Iterable[str] | None = None,
    strict: bool = False,
    form: Form = "arrow",
) -> Column:
    """Decode UserMessage packets into a struct with the columns of the messages table: [MS-MQMQ] 2.2.20.

    Queues are format names. The body of a message to the notify queue, where ``notification`` is ``plain``, is what
    ``msmq_decode_notification`` takes.

    Parameters
    ----------
    payload : Column or str
        Packets as they come over TCP, binary, each with the SessionHeader that follows it. A null payload gives a null.
    mode, guid, columns, strict, form
        As for ``msmq_decode_topology``.

    Examples
    --------
    >>> messages = df.select(msmq_decode_message("payload").alias("message"))  # doctest: +SKIP
    >>> changes = messages.where("message.notification = 'plain'").select(  # doctest: +SKIP
    ...     msmq_decode_notification("message.body").alias("changes")
    ... )
    """
    settings = {"mode": mode, "guid": guid, "columns": columns, "strict": strict}
    return _apply("messages", payload, form, settings)


def msmq_decode_notification(
    payload: Column | str,
    *,
    mode: FunctionMode = "PERMISSIVE",
    guid: SparkGuid = "text",
    columns: Iterable[str] | None = None,
    strict: bool = False,
    form: Form = "arrow",
) -> Column:
    """Decode Change Notification Messages into an array of structs, one for each change: [MS-MQCN] 2.2.4.

    The structs have the columns of the notifications table. A message that cannot be decoded or has no change gives one
    struct as well, which says so.

    Parameters
    ----------
    payload : Column or str
        Bodies of MSMQ messages, binary. A null payload gives a null.
    mode, guid, columns, strict, form
        As for ``msmq_decode_topology``.

    Examples
    --------
    >>> changes = df.select(explode(msmq_decode_notification("payload")).alias("change"))  # doctest: +SKIP
    >>> changes.select("change.operation", "change.object_guid")  # doctest: +SKIP
    """
    settings = {"mode": mode, "guid": guid, "columns": columns, "strict": strict}
    return _apply("notifications", payload, form, settings)


def msmq_parse_format_name(
    text: Column | str,
    *,
    mode: FunctionMode = "PERMISSIVE",
    guid: SparkGuid = "text",
    columns: Iterable[str] | None = None,
    extended: bool = False,
    http_slashes: bool = False,
    spx: bool = False,
    path_names: bool = False,
    form: Form = "arrow",
) -> Column:
    """Parse format names into a struct with the columns of the format_names table: [MS-MQMQ] 2.1.

    Parameters
    ----------
    text : Column or str
        Names, string. A null text gives a null.
    mode, guid, columns, form
        As for ``msmq_decode_topology``.
    extended, http_slashes, spx, path_names : bool
        As for ``formatname.parse_batch``.

    Examples
    --------
    >>> names = df.select(msmq_parse_format_name("destination_queue").alias("name"))  # doctest: +SKIP
    >>> names.where("name.kind = 'direct'").groupBy("name.address").count()  # doctest: +SKIP
    """
    settings = {
        "mode": mode,
        "guid": guid,
        "columns": columns,
        "extended": extended,
        "http_slashes": http_slashes,
        "spx": spx,
        "path_names": path_names,
    }
    return _apply("format_names", text, form, settings)
