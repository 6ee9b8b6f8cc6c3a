"""A Parquet file of row groups that were encoded apart equals the file that pyarrow writes of them."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from msmqwire import capture
from msmqwire.capture._footers import Footer
from msmqwire.capture.parquet import parquet_writer
from msmqwire.capture.row_groups import RowGroups

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.pcap*"))


@pytest.mark.parametrize(
    ("name", "count"),
    [*((name, 3) for name in capture.TABLES), *(("sessions", count) for count in (0, 1, 14, 15, 140))],
)
def test_the_file_has_the_same_bytes(name: str, count: int) -> None:
    table = pa.table(capture.read_table(EXAMPLES, name, guid="text", dictionaries=False))
    rows = [table.slice(number % len(table), 1 + number % 3) for number in range(count)]
    expected, found = io.BytesIO(), io.BytesIO()
    with parquet_writer(expected, table.schema) as writer:
        for each in rows:
            writer.write_table(each)
    groups = RowGroups(found, table.schema)
    for encoded in [groups.encode(each) for each in rows]:
        groups.append(encoded)
    groups.close()
    assert found.getvalue() == expected.getvalue()
    found.seek(0)
    assert pq.read_table(found).equals(pa.concat_tables([table.slice(0, 0), *rows]))


def test_footers_that_are_none() -> None:
    """They are pyarrow's, so an error says that it writes others."""
    table = pa.table({"frame": [1]})
    encoded = bytes(RowGroups(io.BytesIO(), table.schema).encode(table))
    footer = encoded[-8 - int.from_bytes(encoded[-8:-4], "little") : -8]
    rows, entry = Footer(footer).row_group(0, 0)
    assert (rows, entry in footer) == (1, True)
    for size in range(len(footer)):
        with pytest.raises(ValueError, match="the footer of a Parquet file ends inside a value"):
            Footer(footer[:size]).row_group(0, 0)
    with pytest.raises(ValueError, match="the footer of a Parquet file has a value of type 11"):
        Footer(b"\x1b").row_group(0, 0)
