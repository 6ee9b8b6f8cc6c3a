"""The options of reading captures, checked once; every function that reads a capture takes them."""

from __future__ import annotations

import json
import operator
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from types import NoneType
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, TypedDict, Unpack, get_args

import numpy as np

from msmqwire.capture.checkpoint import Checkpoint
from msmqwire.capture.schema import TRANSPORTS, FileLimits, StreamLimits
from msmqwire.capture.tcp._packets import PACKET_KINDS
from msmqwire.columns.schema import GuidForm

Ports: TypeAlias = "Iterable[int] | Mapping[str, Iterable[int]]"
Time: TypeAlias = datetime | np.datetime64 | str | SupportsIndex
Columns: TypeAlias = "Iterable[str] | Mapping[str, Iterable[str]]"

DEFAULT_PACKETS = ("message", "session")
SMALLEST_BLOCK_SIZE = 4096
BLOCK_SIZE = 2 << 20
#: Where a batch costs as much as a thousand of its rows: they are grouped, or written.
LARGE_BLOCK_SIZE = 4 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DISTANCE = re.compile(r"-(\d+(?:\.\d+)?)([dhms])")
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_CLOCK = re.compile(r"(\d\d?):(\d\d)(?::(\d\d))?")
_SECOND = 1_000_000_000
_DAY = 86400 * _SECOND


