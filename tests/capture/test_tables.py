"""From a capture to a table: the capture's columns in front, the packets' behind, and what was read on the way."""

from __future__ import annotations

import dataclasses
import gc
import io
import random
import subprocess
import sys
from collections import Counter
from enum import EnumType
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from msmqwire import capture, mqqb, mqsd
from msmqwire.columns import allocated_bytes
from msmqwire.columns._batch import take_rows
from msmqwire.insight.findings import COLUMNS as EVIDENCE
from tests.capture import build
from tests.capture.traffic import conversation
from tests.columns.rows import shown_row
from tests.vectors import load

EXAMPLES = Path(__file__).parents[2] / "examples"
OVER_UDP = [
    (vector, {outcome.strict: outcome for outcome in vector.outcomes if outcome.transport == "udp"})
    for vector in load("mqsd")
    if any(outcome.transport == "udp" for outcome in vector.outcomes)
]
REQUEST = load("mqsd")[0].data
TABLE = mqsd.TOPOLOGY.names


pytestmark = pytest.mark.usefixtures("everything_is_released")


def rows(source: Any, **options: Any) -> list[dict[str, Any]]:
    if isinstance(source, bytes):
        source = io.BytesIO(source)
    found = []
    with capture.read_table(source, **{"guid": "text", **options}) as reader:
        for batch in reader:
            batch.validate(full=True)
            assert batch.schema.equals(reader.schema)
            found += batch.to_pylist()
        assert reader.rows == len(found)
    return found


def test_schema() -> None:
    assert list(capture.TABLES) == ["topology", "notifications", "messages", "sessions"]
    names = capture.table_columns("topology")
    assert names == (*capture.CAPTURE.names, *TABLE)
    assert names[-2:] == ("fault", "violations")
    assert len(set(names)) == len(names)
    schema = capture.arrow_schema("topology", guid="text", dictionaries=False)
    assert schema.names == list(names)
    assert schema.field("request_id").type == pa.string()
    assert schema.field("time").type == pa.timestamp("ns", "UTC")
    assert schema.field("src").type == pa.string()
    assert capture.arrow_schema("topology", guid="uuid").field("request_id").type == pa.uuid()
    assert capture.arrow_schema("topology", guid="binary").field("request_id").type == pa.binary(16)
    assert capture.arrow_schema("topology", ["fault", "frame"]).names == ["frame", "fault"]


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
@pytest.mark.parametrize("network", ["ipv4", "ipv6"])
def test_the_vectors_through_this_door(form: str, network: str) -> None:
    """[MS-MQSD] 4 and all other packets: a capture gives what decoding the payload over UDP gives."""
    ip = build.ipv4 if network == "ipv4" else build.ipv6
    kind = build.IPV4 if network == "ipv4" else build.IPV6
    data = getattr(build, form)([build.ethernet(kind, ip(build.udp(vector.data))) for vector, _ in OVER_UDP])
    assert {"V1-request", "V2-reply-local-site", "V3-reply-other-site"} <= {vector.name for vector, _ in OVER_UDP}
    for strict in (False, True):
        found = rows(data, strict=strict)
        for number, (row, (vector, outcomes)) in enumerate(zip(found, OVER_UDP, strict=True)):
            outcome = outcomes[strict]
            assert row["frame"] == number + 1
            if outcome.fault:
                code, field, offset = outcome.fault
                assert row["fault"].items() >= {"code": code, "field": field, "offset": offset}.items()
                continue
            assert row["fault"] is None
            assert row["violations"] == list(outcome.violations)
            packet = shown_row(mqsd.TOPOLOGY, outcome.packet or {}, guid="text")
            assert {name: row[name] for name in packet if name in row} == packet, vector.name


def test_the_sample_captures() -> None:
    with capture.read_table(EXAMPLES / "*.pcap*") as reader:
        table = pa.Table.from_batches(reader, reader.schema)
    assert table.num_rows == reader.rows == 14
    assert reader.faults == Counter({"truncated": 1, "bad_flag": 1, "bad_count": 1})
    assert reader.stats == capture.CaptureStats(
        frames=39, payloads=14, other=25, bytes_read=sum(path.stat().st_size for path in EXAMPLES.glob("*.pcap*"))
    )
    assert Counter(table["type"].to_pylist()) == Counter({"request": 6, "reply": 5, None: 3})
    assert {Path(str(name)).name for name in table["file"].to_pylist()} == {"local-site.pcap", "other-site.pcapng"}


