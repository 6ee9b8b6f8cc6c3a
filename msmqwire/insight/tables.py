"""The tables that queries read: their columns, the columns that are derived, and how rows of captures become theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from msmqwire.capture import ALL_TABLES, TABLES, arrow_schema, table_columns
from msmqwire.columns.arrow_arrays import integers
from msmqwire.columns.plain import plain
from msmqwire.insight._suspects import suspects
from msmqwire.insight.bodies import executable_kind
from msmqwire.insight.database import Statement, parse
from msmqwire.insight.deserialization import KINDS, SUSPECT, deserialized_kind
from msmqwire.insight.protocols import protocol_of
from msmqwire.insight.query_files import COLUMN_FILES, VIEW_FILES, Query
from msmqwire.insight.rules import RULES
from msmqwire.mqqb.message.classes import MEANINGS, MESSAGE_CLASSES
from msmqwire.mqqb.schema import MESSAGES
from msmqwire.properties import PROPID_Q_PATHNAME, PROPID_Q_QMID, PROPID_QM_PATHNAME

if TYPE_CHECKING:
    from numpy.typing import NDArray

# pyarrow's stubs do not know functions of arrays and Python values
pc: Any = pyarrow.compute

#: The view of the rows of the tables of packets: their common columns, after ``in_table``.
ALL_ROWS = "all_rows"
#: The view of the packets of findings.
FINDINGS = "findings"
#: The table of streams of MSMQ on ports that were not read, of which a lake has none.
UNREAD = "unread_streams"
UNREAD_COLUMNS = {"protocol": "VARCHAR", "port": "BIGINT", "streams": "BIGINT"}
NAMES = (*ALL_TABLES, ALL_ROWS, UNREAD, *VIEW_FILES, FINDINGS)

# Every row has them: the place orders rows by file and frame
_STORED = ("file", "frame", "place", "time_ns")
_COMMON = ("src", "src_port", "dst", "dst_port", "fault", "violations")
# Their bytes stay outside of the database
_BYTES = frozenset({"body", "compound_body", "unrecognized", "properties", "extension_data"})

# Of 64 bits, which are no quantity
_SEQUENCES = frozenset({"tx_sequence_id", "acknowledged_tx_sequence_id"})


def _expressions(*groups: str) -> dict[str, Query]:
    """The columns that are expressions, of the files GROUP-COLUMN.sql."""
    named = ((query.name.partition("-"), query) for query in COLUMN_FILES)
    return {column: query for (group, _, column), query in named if group in groups}


_OF_MEANINGS = " ".join(f"WHEN {number} THEN '{MEANINGS[name]}'" for number, name in MESSAGE_CLASSES.items())
#: The columns of each table that are expressions over others; their files have titles.
DERIVED: dict[str, dict[str, Query]] = {table: _expressions("every", table) for table in ALL_TABLES}
for _table in ("messages", "sessions"):
    DERIVED[_table] |= _expressions("streams")
DERIVED["messages"]["message_class_meaning"] = Query(
    "message_class_meaning", "", f"CASE message_class {_OF_MEANINGS} END",
    {"title": "what a message of the class reports"}, {},
)  # fmt: skip


def _quoted(name: str) -> str:
    return f'"{name}"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _findings() -> str:
    """The query for the packets of what the rules find."""
    each = (
        f"SELECT '{rule.name}' AS rule, '{rule.severity}' AS severity, {_literal(rule.title)} AS title, src, dst, "
        f"time_ns, place FROM (\n{rule.text}\n) AS found"
        for rule in RULES
    )
    return "\nUNION ALL\n".join(each)


def unread_rows(streams: Mapping[str, int]) -> pa.RecordBatch:
    """Return the rows of ``UNREAD`` from ``CaptureStats.unread_streams``."""
    named = [(*name.rpartition(" on port ")[::2], count) for name, count in streams.items()]
    rows = [{"protocol": protocol, "port": int(port), "streams": count} for protocol, port, count in named]
    return pa.RecordBatch.from_pylist(rows)


#: The tables that are queries over others.
VIEWS: Mapping[str, str] = {FINDINGS: _findings(), **{name: query.text for name, query in VIEW_FILES.items()}}

# Columns that are computed from bytes or properties, block by block


def _matching(column: Any, pattern: str) -> NDArray[np.intp]:
    """The rows of a column that match a regular expression."""
    found = pc.fill_null(pc.match_substring_regex(column, pattern), False)
    return np.flatnonzero(found.to_numpy(zero_copy_only=False))


def _kinds(
    batch: pa.RecordBatch,
    names: Iterable[str],
    suspected: Callable[[Any], NDArray[np.intp]],
    kind_of: Callable[[bytes], str | None],
) -> Any:
    """What the first of some columns has in each row, of the rows that ``suspected`` returns for a column."""
    kinds: list[str | None] = [None] * batch.num_rows
    for name in names:
        column = plain(batch.column(name))
        for row in suspected(column).tolist():
            kinds[row] = kinds[row] or kind_of(column[row].as_py())
    return pa.array(kinds, pa.string())


def _protocols(batch: pa.RecordBatch, _: Any) -> Any:
    return _kinds(batch, ("unrecognized",), lambda column: np.flatnonzero(column.is_valid()), protocol_of)


def _executables(batch: pa.RecordBatch, _: Any) -> Any:
    return _kinds(batch, _BODIES, lambda column: _matching(column, r"\A(MZ|\x7fELF|#!)"), executable_kind)


def _deserialized(batch: pa.RecordBatch, _: Any) -> Any:
    def suspected(column: Any) -> NDArray[np.intp]:
        rows = np.flatnonzero(suspects(column))
        return rows[_matching(column.take(integers(rows)), SUSPECT)]

    return _kinds(batch, _SERIALIZED, suspected, deserialized_kind)


def _expected(batch: pa.RecordBatch, networks: tuple[str, ...]) -> Any:
    if not networks:
        return pa.nulls(batch.num_rows, pa.bool_())
    known = [ip_network(name, strict=False) for name in networks]
    encoded = plain(batch.column("src")).dictionary_encode()
    expected = pa.array([_is_among(address, known) for address in encoded.dictionary.to_pylist()], pa.bool_())
    return expected.take(encoded.indices)


def _is_among(address: str, known: Iterable[Any]) -> bool:
    try:
        return any(ip_address(address) in network for network in known)
    except ValueError:  # IPX
        return False


def _properties_of(batch: pa.RecordBatch) -> Callable[[int, str], Any]:
    """The values of a property in each row, null in rows without it."""
    properties = plain(batch.column("properties"))
    items = pc.list_flatten(properties)
    parents = pc.list_parent_indices(properties).to_numpy(zero_copy_only=False)
    ids = pc.fill_null(pc.struct_field(items, "id"), 0).to_numpy(zero_copy_only=False)

    def values(propid: int, member: str) -> Any:
        chosen = np.flatnonzero(ids == propid)
        at = np.full(batch.num_rows, -1, np.int64)
        at[parents[chosen]] = chosen
        return plain(pc.struct_field(items, member)).take(integers(at, at >= 0))

    return values


def _machine(batch: pa.RecordBatch) -> Any:
    return pc.equal(plain(batch.column("object")), "machine")


def _named_managers(batch: pa.RecordBatch, _: Any) -> Any:
    guid = _properties_of(batch)(PROPID_Q_QMID, "guid")
    return pc.if_else(_machine(batch), plain(batch.column("object_guid")), guid)


def _manager_names(batch: pa.RecordBatch, _: Any) -> Any:
    values = _properties_of(batch)
    paths = (values(PROPID_QM_PATHNAME, "text"), values(PROPID_Q_PATHNAME, "text"), plain(batch.column("path_name")))
    return pc.replace_substring_regex(pc.coalesce(*paths), r"\\.*", "")


#: The length of an envelope, whose overflow CVE-2023-21554 is.
ENVELOPE = "SRMPEnvelopeHeader.DataLength"
# The lengths of what several headers have; of other fields, the schema has them
_LENGTHS = {
    **{
        f"{queues}.FormatNameList": f"{queues}.ElementCount" for queues in ("Destination", "Administration", "Response")
    },
    "MQFSignatureHeader.Signature": "MQFSignatureHeader.Size",
    "SoapHeader.Header": "SoapHeader.HeaderDataLength",
    "SoapBody.Body": "SoapHeader.BodyDataLength",
}


@cache
def length_fields() -> dict[str, str]:
    """The fields of messages that have a length elsewhere, each with the field that is this length."""
    fields = [field for header in MESSAGES.headers for field in header.on_the_wire()]
    names = {field.id: field.name for field in fields if field.id}
    return {**_LENGTHS, **{field.name: names[field.size] for field in fields if field.size in names}}


def _length_fields(batch: pa.RecordBatch, _: Any) -> Any:
    fault = batch.column("fault")
    if fault.null_count == len(fault):
        return pa.nulls(len(fault), pa.string())
    field = pc.replace_substring_regex(plain(pc.struct_field(fault, "field")), r"\[\d+\]", "")
    names = pa.array(length_fields().keys(), pa.string()), pa.array(length_fields().values(), pa.string())
    return pc.coalesce(names[1].take(pc.index_in(field, names[0])), field)


def _first_times(batch: pa.RecordBatch, _: Any) -> Any:
    return plain(batch.column("first_time")).cast(pa.timestamp("ns", "UTC")).cast(pa.int64())


@dataclass(frozen=True)
class Computed:
    """A column that code computes from columns whose bytes stay outside of the database.

    Attributes
    ----------
    type : str
        Of DuckDB.
    needs : tuple of str
        The columns that it is computed from.
    compute : callable
        Returns the column of a batch; its second argument are the expected networks. None for a column that the reader
        of captures adds, null in other rows.
    title : str
        What it is.
    """

    type: str
    needs: tuple[str, ...]
    compute: Callable[[pa.RecordBatch, tuple[str, ...]], Any] | None
    title: str


_BODIES = ("body", "compound_body")
_SERIALIZED = (*_BODIES, "extension_data")
#: The columns of each table that code computes.
COMPUTED: dict[str, dict[str, Computed]] = {
    "topology": {
        "expected": Computed(
            "BOOLEAN", ("src",), _expected, "the sender is among the servers of --expect; null without that option"
        )
    },
    "notifications": {
        "named_manager": Computed(
            "UUID",
            ("object", "object_guid", "properties"),
            _named_managers,
            "the queue manager that a change is about: the machine, or PROPID_Q_QMID of a queue",
        ),
        "manager_name": Computed(
            "VARCHAR", ("path_name", "properties"), _manager_names, "the name of its machine, from path names"
        ),
    },
    "messages": {
        "protocol": Computed(
            "VARCHAR", ("unrecognized",), _protocols, "the protocol of bytes that are no packet, or unknown"
        ),
        "executable": Computed("VARCHAR", _BODIES, _executables, "pe, elf or script where the body is a program"),
        "deserialized": Computed(
            "VARCHAR", _SERIALIZED, _deserialized,
            f"{', '.join(KINDS)} where a .NET program that deserializes the body or the ExtensionData may run "
            "code of its sender",
        ),
        "length_field": Computed(
            "VARCHAR", ("fault",), _length_fields,
            "the field of the fault, or the length of that field where another field has it",
        ),
        "after": Computed(
            "BIGINT", ("fault", "frame", "stream_offset"), None,
            "where the length of an SRMP envelope is at fault, the bytes of the packet after it; null in a lake",
        ),
        "joined": Computed(
            "BOOLEAN", ("unrecognized",), None,
            "the bytes are the first of a stream whose SYN was not captured; null in a lake",
        ),
    },
    "sessions": {},
    "connections": {
        "first_time_ns": Computed(
            "BIGINT", ("first_time",), _first_times, "the time of its first segment, in nanoseconds since 1970"
        )
    },
}  # fmt: skip


def columns_of(table: str) -> dict[str, str]:
    """Return the columns that queries may name in a table, each with what it is if it is derived."""
    if table == ALL_ROWS:
        return {"in_table": "the name of the table", **dict.fromkeys((*_STORED, "time", "minute", *_COMMON), "")}
    if table == UNREAD:
        return {
            "protocol": "what the stream looks like: MSMQ, SRMP over HTTP, an interface of RPC",
            "port": "a port that was not read",
            "streams": "how many there are",
        }
    own = dict.fromkeys((name for name in table_columns(table) if name not in _BYTES), "")
    derived: dict[str, Query | Computed] = {**DERIVED[table], **COMPUTED[table]}
    return {**own, "place": "", "time_ns": "", **{name: each.title for name, each in derived.items()}}


def views_of(statement: Statement) -> dict[str, Statement]:
    """Return the views that a statement names, each after those that it names itself."""
    found: dict[str, Statement] = {}
    for name in {each.text.lower(): None for each in statement.tables}:
        if name in VIEWS:
            view = parse(VIEWS[name])
            assert view is not None
            found |= {**views_of(view), name: view}
    return found


def common_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns of ``all_rows`` after ``in_table``, of which statements use these."""
    return [name for name in columns_of(ALL_ROWS) if name in {*columns, "place", "time_ns"} and name != "in_table"]


