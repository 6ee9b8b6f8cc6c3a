"""``decode --extract``: the bodies are those of the rows; names come from numbers, and nothing is overwritten."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from msmqwire import mqqb
from tests.cli.support import EXAMPLES, ROOT, environ, from_json, limited, msmqwire, nanoseconds, process, refused, run
from tests.insight.captures import message, stream, write
from tests.notification.sent import captured_packets

SESSION = EXAMPLES / "message-session.pcap"


def manifest(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text("utf-8").splitlines()]


def test_bodies_are_those_of_the_rows(tmp_path: Path) -> None:
    folder = tmp_path / "bodies"
    status, output, errors = run("decode", SESSION, "--extract", folder)
    assert (status, output) == (0, "")
    assert errors.startswith(f"5 bodies written to {folder}: notification 3, ")
    columns = "frame,source_queue_manager,message_id,body,body_sha256,body_kind,message_size"
    _, output, _ = run("decode", SESSION, "--table", "messages", "--columns", columns, "-T", "json", "-q")
    rows = [json.loads(line) for line in output.splitlines()]
    lines = manifest(folder)
    assert {path.name for path in folder.iterdir()} == {"manifest.jsonl", *(str(line["body"]) for line in lines)}
    for row, line in zip(rows, lines, strict=True):
        body = (folder / str(line["body"])).read_bytes()
        assert body.hex() == row["body"]
        assert (line["sha256"], line["kind"], line["size"]) == (
            row["body_sha256"],
            row["body_kind"],
            row["message_size"],
        )
        assert line["sha256"] == hashlib.sha256(body).hexdigest()
        assert str(line["body"]).startswith(f"{row['frame']}-{row['source_queue_manager']}-{row['message_id']}.")


def test_names_come_from_numbers(tmp_path: Path) -> None:
    hostile = message(label="../../x", queue="OS:..\\private$\\..", body=b"MZ" + bytes(58) + b"\x40\0\0\0PE\0\0")
    capture = write(tmp_path / "x.pcap", stream([hostile, hostile]))
    assert run("decode", capture, "--extract", tmp_path / "bodies", "-q")[0] == 0
    names = sorted(path.name for path in (tmp_path / "bodies").iterdir())
    assert [name.rpartition("-")[2] for name in names[:2]] == ["1-2.pe", "1.pe"] or len(names) == 3
    assert all(set(name) <= set("0123456789abcdef-.pemnifstjol") for name in names)
    assert not [path for path in tmp_path.iterdir() if path.name not in ("x.pcap", "bodies")]


def test_times_in_nanoseconds(tmp_path: Path) -> None:
    """Python has no type for them; that of pandas is not imported by the command."""
    capture = tmp_path / "x.pcap"
    capture.write_bytes(captured_packets([message(number=number) for number in range(2)]))
    done = process("decode", capture, "--extract", tmp_path / "bodies", "-q")
    assert (done.returncode, done.stderr) == (0, b"")
    rows = from_json(msmqwire("decode", capture, "--table", "messages", "-T", "json", "-q").stdout)
    assert [nanoseconds(str(line["time"])) for line in manifest(tmp_path / "bodies")] == [row["time"] for row in rows]


def test_extension_data_stands_beside_the_body(tmp_path: Path) -> None:
    headers = b'<?xml version="1.0"?><ArrayOfHeaderInfo/>'
    rebus = b'{"rbs2-msg-id":"1"}'
    packets = [
        mqqb.encode(mqqb.UserMessage(message_id=number, body=body, extension_data=extension))
        for number, (body, extension) in enumerate([(b"{}", headers), (b"", rebus), (b"x", b""), (b"", b"")])
    ]
    capture = write(tmp_path / "x.pcap", stream(packets))
    folder = tmp_path / "bodies"
    status, _, errors = run("decode", capture, "--table", "messages", "--extract", folder)
    assert (status, errors.splitlines()[:2]) == (
        0, [f"2 bodies written to {folder}: json 1, utf8_text 1", f"2 extensions written to {folder}: xml 1, json 1"],
    )  # fmt: skip
    lines = manifest(folder)
    assert [(line["kind"], line["extension_kind"]) for line in lines] == [
        ("json", "xml"), (None, "json"), ("utf8_text", None)
    ]  # fmt: skip
    assert (folder / str(lines[0]["extension"])).read_bytes() == headers
    assert (folder / str(lines[1]["extension"])).read_bytes() == rebus
    assert lines[0]["extension_sha256"] == hashlib.sha256(headers).hexdigest()
    assert {path.name for path in folder.iterdir()} == {
        "manifest.jsonl", *(str(line[part]) for line in lines for part in ("body", "extension") if line[part])
    }  # fmt: skip


def test_a_condition_chooses_messages(tmp_path: Path) -> None:
    assert run("decode", SESSION, "--extract", tmp_path / "b", "--where", "label LIKE 'Order%'", "-q")[0] == 0
    assert [line["message_id"] for line in manifest(tmp_path / "b")] == [103]


def test_what_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "bodies"
    assert run("decode", SESSION, "--extract", folder, "-q")[0] == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "has bodies already" in refused("decode", SESSION, "--extract", folder)
    assert "it is a file; name a folder" in refused("decode", SESSION, "--extract", SESSION)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert "not of topology" in refused("decode", SESSION, "--extract", tmp_path / "b", "--table", "topology")
    assert "leave --columns out" in refused("decode", SESSION, "--extract", tmp_path / "b", "--columns", "body")
    assert "messages lacks columns" in refused("decode", SESSION, "--extract", tmp_path / "b", "--where", "servers = 1")


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
def test_a_body_that_cannot_be_written_is_named_and_leaves_no_part(tmp_path: Path) -> None:
    folder = tmp_path / "bodies"
    command = [*limited("FSIZE", 100), "decode", str(SESSION), "--extract", str(folder), "-q"]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, env=environ())
    assert done.returncode == 1
    assert done.stderr.startswith(f"msmqwire: cannot write {folder}/10-".encode())
    assert done.stderr.endswith(b".notification: File too large\n")
    assert [path.name for path in folder.iterdir()] == ["manifest.jsonl"]
