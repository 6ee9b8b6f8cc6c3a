"""``msmqwire sql CAPTURE`` without a statement: a shell on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmqwire.cli.sql_shell import SHELL_FORMATS, Words, is_complete
from tests.cli.support import EXAMPLES, msmqwire, refused
from tests.cli.terminal import start, take_terminal

pytest.importorskip("prompt_toolkit")
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

SESSION = EXAMPLES / "message-session.pcap"
PROMPT = "msmqwire>"
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|[=>])")


class Shell:
    """A shell on a pseudo-terminal that is typed to, and what it shows."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 50, 120, 0, 0))
        variables = {"XDG_STATE_HOME": str(folder)}
        self.process = start(
            *(["sql", *arguments], variables),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=take_terminal,
        )
        os.close(slave)
        self._text = ""
        self.expect(PROMPT)

    def expect(self, text: str) -> str:
        """Wait until a text is shown; all that was shown before its end, without what moves the cursor."""
        while text not in (shown := _ESCAPES.sub("", self._text)):
            assert select.select([self._master], [], [], 60)[0], f"no {text!r} in {shown!r}"
            data = os.read(self._master, 65536)
            if b"\x1b[6n" in data:  # where is the cursor?
                os.write(self._master, b"\x1b[1;1R")
            self._text += data.decode()
        before, _, rest = shown.partition(text)
        self._text = rest
        return before

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def ask(self, text: str, answer: str) -> str:
        """Type a line, and wait until a text is shown; what was shown before it."""
        self.type(text + "\r")
        return self.expect(answer)

    def ask_long(self) -> None:
        """Have a statement answered that takes hours; wait until Ctrl-C is a signal, and no key of the prompt."""
        self.type("SELECT sum(a.range * b.range) AS n FROM range(10000000) a, range(10000000) b;\r")
        while termios.tcgetattr(self._master)[3] & termios.ISIG == 0:
            time.sleep(0.01)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path, SESSION, "-T", "json")
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.process.wait()


def test_statements_formats_and_mistakes(shell: Shell) -> None:
    shell.ask("SELECT label FROM messages WHERE label LIKE 'Order%';", "Order 4711")
    shell.expect("1 row")
    shell.ask(".format parquet", "no format parquet; there is table, brief, json, csv")
    shell.ask(".format csv", PROMPT)
    shell.ask("SELECT 1.5 AS a, 'x' AS b;", "1.5,x")
    shell.ask("SELECT * FROM lables;", "no table is called lables")
    shell.ask(".table", "did you mean .tables")
    shell.ask(".tables", "connections: file, frame,")
    shell.ask("SELECT 40 + 2", "...>")
    shell.ask("AS n, 'x' AS b;", "42,x")
    shell.type(".quit\r")
    assert shell.process.wait(60) == 0


def test_an_interrupt_ends_the_statement_and_not_the_shell(shell: Shell) -> None:
    shell.ask_long()
    shell.type("\x03")
    shell.expect("interrupted")
    shell.expect(PROMPT)
    shell.type("SELECT 1 AS")
    shell.expect("AS")
    shell.type("\x03")
    shell.ask("SELECT 2 AS n;", '{"n":2}')
    shell.expect(PROMPT)
    shell.type("\x04")
    assert shell.process.wait(60) == 0


def test_a_signal_that_ends_processes_ends_the_shell(shell: Shell) -> None:
    shell.ask_long()
    shell.process.send_signal(signal.SIGTERM)
    assert shell.process.wait(60) == -signal.SIGTERM


def test_the_history_is_kept(tmp_path: Path) -> None:
    for line in ("SELECT 17 AS n;", "\x1b[A"):
        shell = Shell(tmp_path, SESSION, "-T", "json")
        shell.ask(line, '{"n":17}')
        shell.expect(PROMPT)
        shell.type("\x04")
        assert shell.process.wait(60) == 0
    history = tmp_path / "msmqwire" / "sql_history"
    assert "SELECT 17 AS n;" in history.read_text("utf-8")
    assert (history.stat().st_mode & 0o777, history.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_tab_completes(shell: Shell) -> None:
    shell.type("SELECT count(*) AS n FROM mess\t")
    shell.expect("ages")
    shell.ask(";", '{"n":5}')


@pytest.mark.parametrize(
    ("text", "wanted", "other"),
    [
        ("SELECT lab", "label", "label_length"),
        ("SELECT m.lab", "label", "label_length"),
        ("SELECT * FROM topo", "topology", "messages"),
        ("SELECT * FROM mess", "messages", "message_id"),
        ("sel", "SELECT", "sessions"),
        (".fo", ".format", ".quit"),
        (".format j", "json", "csv"),
        ("SELECT * FROM topology WHERE sit", "site_id", "source_queue"),
    ],
)
def test_completions(text: str, wanted: str, other: str) -> None:
    found = [each.text for each in Words().get_completions(Document(text), CompleteEvent())]
    assert wanted in found
    assert other not in found


def test_columns_are_those_of_the_tables_that_are_named() -> None:
    text = "SELECT  FROM topology"
    found = [each.text for each in Words().get_completions(Document(text, 7), CompleteEvent())]
    assert "servers" in found
    assert "label" not in found


@pytest.mark.parametrize(
    ("text", "complete"), [("", True), (".tables", True), ("SELECT 1", False), ("SELECT 1; ", True), ("a;\nb", False)]
)
def test_enter_ends_what_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_a_shell_needs_a_terminal_and_files() -> None:
    assert f"{SESSION}: is no statement; without one, a shell needs a terminal" in refused("sql", SESSION)
    assert "name captures after the statement; captures alone start a shell" in refused("sql", "SELECT 1")
    assert msmqwire("sql", SESSION, "-T", "csv").returncode == 1
    assert "parquet" not in SHELL_FORMATS
