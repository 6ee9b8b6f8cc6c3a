"""Seeded format names ([MS-MQMQ] 2.1), what stands in each, and the other ways to take them apart.

All contenders get the names as they like them best, and make of every name the same: its kind and its parts. The truth
comes from the parts that a name was made from.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyparsing as pp

import msmqwire
from msmqwire import formatname

SEED = 19991231
BLOCK = 16_384

#: kind, guid, private_id, protocol, address, port, queue_type, queue, subqueue, suffix, domain, elements
Row = tuple[Any, ...]
NOTHING: Row = (None,) * 12
COLUMNS = tuple(name for name in formatname.FORMAT_NAMES.names if name != "fault")

_PLACES = ("", "PRIVATE$\\")
_SUFFIXES = ("", "", "", ";JOURNAL")


@dataclass(frozen=True)
class Names:
    """Format names, and the rows that they are."""

    texts: list[str]
    rows: list[Row]

    @property
    def data(self) -> bytes:
        return "".join(self.texts).encode()

    def head(self, count: int) -> Names:
        return Names(self.texts[:count], self.rows[:count])


def format_names(count: int, seed: int = SEED) -> Names:
    """Names as queue managers write them into messages: most direct or private, some lists, a few that are none."""
    rng = random.Random(seed)
    made = [_name(rng) for _ in range(count)]
    return Names([text for text, _ in made], [row for _, row in made])


def _name(rng: random.Random) -> tuple[str, Row]:
    draw = rng.random()
    if draw < 0.02:
        return f"PUBLIC={{{_guid(rng)}}}", NOTHING
    if draw < 0.05:
        elements = [_element(rng) for _ in range(rng.randint(2, 4))]
        texts = tuple([text for text, row in elements if row[9] is None])
        if len(texts) > 1:
            return ",".join(texts), ("multiple_element", *NOTHING[1:11], texts)
    return _element(rng)


def _guid(rng: random.Random) -> UUID:
    return UUID(int=rng.getrandbits(128))


def _element(rng: random.Random) -> tuple[str, Row]:
    draw = rng.random()
    if draw < 0.6:
        return _direct(rng)
    guid = _guid(rng)
    if draw < 0.8:
        number, suffix = rng.randint(1, 60_000), rng.choice(_SUFFIXES)
        row = ("private", guid, number, *NOTHING[3:9], "journal" if suffix else None, None, None)
        return f"PRIVATE={guid}\\{number:X}{suffix}", row
    if draw < 0.9:
        return f"PUBLIC={guid}", ("public", guid, *NOTHING[2:])
    if draw < 0.95:
        domain = rng.choice((None, "example.com"))
        row = ("distribution_list", guid, *NOTHING[2:10], domain, None)
        return f"DL={guid}" if domain is None else f"DL={guid}@{domain}", row
    address, port = f"{rng.randint(224, 239)}.{rng.randint(0, 255)}.0.{rng.randint(1, 254)}", rng.randint(1, 65_535)
    return f"MULTICAST={address}:{port}", ("multicast", None, None, None, address, port, *NOTHING[6:])


def _direct(rng: random.Random) -> tuple[str, Row]:
    host = f"srv{rng.randint(1, 999):03}"
    protocol, address = rng.choice(
        (
            ("os", host),
            ("os", f"{host}.example.com"),
            ("tcp", f"10.{rng.randint(0, 255)}.{rng.randint(0, 255)}.{rng.randint(1, 254)}"),
            ("http", f"//{host}.example.com/MSMQ"),
        )
    )
    private, queue = rng.randrange(2), f"{rng.choice(('orders', 'billing', 'audit'))}_{rng.randint(1, 99)}"
    subqueue, suffix = rng.choice((None, None, None, "retry")), rng.choice(_SUFFIXES)
    written = queue if subqueue is None else f"{queue};{subqueue}"
    row = (
        "direct", None, None, protocol, address, None, ("public", "private")[private], queue, subqueue,
        "journal" if suffix else None, None, None,
    )  # fmt: skip
    return f"DIRECT={protocol.upper()}:{address}\\{_PLACES[private]}{written}{suffix}", row


# The package


def of_batch(batch: msmqwire.Batch) -> list[Row]:
    """The rows of a batch."""
    columns = [batch.to_arrow(guid="uuid").column(name).to_pylist() for name in COLUMNS]
    lists = [None if value is None else tuple(value) for value in columns.pop()]
    return list(zip(*columns, lists, strict=True))


Run = Callable[[list[Row] | None], None]


def column(names: Names) -> Run:
    """From one buffer with offsets, as an Arrow string array has it, in blocks that are written again."""
    ends = np.cumsum([0, *map(len, names.texts)])
    texts = msmqwire.Payloads(names.data, ends.astype(np.int32))

    def run(see: list[Row] | None = None) -> None:
        batch = None
        for start in range(0, len(texts), BLOCK):
            batch = formatname.parse_batch(texts[start : start + BLOCK], out=batch)
            if see is not None:
                see.extend(of_batch(batch))

    return run


def strings(names: Names) -> Run:
    """From a list of str."""

    def run(see: list[Row] | None = None) -> None:
        batch = None
        for start in range(0, len(names.texts), BLOCK):
            batch = formatname.parse_batch(names.texts[start : start + BLOCK], out=batch)
            if see is not None:
                see.extend(of_batch(batch))

    return run


def one_by_one(names: Names) -> Run:
    """``parse``, a name at a time."""

    def run(see: list[Row] | None = None) -> None:
        for text in names.texts:
            try:
                name = formatname.parse(text)
            except formatname.FormatNameError:
                name = None
            if see is not None:
                see.append(NOTHING if name is None else of_model(name))

    return run


def of_model(name: formatname.FormatName) -> Row:
    """The row of a name."""
    if isinstance(name, formatname.MultipleElementName):
        return ("multiple_element", *NOTHING[1:11], tuple(map(str, name.elements)))
    return (name.kind, *(getattr(name, column, None) for column in COLUMNS[1:-1]), None)


# Regular expressions

GUID = "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
QUEUE = r"[\x21\x23-\x2A\x2D-\x3A\x3C-\x5B\x5D-\x7F]"
EXPRESSION = (
    "(?i:DIRECT=(?:(?P<os>OS):(?P<computer>[\\x21-\\x5B\\x5D-\\x7E]{1,256})"
    f"|(?P<tcp>TCP):(?P<ip>{OCTET}(?:\\.{OCTET}){{3}})"
    "|(?P<http>HTTPS?):(?P<url>//[\\x21-\\x2E\\x30-\\x39\\x3B-\\x5B\\x5D-\\x7E]{1,256}(?::[0-9]*)?/MSMQ))\\\\"
    f"(?:SYSTEM\\$;(?P<machine>JOURNAL|DEADLETTER|DEADXACT)|(?P<place>PRIVATE\\$\\\\)?(?P<queue>{QUEUE}{{1,124}})"
    f"(?:;(?P<subqueue>{QUEUE}{{1,32}}))??(?:;(?P<journal>JOURNAL))?)"
    f"|PRIVATE=(?P<private>{GUID})\\\\(?P<number>[0-9A-F]{{1,8}})(?:;(?P<private_journal>JOURNAL))?"
    f"|PUBLIC=(?P<public>{GUID})"
    f"|DL=(?P<list>{GUID})(?:@(?P<domain>[\\x21-\\x7E]{{1,255}}))?"
    f"|MACHINE=(?P<machine_guid>{GUID})|CONNECTOR=(?P<connector>{GUID})"
    f"|MULTICAST=(?P<multicast>(?:22[4-9]|23[0-9])(?:\\.{OCTET}){{3}}):(?P<port>[0-9]{{1,5}}))"
)


def row_of(part: Callable[[str], str | None]) -> Row:
    """The row of the groups of the expression."""
    if queue := part("queue") or part("machine"):
        protocol = part("os") or part("tcp") or part("http")
        address = part("computer") or part("ip") or part("url")
        place = "private" if part("place") else "system" if part("machine") else "public"
        journal = "journal" if part("journal") else None
        where = (None, None, (protocol or "").lower(), address, None, place)
        return ("direct", *where, queue, part("subqueue"), journal, None, None)
    if guid := part("private"):
        journal = "journal" if part("private_journal") else None
        return ("private", UUID(guid), int(part("number") or "", 16), *NOTHING[3:9], journal, None, None)
    if guid := part("public"):
        return ("public", UUID(guid), *NOTHING[2:])
    if guid := part("list"):
        return ("distribution_list", UUID(guid), *NOTHING[2:10], part("domain"), None)
    if guid := part("machine_guid"):
        return ("machine", UUID(guid), *NOTHING[2:])
    if guid := part("connector"):
        return ("connector", UUID(guid), *NOTHING[2:])
    if (port := int(part("port") or "")) > 65_535:
        return NOTHING
    return ("multicast", None, None, None, part("multicast"), port, *NOTHING[6:])


def loop(row: Callable[[str], Row]) -> Callable[[Names], Run]:
    """A loop over texts with what makes the row of one element; the elements of lists are checked as well."""

    def prepare(names: Names) -> Run:
        def run(see: list[Row] | None = None) -> None:
            rows = []
            for text in names.texts:
                if "," in text:
                    elements = text.split(",")
                    found = [row(element) for element in elements]
                    good = not any(one is NOTHING or one[0] == "machine" or one[9] for one in found)
                    rows.append(("multiple_element", *NOTHING[1:11], tuple(elements)) if good else NOTHING)
                else:
                    rows.append(row(text))
            if see is not None:
                see.extend(rows)

        return run

    return prepare


_MATCH = re.compile(EXPRESSION, re.ASCII).fullmatch


def match_row(text: str) -> Row:
    """One name by Python's ``re``."""
    found = _MATCH(text)
    return NOTHING if found is None else row_of(found.group)


