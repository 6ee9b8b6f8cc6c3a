"""The options of the data source, out of Spark's mapping of strings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from msmqwire.capture.options import parse_ports, parse_time
from msmqwire.spark.reading import ReadingOptions
from msmqwire.spark.remote import StorageOptions

__all__ = ["OPTIONS", "ReadOptions"]

T = TypeVar("T")

# As they are documented; Spark makes no difference between upper and lower case
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
# What Spark's own file sources call it
_ALIASES = {"recursivefilelookup": "recursive"}

_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


@dataclass(frozen=True)
class ReadOptions:
    """The options of one read.

    Attributes
    ----------
    sources : tuple of str
        Paths, folders, globs, URIs.
    table : str
    reading : ReadingOptions
    recursive : bool
        Files in folders below the ones named belong as well.
    sequence : bool
        The captures are parts of one, which follow each other by name.
    split_size : int or None
        Bytes to cut large captures into; 0 to cut none, None to leave it to ``planning.plan``.
    max_bytes_per_trigger : int or None
        Of a stream: bytes of a batch, None for all that there are.
    fail_on_data_loss : bool
        Of a stream: end the query when a file is not what it was.
    """

    sources: tuple[str, ...]
    table: str
    reading: ReadingOptions
    recursive: bool = False
    sequence: bool = False
    split_size: int | None = None
    max_bytes_per_trigger: int | None = None
    fail_on_data_loss: bool = True

    def __post_init__(self) -> None:
        if self.max_bytes_per_trigger == 0:
            raise ValueError("maxBytesPerTrigger: there is nothing to read in 0 bytes")

    @property
    def storage_options(self) -> StorageOptions:
        """What the file systems of URIs are given."""
        return self.reading.storage_options

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ReadOptions:
        """Read and check the options.

        Raises
        ------
        ValueError
            An option is unknown or has a value that it cannot have.
        """
        given = {_ALIASES.get(name.lower(), name.lower()): value for name, value in options.items()}
        paths = given.pop("paths", None)
        path = given.pop("path", None)
        sources = tuple(json.loads(paths)) if paths is not None else (path,) if path is not None else ()
        if not sources:
            raise ValueError('no path: read.format("msmq").load("captures/*.pcapng")')
        unknown = sorted(set(given) - {name.lower() for name in OPTIONS})
        if unknown:
            raise ValueError(f"no such option: {', '.join(unknown)}; there are {', '.join(OPTIONS)}")

        def read(name: str, parse: Callable[[str], T], absent: T) -> T:
            text = given.get(name.lower())
            if text is None:
                return absent
            try:
                return parse(text.strip())
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None

        table = given.get("table", "topology")
        reading = ReadingOptions(
            tables=(table,),
            mode=given.get("mode", "PERMISSIVE").upper(),  # type: ignore[arg-type] # checked there
            guid=given.get("guid", "text").lower(),  # type: ignore[arg-type]
            ports=read("ports", parse_ports, None),
            addresses=read("addresses", parse_list, ()),
            since=read("since", parse_time, None),
            until=read("until", parse_time, None),
            storage_options=read("storageOptions", parse_object, {}),
        )
        return cls(
            sources,
            table,
            reading,
            recursive=read("recursive", parse_bool, False),
            sequence=read("sequence", parse_bool, False),
            split_size=read("splitSize", parse_size, None),
            max_bytes_per_trigger=read("maxBytesPerTrigger", parse_size, None),
            fail_on_data_loss=read("failOnDataLoss", parse_bool, True),
        )


def parse_list(text: str) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(item.strip() for item in text.split(","))


def parse_bool(text: str) -> bool:
    """Spark's text for a truth value."""
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def parse_size(text: str) -> int:
    """Bytes, or so many ``k``, ``m``, ``g`` or ``t`` of them, as Spark writes sizes: ``128m``."""
    match = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", text.lower())
    if match is None:
        raise ValueError(f"{text!r} is not a size in bytes, as in 67108864 or 64m")
    return int(match[1]) << _UNITS[match[2]]


def parse_object(text: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        # Without the text: there may be a secret in it
        raise ValueError('no JSON object, as in {"endpoint_override": "http://localhost:9000"}')
    return value
