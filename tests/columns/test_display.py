"""Batches and payloads at a prompt, in notebooks and pickled."""

from __future__ import annotations

import copy
import pickle
from html.parser import HTMLParser
from typing import Any

import pytest

from msmqwire import Payloads, capture, formatname, mqcn, mqqb, mqsd
from msmqwire.columns import BytesColumn, ListColumn, TextColumn, Utf8Column
from msmqwire.columns.display import names_shown
from tests.columns.formats import FORMATS, Format
from tests.columns.processes import run
from tests.vectors import get

HOSTILE = mqqb.encode(mqqb.UserMessage(label="<script>&\"'", body=b"x" * 1000))


class Tags(HTMLParser):
    """The tags and the cells of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.rows = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.rows += tag == "tr"


def test_five_names_of_columns_are_shown() -> None:
    names = ["file", "frame", "time", "src", "dst"]
    assert names_shown(names) == "5 columns (file, frame, time, src, dst)"
    assert names_shown([*names, "type"]) == "6 columns (file, frame, time, src, dst, ...)"


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_a_batch_shows_its_first_rows(kind: Format) -> None:
    batch = kind.decode_batch([*kind.packets, *kind.cases(300, 5)])
    text = batch._repr_html_()
    found = Tags()
    found.feed(text)
    assert found.tags <= {"p", "table", "thead", "tbody", "tr", "th", "td"}
    assert found.rows == 11
    assert len(text) < 20_000
    assert batch._ipython_key_completions_() == list(batch.columns)
    assert f"{len(batch)} {batch.table.name} rows, {len(batch.columns)} columns" in repr(batch)
    assert f"{len(batch.faults)} with faults" in repr(batch)
    empty = kind.decode_batch([])
    assert "Batch of 0" in empty._repr_html_()


@pytest.mark.parametrize("kind", FORMATS, ids=str)
def test_columns_as_python_values_are_those_of_arrow(kind: Format) -> None:
    """Arrow has nulls where a view has an empty value."""
    batch = kind.decode_batch([*kind.packets, *kind.cases(300, 5), None])
    arrow = batch.to_arrow(dictionaries=False)
    compared = 0
    for name in batch.columns:
        column, expected = batch[name], arrow[name].to_pylist()
        if isinstance(column, TextColumn | BytesColumn | Utf8Column):
            found = column.to_pylist()
            assert len(found) == len(expected)
            assert repr(column) == f"<{type(column).__name__} of {len(expected)} values>"
            pairs = [(mine, theirs) for mine, theirs in zip(found, expected, strict=True) if theirs is not None]
            assert all(mine == theirs or "\ufffd" in str(theirs) for mine, theirs in pairs)
            assert {mine for mine, theirs in zip(found, expected, strict=True) if theirs is None} <= {"", b"", None}
            compared += 1
        elif isinstance(column, ListColumn):
            assert [len(items) for items in column.to_pylist()] == [len(items or ()) for items in expected]
            compared += 1
    assert compared


def test_columns_are_equal_to_themselves_alone() -> None:
    """Their arrays have no one truth value."""
    batch = mqcn.decode_batch([])
    for name in ("properties", "path_name"):
        first, second = batch[name], mqcn.decode_batch([])[name]
        assert len({first, second}) == 2
        assert first == first
        assert first != second


def test_the_values_of_lists() -> None:
    data = get("mqsd", "reply-many-servers").data
    batch = mqsd.decode_batch([data])
    (arrow,) = batch.to_arrow()["servers"].to_pylist()
    assert batch["servers"].to_pylist() == [arrow]
    (networks,) = batch["connected_networks"].to_pylist()
    reply = mqsd.decode(data)
    assert isinstance(reply, mqsd.TopologyServerReply)
    assert networks == [each.tobytes() for each in reply.connected_networks]


def test_tables_fit_a_line() -> None:
    assert repr(mqsd.TOPOLOGY) == f"<Table topology: {len(mqsd.TOPOLOGY.names)} columns, [MS-MQSD] 2.2>"
    assert all(len(repr(kind)) < 500 for kind in capture.TABLES.values())


def test_text_of_a_packet_is_escaped() -> None:
    text = mqqb.decode_batch([HOSTILE], columns=["label"])._repr_html_()
    assert "&lt;script&gt;&amp;" in text
    assert "<script" not in text
    assert "more columns" not in text


def test_the_first_rows_are_those_of_the_batch() -> None:
    batch = mqqb.decode_batch([HOSTILE, b"", None] * 20, columns=["label", "fault", "violations"])
    assert batch._repr_html_().count("truncated") == 3
    assert batch["label"].text(57) == "<script>&\"'"
    assert formatname.parse_batch([r"DIRECT=OS:srv1\orders"])["queue"].text(0) == "orders"


def test_a_batch_with_derived_columns_is_shown() -> None:
    batch = mqqb.decode_batch([HOSTILE] * 20)
    expected = batch._repr_html_()
    assert len(batch["body_text"]) == len(batch["sender_sid"]) == 20
    assert batch._repr_html_() == expected


def test_nanoseconds_are_shown_without_pandas() -> None:
    script = """
import io, sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
from msmqwire import capture
from tests.capture import build
(block,) = capture.open(io.BytesIO(build.pcap([build.plain(b"x" * 60)], nano=True)))
print(block.capture._repr_html_())
"""
    assert "<td>2024-03-04T08:00:00.123456789Z</td>" in run("-c", script)


def test_more_columns_than_a_page_shows() -> None:
    text = mqqb.decode_batch([HOSTILE])._repr_html_()
    assert text.count("<th>") == 12
    assert "more columns with values" in text


def test_names_of_types() -> None:
    names = {column.name: column.type.name for column in mqsd.TOPOLOGY.all_columns}
    assert names["connected_networks"] == "list<uuid>"
    assert names["servers"] == "list<struct<name: string, ip: bool, ipx: bool>>"


def test_payloads_pickle_and_batches_say_why_not() -> None:
    payloads = Payloads.of([b"a", None, b"", b"bcd"])
    for again in (pickle.loads(pickle.dumps(payloads)), copy.deepcopy(payloads), copy.copy(payloads)):
        assert [None if part is None else bytes(part) for part in again] == [b"a", None, b"", b"bcd"]
    assert repr(payloads) == "<4 payloads, 4 bytes>"
    batch = mqqb.decode_batch([HOSTILE])
    for use in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"pickle batch\.payloads"):
            use(batch)
