"""The options of the data source, parsed from Spark's mapping of strings."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from pyspark.sql.types import StructField, StructType

from msmqwire import capture
from msmqwire.capture import ReadOptions
from msmqwire.capture.files.listing import SourceFile, find_files, is_compressed, local_path
from msmqwire.capture.files.remote import StorageOptions
from msmqwire.capture.options import parse_bool, parse_strings, parse_time
from msmqwire.errors import CaptureError
from msmqwire.spark.schema import SparkColumn
from msmqwire.spark.source.scan import ScanOptions

# The key under which a table of a catalog keeps its options: in the metadata of its first column
_OF_TABLE = "msmq.options"

# The name of the option in Spark's own file sources
_ALIASES = {"recursiveFileLookup": "recursive"}

# Options of Spark's own file sources that are not taken, and what does the same
_INSTEAD = {
    "columnnameofcorruptrecord": "the column fault says why a payload cannot be decoded",
    "ignoremissingfiles": "files that are gone are handled as ignoreCorruptFiles says",
    "maxfilespertrigger": "use maxBytesPerTrigger",
    "latestfirst": "captures are read in the order of their names",
}

_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


@dataclass(frozen=True)
class SourceOptions:
    """The options of one read, or of one stream.

    Attributes
    ----------
    paths : tuple of str
        Files, folders, globs, URIs.
    scan : ScanOptions
        The rows to read, of one table.
    recursive : bool
        Read the files of subfolders as well.
    path_glob_filter : str or None
        Read only files whose names, without folders, match this glob.
    modified_after, modified_before : int or None
        Read only files that were last changed after, or before, this time in nanoseconds since 1970.
    ignore_corrupt_files : bool or None
        Read past captures that cannot be read, with a warning, instead of ending the job; None: not given.
    sequence : bool
        The captures, in the order of their names, are parts of one capture.
    split_size : int or None
        Split captures into parts of this many bytes; 0: never split, None: ``planning.plan`` decides.
    max_bytes_per_trigger : int or None
        Bytes of captures in a batch of a stream; None: no limit.
    fail_on_data_loss : bool
        End a stream when one of its files is missing, truncated or replaced.
    given : mapping of str to str
        The options as they were given, by their documented names, without ``storageOptions``, which have secrets.
    """

    paths: tuple[str, ...]
    scan: ScanOptions
    recursive: bool = False
    path_glob_filter: str | None = None
    modified_after: int | None = None
    modified_before: int | None = None
    ignore_corrupt_files: bool | None = None
    sequence: bool = False
    split_size: int | None = None
    max_bytes_per_trigger: int | None = None
    fail_on_data_loss: bool = True
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """The table to read."""
        return self.scan.tables[0]

    @property
    def columns(self) -> tuple[SparkColumn, ...]:
        """All columns of the table."""
        return self.scan.columns(self.table)

    @property
    def storage_options(self) -> StorageOptions:
        """Keyword arguments of the file systems of URIs."""
        return self.scan.storage_options

    def files(self) -> tuple[SourceFile, ...]:
        """The captures to read, sorted by name.

        Raises
        ------
        FileNotFoundError
            A path matches no file.
        OSError, ValueError
            As for ``find_files``.
        """
        found = find_files(self.paths, recursive=self.recursive, storage_options=self.storage_options)
        return tuple(file for file in found if self._is_wanted(file))

    def check_capture(self, *, may_grow: bool = False) -> None:
        """Refuse one named file of this machine that is no capture, which would have no rows.

        ``may_grow``: not one that is empty, ends inside its header or is compressed: a writer may have just begun it.

        Raises
        ------
        CaptureError, OSError
            It is no capture, or cannot be read.
        """
        if len(self.paths) > 1 or self.ignore_corrupt_files:
            return
        (name,) = self.paths
        path = local_path(name)
        # A link to a file that is gone cannot be opened
        if os.path.isfile(path) or (os.path.islink(path) and not os.path.exists(path)):
            try:
                if not (may_grow and os.path.isfile(path) and is_compressed(path)):
                    capture.open(path, final=not may_grow).close()
            except CaptureError as error:
                raise type(error)(f"{error}; with ignoreCorruptFiles=true it has no rows") from None

    def _is_wanted(self, file: SourceFile) -> bool:
        name = file.name.rpartition("/")[2]
        # A file whose time is unknown is read
        modified = file.modified_ns
        return (
            (self.path_glob_filter is None or fnmatchcase(name, self.path_glob_filter))
            and (self.modified_after is None or modified is None or modified > self.modified_after)
            and (self.modified_before is None or modified is None or modified < self.modified_before)
        )

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """Parse and check the options.

        Raises
        ------
        ValueError
            An option is unknown or has a value that it cannot have; the message begins with both.
        """
        known = {name.lower(): value for name, value in options.items()}
        several, one = known.get("paths"), known.get("path")
        paths = parse_paths(several) if several is not None else (one,) if one is not None else ()
        if not paths:
            raise ValueError(
                'no path: read.format("msmq").load("captures/*.pcapng"), or CREATE TABLE without columns: '
                "of a table with columns Spark passes no options"
            )
        for name in options:
            if name.lower() in _INSTEAD:
                raise ValueError(f"{name}: no such option; {_INSTEAD[name.lower()]}")
        given = named(options, (*OPTIONS, "storageOptions"), ignored=("path", "paths"))
        values = parse_strings({name: given[name] for name in given if name in _PARSERS}, _PARSERS)
        read = ReadOptions.from_strings({name: given[name] for name in given if name in OF_READING}, guid="text")
        scan = ScanOptions((values.pop("table", "topology"),), values.pop("mode", "PERMISSIVE"), read)
        return cls(paths, scan, given={name: given[name] for name in OPTIONS if name in given}, **values)


def named(
    options: Mapping[str, str], known: Collection[str], *, ignored: Collection[str] = (), of: str = ""
) -> dict[str, str]:
    """Options by their documented names, since Spark ignores the case of names.

    Raises
    ------
    ValueError
        There is no such option.
    """
    names = {**{name.lower(): name for name in known}, **{name.lower(): _ALIASES[name] for name in _ALIASES}}
    for name in options:
        if name.lower() not in (*names, *ignored):
            raise ValueError(f"{name}: no such option{of}; there are {', '.join(known)}")
    return {names[name.lower()]: value for name, value in options.items() if name.lower() in names}


def is_lake(options: Mapping[str, str]) -> bool:
    """Return True if the options name a lake, which ``lakes`` reads."""
    return any(name.lower() == "lake" for name in options)


def described(schema: StructType, options: Mapping[str, str]) -> tuple[StructType, dict[str, str]]:
    """The schema and the options of a read, or of a table that is created.

    Spark passes the options of ``CREATE TABLE`` among properties of the table, and none of them when the table is read.
    What a table keeps is its schema, so the options are kept there.
    """
    given = {name.lower(): value for name, value in options.items()}
    if "provider" not in given:
        return schema, dict(options)
    own = {name.removeprefix("option."): value for name, value in given.items() if name.startswith("option.")}
    if not {"path", "paths", "lake"} & own.keys() and "location" in given:
        own["path"] = given["location"]
    kept = [
        StructField(field.name, field.dataType, field.nullable, {_OF_TABLE: json.dumps(own)})
        for field in schema.fields[:1]
    ]
    return StructType([*kept, *schema.fields[1:]]), own


def of_table(schema: StructType, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options to read columns of a schema: of its table, if the schema is of a table that was created."""
    kept = (field.metadata[_OF_TABLE] for field in schema if _OF_TABLE in field.metadata)
    return {**json.loads(next(kept, "{}")), **described(StructType(), options)[1]}


