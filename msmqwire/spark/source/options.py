"""The options of the data source, parsed from Spark's mapping of strings."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from pyspark.sql.types import StructField, StructType

from msmqwire import capture
from msmqwire.capture import ReadOptions
from msmqwire.capture.files.listing import SourceFile, find_files
from msmqwire.capture.files.remote import StorageOptions
from msmqwire.capture.options import parse_network, parse_ports, parse_time
from msmqwire.errors import CaptureError
from msmqwire.spark.schema import GUID_FORMS, SparkColumn, SparkGuid
from msmqwire.spark.source.scan import ScanOptions

T = TypeVar("T")

# The key under which a table of a catalog keeps its options: in the metadata of its first column
_OF_TABLE = "msmq.options"

# As documented; Spark ignores the case of option names
OPTIONS = (
    "table",
    "ports",
    "addresses",
    "since",
    "until",
    "mode",
    "guid",
    "recursive",
    "pathGlobFilter",
    "modifiedAfter",
    "modifiedBefore",
    "ignoreCorruptFiles",
    "sequence",
    "splitSize",
    "storageOptions",
    "maxBytesPerTrigger",
    "failOnDataLoss",
)
# The name of the option in Spark's own file sources
_ALIASES = {"recursivefilelookup": "recursive"}

# Options of Spark's own file sources that are not taken, and what does the same
_INSTEAD = {
    "columnnameofcorruptrecord": "the column fault says why a payload cannot be decoded",
    "ignoremissingfiles": "files that are gone are handled as ignoreCorruptFiles says",
    "maxfilespertrigger": "use maxBytesPerTrigger",
    "latestfirst": "captures are read in the order of their names",
}

_SECRET = {"storageoptions"}
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
    name_glob : str or None
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
    name_glob: str | None = None
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

    def check_capture(self) -> None:
        """Refuse one named file that is no capture, which would have no rows.

        Raises
        ------
        CaptureError, OSError
            It is no capture, or cannot be read.
        """
        if len(self.paths) > 1 or self.ignore_corrupt_files:
            return
        (path,) = self.paths
        if os.path.isfile(path):
            try:
                capture.open(path).close()
            except CaptureError as error:
                raise CaptureError(f"{error}; with ignoreCorruptFiles=true it has no rows") from None

    def _is_wanted(self, file: SourceFile) -> bool:
        name = file.name.rpartition("/")[2]
        # A file whose time is unknown is read
        modified = file.modified_ns
        return (
            (self.name_glob is None or fnmatchcase(name, self.name_glob))
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
        given = {_ALIASES.get(name.lower(), name.lower()): value for name, value in options.items()}
        several, one = given.pop("paths", None), given.pop("path", None)
        paths = tuple(json.loads(several)) if several is not None else (one,) if one is not None else ()
        if not paths:
            raise ValueError('no path: read.format("msmq").load("captures/*.pcapng")')
        for name in options:
            lower = name.lower()
            if lower in _INSTEAD:
                raise ValueError(f"{name}: no such option; {_INSTEAD[lower]}")
            if _ALIASES.get(lower, lower) not in {"path", "paths", *(one.lower() for one in OPTIONS)}:
                raise ValueError(f"{name}: no such option; there are {', '.join(OPTIONS)}")

        def read(name: str, parse: Callable[[str], T], default: T) -> T:
            text = given.get(name.lower())
            if text is None:
                return default
            try:
                return parse(text.strip())
            except ValueError as error:
                raise ValueError(f"{name}={error}") from None

        scan = ScanOptions(
            (given.get("table", "topology").lower(),),
            given.get("mode", "PERMISSIVE").upper(),  # type: ignore[arg-type] # checked there
            ReadOptions(
                ports=read("ports", parse_ports, None),
                addresses=read("addresses", parse_networks, ()),
                since=read("since", parse_time, None),
                until=read("until", parse_time, None),
                guid=read("guid", parse_guid, "text"),
            ),
            read("storageOptions", parse_object, {}),
        )
        return cls(
            paths,
            scan,
            recursive=read("recursive", parse_bool, False),
            name_glob=given.get("pathglobfilter"),
            modified_after=read("modifiedAfter", parse_time, None),
            modified_before=read("modifiedBefore", parse_time, None),
            ignore_corrupt_files=read("ignoreCorruptFiles", parse_bool, None),
            sequence=read("sequence", parse_bool, False),
            split_size=read("splitSize", parse_size, None),
            max_bytes_per_trigger=read("maxBytesPerTrigger", parse_limit, None),
            fail_on_data_loss=read("failOnDataLoss", parse_bool, True),
            given={name: given[name.lower()] for name in OPTIONS if name.lower() in given.keys() - _SECRET},
        )


def is_lake(options: Mapping[str, str]) -> bool:
    """Whether the options name a lake, which ``lakes`` reads."""
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
    """The options with which columns of a schema are read: those of its table, if it is of a table that was created."""
    kept = (field.metadata[_OF_TABLE] for field in schema if _OF_TABLE in field.metadata)
    return {**json.loads(next(kept, "{}")), **described(StructType(), options)[1]}


def parse_networks(text: str) -> tuple[str, ...]:
    """Addresses and networks, separated by commas."""
    return tuple(parse_network(item.strip()) for item in text.split(","))


def parse_guid(text: str) -> SparkGuid:
    """A form of GUIDs."""
    for form in GUID_FORMS:
        if text.lower() == form:
            return form
    raise ValueError(f"{text!r} is not one of {', '.join(map(repr, GUID_FORMS))}")


def parse_bool(text: str) -> bool:
    """A truth value as Spark writes it."""
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


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


def parse_object(text: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        # The text may contain a secret
        raise ValueError('(not shown) is not a JSON object, as in {"endpoint_override": "http://localhost:9000"}')
    return value
