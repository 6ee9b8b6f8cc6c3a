"""``msmqwire sql`` and ``msmqwire decode --where``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from msmqwire.capture import TABLES, table_columns
from tests.cli.support import EXAMPLES, msmqwire, refused, run

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


def test_a_statement_out_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "count.sql").write_text("SELECT count(*) AS n\nFROM sessions")
    _, output, _ = run("sql", f"@{tmp_path / 'count.sql'}", SESSION, "-T", "json", "-q")
    assert json.loads(output) == {"n": 7}


def test_losses_are_reported(tmp_path: Path) -> None:
    status, _, errors = run("sql", "SELECT src FROM topology", EXAMPLES / "other-site.pcapng", "-T", "json")
    assert status == 2
    assert "3 payloads with faults" in errors


def test_a_selection_holds() -> None:
    _, output, _ = run("sql", "SELECT DISTINCT src FROM messages", SESSION, "--until", "2024-03-04T08:02:00.03", "-q")
    assert json.loads(output) == {"src": "10.20.1.10"}


def test_what_is_refused(tmp_path: Path) -> None:
    assert "may read its captures more than once" in refused("sql", "SELECT 1", "-")
    assert "file system operations are disabled" in refused("sql", "FROM read_text('/etc/passwd')", SESSION)
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