class ReadKeywords(TypedDict, total=False):
    """The fields of ``ReadOptions`` as keyword arguments."""

    ports: Ports | None
    packets: Iterable[str] | None
    addresses: Iterable[str]
    since: Time | None
    until: Time | None
    columns: Columns | None
    guid: GuidForm
    dictionaries: bool
    strict: bool
    copies: bool
    storage_options: Mapping[str, Any]
    limits: StreamLimits
    file_limits: FileLimits
    block_size: int
    jobs: int
    resume: Checkpoint | None
    stop: Checkpoint | None
    final: bool


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What to read from captures, and how.

    The functions that read captures take an object of this class, keyword arguments with the names of its fields, or
    both: a keyword argument replaces the field. The object can be pickled and compared.

    Attributes
    ----------
    ports : iterable of int, or mapping of transports to iterables of int; optional
        Read payloads whose source or destination port is one of these. A mapping has the ports of ``"udp"``, ``"tcp"``
        and ``"ipx"``; transports that it does not name are not read. Default: 1801, 3527 and 876; for a table, the
        ports of its protocol. Where topology and sessions are read together, pings keep their own port. Stored as a
        mapping with all three transports.
    packets : iterable of str, optional
        The kinds of packets in TCP streams that are payloads: ``"message"``, ``"session"`` or both, the default. With
        ``"connection"`` a row for each connection, without bytes of the capture, as the table ``connections`` needs. A
        table reads the kinds it has rows for.
    addresses : iterable of str
        Addresses and networks (``"10.20.1.25"``, ``"2001:db8::/32"``). Read payloads whose sender or receiver has one
        of them; default: all payloads.
    since, until : datetime with a time zone, datetime64 of numpy, ISO 8601 text, or int; optional
        Read payloads captured at ``since`` or later and before ``until``. Text without a time zone, and a datetime64,
        is UTC. An int is nanoseconds since 1970 UTC, and so is the stored value. The time of a packet in a TCP stream
        is the time of its last frame.
    columns : iterable of str, optional
        The columns to build; default: all. ``read_table`` returns them in this order; ``read_tables`` takes a mapping
        of tables to columns.
    guid : {"binary", "uuid", "text"}
        The Arrow type of GUID columns: 16 bytes in RFC 9562 order, ``arrow.uuid``, or canonical lower-case text.
    dictionaries : bool
        Enumerations, addresses, files and queues are dictionaries of their values in Arrow; if false, strings.
    strict : bool
        Report violations as faults.
    copies : bool
        Read a packet at each interface of pcapng where it was captured. By default it is read at the first: packets
        with the same number (``epb_packetid``), as ``etl2pcapng`` writes for each component that ``pktmon`` watches.
    storage_options : mapping
        Keyword arguments of the file system of a URI, as pyarrow or fsspec has them; ``repr`` does not show them.
    limits : StreamLimits
        The memory that TCP reassembly may use.
    file_limits : FileLimits
        The memory that decompression and interfaces may use, and the bytes to read of each file.
    block_size : int
        Bytes per read, at least 4096. A block has the payloads of one read, or of as many as fill it where a read has
        few of them and the next one need not wait for data: up to about 8192 payloads or ``block_size`` bytes of them.
    jobs : int
        Threads that decode a table and make Arrow of it, while the thread that iterates reads the file; 1: that thread
        does both. Rows and their order do not depend on it. Up to twice as many blocks are read before their rows are
        returned, unless the next read would wait for data; counts include them.
    resume : Checkpoint, optional
        Start at this checkpoint, with the state it holds. It must have been made with the same ports, packets and
        limits. Files of the source before the file of the checkpoint are not opened.
    stop : Checkpoint, optional
        Stop at this checkpoint. Datagrams and packets that are incomplete there are left to the reader that resumes
        there. Files of the source after the file of the checkpoint are not opened.
    final : bool
        The capture will not grow. If false, datagrams and packets that are incomplete at its end, and an incomplete
        last record, are left to the reader that resumes at ``checkpoint()``.

    Raises
    ------
    TypeError
        A field has a value of another type.
    ValueError
        A field has a value that it cannot have.
    """

    ports: Mapping[str, frozenset[int]] | None = field(default=None, hash=False)
    packets: tuple[str, ...] | None = None
    addresses: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    columns: tuple[str, ...] | Mapping[str, tuple[str, ...]] | None = field(default=None, hash=False)
    guid: GuidForm = "binary"
    dictionaries: bool = True
    strict: bool = False
    copies: bool = False
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)  # they have secrets
    limits: StreamLimits = field(default_factory=StreamLimits)
    file_limits: FileLimits = field(default_factory=FileLimits)
    block_size: int = BLOCK_SIZE
    jobs: int = 1
    resume: Checkpoint | None = None
    stop: Checkpoint | None = None
    final: bool = True

    if TYPE_CHECKING:

        def __init__(self, **keywords: Unpack[ReadKeywords]) -> None: ...

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        for name, (type_, wanted) in _TYPES.items():
            value = getattr(self, name)
            if not isinstance(value, type_):
                raise TypeError(f"{name}={value!r} must be {wanted}")
        if self.addresses is None:
            raise TypeError("addresses=None must be addresses")
        if not isinstance(self.storage_options, Mapping):
            raise TypeError("storage_options must be a mapping")
        put("ports", None if self.ports is None else _ports_by_transport(self.ports))
        put("packets", None if self.packets is None else _packet_kinds(self.packets))
        put("addresses", tuple(map(parse_network, _names(self.addresses))))
        put("since", _nanoseconds("since", self.since))
        put("until", _nanoseconds("until", self.until))
        if isinstance(self.columns, Mapping):
            put("columns", {table: _names(columns) for table, columns in self.columns.items()})
        elif self.columns is not None:
            put("columns", _names(self.columns))
        if self.guid not in get_args(GuidForm):
            raise ValueError(f"guid={self.guid!r} is not one of {', '.join(map(repr, get_args(GuidForm)))}")
        if self.block_size < SMALLEST_BLOCK_SIZE:
            raise ValueError(f"block_size={self.block_size} must be at least {SMALLEST_BLOCK_SIZE}")
        if self.jobs < 1:
            raise ValueError(f"jobs={self.jobs} must be at least 1")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ValueError("until must be later than since")

    @classmethod
    def from_strings(
        cls,
        strings: Mapping[str, str],
        first_time: Callable[[], int | None] | None = None,
        **keywords: Unpack[ReadKeywords],
    ) -> ReadOptions:
        """The options that are given as text, as the command line and Spark have them.

        Parameters
        ----------
        strings : mapping of str to str
            The text of ``ports`` (``1801,2000-2010`` or ``all``), ``addresses`` (separated by commas), ``since`` and
            ``until`` (ISO 8601; a time of day, ``08:10``; a distance from now, ``-2h``), ``guid``, ``copies`` and
            ``strict`` (``true`` or ``false``), and ``storage_options`` (a JSON object). Names may be written as in
            Spark: ``storageOptions``.
        first_time : callable, optional
            When the captures begin: a time of day is on that day, in UTC. If it returns None, there is nothing to read.
        **keywords
            Other fields.

        Raises
        ------
        ValueError
            A field cannot be given as text, or has a value that it cannot have; the message begins with both. Or it is
            a time of day, and when the captures begin is unknown.
        """
        values = parse_strings(strings, _PARSERS)
        for name in ("since", "until"):
            if isinstance(clock := values.get(name), timedelta):
                if first_time is None:
                    raise ValueError("a time of day needs the day when the capture begins: give the date")
                first = first_time()
                seconds = int(clock.total_seconds())
                values[name] = None if first is None else first // _DAY * _DAY + seconds * _SECOND
        return cls(**{**keywords, **values})


# Quick to check: a capture of a few packets is read in less than a millisecond
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "limits": ((StreamLimits,), "StreamLimits"),
    "file_limits": ((FileLimits,), "FileLimits"),
    "block_size": ((int, np.integer), "an integer"),
    "jobs": ((int, np.integer), "an integer"),
    "resume": ((Checkpoint, NoneType), "a Checkpoint or None"),
    "stop": ((Checkpoint, NoneType), "a Checkpoint or None"),
}
_FIELDS = frozenset(item.name for item in fields(ReadOptions))


def options_of(options: ReadOptions | None, keywords: ReadKeywords, unused: Iterable[str] = ()) -> ReadOptions:
    """Return the options of a call: ``options`` or the defaults, with the fields in ``keywords`` replaced.

    Raises
    ------
    TypeError
        A keyword is no field, or one of ``unused``: fields that the called function has no use for; or ``options``
        is something else, such as the mode of ``open``.
    """
    wrong = sorted(set(keywords).difference(_FIELDS.difference(unused)))
    if wrong:
        raise TypeError(f"unexpected keyword argument: {', '.join(wrong)}")
    if options is None:
        return ReadOptions(**keywords)
    if not isinstance(options, ReadOptions):
        raise TypeError(f"options is {options!r}, not ReadOptions; give options by name, as in ports={{1801}}")
    return replace(options, **keywords) if keywords else options  # type: ignore[arg-type] # wide types, as __init__


def nanoseconds(time: datetime) -> int:
    """Nanoseconds since 1970 of a time with a time zone; a Timestamp of pandas has some below the microsecond."""
    return (time - _EPOCH) // timedelta(microseconds=1) * 1000 + getattr(time, "nanosecond", 0)


def parse_time(text: str) -> int:
    """Nanoseconds since 1970 of an ISO 8601 time; a time without a zone is UTC.

    Raises
    ------
    ValueError
        The text is not such a time, or the time does not fit in 64 bits.
    """
    # datetime has no digits below microseconds, so the fraction is read separately
    fraction = re.search(r"(?<=:\d\d)[.,](\d{1,9})(?!\d)", text)
    rest = text.replace(fraction[0], "", 1) if fraction else text
    try:
        if set(rest) & set(".,"):
            raise ValueError
        time = datetime.fromisoformat(rest)
    except ValueError:
        raise ValueError(
            f"{text!r} is not an ISO 8601 time, as in 2024-03-04, 2024-03-04T08:00 or 2024-03-04T08:00:00.25+01:00"
        ) from None
    below = int((fraction[1] if fraction else "").ljust(9, "0"))
    found = nanoseconds(time if time.tzinfo else time.replace(tzinfo=UTC)) + below
    return _in_range(found, repr(text))


def parse_moment(text: str) -> int | timedelta:
    """Nanoseconds since 1970 of a time in ISO 8601, or of a distance from now (``-2h``); or a time of day (``08:10``).

    Raises
    ------
    ValueError
        The text has another form.
    """
    if distance := _DISTANCE.fullmatch(text):
        return time_ago(float(distance[1]) * _UNITS[distance[2]])
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        if hours < 24 and minutes < 60 and seconds < 60:
            return timedelta(hours=hours, minutes=minutes, seconds=seconds)
    try:
        return parse_time(text)
    except ValueError as error:
        raise ValueError(
            f"{error}; other forms are a time of day, as in 08:10, and a distance from now, as in -2h"
        ) from None


def _in_range(time: int, shown: str) -> int:
    if not -(1 << 63) <= time < 1 << 63:
        raise ValueError(f"{shown} is not between the years 1678 and 2262, the range of capture times")
    return time


def time_ago(seconds: float) -> int:
    """Nanoseconds since 1970 of the moment that many seconds before now."""
    return time.time_ns() - int(seconds * _SECOND)


def time_text(time: int) -> str:
    """The time that ``parse_time`` reads back, from nanoseconds since 1970: UTC with all nine digits."""
    seconds, below = divmod(time, _SECOND)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{below:09}Z"


def parse_ports(text: str) -> frozenset[int]:
    """Ports and ranges of them, separated by commas; or ``all``.

    Raises
    ------
    ValueError
        The text is not a list of ports from 1 to 65535.
    """
    found: set[int] = set()
    for part in ("1-65535" if text.strip() == "all" else text).split(","):
        first, dash, last = (number.strip() for number in part.partition("-"))
        ends = [int(number) if number.isdecimal() else 0 for number in (first, last if dash else first)]
        if not 0 < ends[0] <= ends[1] < 1 << 16:
            raise ValueError(
                f"{text!r} is not a list of ports from 1 to 65535, as in 1801,3527 or 1801,2000-2010, or all"
            )
        found.update(range(ends[0], ends[1] + 1))
    return frozenset(found)


def ports_text(ports: Iterable[int]) -> str:
    """Ports in their order, those that follow each other as a range."""
    ranges: list[list[int]] = []
    for port in sorted(ports):
        if ranges and ranges[-1][1] == port - 1:
            ranges[-1][1] = port
        else:
            ranges.append([port, port])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def parse_network(text: str) -> str:
    """The text of an address, or of a network with the length of its prefix, unchanged.

    Raises
    ------
    ValueError
        The text is neither.
    """
    try:
        ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is neither an address nor a network, as in 10.20.1.25 or 2001:db8::/32") from None
    return text


def parse_networks(text: str) -> tuple[str, ...]:
    """Addresses and networks, separated by commas."""
    return tuple(parse_network(item.strip()) for item in text.split(","))


def parse_bool(text: str) -> bool:
    """A truth value as Spark writes it."""
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


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


# The fields of ``ReadOptions`` that can be given as text, and the function that parses each
_PARSERS: dict[str, Callable[[str], Any]] = {
    "ports": parse_ports,
    "addresses": parse_networks,
    "since": parse_moment,
    "until": parse_moment,
    "copies": parse_bool,
    "strict": parse_bool,
    "guid": str.lower,
    "storage_options": parse_object,
}


def parse_strings(strings: Mapping[str, str], parsers: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
    """The values of options by their names in snake_case; they may be given in camelCase, as Spark has them.

    Raises
    ------
    ValueError
        There is no such option, or it has a value that it cannot have; the message begins with both.
    """
    values = {}
    for given, text in strings.items():
        name = re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", given)
        parse = parsers.get(given) or parsers.get(name)
        if parse is None:
            raise ValueError(f"{given}: no such option; there are {', '.join(parsers)}")
        try:
            values[name] = parse(text.strip())
        except ValueError as error:
            raise ValueError(f"{given}={error}") from None
    return values


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _ports_by_transport(ports: Ports) -> dict[str, frozenset[int]]:
    """Return the ports of each transport; a port without a transport is read on each of them."""
    if not isinstance(ports, Mapping):
        found = dict.fromkeys(TRANSPORTS, frozenset(ports))
    else:
        unknown = [name for name in ports if name not in TRANSPORTS]
        if unknown:
            raise ValueError(f"unknown transport {', '.join(map(repr, unknown))}; known: {', '.join(TRANSPORTS)}")
        found = {name: frozenset(ports.get(name, ())) for name in TRANSPORTS}
    for port in frozenset().union(*found.values()):
        if not 0 <= operator.index(port) <= 0xFFFF:
            raise ValueError(f"port {port} is not 0 to 65535")
    return found


def _packet_kinds(packets: Iterable[str]) -> tuple[str, ...]:
    """The kinds in the order of ``PACKET_KINDS``, each once."""
    names = _names(packets)
    unknown = sorted(set(names).difference(PACKET_KINDS))
    if unknown:
        raise ValueError(f"unknown kind of packet {', '.join(map(repr, unknown))}; known: {', '.join(PACKET_KINDS)}")
    return tuple(kind for kind in PACKET_KINDS if kind in names)


def _nanoseconds(name: str, time: Time | None) -> int | None:
    if isinstance(time, str | np.datetime64):
        return parse_time(str(time))
    if not isinstance(time, datetime):
        return None if time is None else _in_range(operator.index(time), f"{name}={time}")
    if time.tzinfo is None:
        raise ValueError(f"{name}={time.isoformat()}: has no time zone; captures are in UTC")
    return _in_range(nanoseconds(time), f"{name}={time.isoformat()}")