def wanted_columns(statement: Statement) -> dict[str, set[str]]:
    """Return the columns of each table that a statement, and the views that it names, name."""
    wanted: dict[str, set[str]] = {}
    for each in (statement, *views_of(statement).values()):
        for table, names in _named_columns(each).items():
            wanted.setdefault(table, set()).update(names)
    return wanted


def _named_columns(statement: Statement) -> dict[str, set[str]]:
    wanted: dict[str, set[str]] = {}
    for name in {each.text.lower() for each in statement.tables} - {*VIEWS, UNREAD}:
        known = columns_of(name)
        found = set(known) if name in statement.stars else set(known) & statement.columns
        for table in TABLES if name == ALL_ROWS else (name,):
            # The view has these columns of all tables
            common = {*_STORED, "time", "minute", *_COMMON} if name == ALL_ROWS else set()
            wanted.setdefault(table, set()).update(found & common if common else found)
    return wanted


def _with_needed(table: str, names: Iterable[str]) -> set[str]:
    """Columns with those that their expressions need."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        if name in DERIVED[table]:
            waiting |= expression_columns(DERIVED[table][name].text) - found
    return found


@cache
def expression_columns(sql: str) -> frozenset[str]:
    """Return the columns that an expression names."""
    statement = parse(f"SELECT {sql}")
    assert statement is not None
    return frozenset(statement.columns)


class StoredTable:
    """A table of the database, with the columns that queries need.

    Attributes
    ----------
    name : str
    read : tuple of str
        The columns to read of captures.
    types : dict of str to str
        The columns that are stored, or that expressions need, and their types in DuckDB.
    """

    def __init__(self, name: str, columns: Iterable[str]) -> None:
        self.name = name
        stored = {"place", "time_ns", *columns}
        names = _with_needed(name, stored)
        self._computed = {column: each for column, each in COMPUTED[name].items() if column in names}
        self._derived = {column: each for column, each in DERIVED[name].items() if column in names}
        known = table_columns(name)
        own = [column for column in known if column in names and column not in (*_STORED, "time")]
        needed = {"file", "frame", "time", *own, *(one for each in self._computed.values() for one in each.needs)}
        self.read = tuple(column for column in known if column in needed)
        schema = arrow_schema(name, own, guid="uuid", dictionaries=False)
        self.types = {column: kind for column, kind in (("file", "VARCHAR"), ("frame", "BIGINT")) if column in names}
        self.types |= {"place": "BIGINT", "time_ns": "BIGINT"}
        self.types |= {column: _duckdb_type(schema.field(column).type) for column in own}
        self.types |= dict.fromkeys(_SEQUENCES.intersection(own), "UBIGINT")
        self.types |= {column: each.type for column, each in self._computed.items()}
        self._stored = [column for column in self.types if column in stored]

    def creation(self) -> str:
        """Return the statement that makes the table, without rows."""
        columns = ", ".join(f'CAST(NULL AS {kind}) AS "{column}"' for column, kind in self.types.items())
        return f"CREATE TABLE {self.name} AS {self._with_derived(f'SELECT {columns}')} LIMIT 0"

    def insertion(self, source: str) -> str:
        """Return the statement that stores the rows of ``prepared``, which are in a table ``source``."""
        columns = ", ".join(f'CAST("{column}" AS {kind}) AS "{column}"' for column, kind in self.types.items())
        return f"INSERT INTO {self.name} {self._with_derived(f'SELECT {columns} FROM {source}')}"

    def _with_derived(self, rows: str) -> str:
        # Stored with the rows, they are computed once; in a view each query would compute, and before plan, them again
        derived = [f'{each.text} AS "{column}"' for column, each in self.derived]
        return f"SELECT {', '.join([*map(_quoted, self._stored), *derived])} FROM ({rows})"

    @property
    def derived(self) -> list[tuple[str, Query]]:
        """The columns that are expressions, each after those that it uses."""
        return _in_order(self._derived)

    @property
    def is_computed(self) -> bool:
        """Whether code computes columns of it."""
        return bool(self._computed)

    def computed(self, batch: pa.RecordBatch, networks: tuple[str, ...]) -> dict[str, Any]:
        """Return the columns of rows that code computes."""
        made: dict[str, Any] = {}
        names = set(batch.schema.names)
        for column, each in self._computed.items():
            if each.compute is not None:
                made[column] = each.compute(batch, networks)
            else:
                made[column] = batch.column(column) if column in names else pa.nulls(batch.num_rows, pa.bool_())
        return made

    def prepared(self, batch: pa.RecordBatch, file_numbers: Any, networks: tuple[str, ...]) -> pa.RecordBatch:
        """Return the columns that are stored of rows; ``file_numbers`` are the numbers of their files."""
        frame = plain(batch.column("frame")).cast(pa.int64()).to_numpy(zero_copy_only=False)
        places = file_numbers << _FILE_BITS | frame
        made = {"place": integers(places), "time_ns": times(batch), **self.computed(batch, networks)}
        columns = [made[column] if column in made else batch.column(column) for column in self.types]
        columns = [
            _as_guid(column) if kind == "UUID" else column
            for column, kind in zip(columns, self.types.values(), strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, list(self.types))


_FILE_BITS = 40


def _starts(rows: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Where the values of each row begin, of values whose rows are in order; and where the last ones end."""
    return np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=count))))


