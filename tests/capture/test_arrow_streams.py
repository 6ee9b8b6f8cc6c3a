"""Readers as Arrow streams: what other libraries make of them, with default arguments."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from benchmarks.messages import user_messages
from benchmarks.streams import write_streams
from msmqwire import capture, mqsd
from msmqwire.capture import TABLES

WITH_LISTS = ("topology", "notifications")  # of GUIDs
CAPTURES = ["examples/local-site.pcap", "examples/message-session.pcap"]


def reader(table: str) -> capture.TableReader:
    return capture.read_table(CAPTURES, table)


def duckdb_rows(table: str) -> int:
    duckdb = pytest.importorskip("duckdb")
    rows = reader(table)  # noqa: F841 (found by its name)
    return len(duckdb.sql("select * from rows").fetchall())


CONSUMERS: dict[str, Callable[[str], int]] = {
    "pyarrow": lambda table: pa.table(reader(table)).num_rows,
    "stream": lambda table: sum(map(len, pa.RecordBatchReader.from_stream(reader(table)))),
    "pandas": lambda table: len(pa.table(reader(table)).to_pandas()),
    "batches": lambda table: sum(len(batch.to_pandas()) for batch in reader(table)),
    "polars": lambda table: len(pl.DataFrame(reader(table))),
    "duckdb": duckdb_rows,
}
if hasattr(pd.DataFrame, "from_arrow"):  # pandas 3
    CONSUMERS["from_arrow"] = lambda table: len(pd.DataFrame.from_arrow(reader(table)))  # type: ignore[attr-defined]


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("table", TABLES)
def test_consumers_read_every_table(consumer: str, table: str) -> None:
    expected = sum(map(len, reader(table)))
    assert CONSUMERS[consumer](table) == expected > 0


@pytest.mark.parametrize("guid", ["binary", "text", "uuid"])
@pytest.mark.parametrize("table", TABLES)
def test_pandas_takes_guids(table: str, guid: Any) -> None:
    rows = pa.table(capture.read_table(CAPTURES, table, guid=guid))
    # pyarrow cannot convert lists of uuid, as docs/columns.md says; when it can, this fails and the sentence goes
    refused = pytest.raises(pa.ArrowNotImplementedError)
    with refused if guid == "uuid" and table in WITH_LISTS else nullcontext():
        assert len(rows.to_pandas()) == len(rows)


@pytest.mark.parametrize("table", TABLES)
def test_the_schema_is_known_before_reading(table: str) -> None:
    with reader(table) as rows:
        schema = pa.schema(rows)  # type: ignore[arg-type]  # the stub knows no __arrow_c_schema__
        assert schema == rows.schema == capture.arrow_schema(table)


def test_polars_reads_a_batch_as_a_record_batch() -> None:
    with capture.open(CAPTURES, ports=[1801]) as blocks:
        batch: Any = mqsd.decode_batch(next(blocks).payloads)
    expected = pl.from_arrow(batch.to_arrow())
    assert isinstance(expected, pl.DataFrame)
    assert pl.DataFrame(batch).equals(expected)
    series: Any = pl.from_arrow(batch)  # of structs, as from any object that is not of pyarrow's classes
    assert series.struct.unnest().equals(expected)


def test_few_values_take_little_memory_in_pandas(tmp_path: Path) -> None:
    """Columns of names and addresses are categories: ten columns of 750,000 messages take less than 30 MB."""
    path = tmp_path / "streams.pcap"
    write_streams(path, 25 * list(user_messages(400).split()))
    names = ["file", "src", "dst", "transport", "kind", "destination_queue"]
    columns = [*names, "frame", "time", "src_port", "dst_port"]
    with capture.read_table(path, "messages", columns=columns) as reader:
        rows = pa.table(reader).to_pandas()
        assert (len(rows), reader.faults.total()) == (10_000, 0)
        assert rows.notna().all(axis=None)
    assert all(isinstance(rows[name].dtype, pd.CategoricalDtype) for name in names)
    assert rows.memory_usage(deep=True).sum() < 30e6 / 750_000 * len(rows)


@pytest.mark.parametrize("dictionaries", [True, False])
def test_dictionaries_can_be_switched_off(dictionaries: bool) -> None:
    with capture.read_table(CAPTURES, "messages", dictionaries=dictionaries) as rows:
        found = {field.name for field in rows.schema if pa.types.is_dictionary(field.type)}
        assert pa.table(rows).num_rows
    assert {"file", "src", "dst", "kind"} <= found if dictionaries else not found
