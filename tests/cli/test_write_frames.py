"""``decode --write``: the frames of the rows that the filters choose, as a capture."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import EXAMPLES, from_json, msmqwire, refused, run

SESSION = EXAMPLES / "message-session.pcap"
# What depends on the other frames of a capture
PLACE = {"file", "frame", "first_frame", "stream_offset"}


def rows(*arguments: str | Path) -> list[dict[str, object]]:
    found = from_json(msmqwire("decode", *arguments, "-T", "json", "-q").stdout)
    return [{name: value for name, value in row.items() if name not in PLACE} for row in found]


def test_the_capture_has_the_rows(tmp_path: Path) -> None:
    target = tmp_path / "all.pcapng"
    status, output, errors = run("decode", SESSION, "--write", target)
    assert (status, output) == (0, "")
    assert errors.splitlines()[0] == f"13 frames written to {target}"
    assert rows(target) == rows(SESSION)


def test_filters_choose_the_frames(tmp_path: Path) -> None:
    target = tmp_path / "orders.pcapng"
    chosen = ("--where", "label = 'Order 4711'", "--table", "messages")
    assert len(rows(SESSION, *chosen)) == 1
    status, _, errors = run("decode", SESSION, *chosen, "--write", target)
    assert status == 0
    assert "--where is true for 1 row" in errors.splitlines()
    assert rows(target, *chosen) == rows(SESSION, *chosen)
    assert target.stat().st_size < SESSION.stat().st_size
    run("decode", SESSION, "--address", "10.9.9.9", "--write", target)
    assert run("decode", target)[1] == ""


def test_refusals(tmp_path: Path) -> None:
    copy = tmp_path / "a.pcap"
    copy.write_bytes(SESSION.read_bytes())
    assert "it is one of the files to be read" in refused("decode", copy, "--write", copy)
    assert "leave --columns out" in refused("decode", copy, "--write", tmp_path / "b", "--columns", "frame")
    assert "leave --output out" in refused("decode", copy, "--write", tmp_path / "b", "-o", tmp_path / "c")
    assert "leave --write out" in refused("decode", copy, "--write", tmp_path / "b", "--extract", tmp_path / "c")
    assert "is a pipe" in refused("decode", "-", "--write", tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["a.pcap"]
