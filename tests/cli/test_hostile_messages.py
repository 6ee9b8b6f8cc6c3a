"""Labels, bodies and names of queues in messages are shown, never obeyed, in every form of output."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from msmqwire import mqqb
from msmqwire.capture.files.writing import CaptureWriter, Flow
from tests.cli.support import msmqwire, run
from tests.cli.terminal import Terminal, start
from tests.cli.test_decode_hostile import NAMES, steering

MORE = (
    "<script>alert(1)</script>",
    '"]; x -- y [label="',
    "../../../../etc/passwd",
    "C:\\Windows\\..\\a",
    "%s%n{0}${HOME}$(id)`id`",
    "a\tb\r\nc",
    '=HYPERLINK("http://x")',
)
#: What a label can hold: 249 code units without U+0000, and no lone surrogate, which has no text.
TEXTS = tuple(text[:249] for text in (*NAMES, *MORE) if text != "\ud800")
STRING = 8  # BodyType of UTF-16 text: VT_BSTR


def message(text: str) -> bytes:
    return mqqb.encode(
        mqqb.UserMessage(
            destination_queue="DIRECT=OS:server\\private$\\q",
            label=text,
            body=text.encode("utf-16-le"),
            body_type=STRING,
        )
    )


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "messages.pcap"
    with path.open("wb") as file:
        writer = CaptureWriter(file)
        for text in TEXTS:
            writer.stream(1_709_539_200_000_000_000, Flow("192.0.2.1", 50000, "192.0.2.2", 1801), message(text))
    return path


COLUMNS = ("--table", "messages", "--columns", "label,body_text")


def test_json_has_every_text_and_steers_no_terminal(hostile: Path) -> None:
    text = msmqwire("decode", hostile, *COLUMNS).stdout.decode()
    rows = [json.loads(line) for line in text.splitlines()]
    assert [(row["label"], row["body_text"]) for row in rows] == [(text, text) for text in TEXTS]
    assert not steering(text)


def test_csv_has_every_text_and_starts_no_formula(hostile: Path) -> None:
    text = msmqwire("decode", hostile, *COLUMNS, "-T", "csv").stdout.decode()
    _, *records = csv.reader(io.StringIO(text, newline=""))
    assert [label.removeprefix("'") for label, _ in records] == [text.removeprefix("'") for text in TEXTS]
    assert all(label == body for label, body in records)
    assert not any(re.match(r"\s*[=+\-@＝＋－＠]", cell) for record in records for cell in record)


@pytest.mark.parametrize("form", ["csv", "json", "table"])
def test_a_terminal_is_not_steered(hostile: Path, form: str) -> None:
    terminal = Terminal(columns=200)
    with start(["decode", hostile, *COLUMNS, "-q", "-T", form], stdout=terminal.descriptor) as child:
        assert child.wait(60) == 0
    text = re.sub(r"\x1b\[[\d;]*m", "", terminal.text())  # colours
    assert not steering(text.replace("\r", ""))
    assert "etc/passwd" in text


@pytest.mark.parametrize("form", ["table", "brief"])
@pytest.mark.parametrize("width", ["60", "400"])
def test_forms_for_people_steer_no_terminal(hostile: Path, form: str, width: str) -> None:
    columns = COLUMNS if form == "table" else COLUMNS[:2]
    done = msmqwire("decode", hostile, *columns, "-T", form, env={"COLUMNS": width})
    assert done.returncode == 0
    text = done.stdout.decode()
    assert not steering(text)
    assert "[red]markup[/red]" in text or width == "60"


def test_no_file_is_named_after_text_of_a_packet(hostile: Path, tmp_path: Path) -> None:
    output = tmp_path / "rows.parquet"
    before = set(hostile.parent.iterdir())
    assert (
        msmqwire("decode", hostile, "--table", "messages", "-o", output, "-T", "parquet", cwd=tmp_path).returncode == 0
    )
    assert set(tmp_path.rglob("*")) == {output}
    assert set(hostile.parent.iterdir()) == before


@pytest.mark.parametrize("text", MORE)
def test_names_that_are_arguments(text: str, tmp_path: Path) -> None:
    """What is refused is shown in an error, without its control characters."""
    for command in (["resolve", f"DIRECT=OS:{text}\\q"], ["decode", tmp_path / text.replace("/", "_")]):
        _, output, errors = run(*command)
        assert not steering(output)
        assert not steering(errors)
