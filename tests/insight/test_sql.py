"""SQL over captures gives what a filter of all rows gives, decodes what it needs, and cannot leave its captures."""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

duckdb = pytest.importorskip("duckdb")

from msmqwire.capture import ALL_TABLES, TABLES, arrow_schema, read_table, read_tables  # noqa: E402
from msmqwire.insight import sql  # noqa: E402
from msmqwire.insight.sql import Condition, Connection, SqlError, connect  # noqa: E402
from tests.cli.support import run  # noqa: E402
from tests.insight.captures import EXAMPLES, message, stream  # noqa: E402
from tests.insight.captures import write as write_capture  # noqa: E402


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    frames = []
    for number in range(300):
        label = f"Order {number}" if number % 3 else ""
        frames += stream([message(number=number, label=label, body=bytes(number % 50))], port=20000 + number)
    return [write_capture(tmp_path_factory.mktemp("sql") / "messages.pcap", frames), *EXAMPLES]


def rows(captures: list[Path], table: str) -> list[dict[str, Any]]:
    reader = read_table(captures, table, guid="text", dictionaries=False)
    return [row for batch in reader for row in batch.to_pylist()]


def in_sql(row: dict[str, Any]) -> dict[str, Any]:
    """A row with times in microseconds, and the nanoseconds of its time."""
    made: dict[str, Any] = {}
    for name, value in row.items():
        made[name] = value.floor("us") if hasattr(value, "floor") else value
        if name == "time":
            made["time_ns"] = value.value
    return made


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_that_of_the_captures(captures: list[Path], table: str) -> None:
    with connect(captures) as database:
        found = database.query(f"SELECT * FROM {table}").read_all()
        assert [name for name in found.schema.names if name != "time_ns"] == arrow_schema(table).names
        assert found.to_pylist() == list(map(in_sql, rows(captures, table)))
        # Enumerations are texts
        assert not any(pa.types.is_dictionary(field.type) for field in found.schema)


@pytest.mark.parametrize(
    ("where", "is_true"),
    [
        ("label LIKE 'Order%'", lambda row: (row["label"] or "").startswith("Order")),
        (
            "message_size > 30 AND message_id % 2 = 0",
            lambda row: row["message_size"] > 30 and row["message_id"] % 2 == 0,
        ),
        (
            "destination_queue IS NULL OR src = '192.0.2.7'",
            lambda row: row["destination_queue"] is None or row["src"] == "192.0.2.7",
        ),
        ("kind <> 'user_message' OR label = ''", lambda row: row["kind"] != "user_message" or row["label"] == ""),
        (
            "time >= '2024-03-04 08:02:00' AND label = ''",
            lambda row: str(row["time"]) >= "2024-03-04 08:02" and row["label"] == "",
        ),
        (
            "source_queue_manager = '43cd8907-394c-8f11-4445-9078909ea0fc'",
            lambda row: row["source_queue_manager"] == "43cd8907-394c-8f11-4445-9078909ea0fc",
        ),
        ("octet_length(body) = 7", lambda row: len(row["body"]) == 7),
    ],
)
def test_filters_agree_with_python(captures: list[Path], where: str, is_true: Any) -> None:
    """The same filter pushed into a scan, as a condition on batches, and in Python."""
    everything = rows(captures, "messages")
    expected = [row for row in everything if is_true(row)]
    assert 0 < len(expected) < len(everything)
    with connect(captures) as database:
        found = database.query(f"SELECT * FROM messages WHERE {where}").read_all().to_pylist()
        assert found == list(map(in_sql, expected))
    condition = Condition(where)
    found = [
        row
        for batch in read_table(captures, "messages", guid="text", dictionaries=False)
        for row in condition.rows(batch).to_pylist()
    ]
    assert found == expected


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("max(time) - min(time)", 15.5), ("max(time - sent_time)", 43.4), ("max(INTERVAL '2 seconds')", 2000.0),
        ("date_diff('millisecond', min(time), max(time))", 16), ("max(time_ns) - min(time_ns)", 15_500_000),
        ("count(*) FILTER (time - sent_time > INTERVAL '30 milliseconds')", 3),
        ("count(*) FILTER (time - sent_time > INTERVAL '40.3 milliseconds')", 1),
        ("count(*) FILTER (same_name(destination_queue, 'Direct=tcp:10.20.1.25\\PRIVATE$\\orders'))", 1),
        ("count(*) FILTER (destination_queue = 'DIRECT=TCP:10.20.1.25\\PRIVATE$\\orders')", 0),
    ],
)  # fmt: skip
def test_times_and_names_in_sql(expression: str, value: float) -> None:
    with connect(EXAMPLES) as database:
        found = database.query(f"SELECT {expression} AS found FROM messages").read_all()
    assert found["found"].to_pylist() == [value]