def places_as_frames(places: Any, files: list[str | None], most: int) -> Any:
    """Return lists of places as the first ``most`` files and frames of each list, in order and each once."""
    values = places.flatten().to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(places), 0).to_numpy(zero_copy_only=False)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    if np.any((values[1:] < values[:-1]) & (rows[1:] == rows[:-1])):
        order = np.lexsort((values, rows))
        values, rows = values[order], rows[order]
    first = np.ones(len(values), np.bool_)
    first[1:] = (values[1:] != values[:-1]) | (rows[1:] != rows[:-1])
    values, rows = values[first], rows[first]
    starts = _starts(rows, len(lengths))
    kept = np.arange(len(values)) - starts[rows] < most
    values, rows = values[kept], rows[kept]
    offsets = _starts(rows, len(lengths))
    names = pa.array(files, pa.string()).take(integers(values >> _FILE_BITS))
    frames = integers(values & (1 << _FILE_BITS) - 1)
    return pa.ListArray.from_arrays(
        integers(offsets).cast(pa.int32()), pa.StructArray.from_arrays([names, frames], ["file", "frame"])
    )


def times(batch: pa.RecordBatch) -> Any:
    """Return the times of rows in nanoseconds since 1970; Spark has them apart."""
    if "time_ns" in batch.schema.names:
        return plain(batch.column("time_ns")).cast(pa.int64())
    return batch.column("time").cast(pa.timestamp("ns", "UTC")).cast(pa.int64())


