"""The rows of captures that ``--where``, ``--queue`` and ``--message`` choose."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msmqwire.cli.console import CommandError, optional, say
from msmqwire.errors import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.capture import TablesReader


def add_conditions(parser: argparse.ArgumentParser) -> None:
    """Add the options, which ``ChosenRows`` reads."""
    parser.add_argument(
        "--where", metavar="CONDITION", help="only rows for which this condition in SQL is true; needs DuckDB"
    )
    help = r"only messages to this queue: a format name or its end, as private$\orders"
    parser.add_argument("--queue", metavar="NAME", help=help)
    help = "only the message with this identifier, as Windows prints it"
    parser.add_argument("--message", metavar=r"GUID\NUMBER", help=help)


class ChosenRows:
    """The rows for which all of the options are true: all rows without them.

    Raises
    ------
    CommandError
        DuckDB is not installed, or an identifier is not valid.
    SqlError
        No table has the columns of the condition.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        found = {name: getattr(options, name) for name in ("where", "queue", "message")}
        self._given = {f"--{name}": value for name, value in found.items() if value is not None}
        self._count = 0
        self._condition = None
        if self._given:
            optional("duckdb", next(iter(self._given)))
            from msmqwire.insight.sql import Condition

            in_sql: dict[str, Callable[[str], str]] = {"--where": str, "--queue": _to_queue, "--message": _of_message}
            texts = [in_sql[name](value) for name, value in self._given.items()]
            self._condition = Condition(texts[0] if len(texts) == 1 else " AND ".join(f"({text}\n)" for text in texts))

    def tables(self, tables: Sequence[str]) -> list[str]:
        """Return those of the tables that have the columns of the condition.

        Raises
        ------
        CommandError
            None has them.
        """
        found = [table for table in tables if self._condition is None or table in self._condition.tables]
        if not found:
            given = " ".join(f"{name} {value}" for name, value in self._given.items())
            raise CommandError(f"{given}: {', '.join(tables)} lacks columns of the condition")
        return found

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of a table that the condition needs."""
        return self._condition.columns(table) if self._condition else ()

    def rows(self, reader: TablesReader, show: Callable[[int], None]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the chosen rows of each batch with the name of its table; ``show`` gets the bytes that were read.

        Raises
        ------
        CommandError
            DuckDB refuses the condition.
        """
        if self._condition:
            from msmqwire.insight.sql import SqlError

            try:
                for table in reader.tables.values():
                    self._condition.check(table.schema)
            except SqlError as error:
                raise CommandError(f"--where: {error}") from None
        for name, batch in reader:
            found = self._condition.rows(batch) if self._condition else batch
            self._count += len(found)
            yield name, found
            show(reader.stats.bytes_read)

    def report(self, *, quiet: bool) -> None:
        """Say for how many rows the condition is true, if there is one."""
        if self._given and not quiet:
            is_true = "is true" if len(self._given) == 1 else "are true"
            say(f"{' '.join(self._given)} {is_true} for {counted(self._count, 'row')}")


def _to_queue(name: str) -> str:
    """Return the condition that a message goes to a queue, whose name has letters of any case."""
    # The name, or its end after a part of a format name; of several destinations each in a line
    pattern = r"(?i)(^|[\\:=/\n])" + re.escape(name.removeprefix("\\")) + r"(\n|$)"
    names = "concat_ws(chr(10), destination_queue, array_to_string(destination_queues, chr(10)))"
    return f"regexp_matches({names}, {_quoted(pattern)})"


def _of_message(identifier: str) -> str:
    from msmqwire.cli.packets import parse_message_identifier

    try:
        manager, number = parse_message_identifier(identifier)
    except ValueError as error:
        raise CommandError(f"--message: {error}") from None
    identifier = f"{manager}\\{number}"
    return f"message_identifier = {_quoted(identifier)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
