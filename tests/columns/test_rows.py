"""Rows and payloads as Python, pandas, polars and pyarrow have them; parts of payloads, and payloads put together."""

from __future__ import annotations

import copy
import pickle
from itertools import islice
from typing import Any
from uuid import UUID

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from msmqwire import capture, mqsd
from msmqwire.columns import Payloads
from msmqwire.errors import DecodeError
from tests import vectors
from tests.columns.formats import Format, each_format
from tests.reference.reader import Fault

REQUEST = vectors.get("mqsd", "V1-request").data
REPLY = vectors.get("mqsd", "V3-reply-other-site").data
PAYLOADS = [REQUEST, REPLY, None, b"oops"]

#: The same payloads in each of their layouts.
LAYOUTS: dict[str, Any] = {
    "spans": lambda: Payloads.of(PAYLOADS),
    "arrow": lambda: Payloads.of(pa.array(PAYLOADS, pa.binary())),
    "large arrow": lambda: Payloads.of(pa.array([b"", *PAYLOADS], pa.large_binary()))[1:],
    "concatenated": lambda: Payloads.concat([PAYLOADS[:1], PAYLOADS[1:2], Payloads.of(PAYLOADS[2:])]),
    "one buffer": lambda: Payloads(b"xy" + REQUEST + REPLY, [0, 2, 54, 54 + len(REPLY)])[1:],
}
each_layout = pytest.mark.parametrize("layout", LAYOUTS)


def test_a_batch_has_its_rows_in_each_library() -> None:
    batch = mqsd.decode_batch(PAYLOADS)
    rows = batch.to_pylist()
    assert len(rows) == len(batch) == 4
    assert rows == [*batch]
    assert rows[0]["enterprise_id"] == str(UUID(bytes_le=REQUEST[4:20]))
    assert rows[1]["servers"] == [{"name": "nt4pec", "ip": True, "ipx": False}]
    assert rows[2]["type"] is None
    assert rows[3]["fault"]["code"] == "bad_type"
    assert batch.to_arrow(guid="text").to_pylist() == rows
    assert batch.to_polars()["site_id"].to_list() == [row["site_id"] for row in rows]
    frame = batch.to_pandas()
    assert [*frame.columns] == [*batch.columns]
    assert frame["enterprise_id"][0] == rows[0]["enterprise_id"]


def test_a_reader_has_the_rows_of_its_batches_in_each_library() -> None:
    path = "examples/other-site.pcapng"
    columns = ["frame", "time", "request_id"]
    rows = capture.read_table(path, columns=columns).to_pylist()
    assert {type(row["request_id"]) for row in rows} == {str, type(None)}
    assert all(row["time"].endswith("Z") for row in rows)
    assert capture.read_table(path, columns=columns).to_polars()["frame"].to_list() == [row["frame"] for row in rows]
    assert [*capture.read_table(path, columns=columns).to_pandas()["frame"]] == [row["frame"] for row in rows]
    assert capture.read_table(path, columns=columns).to_arrow()["frame"].to_pylist() == [row["frame"] for row in rows]


@each_layout
def test_payloads_are_values_in_each_library(layout: str) -> None:
    payloads = LAYOUTS[layout]()
    expected = [None if each is None else bytes(each) for each in payloads]
    assert expected == (PAYLOADS if layout != "one buffer" else PAYLOADS[:2])
    assert payloads.to_pylist() == expected
    assert payloads.to_arrow().to_pylist() == expected
    assert payloads.to_polars().to_list() == expected
    assert payloads.to_polars().dtype == pl.Binary
    assert [*payloads.to_pandas()] == expected


@each_layout
def test_payloads_have_parts_like_a_list(layout: str) -> None:
    payloads = LAYOUTS[layout]()
    expected = payloads.to_pylist()
    for part in (slice(None, None, -1), slice(0, None, 2), slice(-1, 0, -2), slice(3, 1, 1), slice(1, 3)):
        assert payloads[part].to_pylist() == expected[part]
    mask = [each is not None for each in expected]
    assert payloads.take(mask).to_pylist() == [each for each in expected if each is not None]
    assert payloads.take(np.array(mask)).nbytes == payloads.nbytes
    with pytest.raises(IndexError, match="mask of 1 rows"):
        payloads.take([True])


