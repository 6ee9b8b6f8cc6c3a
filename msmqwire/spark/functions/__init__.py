"""Functions over columns of payloads or names, for use like ``pyspark.sql.functions``.

>>> from msmqwire.spark.functions import msmq_decode_topology
>>> packets = df.select(msmq_decode_topology("payload").alias("packet"))  # doctest: +SKIP
>>> packets.select("packet.request_id", "packet.fault.code")  # doctest: +SKIP

A function is an Arrow UDF. ``decoder_udf`` and ``guid_text_udf`` make pandas UDFs as well, with ``form="pandas"``; they
are slower. The row of a payload that cannot be decoded has a ``fault``.

A packet or a name is one row, so its function returns a struct. A change notification has several changes, so its
function returns an array of structs. ``decode_frame`` returns the rows themselves, and is the fastest way to decode a
column of payloads.
"""

from __future__ import annotations

from msmqwire.errors import require

require("pyarrow", "msmqwire.spark.functions")
require("pyspark", "msmqwire.spark.functions")

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, get_args, get_type_hints

from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import arrow_udtf, col
from pyspark.sql.pandas.functions import arrow_udf, pandas_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StringType, StructField, StructType

from msmqwire.spark.executors import map_in_arrow, sent, without_pandas_warning
from msmqwire.spark.functions.decoder import Decoder, FunctionMode, GuidFormatter, TableFunction
from msmqwire.spark.schema import SparkGuid

if TYPE_CHECKING:
    from msmqwire.columns.schema import GuidOrder

__all__ = [
    "Form",
    "FunctionMode",
    "SparkGuid",
    "decode_frame",
    "decoder_udf",
    "decoder_udtf",
    "guid_text_udf",
    "msmq_decode_message",
    "msmq_decode_notification",
    "msmq_decode_topology",
    "msmq_guid_text",
    "msmq_parse_format_name",
]

Form = Literal["arrow", "pandas"]


class Settings(TypedDict, total=False):
    """The settings of every function that decodes; ``msmq_decode_topology`` explains them."""

    mode: FunctionMode
    guid: SparkGuid
    columns: Iterable[str] | None


def _user_defined(one: Decoder | GuidFormatter, form: Form, result: DataType) -> Any:
    """The function of Spark in one of its forms."""
    if form not in get_args(Form):
        raise ValueError(f"form={form!r} is neither 'arrow' nor 'pandas'")
    # Spark's stubs lack struct results, and type hints in place of functionType
    make: Any = arrow_udf
    body: Any = one.arrow
    if form == "pandas":
        from msmqwire.spark.functions.pandas_forms import pandas_body

        make, body = pandas_udf, pandas_body(one)
    function = sent(body)
    # Spark chooses the kind of function by its type hints
    function.__annotations__ = get_type_hints(body)
    with without_pandas_warning():
        return make(function, result)


def decoder_udf(table: str, *, form: Form = "arrow", **settings: Any) -> Any:
    """The user-defined function that decodes payloads into rows of ``table``; ``settings`` are those of ``Decoder``.

    Parameters
    ----------
    form : {"arrow", "pandas"}
        The kind of user-defined function. The results are the same, except that a pandas UDF returns a struct of nulls
        for a null payload, since a frame has no null rows.
    """
    decoder = Decoder(table, **settings)
    return _user_defined(decoder, form, decoder.result)


def guid_text_udf(*, form: Form = "arrow", **settings: Any) -> Any:
    """The user-defined function of ``msmq_guid_text``; ``settings`` are those of ``GuidFormatter``."""
    return _user_defined(GuidFormatter(**settings), form, StringType())