@pytest.mark.parametrize("format", ["csv", "json", "table", "parquet"])
def test_a_duration_is_milliseconds_in_every_format(format: str, tmp_path: Path) -> None:
    statement = (
        "SELECT frame, time - sent_time AS late, max(time) OVER () - time AS d FROM messages ORDER BY frame LIMIT 1"
    )
    target = tmp_path / "found"
    assert run("sql", statement, *EXAMPLES, "-q", "-T", format, "-o", target)[0] == 0
    if format == "parquet":
        assert pq.read_table(target).to_pylist() == [{"frame": 10, "late": 27.9, "d": 15.5}]
    else:
        assert {"27.9", "15.5"} <= set(re.findall(r"[\d.]+", target.read_text("utf-8")))


@pytest.mark.parametrize(
    ("where", "frames"),
    [
        ("destination_queue = 'direct=tcp:10.20.1.25\\PRIVATE$\\Orders'", [13]),
        ("destination_queue IN ('x', 'DIRECT=tcp:10.20.1.25\\private$\\orders')", [13]),
        ("destination_queue LIKE '%\\ORDERS'", [13]),
        ("source_queue_manager = '43CD8907-394C-8F11-4445-9078909EA0FC'", [10, 10, 13]),
        ("source_queue_manager <> '43CD8907-394C-8F11-4445-9078909EA0FC'", [14, 15]),
        # Other texts have letters
        ("label = 'ORDER 4711'", []),
        ("label = 'Order 4711'", [13]),
        ("time - sent_time > INTERVAL '38 milliseconds'", [14, 15]),
        ("time - sent_time < INTERVAL '28 milliseconds'", [10, 10]),
        ("time_ns = 1709539320037200000", [13]),
        ("message_identifier = '43CD8907-394C-8F11-4445-9078909EA0FC\\103'", [13]),
    ],
)
@pytest.mark.parametrize("guid", ["text", "uuid"])
def test_conditions_compare_times_and_names(where: str, frames: list[int], guid: Any) -> None:
    condition = Condition(where)
    reader = read_table(EXAMPLES[1], "messages", guid=guid, dictionaries=False)
    assert [frame for batch in reader for frame in condition.rows(batch)["frame"].to_pylist()] == frames


def test_a_query_decodes_the_columns_that_it_needs(captures: list[Path]) -> None:
    with connect(captures) as database:
        database.query("SELECT sum(message_size) FROM messages WHERE label LIKE '%7%'").read_all()
        (reader,) = database.readers
        assert set(reader.tables["messages"].schema.names) == {"message_size", "label"}


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("SELECT count(*) FROM messages", {"frame"}),
        ("SELECT label FROM messages WHERE message_id = 4 AND label <> 'destination_queue'", {"label", "message_id"}),
        ("SELECT m.fault.code FROM messages m ORDER BY time", {"fault", "time"}),
        ("WITH src AS (SELECT label FROM messages) SELECT * FROM src", {"label"}),
        ("SELECT label FROM messages JOIN sessions USING (src)", {"label", "src"}),
        ("SELECT * FROM (SELECT label AS messages FROM messages) ORDER BY messages", {"label"}),
    ],
)
def test_a_statement_reads_the_columns_that_it_names(captures: list[Path], statement: str, columns: set[str]) -> None:
    with connect(captures) as database:
        database.query(statement).read_all()
        (reader,) = database.readers
        assert set(reader.tables["messages"].schema.names) == columns


@pytest.mark.parametrize(
    "statement",
    ["SELECT * FROM messages", "SELECT messages FROM messages", "SELECT COLUMNS('label') FROM messages",
     "SELECT 1 FROM messages NATURAL JOIN sessions", "SELECT m.* FROM sessions, messages m LIMIT 1"],
)  # fmt: skip
def test_a_star_reads_all_columns(captures: list[Path], statement: str) -> None:
    with connect(captures) as database:
        database.query(statement).read_all()
        (reader,) = database.readers
        assert reader.tables["messages"].schema.names == arrow_schema("messages").names


def test_a_table_may_be_used_twice(captures: list[Path]) -> None:
    with connect(captures) as database:
        (count,) = (
            database.query("SELECT count(*) n FROM messages a JOIN messages b USING (src, message_id)")
            .read_all()["n"]
            .to_pylist()
        )
        assert count is not None
        assert count >= len(rows(captures, "messages"))
        assert len(database.readers) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY messages TO '{tmp_path}/x.csv'",
        "ATTACH '{tmp_path}/x.db'",
        "INSTALL httpfs",
        "SELECT * FROM 'http://192.0.2.1/x.csv'",
        "SET enable_external_access = true",
        "SET memory_limit = '64GB'",
        "SELECT * FROM captures",
    ],
)
def test_a_statement_cannot_leave_its_captures(captures: list[Path], tmp_path: Path, statement: str) -> None:
    with connect(captures) as database, pytest.raises(SqlError):
        database.query(statement.replace("{tmp_path}", str(tmp_path))).read_all()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("files", [False, True])
