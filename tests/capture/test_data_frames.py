"""Tables of captures at the Python prompt: in memory, as pandas and as polars, and never empty in silence."""

from __future__ import annotations

import io
import subprocess
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from msmqwire import capture, mqqb
from tests.capture import build

EXAMPLES = Path(__file__).parents[2] / "examples"
OTHER = EXAMPLES / "other-site.pcapng"
SESSION = EXAMPLES / "message-session.pcap"


def rows(path: Path = OTHER, table: str = "topology", **options: Any) -> list[dict[str, Any]]:
    return capture.read_table(path, table, guid="text", **options).to_arrow().to_pylist()


@pytest.mark.parametrize(("path", "table"), [(OTHER, "topology"), (SESSION, "notifications"), (SESSION, "messages")])
def test_guids_are_text_in_data_frames(path: Path, table: str) -> None:
    expected = rows(path, table)
    frame = capture.read_table(path, table).to_polars()
    assert frame.to_dicts() == pl.from_dicts(expected, schema=frame.schema).to_dicts()
    named = capture.read_table(path, table).to_pandas()
    assert list(named.columns) == list(expected[0])
    guids = [name for name in ("request_id", "object_guid", "source_queue_manager") if name in named]
    # A text that is missing is None, and NaN from pandas 3 on
    found = [[None if pd.isna(value) else value for value in named[name]] for name in guids]
    assert found == [[row[name] for row in expected] for name in guids]
    assert any(uuid.UUID(value) for values in found for value in values if value)


@pytest.mark.parametrize(
    "read", [list, pa.table, pl.DataFrame, capture.TableReader.to_arrow, capture.TableReader.to_pandas]
)
def test_rows_that_were_read_are_an_error(read: Any) -> None:
    reader = capture.read_table(OTHER)
    assert sum(map(len, reader)) == 10
    with pytest.raises(RuntimeError, match="open the capture again"):
        read(reader)


def test_payloads_that_were_read_are_an_error() -> None:
    with capture.open(OTHER) as blocks:
        assert sum(map(len, blocks)) > 0
        with pytest.raises(RuntimeError, match="read once: open the capture again"):
            list(blocks)


def test_reading_may_pause() -> None:
    reader = capture.read_table(OTHER, block_size=4096)
    first = next(iter(reader))
    assert len(first) + len(reader.to_arrow()) == 10


def test_columns_come_in_the_requested_order() -> None:
    reader = capture.read_table(OTHER, columns=["servers", "frame", "servers", "type"])
    assert reader.schema.names == ["servers", "frame", "type"]
    assert {tuple(batch.schema.names) for batch in reader} == {("servers", "frame", "type")}
    frame = capture.read_table(OTHER, columns=["request_id", "frame"]).to_pandas()
    assert list(frame.columns) == ["request_id", "frame"]


def test_wide_numbers_with_nulls_are_exact() -> None:
    """The ordinal of a sequence is in the low bits, which a float does not have."""
    numbers = [(1 << 62) + 1, None, (1 << 62) + 2]
    headers = [
        None if number is None else mqqb.TransactionHeader(tx_sequence_id=number, tx_sequence_number=1)
        for number in numbers
    ]
    packets = b"".join(mqqb.encode(mqqb.UserMessage(transaction=header)) for header in headers)
    data = build.pcap([build.segment(packets, 1)])
    names = ["tx_sequence_id", "frame"]
    frame = capture.read_table(io.BytesIO(data), "messages", columns=names).to_pandas()
    assert list(frame.columns) == names
    assert [None if number is pd.NA else number for number in frame["tx_sequence_id"]] == numbers
    assert frame["frame"].dtype == np.uint64
    plain = capture.read_table(io.BytesIO(data), "messages", columns=names).to_pandas(integer_object_nulls=True)
    assert plain["tx_sequence_id"].tolist() == numbers


def test_files_of_one_name_are_in_the_dictionary_once() -> None:
    """A packet may be given up in a later file than the one it is in; file objects may have no names."""
    packet = mqqb.encode(mqqb.UserMessage(label="whole"))
    files = [build.pcap([build.segment(data, 1, 0x18, port)]) for data, port in ((packet[:99], 40001), (packet, 40002))]
    (batch,) = capture.read_table(map(io.BytesIO, files), "messages", columns=["file", "fault"])
    names = batch["file"]
    assert isinstance(names, pa.DictionaryArray)
    assert names.dictionary.to_pylist() == ["<stream>"]
    assert batch["file"].to_pylist() == ["<stream>"] * 2
    assert capture.read_table(map(io.BytesIO, files), "messages").to_pandas()["file"].tolist() == ["<stream>"] * 2


def test_times_are_text_or_datetimes() -> None:
    times = [row["time"] for row in rows()]
    middle = times[len(times) // 2]
    text, moment = middle.isoformat(), datetime.fromisoformat(str(middle)).replace(tzinfo=UTC)
    assert 0 < len(rows(since=text)) < len(times)
    assert rows(since=text) == rows(since=moment)
    assert rows(until=text) == rows(until=moment)
    with pytest.raises(ValueError, match="'yesterday' is not an ISO 8601 time"):
        capture.read_table(OTHER, since="yesterday")


@pytest.mark.parametrize(
    ("absent", "use", "installs"),
    [
        ("pyarrow", lambda: capture.open("s3://bucket/a.pcap"), r"'pyarrow>=\d+', or all of msmqwire\[tables\]"),
        ("pyarrow", lambda: capture.read_table(OTHER), r"'pyarrow>=\d+', or all of msmqwire\[tables\]"),
        ("pandas", lambda: capture.read_table(OTHER).to_pandas(), r"'pandas\S*', or all of msmqwire\[pandas\]"),
        ("polars", lambda: capture.read_table(OTHER).to_polars(), r"'polars\S*', or all of msmqwire\[polars\]"),
    ],
)
def test_what_is_not_installed_is_named(absent: str, use: Any, installs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(ModuleNotFoundError, match=rf"needs {absent}, which is not installed: pip install {installs}$"):
        use()


def test_insight_without_pyarrow() -> None:
    program = "import sys; sys.modules['pyarrow'] = None; from msmqwire.insight import summarize"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "msmqwire.insight.summarize needs pyarrow, which is not installed" in done.stderr
