"""``msmqwire sql`` and ``msmqwire decode --where``."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from msmqwire.capture import TABLES, table_columns
from tests.cli.support import EXAMPLES, msmqwire, process, refused, run
from tests.effort import long_cases

duckdb = pytest.importorskip("duckdb")
SESSION = EXAMPLES / "message-session.pcap"


def test_rows_in_each_format(tmp_path: Path) -> None:
    statement = "SELECT message_id, label FROM messages WHERE label LIKE 'Order%'"
    status, output, errors = run("sql", statement, SESSION, "-T", "json")
    assert (status, json.loads(output)) == (0, {"message_id": 103, "label": "Order 4711"})
    assert errors.splitlines()[-1] == "1 row"
    _, output, _ = run("sql", statement, SESSION, "-T", "csv", "-q")
    assert list(csv.reader(io.StringIO(output))) == [["message_id", "label"], ["103", "Order 4711"]]
    assert run("sql", statement, SESSION, "-o", tmp_path / "x.parquet", "-q") == (0, "", "")
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == [{"message_id": 103, "label": "Order 4711"}]
    _, output, _ = run("sql", statement, SESSION, "-T", "table", "-q")
    assert "Order 4711" in output


def test_a_process_answers() -> None:
    """A process hides pandas from pyarrow, which other tests of statements, in this process, do not."""
    done = process("sql", "SELECT count(*) AS n FROM messages", SESSION, "-q", "-T", "json")
    assert (done.returncode, done.stdout, done.stderr) == (0, b'{"n":5}\n', b"")


STATEMENT_VALUES = [
    ("sum(packet_size)", 4928, "4928"),
    ("18446744073709551615::UBIGINT", 18446744073709551615, "18446744073709551615"),
    ("'nan'::DOUBLE", "nan", "nan"),
    ("[1.50::DECIMAL(5, 2), NULL]", [1.5, None], '"[1.50,null]"'),
    ("TIMESTAMP '3000-01-01'", "3000-01-01T00:00:00.000000Z", "3000-01-01T00:00:00.000000Z"),
    ("MAP {'k': 1}", [["k", 1]], None),
    *long_cases(
        [
            ("avg(message_size) = 0", None, None),
            ("2::HUGEINT ** 2 + 18446744073709551615::UBIGINT", None, None),
            ("170141183460469231731687303715884105727", 170141183460469231731687303715884105727, None),
            ("0.5::DOUBLE", 0.5, "0.5"),
            ("DATE '2024-03-04'", "2024-03-04", "2024-03-04"),
            ("TIME '10:00'", "10:00:00", "10:00:00"),
            ("'a'::ENUM ('a', 'b')", "a", "a"),
            ("array_value(1, 2)", [1, 2], '"[1, 2]"'),
            ("NULL", None, ""),
        ]
    ),
]


@pytest.mark.parametrize(("value", "in_json", "in_csv"), STATEMENT_VALUES)
def test_values_that_no_table_has(value: str, in_json: Any, in_csv: str | None) -> None:
    statement = f"SELECT {value} AS x FROM messages"
    statement += "" if value.startswith(("sum", "avg")) else " LIMIT 1"
    for format in ("json", "csv", "table", "brief"):
        status, output, _ = run("sql", statement, SESSION, "-q", "-T", format)
        assert status == 0
        if format == "json" and in_json is not None:
            assert json.loads(output) == {"x": in_json}
        if format == "csv" and in_csv is not None:
            assert output == f"x\r\n{in_csv}\r\n"


def test_names_of_columns_of_statements() -> None:
    """DuckDB names a column by its expression, and those of a join alike."""
    statement = "SELECT max(src || ',') , 1 AS x, 2 AS x, 3 AS \"=x\" FROM messages"
    assert run("sql", statement, SESSION, "-q", "-T", "csv")[1].splitlines()[0] == ("\"max((src || ','))\",x,x_1,'=x")
    joined = "SELECT m.frame, s.frame FROM messages m JOIN sessions s USING (src) LIMIT 1"
    for format in ("json", "table", "brief"):
        status, output, _ = run("sql", joined, SESSION, "-q", "-T", format)
        assert (status, "frame_1" in output) == (0, True)


def test_a_type_that_parquet_lacks(tmp_path: Path) -> None:
    target = tmp_path / "x.parquet"
    status, _, errors = run("sql", "SELECT [INTERVAL 1 DAY] AS x", SESSION, "-q", "-o", str(target))
    assert (status, "parquet has no type for a column of the result" in errors) == (1, True)
    assert not target.exists()


def test_a_statement_out_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "count.sql").write_text("SELECT count(*) AS n\nFROM sessions")
    _, output, _ = run("sql", f"@{tmp_path / 'count.sql'}", SESSION, "-T", "json", "-q")
    assert json.loads(output) == {"n": 7}
    expected = (1, "", f"msmqwire: {SESSION}: is not UTF-8 text; expected a statement\n")
    assert run("sql", f"@{SESSION}", SESSION) == expected
    if os.path.exists("/dev/zero"):
        assert "has more than 268,435,456 bytes" in run("sql", "@/dev/zero", SESSION)[2]


def test_losses_are_reported(tmp_path: Path) -> None:
    status, _, errors = run("sql", "SELECT src FROM topology", EXAMPLES / "other-site.pcapng", "-T", "json")
    assert status == 2
    assert "3 payloads with faults" in errors


def test_a_selection_holds() -> None:
    _, output, _ = run("sql", "SELECT DISTINCT src FROM messages", SESSION, "--until", "2024-03-04T08:02:00.03", "-q")
    assert json.loads(output) == {"src": "10.20.1.10"}


def test_what_is_refused(tmp_path: Path) -> None:
    assert "file system operations are disabled" in refused("sql", "FROM read_text('/etc/passwd')", SESSION)
    expected = "msmqwire: no table is called nope; there is topology, notifications, messages, sessions, connections\n"
    assert refused("sql", "FROM nope", SESSION) == expected
    assert "no table is called x y; there is topology" in refused("sql", 'FROM sessions JOIN "x y" ON true', SESSION)
    assert 'Referenced column "lable" not found' in refused("sql", "SELECT lable FROM messages", SESSION)


def test_files_are_written_only_if_allowed(tmp_path: Path) -> None:
    statement = f"COPY (SELECT label FROM messages) TO '{tmp_path / 'x.csv'}'"
    refused("sql", statement, SESSION)
    assert not (tmp_path / "x.csv").exists()
    assert run("sql", statement, SESSION, "--allow-files", "-q")[0] == 0
    assert "Order 4711" in (tmp_path / "x.csv").read_text()


def test_decode_where() -> None:
    of_orders = ("--where", "label LIKE 'Order%'", "--columns", "dst,label")
    status, output, errors = run("decode", SESSION, *of_orders, "-T", "json")
    assert (status, json.loads(output)) == (0, {"dst": "10.20.1.25", "label": "Order 4711"})
    assert errors.splitlines()[-1] == "--where is true for 1 row"
    _, output, _ = run("decode", SESSION, "--where", "src = '10.20.1.25'", "-T", "json", "-q")
    rows = [json.loads(line) for line in output.splitlines()]
    assert {row["table"] for row in rows} == {"notifications", "messages", "sessions"}
    assert {row["src"] for row in rows} == {"10.20.1.25"}
    _, output, _ = run("decode", SESSION, "--where", "src = '10.20.1.25'", "-T", "json", "-q", "-n", "2")
    assert len(output.splitlines()) == 2
    _, output, _ = run("decode", SESSION, "--where", "message_id = 103", "-T", "brief", "-q")
    assert len(output.splitlines()) == 1


def test_a_condition_that_is_refused() -> None:
    for condition, complaint in (
        ("lable = 1", '--where: Binder Error: Referenced column "lable" not found'),
        ("label = servers", "no table has all of these columns: label, servers"),
        ("label =", "--where: Parser Error"),
    ):
        assert complaint in refused("decode", SESSION, "--where", condition)
    message = refused("decode", SESSION, "--where", "label = 'x'", "--table", "topology")
    assert "--where label = 'x': topology lacks columns of the condition" in message


def test_the_columns_that_need_quotes_are_those_of_the_help() -> None:
    """Names of columns that are reserved words of SQL."""
    query = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
    reserved = {name for (name,) in duckdb.sql(query).fetchall()}
    assert {name for table in TABLES for name in table_columns(table) if name in reserved} == {"trailing"}
    assert "column trailing has the name of a reserved word" in msmqwire("sql", "--help").stdout.decode()


def test_standard_input_is_read_once() -> None:
    statement = "SELECT count(*) n FROM messages a JOIN messages b USING (message_id)"
    done = msmqwire("sql", statement, "-", "-q", "-T", "json", input=SESSION.read_bytes())
    assert json.loads(done.stdout)["n"] >= 5