def test_variables_of_the_program_are_no_tables(captures: list[Path], files: bool) -> None:
    secret = pa.table({"word": ["secret"]})
    with connect(captures, files=files) as database, pytest.raises(SqlError, match="secret"):
        database.query("SELECT word FROM secret").read_all()
    assert secret.num_rows == 1


def test_files_may_be_allowed(captures: list[Path], tmp_path: Path) -> None:
    with connect(captures, files=True) as database:
        database.query(f"COPY (SELECT label FROM messages) TO '{tmp_path}/labels.csv'").read_all()
    assert (tmp_path / "labels.csv").read_text().splitlines()[0] == "label"
    assert "Order 4\n" in (tmp_path / "labels.csv").read_text()


def test_batches_have_the_schema_and_the_rows(captures: list[Path]) -> None:
    statement = "SELECT label FROM messages WHERE label = 'Order 4'"
    with connect(captures) as database:
        schema, found = database.batches(statement)
        assert [row for batch in found for row in batch.to_pylist()] == [{"label": "Order 4"}]
        assert schema == pa.schema([("label", pa.string())])
        with pytest.raises(SqlError, match="Could not convert string"):
            list(database.batches("SELECT CAST(label AS INT) FROM messages")[1])
        with pytest.raises(SqlError, match="Could not convert string"):
            database.query("SELECT CAST(label AS INT) FROM messages").read_all()
        with pytest.raises(SqlError, match="the statement has no result; write a SELECT"):
            database.query("-- nothing")


def _interrupting(work: Any) -> Any:
    """The function, before which the main thread gets an interrupt."""

    def interrupting(*values: Any) -> Any:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return work(*values)

    return interrupting


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals of threads")
@pytest.mark.parametrize("where", ["md5(x::VARCHAR) = label", "x < 3"])
@pytest.mark.parametrize(
    "read", [lambda *query: list(Connection.batches(*query)[1]), lambda *query: Connection.query(*query).read_all()],
    ids=["batches", "query"],
)  # fmt: skip
def test_an_interrupt_ends_a_query(
    captures: list[Path], read: Callable[[Connection, str], Any], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement of the first case would take years."""
    monkeypatch.setattr(sql, "read_tables", _interrupting(read_tables))
    statement = f"SELECT count(*) FROM messages, range(1000000000000000) r(x) WHERE {where}"
    with connect(captures) as database, pytest.raises(KeyboardInterrupt):
        read(database, statement)


def test_a_connection_is_closed_with_its_block(captures: list[Path]) -> None:
    with connect(captures) as database:
        assert database.query("SELECT 1 AS one").read_all()["one"].to_pylist() == [1]
    with pytest.raises(SqlError, match="closed"):
        database.query("SELECT 1")


def test_without_duckdb(captures: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for make in (lambda: connect(captures), lambda: Condition("label = ''")):
        with pytest.raises(SqlError, match="duckdb"):
            make()


def test_errors_are_one_line(captures: list[Path]) -> None:
    with connect(captures) as database:
        for statement, complaint in (
            ("SELECT lable FROM messages", 'column "lable" not found'),
            ("SELEC", "syntax error"),
            ("SELECT * FROM message", "no table is called message; there is topology"),
        ):
            with pytest.raises(SqlError) as caught:
                database.query(statement).read_all()
            assert complaint in str(caught.value)
            assert "\n" not in str(caught.value)


def test_a_condition_of_no_rows(captures: list[Path]) -> None:
    condition = Condition("label = 'Order 4'")
    batch = next(iter(read_table(captures, "messages", columns=["label"], dictionaries=False)))
    assert condition.rows(batch).to_pylist() == [{"label": "Order 4"}]
    assert condition.rows(batch.slice(0, 0)).equals(batch.slice(0, 0))


@pytest.mark.parametrize(
    "text", ["count(*) > 0", "max(frame) > 1", "row_number() OVER () = 1", "unnest([frame > 0, frame > 1])", " "]
)
def test_a_condition_of_more_than_a_row_is_refused(captures: list[Path], text: str) -> None:
    """Batches are judged one by one, so it would hold within each of them."""
    batch = next(iter(read_table(captures, "messages", columns=["frame"], dictionaries=False)))
    with pytest.raises(SqlError, match=r"aggregate|window|UNNEST|empty"):
        Condition(text).rows(batch)


def test_a_condition_knows_its_tables() -> None:
    assert Condition("label = 'servers'").tables == ("messages",)
    assert Condition("label = 'servers' AND src = ''").columns("messages") == ("src", "label")
    assert Condition("SRC = '10.0.0.1'").tables == tuple(ALL_TABLES)
    with pytest.raises(SqlError, match="no table has all of these columns: label, servers"):
        Condition("label = servers")


@pytest.mark.parametrize("text", ["label =", "label LIKE", "lower(label, 2)", "1) FROM rows; DROP TABLE rows; --"])
def test_a_condition_that_is_none(text: str) -> None:
    condition = Condition(text)
    with pytest.raises(SqlError):
        condition.check(arrow_schema("messages", guid="text", dictionaries=False))
