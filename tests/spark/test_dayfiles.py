"""Parquet files by day: what is written comes back, and no column is encoded in a way that wastes room."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from msmqwire.capture import TABLES
from msmqwire.spark.lake.dayfiles import DayFiles
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.source.scan import ReadingOptions, Scan

EXAMPLES = sorted(map(str, Path(__file__).parents[2].glob("examples/*.pcap*")))
COUNTED = {"frame", "first_frame", "time", "time_ns", "stream_offset"}
DISTINCT = {"request_id", "correlation_id"}


@pytest.mark.parametrize("table", TABLES)
def test_rows_come_back_and_every_column_has_its_encoding(table: str, tmp_path: Path) -> None:
    batches = [batch for path in EXAMPLES for _, batch in Scan(ReadingOptions((table,))).batches(path)]
    with DayFiles(Storage.of(tmp_path), table, batches[0].schema, "snappy", "name") as files:
        for batch in batches:
            files.write(batch)
    paths = [tmp_path / table / file.path for file in files.files]
    assert len({path.parent for path in paths}) == len(paths)
    assert [file.size for file in files.files] == [path.stat().st_size for path in paths]
    read = pa.concat_tables(map(pq.read_table, paths))
    order = [("file", "ascending"), ("frame", "ascending"), ("stream_offset", "ascending")]
    assert read.sort_by(order).equals(pa.Table.from_batches(batches).sort_by(order))

    row_group = pq.ParquetFile(paths[0]).metadata.row_group(0)
    for number in range(row_group.num_columns):
        column = row_group.column(number)
        name = column.path_in_schema
        if name in COUNTED:
            assert "DELTA_BINARY_PACKED" in column.encodings, name
        elif name in DISTINCT or column.physical_type == "BOOLEAN":
            assert "RLE_DICTIONARY" not in column.encodings, name
        else:
            assert "RLE_DICTIONARY" in column.encodings, name