def test_columns_narrow_what_is_built() -> None:
    whole = rows(EXAMPLES / "*.pcap*")
    names = capture.table_columns("topology")
    for columns in ([], ["frame"], ["fault"], ["violations", "servers", "time", "request_id"], [*names[::-1]], "type"):
        wanted = [name for name in names if name in ([columns] if isinstance(columns, str) else columns)]
        narrow = rows(EXAMPLES / "*.pcap*", columns=columns)
        assert narrow == [{name: row[name] for name in wanted} for row in whole]
    with capture.read_table(EXAMPLES / "*.pcap*", columns=["frame"]) as reader:
        assert [batch.num_rows for batch in reader] == [4, 10]
    assert reader.faults.total() == 3


def test_guids_in_other_forms() -> None:
    as_text = rows(EXAMPLES / "local-site.pcap", columns=["request_id"])
    as_uuid = rows(EXAMPLES / "local-site.pcap", columns=["request_id"], guid="uuid")
    as_bytes = rows(EXAMPLES / "local-site.pcap", columns=["request_id"], guid="binary")
    for text, value, raw in zip(as_text, as_uuid, as_bytes, strict=True):
        if text["request_id"] is not None:
            assert str(value["request_id"]) == text["request_id"]
            assert raw["request_id"] == value["request_id"].bytes


def test_strict() -> None:
    with capture.read_table(EXAMPLES / "other-site.pcapng", strict=True) as reader:
        for _ in reader:
            pass
    assert reader.faults["bad_size"] == 1


def test_a_session() -> None:
    """The messages, the notifications in them and the sessions of one capture: each table has its own payloads."""
    path = EXAMPLES / "message-session.pcap"
    messages = rows(path, table="messages")
    assert [row["fault"] for row in messages] == [None] * 5
    assert {row["transport"] for row in messages} == {"tcp"}
    sessions = rows(path, table="sessions")
    assert Counter(row["kind"] for row in sessions) == Counter(
        {"ping": 2, "establish_connection": 2, "connection_parameters": 2, "session_ack": 1}
    )
    assert all((row["kind"] == "ping") == (row["transport"] == "udp") for row in sessions)
    notifications = rows(path, table="notifications")
    place = ("frame", "stream_offset", "src", "src_port")
    carriers = {tuple(row[name] for name in place): row["notification"] for row in messages}
    assert [carriers[tuple(row[name] for name in place)] for row in notifications] == ["plain"] * len(notifications)
    assert len(notifications) == 4
    assert rows(path, table="notifications", columns=["operation"]) == [
        {"operation": row["operation"]} for row in notifications
    ]
    assert rows(path, table="notifications", columns=["first_frame"]) == [
        {"first_frame": row["first_frame"]} for row in notifications
    ]


@pytest.mark.parametrize("tables", [tuple(capture.TABLES), ("sessions", "notifications"), ("messages", "topology")])
@pytest.mark.parametrize("ports", [None, (1801, 53, 3527)])
def test_several_tables_in_one_pass(tables: tuple[str, ...], ports: tuple[int, ...] | None) -> None:
    """Each has the rows that it has alone, and every payload is somebody's."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in tables}
    with capture.read_tables(EXAMPLES / "*.pcap*", tables, ports=ports, guid="text") as reader:
        for name, batch in reader:
            batch.validate(full=True)
            assert batch.schema.equals(reader.tables[name].schema)
            found[name] += batch.to_pylist()
            del batch
    for name in tables:
        alone: Any = ports
        # Read together, datagrams of the port of pings are pings, and no others are
        if ports and {"topology", "sessions"} <= set(tables):
            alone = {"tcp": ports, "udp": {"sessions": (3527,), "topology": (1801, 53)}.get(name, ports)}
        assert found[name] == rows(EXAMPLES / "*.pcap*", table=name, ports=alone)
        assert reader.tables[name].rows == len(found[name])
    streams = reader.stats.streams
    assert reader.payloads == reader.stats.payloads + streams.packets - streams.unselected


@pytest.mark.parametrize(
    ("options", "passes"),
    [
        ({}, 1),
        (
            {
                "columns": {
                    "messages": ["body", "notification", "label", "sender_id_type", "security_id"],
                    "notifications": ["rule"],
                }
            },
            1,
        ),
        ({"columns": {"messages": ["body", "notification"], "notifications": ["index"]}}, 1),
        ({"columns": {"messages": ["body", "notification"]}}, 1),
        ({"columns": {"messages": ["body"], "notifications": ["security_id", "operation"]}}, 1),
        ({"columns": {name: EVIDENCE[name] for name in ("messages", "notifications")}}, 1),
        ({"columns": {"messages": ["label"]}}, 2),
        ({"strict": True}, 2),
    ],
)
def test_messages_are_decoded_once(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], passes: int) -> None:
    """For their own table and for notifications, where both need the same of them."""
    decoded = []
    decode_batch = mqqb.decode_batch

    def counting(payloads: Any, **more: Any) -> Any:
        decoded.append(len(payloads))
        return decode_batch(payloads, **more)

    kind = dataclasses.replace(capture.ALL_TABLES["messages"], decode_batch=counting)
    monkeypatch.setitem(capture.ALL_TABLES, "messages", kind)
    monkeypatch.setattr("msmqwire.capture.table_rows.mqqb.decode_batch", counting)
    path = EXAMPLES / "message-session.pcap"
    found: dict[str, list[Any]] = {"messages": [], "notifications": []}
    for name, batch in capture.read_tables(path, found, guid="text", **options):
        found[name] += batch.to_pylist()
    assert len(decoded) == passes
    monkeypatch.undo()
    columns = options.pop("columns", {})
    for name in found:
        assert found[name] == rows(path, table=name, columns=columns.get(name), **options)


def test_no_signal_is_lost_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy asks members of enumerations for attributes, and drops what Python raises meanwhile for a signal."""
    asked: list[str] = []

    def ask(_: type, name: str) -> object:
        asked.append(name)
        raise AttributeError(name)

    monkeypatch.setattr(EnumType, "__getattr__", ask, raising=False)
    with capture.read_tables(io.BytesIO(build.pcap([build.plain(b"")])), capture.TABLES) as reader:
        assert [name for name, _ in reader] == ["topology"]
    assert not asked


