"""``msmqwire decode --extract``: bodies of messages as files, and a manifest of them."""

from __future__ import annotations

import argparse
import hashlib
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from msmqwire.cli.arguments import capture_files, read_options
from msmqwire.cli.console import CommandError, OutputErrors, json_line, say
from msmqwire.cli.counts import counts, report
from msmqwire.cli.file_names import file_stem
from msmqwire.cli.progress import progress
from msmqwire.cli.target import make_folder
from msmqwire.errors import counted

if TYPE_CHECKING:
    from msmqwire.insight.sql import Condition

MANIFEST = "manifest.jsonl"
_PLACE = ("file", "frame", "first_frame", "stream_offset", "src", "src_port", "dst", "dst_port")
_MESSAGE = ("source_queue_manager", "message_id", "destination_queue", "label")


def extract(options: argparse.Namespace, condition: Condition | None) -> int:
    """Write the body of each message to a file of its own; the exit status."""
    from msmqwire.capture import read_tables, table_columns
    from msmqwire.insight.bodies import NEEDED

    names, refused = capture_files(options.files)
    needed = {*_PLACE, "time", *_MESSAGE, *NEEDED, "fault", *(condition.columns("messages") if condition else ())}
    columns = {"messages": [name for name in table_columns("messages") if name in needed]}
    how = read_options(options, names, columns=columns, guid="text", dictionaries=False, strict=options.strict)
    folder = _Folder(options.extract)
    with (
        read_tables(names, ["messages"], how) as reader,
        progress(names, wanted=not options.quiet) as show,
        folder,
    ):
        for _, batch in reader:
            rows: Any = condition.rows(batch) if condition else batch
            # Python has no type for nanoseconds
            times = rows["time"].cast("int64").to_pylist()
            for time, row in zip(times, rows.drop_columns("time").to_pylist(), strict=True):
                folder.add(time, row)
            show(reader.stats.bytes_read)
    if not options.quiet:
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in folder.kinds.most_common())
        say(
            f"{counted(folder.kinds.total(), 'body', 'bodies')} written to {options.extract}" + (kinds and f": {kinds}")
        )
    return report(*counts(reader, refused), quiet=options.quiet)


class _Folder:
    """The folder of the bodies."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.kinds: Counter[str] = Counter()
        self._names: Counter[str] = Counter()
        self._errors = OutputErrors(os.path.join(path, MANIFEST))

    def __enter__(self) -> _Folder:
        make_folder(self.path)
        try:
            self._manifest = open(os.path.join(self.path, MANIFEST), "x", encoding="utf-8")
        except FileExistsError:
            raise CommandError(f"{self.path} has bodies already: name another folder, or delete {MANIFEST}") from None
        return self

    def __exit__(self, *_: object) -> None:
        with self._errors:
            self._manifest.close()

    def add(self, time: int | None, row: dict[str, Any]) -> None:
        """Write the body of a message, if it has one, and its line of the manifest."""
        from msmqwire.capture.options import time_text
        from msmqwire.insight.bodies import EXTENSIONS, kind_of

        body = row["body"] or row["compound_body"]
        kind = kind_of(row, body)
        if kind is None:
            return
        stem = file_stem(f"{row['frame']}-{row['source_queue_manager']}-{row['message_id']}")
        self._names[stem] += 1
        number = f"-{self._names[stem]}" if self._names[stem] > 1 else ""
        name = f"{stem}{number}.{EXTENSIONS.get(kind.name, 'bin')}"
        self._write(name, body)
        self.kinds[kind.name] += 1
        line = {
            "body": name,
            "sha256": hashlib.sha256(body).hexdigest(),
            "kind": str(kind),
            "size": len(body),
            "time": None if time is None else time_text(time),
            **{column: row[column] for column in (*_PLACE, *_MESSAGE)},
        }
        with self._errors:
            self._manifest.write(json_line(line) + "\n")

    def _write(self, name: str, body: bytes) -> None:
        """Write a file, all of it or none."""
        path = os.path.join(self.path, name)
        with OutputErrors(path):
            file = open(path, "xb")  # noqa: SIM115 # a file that exists is not removed
            try:
                with file:
                    file.write(body)
            except BaseException:
                os.unlink(path)
                raise
