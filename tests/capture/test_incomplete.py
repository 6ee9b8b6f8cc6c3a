"""Messages that a capture has only the beginnings of: a snapshot length, a missing segment, the end of the capture."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from msmqwire import capture, mqcn, mqqb
from msmqwire.cli import main
from tests.capture import build
from tests.capture.build import segment
from tests.vectors import get

MESSAGES = [
    mqqb.encode(
        mqqb.UserMessage(destination_queue="DIRECT=OS:mq1\\orders", label=f"Order {i}", body=bytes(3000), message_id=i)
    )
    for i in range(40)
]


def cut_into(segments: int) -> list[bytes]:
    """The frames of the messages, each in so many segments."""
    frames, at = [], 1
    for message in MESSAGES:
        size = -(-len(message) // segments)
        for start in range(0, len(message), size):
            frames.append(segment(message[start : start + size], at + start))
        at += len(message)
    return frames


def table(frames: list[bytes], **options: Any) -> list[dict[str, Any]]:
    with capture.read_table(io.BytesIO(build.pcap(frames)), "messages", **options) as rows:
        return [row for batch in rows for row in batch.to_pylist()]


def test_a_missing_segment() -> None:
    frames = cut_into(3)
    del frames[4]  # the second of three of the second message
    rows = table(frames)
    assert [row["message_id"] for row in sorted(rows, key=lambda row: row["stream_offset"])] == list(range(40))
    (row,) = [row for row in rows if row["fault"]]
    assert row["fault"]["code"] == "incomplete"
    assert (row["fault"]["field"], row["label"], row["body"], row["message_size"]) == (
        "MessageBody", "Order 1", None, 3000,
    )  # fmt: skip
    assert row["destination_queue"] == "DIRECT=OS:mq1\\orders"


@pytest.mark.parametrize(("snapshot", "column"), [(400, "label"), (128, "message_id"), (96, "source_queue_manager")])
def test_a_snapshot_length(tmp_path: Path, snapshot: int, column: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every message has a row with the headers that are whole, in a file that editcap made."""
    if shutil.which("editcap") is None:
        pytest.skip("editcap is not installed")
    whole, cut = tmp_path / "whole.pcap", tmp_path / "cut.pcap"
    whole.write_bytes(build.pcap(cut_into(3)))
    subprocess.run(["editcap", "-s", str(snapshot), whole, cut], check=True)
    status = main(["decode", str(cut), "--table", "messages", "-T", "json"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert status == 2
    assert len(rows) == len(MESSAGES)
    assert all(row["fault"]["code"] == "incomplete" and row[column] is not None for row in rows)
    parts = {json.dumps(row["packet_size"]) for row in rows}
    assert len(parts) <= 2


def test_parts_of_a_capture(tmp_path: Path) -> None:
    """A reading in parts gives the rows of a whole one."""
    path = tmp_path / "cut.pcap"
    frames = [frame[:140] if number % 7 == 3 else frame for number, frame in enumerate(cut_into(4))][:-1]
    path.write_bytes(build.pcap(frames))
    with capture.read_table(path, "messages") as whole:
        expected = [row for batch in whole for row in batch.to_pylist()]
    assert sum(row["fault"] is not None for row in expected) > 10
    options = capture.table_options(("messages",))
    with capture.checkpoints(path, 20_000, options) as found:
        checkpoints = list(found)
    assert len(checkpoints) > 3
    rows, start = [], None
    for stop in checkpoints:
        with capture.read_table(path, "messages", resume=start, stop=stop) as part:
            rows += [row for batch in part for row in batch.to_pylist()]
        start = stop
    with capture.read_table(path, "messages", resume=start) as part:
        rows += [row for batch in part for row in batch.to_pylist()]
    assert rows == expected


def test_a_datagram_that_is_cut() -> None:
    frame = build.plain(b"\0\1\0\0" + bytes(range(48)), target=1801)
    data = build.pcap([frame, frame[: 42 + 30]])
    with capture.read_table(io.BytesIO(data), "topology") as reader:
        rows = [row for batch in reader for row in batch.to_pylist()]
        stats = reader.stats
    assert [row["frame"] for row in rows] == [1, 2]
    numbers = {"value": None, "needed": 16}
    assert rows[1]["fault"] == {"code": "incomplete", "field": "RequestID", "offset": 20, **numbers}
    assert (rows[1]["enterprise_id"], rows[1]["request_id"]) == (rows[0]["enterprise_id"], None)
    assert (stats.payloads, stats.malformed) == (1, 1)


def test_a_notification_that_lost_its_session_header(tmp_path: Path) -> None:
    body = get("mqcn", "C2-change-queue").data
    session = mqqb.SessionHeader(user_msg_sequence_number=1, window_size=64)
    queue = "DIRECT=OS:server\\private$\\notify_queue$"
    packet = mqqb.encode(mqqb.UserMessage(destination_queue=queue, body=body, session=session))
    frame = segment(packet, 1)
    path = tmp_path / "x.pcap"
    path.write_bytes(build.pcap_header() + build.pcap_record(frame[:-10], original=len(frame)))
    rows = {name: batch.to_pylist() for name, batch in capture.read_tables(path)}
    assert rows["messages"][0]["fault"] == {
        "code": "incomplete",
        "field": "SessionHeader",
        "offset": len(packet) - 16,
        "value": None,
        "needed": 16,
    }
    assert rows["messages"][0]["notification"] == "plain"
    whole = mqcn.decode_batch([body]).to_arrow().to_pylist()
    assert [row["object_guid"] for row in rows["notifications"]] == [row["object_guid"] for row in whole]
    assert [row["fault"] for row in rows["notifications"]] == [None] * len(whole)
    for command in ("decode", "summary", "detect", "replay"):
        assert main([command, str(path), "-q"]) == 2