def parse_paths(text: str) -> tuple[str, ...]:
    """The paths of ``load`` with a list, which Spark passes as a JSON array."""
    try:
        paths = json.loads(text)
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ValueError(f"paths={text!r} is not a JSON array of paths; pass a list of them to load")
    return tuple(paths)


def parse_glob(text: str) -> str:
    """Refuse alternatives in braces in a glob: Spark's own sources have them, here they would match no file."""
    if "{" in text.replace("[{]", ""):
        raise ValueError(
            f"{text!r}: a glob has no alternatives in braces; '*.pcap*' matches pcap and pcapng, '[{{]' a brace"
        )
    return text


def parse_size(text: str) -> int:
    """A number of bytes as Spark writes it: ``67108864``, ``64m``."""
    match = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", text.lower())
    if match is None:
        raise ValueError(f"{text!r} is not a size in bytes, as in 67108864 or 64m")
    return int(match[1]) << _UNITS[match[2]]


def parse_limit(text: str) -> int:
    """A size that is not zero."""
    if size := parse_size(text):
        return size
    raise ValueError(f"{text!r} leaves nothing to read")


#: The fields of ReadOptions among the options, which it parses.
OF_READING = ("ports", "copies", "addresses", "since", "until", "guid", "storageOptions")
# The other options, and the function that parses each
_PARSERS: dict[str, Callable[[str], Any]] = {
    "table": str.lower,
    "mode": str.upper,
    "recursive": parse_bool,
    "pathGlobFilter": parse_glob,
    "modifiedAfter": parse_time,
    "modifiedBefore": parse_time,
    "ignoreCorruptFiles": parse_bool,
    "sequence": parse_bool,
    "splitSize": parse_size,
    "maxBytesPerTrigger": parse_limit,
    "failOnDataLoss": parse_bool,
}
#: The options that an offset of a stream notes: storageOptions have secrets.
OPTIONS = tuple(name for name in ("table", *OF_READING, *list(_PARSERS)[1:]) if name != "storageOptions")