def match_only(names: Names) -> Run:
    """Python's ``re`` without taking anything out of its matches: what no loop around it can do without."""

    def run(see: list[Row] | None = None) -> None:
        for text in names.texts:
            _MATCH(text)
        if see is not None:
            loop(match_row)(names)(see)

    return run


def pyparsing_grammar() -> Callable[[str], Row]:
    """The same grammar of pyparsing's elements."""
    guid = pp.Regex(GUID)
    journal = pp.Opt(";" + pp.CaselessLiteral("JOURNAL")("journal"))
    queue = pp.Regex(f"{QUEUE}{{1,124}}")("queue") + pp.Opt(
        ~journal.expr + ";" + pp.Regex(f"{QUEUE}{{1,32}}")("subqueue")
    )
    address = (
        pp.CaselessLiteral("OS")("os") + ":" + pp.Regex(r"[\x21-\x5B\x5D-\x7E]{1,256}")("computer")
        | pp.CaselessLiteral("TCP")("tcp") + ":" + pp.Regex(rf"{OCTET}(\.{OCTET}){{3}}")("ip")
        | (pp.CaselessLiteral("HTTPS") | pp.CaselessLiteral("HTTP"))("http")
        + ":"
        + pp.Regex(r"(?i)//[\x21-\x2E\x30-\x39\x3B-\x5B\x5D-\x7E]{1,256}(:[0-9]*)?/MSMQ")("url")
    )
    direct = address + "\\" + pp.Opt(pp.CaselessLiteral("PRIVATE$\\")("place")) + queue + journal
    private = guid("private") + "\\" + pp.Regex("[0-9A-Fa-f]{1,8}")("number")
    private += pp.Opt(";" + pp.CaselessLiteral("JOURNAL")("private_journal"))
    name = (
        pp.CaselessLiteral("DIRECT=") + direct
        | pp.CaselessLiteral("PRIVATE=") + private
        | pp.CaselessLiteral("PUBLIC=") + guid("public")
        | pp.CaselessLiteral("DL=") + guid("list") + pp.Opt("@" + pp.Regex(r"[\x21-\x7E]{1,255}")("domain"))
        | pp.CaselessLiteral("MULTICAST=") + pp.Regex(rf"(22[4-9]|23\d)(\.{OCTET}){{3}}")("multicast")
        + ":" + pp.Regex("[0-9]{1,5}")("port")
    )  # fmt: skip
    name = name.leave_whitespace()

    def row(text: str) -> Row:
        try:
            found = name.parse_string(text, parse_all=True)
        except pp.ParseException:
            return NOTHING
        return row_of(found.get)

    return row