def decoder_udtf(table: str, *, keep: StructType | str = "", **settings: Any) -> Any:
    """The user-defined table function that decodes a table of payloads into rows of ``table``, for SQL.

    Spark needs the columns of a table function before it knows its argument, so kept columns are declared with types.

    Parameters
    ----------
    table : str
        As for ``decode_frame``.
    keep : StructType or str
        The columns of the argument to keep before the columns of the table; the argument has these and the payloads.
    **settings
        Those of ``Decoder``, such as ``columns``.

    Examples
    --------
    >>> spark.udtf.register("ids", decoder_udtf("topology", keep="id int", columns=["request_id"]))  # doctest: +SKIP
    >>> spark.sql("SELECT id, request_id FROM ids(TABLE(SELECT id, payload FROM packets))")  # doctest: +SKIP
    """
    decoder = Decoder(table, **settings)
    # Spark's stubs have any data type as the result of fromDDL
    kept: Any = keep if isinstance(keep, StructType) else StructType.fromDDL(keep) if keep else StructType()
    handler = TableFunction(decoder, tuple(kept.names)).handler
    return arrow_udtf(handler, returnType=_with_kept(kept.fields, decoder))


def _with_kept(kept: Iterable[StructField], decoder: Decoder) -> StructType:
    """The kept columns, then the columns of a decoder."""
    schema = StructType([*kept, *decoder.row.fields])
    twice = [name for name, count in Counter(name.lower() for name in schema.names).items() if count > 1]
    if twice:
        raise ValueError(
            f"two columns called {', '.join(map(repr, twice))}: keep one under an alias, or leave it out of columns"
        )
    for field in schema:
        # Spark's own error has all columns, and does not say which it means
        try:
            to_arrow_type(field.dataType, timezone="UTC")
        except PySparkTypeError:
            type_ = field.dataType.simpleString()
            raise TypeError(f"keep: {field.name!r} is {type_}, which Spark does not send to Python; cast it") from None
    return schema


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
    """Decode a column of payloads into the rows of a table, after columns of ``df``: the fastest way.

    A payload becomes one row; a change notification becomes one row for each change, or one row if it has no change or
    cannot be decoded. A null payload becomes one row of nulls after the kept columns.

    Parameters
    ----------
    df : DataFrame
        Classic or Connect.
    payload : Column or str
        Payloads, binary; for ``format_names`` names, string.
    table : str
        ``topology``, ``notifications``, ``messages``, ``sessions`` or ``format_names``.
    keep : iterable of Column or str
        Columns of ``df`` to keep; ``"*"`` for all of them.
    columns : iterable of str, optional
        The columns of the table to build, in the table's order; default: all.
    mode, guid
        As for ``msmq_decode_topology``.
    **options
        Options of the function for this table, such as ``strict``.

    Raises
    ------
    ValueError
        There is no such table or column, or two columns would have one name.
    TypeError
        The payloads have another type, Spark does not send a kept column to Python, or there is no such option.

    Examples
    --------
    >>> decode_frame(df, "payload", "topology", keep=["time"], columns=["request_id", "fault"])  # doctest: +SKIP
    """
    decoder = Decoder(table, mode=mode, guid=guid, columns=columns, **options)
    kept = (keep,) if isinstance(keep, (Column, str)) else tuple(keep)
    selected = df.select(_column(payload), *kept)
    given, *fields = selected.schema.fields
    if given.dataType != decoder.payload_type:
        there, needed = given.dataType.simpleString(), decoder.payload_type.simpleString()
        raise TypeError(f"the payloads of {table} are {needed}, and this column is {there}")
    schema = _with_kept(fields, decoder)
    # mapInArrow finds columns by name, and fails for duplicate names and names with a dot
    numbered = selected.toDF(*map(str, range(1 + len(fields))))
    return map_in_arrow(numbered, decoder.frame, schema)


def _column(column: Column | str) -> Column:
    return col(column) if isinstance(column, str) else column


def _apply(table: str, payload: Column | str, **settings: Any) -> Column:
    return decoder_udf(table, form="arrow", **settings)(_column(payload))  # type: ignore[no-any-return]


