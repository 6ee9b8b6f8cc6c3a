"""``msmqwire decode --extract``: bodies and ExtensionData of messages as files, and a manifest of them."""

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
    from msmqwire.cli.chosen_rows import ChosenRows
    from msmqwire.insight.bodies import Kind

MANIFEST = "manifest.jsonl"
_PLACE = ("file", "frame", "first_frame", "stream_offset", "src", "src_port", "dst", "dst_port")
_PARTS = {"body": "bodies", "extension": "extensions"}
_MESSAGE = ("source_queue_manager", "message_id", "destination_queue", "label")


def extract(options: argparse.Namespace, chosen: ChosenRows) -> int:
    """Write the body and ExtensionData of each chosen message to files of their own; the exit status."""
    from msmqwire.capture import read_tables, table_columns
    from msmqwire.insight.bodies import NEEDED

    tables = chosen.tables(["messages"])
    names, refused = capture_files(options.files)
    needed = {*_PLACE, "time", *_MESSAGE, *NEEDED, "extension_data", "fault", *chosen.columns("messages")}
    columns = {"messages": [name for name in table_columns("messages") if name in needed]}
    how = read_options(options, names, columns=columns, guid="text", dictionaries=False, strict=options.strict)
    folder = _Folder(options.extract)
    with (
        read_tables(names, tables, how) as reader,
        progress(names, wanted=not options.quiet) as show,
        folder,
    ):
        rows: Any
        for _, rows in chosen.rows(reader, show):
            # Python has no type for nanoseconds
            times = rows["time"].cast("int64").to_pylist()
            for time, row in zip(times, rows.drop_columns("time").to_pylist(), strict=True):
                folder.add(time, row)
    if not options.quiet:
        _report(folder)
    return report(*counts(reader, refused), quiet=options.quiet)


def _report(folder: _Folder) -> None:
    for part, kinds in folder.kinds.items():
        text = ", ".join(f"{kind} {number:,}" for kind, number in kinds.most_common())
        say(f"{counted(kinds.total(), part, _PARTS[part])} written to {folder.path}" + (text and f": {text}"))


class _Folder:
    """The folder of the bodies."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.kinds: dict[str, Counter[str]] = {"body": Counter()}
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
        """Write the body of a message and its ExtensionData, as far as it has them, and its line of the manifest."""
        from msmqwire.capture.options import time_text
        from msmqwire.insight.bodies import body_kind, kind_of

        body, extension = row["body"] or row["compound_body"] or b"", row["extension_data"] or b""
        if not body and not extension:
            return
        stem = file_stem(f"{row['frame']}-{row['source_queue_manager']}-{row['message_id']}")
        self._names[stem] += 1
        stem += f"-{self._names[stem]}" if self._names[stem] > 1 else ""
        of_body = self._written("body", stem, body, kind_of(row, body))
        of_extension = self._written("extension", f"{stem}-extension", extension, body_kind(extension))
        line = {
            **of_body,
            **{f"extension_{name}" if name != "extension" else name: value for name, value in of_extension.items()},
            "time": None if time is None else time_text(time),
            **{column: row[column] for column in (*_PLACE, *_MESSAGE)},
        }
        with self._errors:
            self._manifest.write(json_line(line) + "\n")

    def _written(self, part: str, stem: str, data: bytes, kind: Kind | None) -> dict[str, Any]:
        """Write bytes of a message to a file, if there are any; what the manifest has of them."""
        from msmqwire.insight.bodies import EXTENSIONS

        if kind is None:
            return dict.fromkeys((part, "sha256", "kind", "size"))
        name = f"{stem}.{EXTENSIONS.get(kind.name, 'bin')}"
        self._write(name, data)
        self.kinds.setdefault(part, Counter())[kind.name] += 1
        return {part: name, "sha256": hashlib.sha256(data).hexdigest(), "kind": str(kind), "size": len(data)}

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