def arrow_extract(names: Names) -> Run:
    """Arrow's ``extract_regex`` (RE2) over the column: parts stay text, lists and their elements are left out."""
    texts = pa.array([text for text in names.texts if "," not in text])
    lists = iter([row for row in names.rows if row[0] == "multiple_element"])

    def run(see: list[Row] | None = None) -> None:
        found: pa.Array[Any] = pc.extract_regex(texts, f"^(?:{EXPRESSION.replace('??', '?')})$")
        if see is not None:
            groups = iter(found.to_pylist())
            see.extend(_extracted(next(groups)) if "," not in text else next(lists) for text in names.texts)

    return run


def _extracted(groups: dict[str, str] | None) -> Row:
    if groups is None:
        return NOTHING
    if groups["subqueue"].upper() == "JOURNAL" and not groups["journal"]:  # RE2 takes the first that fits
        groups.update(subqueue="", journal="JOURNAL")
    return row_of(lambda part: groups[part] or None)


def checked(run: Run, rows: Sequence[Row]) -> Callable[[], None]:
    """What to time, once its answer has proved right."""
    got: list[Row] = []
    run(got)
    differences: Iterable[tuple[Row, Row]] = (pair for pair in zip(got, rows, strict=True) if pair[0] != pair[1])
    for mine, wanted in differences:
        raise AssertionError(f"{mine} is not {wanted}")
    return lambda: run(None)
