"""The shell of ``msmqwire sql``: statements about the same captures, one after the other, on a terminal."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from msmqwire.capture import ALL_TABLES, table_columns
from msmqwire.cli.console import CommandError, describe_error, did_you_mean, say
from msmqwire.cli.formats import FORMATS
from msmqwire.cli.signals import Stopped
from msmqwire.errors import MsmqWireError

if TYPE_CHECKING:
    from prompt_toolkit.document import Document

_HELP = """A statement ends with ; and may have several lines. Tab completes tables and columns.
  .tables         the tables and their columns
  .format FORMAT  write results as {}
  .quit           leave; Ctrl-D does too
Ctrl-C ends a statement. The arrows show earlier ones."""
#: The formats of a terminal.
SHELL_FORMATS = tuple(format for format in FORMATS if format != "parquet")
_COMMANDS = (".format", ".help", ".quit", ".tables")
_WORD = re.compile(r"[.\w]+")
_KEYWORDS = (
    *(
        "AND",
        "AS",
        "ASC",
        "BETWEEN",
        "BY",
        "CASE",
        "COUNT",
        "DESC",
        "DISTINCT",
        "ELSE",
        "END",
        "FROM",
        "GROUP",
        "HAVING",
    ),
    *("ILIKE", "IN", "INTERVAL", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NOT", "NULL", "ON", "OR", "ORDER", "SELECT"),
    *("THEN", "UNION", "USING", "WHEN", "WHERE", "WITH"),
)


def run_shell(answer: Callable[[str, str], None], format: str) -> None:
    """Read statements until the end of the input; ``answer`` takes a statement and the format of its result."""
    session: PromptSession[str] = PromptSession(
        "msmqwire> ",
        completer=Words(),
        complete_while_typing=False,
        history=_history(),
        multiline=Condition(lambda: not is_complete(get_app().current_buffer.text)),
        prompt_continuation="     ...> ",
    )
    while True:
        try:
            # Its own handler of signals would not put back that of commands
            text = session.prompt(handle_sigint=False).strip().rstrip(";").rstrip()
            if text.startswith("."):
                name, _, argument = text.partition(" ")
                if name == ".quit":
                    return
                format = _obey(name, argument.strip(), format)
            elif text:
                answer(text, format)
        except EOFError:
            return
        except KeyboardInterrupt:  # while a statement is typed
            continue
        except Stopped as stopped:
            if stopped.number != signal.SIGINT:
                raise
            say("msmqwire: interrupted")
        except (MsmqWireError, OSError) as error:
            say(f"msmqwire: {describe_error(error)}")


def is_complete(text: str) -> bool:
    """Return True if Enter ends the text: an empty one, a command of the shell, a statement with its semicolon."""
    text = text.strip()
    return not text or text.startswith(".") or text.endswith(";")


def _obey(name: str, argument: str, format: str) -> str:
    """Carry out a command of the shell; the format of further results."""
    if name == ".format":
        if argument not in SHELL_FORMATS:
            raise CommandError(f"no format {argument}; there is {', '.join(SHELL_FORMATS)}")
        return argument
    if name == ".help":
        print(_HELP.format(", ".join(SHELL_FORMATS)), flush=True)
    elif name == ".tables":
        print("\n".join(f"{table}: {', '.join(table_columns(table))}" for table in ALL_TABLES), flush=True)
    else:
        raise CommandError(f"no command {name}{did_you_mean(name, _COMMANDS) or '; .help shows them'}")
    return format


class Words(Completer):
    """Completes commands of the shell, columns of the tables that the text names, tables, and keywords."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield the completions of the word before the cursor."""
        word = document.get_word_before_cursor(pattern=_WORD)
        begin, dot, last = word.rpartition(".")
        before = document.text_before_cursor[: -len(word) or None].strip()
        if not before and dot and not begin:
            known: Iterable[str] = _COMMANDS
            last = word
        elif before == ".format":
            known = SHELL_FORMATS
        elif before.lower().endswith((" from", " join")):
            known = ALL_TABLES
        else:
            known = _names(document.text)
        for name in known:
            if name.lower().startswith(last.lower()):
                yield Completion(name, start_position=-len(last))


def _names(text: str) -> Iterator[str]:
    """Yield what may stand in a statement."""
    words = {word.lower() for word in _WORD.findall(text)}
    tables = [table for table in ALL_TABLES if table in words] or list(ALL_TABLES)
    yield from dict.fromkeys(column for table in tables for column in table_columns(table))
    yield from ALL_TABLES
    yield from _KEYWORDS


def _history() -> History:
    """Statements of earlier shells, which only this user can read; those of this shell where no file can be made."""
    if sys.platform == "win32":
        folder = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
    else:
        folder = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    path = os.path.join(folder, "msmqwire", "sql_history")
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)