def test_columns_of_several_tables() -> None:
    wanted = {"messages": ["label"], "sessions": ["frame", "kind"]}
    path = EXAMPLES / "message-session.pcap"
    for name, batch in capture.read_tables(path, wanted, columns=wanted):
        assert batch.schema.names == wanted[name]
    with pytest.raises(ValueError, match="no table given; known: topology"):
        capture.read_tables(path, ())
    with pytest.raises(ValueError, match="unknown table 'queues'"):
        capture.read_tables(path, ("messages", "queues"))


def notification(body: bytes, **changes: Any) -> bytes:
    queue = "PRIVATE=557358d1-9150-9595-4997-b6e611ea26c6\\3"
    return mqqb.encode(mqqb.UserMessage(**{"destination_queue": queue, "body": body, **changes}))


def test_notifications_of_messages() -> None:
    """A message with several changes gives several rows, one that cannot be read is counted, an encrypted one too."""
    change = load("mqcn")[0].data
    several = bytes([1, 2]) + change[2:] * 2
    packets = [
        notification(change),
        notification(several),
        notification(b"x", destination_queue="DIRECT=OS:server\\orders"),
        build.message(b"no message"),
        notification(change, privacy_level=5),
    ]
    frames, at = [], 0
    for packet in packets:
        frames.append(build.segment(packet, at))
        at += len(packet)
    with capture.read_table(io.BytesIO(build.pcap(frames)), "notifications") as reader:
        found = [row for batch in reader for row in batch.to_pylist()]
    assert Counter(row["frame"] for row in found)[2] == 2
    assert Counter(row["frame"] for row in found)[1] == 1
    assert (reader.unread, reader.encrypted) == (1, 1)
    assert reader.stats.streams.packets == 5


def test_rows_of_capture_columns_are_taken() -> None:
    """Of every width, of names that the batch brings itself, and of columns that are null in some rows."""
    rng = random.Random(4)
    data = build.pcap([*conversation(rng, 80), build.plain(b"a datagram")])
    with capture.open(io.BytesIO(data)) as reader:
        (block,) = reader
    columns = block.capture.columns
    assert len(set(block.capture["transport"].tolist())) == 2
    expected = block.capture.to_arrow(dictionaries=False)
    for rows in ([], [0], range(len(block)), [rng.randrange(len(block)) for _ in range(300)]):
        taken = take_rows(block.capture, np.array(rows, np.uint32), columns[1:])
        assert taken.to_arrow(dictionaries=False).equals(expected.select(columns[1:]).take(pa.array(rows, pa.uint32())))
    with pytest.raises(IndexError, match=f"row {len(block)} of {len(block)}"):
        take_rows(block.capture, np.array([len(block)], np.uint32), columns)
    with capture.open(io.BytesIO(data), columns=["frame"]) as reader:
        (block,) = reader
    with pytest.raises(KeyError, match="'src' is not among the requested columns: frame"):
        take_rows(block.capture, np.array([0], np.uint32), ("frame", "src"))


def test_discovery_is_connectionless() -> None:
    """UDP port 1801 and IPX socket 876; over TCP nothing is discovery."""
    frames = [build.plain(REQUEST), build.ethernet(0x8137, build.ipx(REQUEST)), build.segment(REQUEST, 1)]
    assert [row["transport"] for row in rows(build.pcap(frames))] == ["udp", "ipx"]