@each_layout
def test_payloads_pickle_with_their_bytes_apart(layout: str) -> None:
    payloads = LAYOUTS[layout]()
    apart: list[pickle.PickleBuffer] = []
    data = pickle.dumps(payloads, protocol=5, buffer_callback=apart.append)
    assert REQUEST not in data
    assert sum(each.raw().nbytes for each in apart) >= payloads.nbytes
    for again in (
        pickle.loads(data, buffers=apart),
        pickle.loads(data, buffers=[bytearray(each) for each in apart]),
        *(pickle.loads(pickle.dumps(payloads, protocol)) for protocol in range(2, 6)),
        copy.deepcopy(payloads),
    ):
        assert again.to_pylist() == payloads.to_pylist()
        assert again.nbytes == payloads.nbytes


def test_payloads_of_one_buffer_are_pickled_without_a_copy() -> None:
    data = REQUEST * 3
    apart: list[pickle.PickleBuffer] = []
    pickle.dumps(Payloads(data, [0, 52, 104, 156])[1:], protocol=5, buffer_callback=apart.append)
    start = np.frombuffer(data, np.uint8).ctypes.data
    assert start + 52 in [np.frombuffer(each.raw(), np.uint8).ctypes.data for each in apart]


def test_lost_bytes_stay_with_their_payloads() -> None:
    cut = Payloads.of([REQUEST[:20], REQUEST], lost=[32, 0])
    whole = Payloads.of([REPLY])
    joined = Payloads.concat([whole, cut, []])
    assert joined.lost is not None
    assert joined.lost.tolist() == [0, 32, 0]
    for again in (joined, pickle.loads(pickle.dumps(joined)), joined[::-1][::-1]):
        assert again.lost is not None
        assert again.lost.tolist() == [0, 32, 0]
        assert mqsd.decode_batch(again).to_pylist()[1]["fault"]["code"] == "incomplete"
    assert Payloads.concat([]).to_pylist() == []
    assert Payloads.concat([whole, whole]).lost is None


def test_a_list_has_its_rows() -> None:
    batch = mqsd.decode_batch([REPLY, b"oops", REPLY])
    for name in ("servers", "connected_networks", "ipx_networks"):
        column = batch[name]
        assert [column[row] for row in range(3)] == column.to_pylist() == [*column]
        assert column[-1] == column[2]
        with pytest.raises(IndexError):
            column[3]
    assert batch["servers"][0] == [{"name": "nt4pec", "ip": True, "ipx": False}]
    servers = batch["servers"]
    mqsd.decode_batch([REPLY], out=batch)
    with pytest.raises(ValueError, match="overwritten"):
        servers[0]


@each_format
def test_a_row_has_its_packet(kind: Format) -> None:
    for way in kind.ways():
        packets = [data for data in kind.packets if kind is kind.read_as(data, way.get("transport", "unknown"))]
        batch = kind.decode_batch(packets, **way)
        rows = iter(range(len(batch)))
        for data in packets:
            expected = kind.decode(data, **way)
            for row in islice(rows, max(1, len(getattr(expected, "updates", ())))):
                if isinstance(expected, Fault):
                    with pytest.raises(DecodeError) as caught:
                        batch.packet(row)
                    assert Fault(caught.value.code, caught.value.field, caught.value.offset) == expected
                else:
                    assert batch.packet(row) == expected
        assert next(rows, None) is None


def test_rows_without_a_packet_say_why() -> None:
    batch = mqsd.decode_batch([None, REQUEST, b"oops"])
    with pytest.raises(ValueError, match="null"):
        batch.packet(0)
    with pytest.raises(DecodeError, match="bad_type: Type at byte 1"):
        batch.packet(2)
    with pytest.raises(IndexError):
        batch.packet(3)
    batch.forget_payloads()
    with pytest.raises(ValueError, match="released"):
        batch.packet(1)
    with capture.open("examples/local-site.pcap") as blocks:
        for block in blocks:
            with pytest.raises(TypeError, match="not a packet"):
                block.capture.packet(0)
