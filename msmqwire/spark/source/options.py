"""The options of the data source, parsed from Spark's mapping of strings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from msmqwire.capture import ReadOptions
from msmqwire.capture.options import parse_network, parse_ports, parse_time
from msmqwire.spark.source.remote import StorageOptions
from msmqwire.spark.source.scan import ScanOptions

__all__ = ["OPTIONS", "SourceOptions"]

T = TypeVar("T")

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
    "sequence",
    "splitSize",
    "storageOptions",
    "maxBytesPerTrigger",
    "failOnDataLoss",
)
# The name of the option in Spark's own file sources
_ALIASES = {"recursivefilelookup": "recursive"}

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
    sequence : bool
        The captures, in the order of their names, are parts of one capture.
    split_size : int or None
        Split captures into parts of this many bytes; 0: never split, None: ``planning.plan`` decides.
    max_bytes_per_trigger : int or None
        Bytes of captures in a batch of a stream; None: no limit.
    fail_on_data_loss : bool
        End a stream when one of its files is missing, truncated or replaced.
    """

    paths: tuple[str, ...]
    scan: ScanOptions
    recursive: bool = False
    sequence: bool = False
    split_size: int | None = None
    max_bytes_per_trigger: int | None = None
    fail_on_data_loss: bool = True

    @property
    def table(self) -> str:
        """The table to read."""
        return self.scan.tables[0]

    @property
    def storage_options(self) -> StorageOptions:
        """Keyword arguments of the file systems of URIs."""
        return self.scan.storage_options

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
        unknown = sorted(set(given) - {name.lower() for name in OPTIONS})
        if unknown:
            raise ValueError(f"no such option: {', '.join(unknown)}; there are {', '.join(OPTIONS)}")

        def read(name: str, parse: Callable[[str], T], default: T) -> T:
            text = given.get(name.lower())
            if text is None:
                return default
            try:
                return parse(text.strip())
            except ValueError as error:
                raise ValueError(f"{name}={error}") from None

        scan = ScanOptions(
            (given.get("table", "topology"),),
            given.get("mode", "PERMISSIVE").upper(),  # type: ignore[arg-type] # checked there
            ReadOptions(
                ports=read("ports", parse_ports, None),
                addresses=read("addresses", parse_networks, ()),
                since=read("since", parse_time, None),
                until=read("until", parse_time, None),
                guid=given.get("guid", "text").lower(),  # type: ignore[arg-type]
            ),
            read("storageOptions", parse_object, {}),
        )
        return cls(
            paths,
            scan,
            recursive=read("recursive", parse_bool, False),
            sequence=read("sequence", parse_bool, False),
            split_size=read("splitSize", parse_size, None),
            max_bytes_per_trigger=read("maxBytesPerTrigger", parse_limit, None),
            fail_on_data_loss=read("failOnDataLoss", parse_bool, True),
        )


def parse_networks(text: str) -> tuple[str, ...]:
    """Addresses and networks, separated by commas."""
    return tuple(parse_network(item.strip()) for item in text.split(","))


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