def msmq_decode_topology(
    payload: Column | str,
    *,
    strict: bool = False,
    transport: Literal["unknown", "udp", "ipx"] = "unknown",
    **settings: Unpack[Settings],
) -> Column:
    """Decode MS-MQSD packets into a struct with the columns of the topology table: [MS-MQSD] 2.2.

    Parameters
    ----------
    payload : Column or str
        UDP or IPX payloads, binary. A null payload becomes null.
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
    """
    return _apply("topology", payload, strict=strict, transport=transport, **settings)


def msmq_decode_message(payload: Column | str, *, strict: bool = False, **settings: Unpack[Settings]) -> Column:
    """Decode UserMessage packets into a struct with the columns of the messages table: [MS-MQMQ] 2.2.20.

    Queues are format names. The body of a message to the notify queue, where ``notification`` is ``plain``, is what
    ``msmq_decode_notification`` takes.

    Parameters
    ----------
    payload : Column or str
        Packets as they come over TCP, binary, each with the SessionHeader that follows it. A null payload becomes null.
    mode, guid, columns, strict
        As for ``msmq_decode_topology``.

    Examples
    --------
    >>> messages = df.select(msmq_decode_message("payload").alias("message"))  # doctest: +SKIP
    >>> changes = messages.where("message.notification = 'plain'").select(  # doctest: +SKIP
    ...     msmq_decode_notification("message.body").alias("changes")
    ... )
    """
    return _apply("messages", payload, strict=strict, **settings)


def msmq_decode_notification(payload: Column | str, *, strict: bool = False, **settings: Unpack[Settings]) -> Column:
    """Decode Change Notification Messages into an array of structs, one for each change: [MS-MQCN] 2.2.4.

    The structs have the columns of the notifications table. A message without changes, or with a fault, becomes one
    struct.

    Parameters
    ----------
    payload : Column or str
        Bodies of MSMQ messages, binary. A null payload becomes null.
    mode, guid, columns, strict
        As for ``msmq_decode_topology``.

    Examples
    --------
    >>> changes = df.select(explode(msmq_decode_notification("payload")).alias("change"))  # doctest: +SKIP
    >>> changes.select("change.operation", "change.object_guid")  # doctest: +SKIP
    """
    return _apply("notifications", payload, strict=strict, **settings)


def msmq_parse_format_name(
    text: Column | str,
    *,
    extended: bool = False,
    http_slashes: bool = False,
    spx: bool = False,
    path_names: bool = False,
    **settings: Unpack[Settings],
) -> Column:
    """Parse format names into a struct with the columns of the format_names table: [MS-MQMQ] 2.1.

    Parameters
    ----------
    text : Column or str
        Names, string. A null text becomes null.
    mode, guid, columns
        As for ``msmq_decode_topology``.
    extended, http_slashes, spx, path_names : bool
        As for ``formatname.parse_batch``.

    Examples
    --------
    >>> names = df.select(msmq_parse_format_name("destination_queue").alias("name"))  # doctest: +SKIP
    >>> names.where("name.kind = 'direct'").groupBy("name.address").count()  # doctest: +SKIP
    """
    names = {"extended": extended, "http_slashes": http_slashes, "spx": spx, "path_names": path_names}
    return _apply("format_names", text, **names, **settings)


def msmq_guid_text(
    guid: Column | str,
    *,
    order: GuidOrder = "text",
    mode: FunctionMode = "PERMISSIVE",
) -> Column:
    """Write GUIDs of 16 bytes as canonical lower-case text.

    Parameters
    ----------
    guid : Column or str
        GUIDs, binary. A null becomes null.
    order : {"text", "packet"}
        The byte order: that of the text, as in tables read or decoded with ``guid="binary"``, or that of packets and
        of Active Directory's ``objectGUID`` ([MS-DTYP] 2.3.4.2).
    mode : {"PERMISSIVE", "FAILFAST"}
        Return null for a value that does not have 16 bytes, or fail the job at the first one.

    Examples
    --------
    >>> df.select(msmq_guid_text("enterprise_id").alias("enterprise"))  # doctest: +SKIP
    """
    column: Column = guid_text_udf(order=order, mode=mode)(_column(guid))
    return column
