"""Text from packets and file names is shown, never obeyed: not by a terminal, not by a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import V1, capture, expected_rows, from_csv, from_json, msmqwire, reply_from
from tests.insight.captures import message, stream, write

#: Names that MS-MQSD allows: any code units but U+0000 and the comma.
NAMES = (
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "＝１",
    'a";=2;"b',
    'quote"and\\back',
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31mred",
    "\x07\x08\x7f\x85",
    "line\u2028para\u2029",
    "\u202egnp.exe\u2066",
    "[red]markup[/red] :smile:",
    "null",
    "A" * 300,
    "\ud800",  # a lone surrogate
    "東京-サーバ",
    "😀",
    "'",
    "{}",
)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    path = tmp_path / "hostile.pcapng"
    path.write_bytes(capture([*(reply_from(name) for name in NAMES), reply_from(*NAMES, mark="01")]))
    return path


def steering(text: str) -> set[str]:
    """Characters that a terminal may obey."""
    return set(re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", text))


def names_in(rows: list[dict[str, Any]]) -> list[str]:
    return [server["name"] for row in rows for server in row["servers"]]


def test_json_keeps_every_name_and_steers_no_terminal(hostile: Path) -> None:
    text = msmqwire("decode", hostile, "--table", "topology").stdout
    rows = from_json(text)
    assert rows == expected_rows(hostile)
    assert names_in(rows)[: len(NAMES)] == [re.sub("[\ud800-\udfff]", "\ufffd", name) for name in NAMES]
    assert not steering(text.decode())
    assert text.count(b"\n") == len(NAMES) + 1


def test_csv_keeps_every_name_and_starts_no_formula(hostile: Path) -> None:
    data = msmqwire("decode", hostile, "-T", "csv").stdout
    assert from_csv(data) == expected_rows(hostile)
    text = data.decode()
    assert not steering(text) - {"\r"}
    # Read with every separator that spreadsheets use, knowing quotes or not
    for separator in (",", ";", "\t"):
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
            for record in csv.reader(io.StringIO(text, newline=""), delimiter=separator, quoting=quoting):
                for cell in record:
                    if separator == "," and quoting == csv.QUOTE_NONE:
                        continue  # no spreadsheet splits at commas inside quotes
                    assert not re.match(r"\s*[=+\-@＝＋－＠]", cell), (separator, cell)


def test_table_shows_names_without_obeying_them(hostile: Path) -> None:
    text = msmqwire("decode", hostile, "-T", "table", env={"COLUMNS": "400"}).stdout.decode()
    assert not steering(text)
    assert "=cmd|' /C calc'!A0 (ip)" in text
    assert "[red]markup[/red] :smile: (ip)" in text
    assert "�[2J�]0;owned� (ip)" in text
    assert "東京-サーバ (ip)" in text
    assert "A" * 63 + "… (ip)" in text
    assert "A" * 64 not in text
    assert "… 20 more" in text


@pytest.mark.parametrize("name", ["=1+1.pcapng", "-cmd.pcapng", "@a.pcapng", " +b.pcapng", "＝c.pcapng"])
def test_names_of_files_are_no_formulas(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(capture([V1.data]))
    done = msmqwire("decode", "-T", "csv", "--", name, cwd=tmp_path)
    assert done.returncode == 0
    assert from_csv(done.stdout)[0]["file"] == "'" + name
    assert from_json(msmqwire("decode", "--", name, cwd=tmp_path).stdout)[0]["file"] == name


def test_characters_without_a_shape_are_escapes_for_people(tmp_path: Path) -> None:
    label = "pay\u200bment\ufeff \U000e0041\xad1 \u200d"
    path = write(tmp_path / "x.pcap", stream([message(label=label)]))
    escaped = r"pay\u200bment\ufeff \U000e0041\xad1 " + "\u200d"
    for format in ("table", "brief"):
        done = msmqwire("decode", path, "--table", "messages", "-T", format, "--columns", "frame,label", "-q")
        assert escaped in done.stdout.decode()
    assert from_json(msmqwire("decode", path, "--table", "messages").stdout)[0]["label"] == label


def test_names_of_files_do_not_steer_a_terminal(tmp_path: Path) -> None:
    name = "\x1b[31m\x9b2J\u202e\n.pcapng"
    path = tmp_path / name
    path.write_bytes(capture([V1.data])[:-1])
    for format in ("json", "table", "brief"):
        done = msmqwire("decode", path, "-T", format)
        assert done.returncode == 2
        assert not steering(done.stdout.decode())
        assert not steering(done.stderr.decode())
        assert done.stderr.decode().count("\n") == 4  # frames, rows, bytes skipped, where
    assert from_json(msmqwire("decode", path, "--table", "topology").stdout) == expected_rows(path)
    done = msmqwire("decode", tmp_path / "\x1b[31m")
    assert done.returncode == 1
    assert not steering(done.stderr.decode())