def test_ports() -> None:
    data = build.pcap([build.plain(REQUEST, 9, 1801), build.plain(REQUEST, 9, 9999), build.plain(REQUEST, 9, 3527)])
    assert [row["dst_port"] for row in rows(data)] == [1801]
    assert [row["dst_port"] for row in rows(data, ports=[9999, 3527])] == [9999, 3527]


@pytest.mark.parametrize("hold", [False, True])
def test_many_batches(hold: bool) -> None:
    """Whether the consumer keeps them or not."""
    payloads = [REQUEST[:20] + i.to_bytes(4, "little") + REQUEST[24:] for i in range(30_000)]
    data = build.pcap([build.plain(payload) for payload in payloads])
    kept, seen = [], []
    with capture.read_table(io.BytesIO(data), columns=["frame", "request_id"], guid="text") as reader:
        for batch in reader:
            if hold:
                kept.append(batch)
            else:
                seen += batch["request_id"].to_pylist()
            del batch
    if hold:
        seen = pa.Table.from_batches(kept)["request_id"].to_pylist()
        assert pa.Table.from_batches(kept)["frame"].to_pylist() == list(range(1, 30_001))
    assert seen == [f"{i:08x}-e33c-ab4f-a930-be3a33e432dd" for i in range(30_000)]


def test_memory_does_not_grow() -> None:
    data = build.pcap([build.plain(REQUEST)] * 60_000)
    seen = []
    with capture.read_table(io.BytesIO(data), block_size=1 << 20) as reader:
        for batch in reader:
            seen.append(allocated_bytes())
            del batch
    assert len(seen) > 5
    assert seen[3] == seen[-2]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("most", [None, 1])
@pytest.mark.parametrize("rows", [4_000, 80_000])
def test_memory_returns_at_once(jobs: int, most: int | None, rows: int) -> None:
    """Read to the end or left early, its end read ahead or not: nothing waits for the garbage collector."""
    data = build.pcap([build.plain(REQUEST)] * rows)
    gc.collect()
    gc.disable()
    before = allocated_bytes()
    try:
        with capture.read_tables(io.BytesIO(data), ("topology", "messages"), jobs=jobs) as reader:
            assert sum(len(batch) for _, batch in islice(reader, most)) > 1_000
        del reader
        assert allocated_bytes() == before
    finally:
        gc.enable()


def test_what_does_not_exist() -> None:
    with pytest.raises(ValueError, match="unknown table 'queues'; known: topology, notif"):
        capture.read_table(EXAMPLES / "local-site.pcap", "queues")
    with pytest.raises(ValueError, match="topology has no column 'frames'"):
        capture.read_table(EXAMPLES / "local-site.pcap", columns=["frames"])
    with pytest.raises(ValueError, match="guid"):
        next(capture.read_table(EXAMPLES / "local-site.pcap", guid="hex"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown table"):
        capture.table_columns("queues")


def test_importing_it_needs_no_pyarrow() -> None:
    program = (
        "import sys, io; sys.modules['pyarrow'] = None\n"
        "from msmqwire import capture\n"
        f"blocks = capture.open({str(EXAMPLES / 'local-site.pcap')!r})\n"
        "assert sum(len(block) for block in blocks) == 4\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=EXAMPLES.parent, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_no_captures_have_no_rows() -> None:
    """A list of files may be empty; nothing of it has been read before."""
    assert capture.read_table([]).to_arrow().num_rows == 0
    assert capture.read_table([]).to_pandas().empty
    assert pa.table(capture.read_table([])).num_rows == 0
    assert list(iter(capture.open([]))) == []
    assert list(iter(capture.read_tables([]))) == []


def test_readers_show_what_they_have_read() -> None:
    path = EXAMPLES / "local-site.pcap"
    with capture.read_table(path, "topology", columns=["frame", "type"]) as reader:
        assert repr(reader) == "<TableReader: 0 rows of topology, 2 columns, of 0 frames read, open>"
        assert sum(map(len, reader)) == 4
        assert repr(reader) == "<TableReader: 4 rows of topology, 2 columns, of 8 frames read, ended>"
    blocks = capture.open(path)
    blocks.close()
    assert repr(blocks) == "<Capture: 0 datagrams of 0 frames read, ended>"
    with capture.read_tables(path, ["topology", "messages"]) as tables, capture.checkpoints(path, 1 << 20) as cuts:
        assert repr(tables) == "<TablesReader: 0 rows of topology, 0 rows of messages of 0 frames read, open>"
        assert repr(cuts) == "<Checkpoints: 0 datagrams of 0 frames read, open>"