def _in_order(derived: Mapping[str, Query]) -> list[tuple[str, Query]]:
    """Expressions after those that they use."""
    found: dict[str, Query] = {}

    def add(name: str) -> None:
        if name in derived and name not in found:
            for used in sorted(expression_columns(derived[name].text) - {name}):
                add(used)
            found[name] = derived[name]

    for name in derived:
        add(name)
    return list(found.items())


def _duckdb_type(kind: pa.DataType) -> str:
    if isinstance(kind, pa.BaseExtensionType):
        return "UUID"
    if pa.types.is_integer(kind):
        # Signed, so that differences are numbers
        return "INTEGER" if kind.bit_width < 32 else "BIGINT"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ"
    if pa.types.is_list(kind):
        return f"{_duckdb_type(kind.value_type)}[]"
    if pa.types.is_struct(kind):
        members = (f'"{each.name}" {_duckdb_type(each.type)}' for each in kind)
        return f"STRUCT({', '.join(members)})"
    for test, name in (
        (pa.types.is_boolean, "BOOLEAN"), (pa.types.is_floating, "DOUBLE"), (pa.types.is_binary, "BLOB"),
        (pa.types.is_fixed_size_binary, "BLOB"), (pa.types.is_date, "DATE"), (pa.types.is_duration, "INTERVAL"),
    ):  # fmt: skip
        if test(kind):
            return name
    return "VARCHAR"


def _as_guid(column: Any) -> Any:
    """A column of GUIDs, text or 16 bytes, in a form that DuckDB takes as UUID."""
    column = plain(column)
    if pa.types.is_binary(column.type):
        column = column.cast(pa.binary(16))
    if pa.types.is_fixed_size_binary(column.type):
        return pa.ExtensionArray.from_storage(pa.uuid(), column)
    return column
