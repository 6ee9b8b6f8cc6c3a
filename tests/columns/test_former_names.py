"""A column that was renamed can be requested by its former name, with a warning."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from msmqwire import capture, mqqb
from msmqwire.columns import schema
from msmqwire.insight import sql
from tests.cli.support import msmqwire

CAPTURE = "examples/message-session.pcap"
LABELS = ["QM Ordering Ack", "Order 4711"]
#: Without the names that the tests add
FORMER_NAMES = copy.deepcopy(schema.FORMER_NAMES)


@pytest.fixture(autouse=True)
def _renamed_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(schema.FORMER_NAMES, "capture", {"number": "frame"})
    monkeypatch.setitem(schema.FORMER_NAMES, "messages", {"title": "label", "target": "destination_queue"})


@contextmanager
def warned(*former: str) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    assert {str(each.message).split("'")[1] for each in caught} == set(former)
    assert {each.category for each in caught} <= {FutureWarning}


def test_names_of_today_are_not_former_ones() -> None:
    for table, former in FORMER_NAMES.items():
        names = capture.CAPTURE.names if table == "capture" else capture.table_columns(table)
        assert set(former.values()) <= set(names)
        assert not set(former) & set(names)


def test_columns_of_batches() -> None:
    payload = mqqb.encode(mqqb.UserMessage(label="one"))
    with warned("title"):
        batch = mqqb.decode_batch([payload], columns=["priority", "title"])
        assert [*batch.columns] == ["priority", "label"]
        assert batch["title"].text(0) == "one"
        assert batch.is_valid("title").tolist() == [True]
    with warned():
        assert batch["label"].text(0) == "one"
    with pytest.raises(ValueError, match="'caption'"):
        mqqb.decode_batch([payload], columns=["caption"])


def test_columns_of_captures() -> None:
    with warned("title", "number"):
        rows = capture.read_table(CAPTURE, "messages", columns=["title", "number"])
        assert rows.schema.names == ["label", "frame"]
        assert set(LABELS) <= set(rows.to_arrow()["label"].to_pylist())
    with warned("title"):
        tables = capture.read_tables(CAPTURE, ["messages"], columns={"messages": {"title"}})
        assert {name for _, batch in tables for name in batch.schema.names} == {"label"}


def test_sql_shows_the_name_that_it_is_given() -> None:
    with sql.connect(CAPTURE) as database, warned("title", "number"):
        found = database.query("SELECT title, number FROM messages WHERE title <> '' ORDER BY message_id").read_all()
        assert found["title"].to_pylist() == LABELS
        found = database.query("SELECT a.title FROM messages a JOIN messages b ON a.number = b.frame").read_all()
        assert set(LABELS) <= set(found["title"].to_pylist())
    with sql.connect(CAPTURE) as database, warned():
        assert "title" not in database.query("SELECT * FROM messages").read_all().column_names


def test_conditions_and_the_command_line() -> None:
    done = msmqwire(
        *("decode", CAPTURE, "-T", "csv", "--table", "messages", "--columns", "number,title"),
        *("--where", "title LIKE 'Order%' AND lower(target) = target"),
    )
    assert done.returncode == 0, done.stderr
    header, row = done.stdout.decode().splitlines()
    assert header == "frame,label"
    assert row.endswith(",Order 4711")
    notes = [line for line in done.stderr.decode().splitlines() if "former name" in line]
    assert {line.split("'")[1] for line in notes} == {"number", "title", "target"}
    assert all(line.startswith("msmqwire: column ") for line in notes)
