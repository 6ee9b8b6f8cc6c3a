"""Format names and path names as [MS-MQMQ] 2.1 writes them: slow, and sharing nothing with the package.

``GRAMMAR`` and ``PATH_NAME`` are the ABNF as regular expressions, and say what is a name. ``read`` goes through a text
rule by rule and says besides where it stops being one.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

Row = dict[str, Any]

FLAGS = re.ASCII | re.IGNORECASE

GUID = r"[0-9A-F]{8}-(?:[0-9A-F]{4}-){3}[0-9A-F]{12}"
OLD = r"[\x21-\x3A\x3C-\x5B\x5D-\x7F]"  # QueueName of MSMQ 1.0; the comma goes when lists are split
NEW = r"[\x21\x23-\x2A\x2D-\x3A\x3C-\x5B\x5D-\x7F]"
VISIBLE = r"[\x21-\x7E]"
COMPUTER = r"[\x21-\x5B\x5D-\x7E]"
OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]\d|\d)"
PORT = r"(?:6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3}|0)"
IPV4 = rf"{OCTET}(?:\.{OCTET}){{3}}"
IPV6 = r"[0-9A-F.]*:[0-9A-F:.]*"  # and what the standard library takes for one
HOST = r"(?:\[(?P<bracketed>[0-9A-F:.]*)\]|(?!\[)[\x21-\x2E\x30-\x39\x3B-\x5B\x5D-\x7E]{1,256})"

QUEUE = (
    rf"(?:(?P<queue>{NEW}{{1,124}})(?:;(?P<subqueue>{NEW}{{1,32}}))??"
    rf"|(?P<old_queue>{OLD}{{1,124}}))(?:;(?P<suffix>JOURNAL))?"
)
DIRECT = (
    r"DIRECT=(?:(?P<tcp>TCP):(?:" + IPV4 + r"|(?P<ipv6>" + IPV6 + r"))"
    r"|(?P<os>OS):" + COMPUTER + r"{1,256}"
    r"|(?P<ipx>IPX|SPX):[0-9A-F]{1,8}:[0-9A-F]{1,12}"
    r"|(?P<http>HTTPS?)://" + HOST + r"(?::\d*)?/MSMQ)"
    r"(?P<place>\\)"
    r"(?:(?P<system>SYSTEM\$;)(?P<machine>JOURNAL|DEADLETTER|DEADXACT)|(?P<private>PRIVATE\$\\)?" + QUEUE + ")"
)
GRAMMAR = {
    "direct": DIRECT,
    "public": rf"PUBLIC={GUID}",
    "private": rf"PRIVATE={GUID}\\[0-9A-F]{{1,8}}(?:;JOURNAL)?",
    "distribution_list": rf"DL={GUID}(?:@{VISIBLE}{{1,255}})?",
    "machine": rf"MACHINE={GUID}",
    "connector": rf"CONNECTOR={GUID}",
    "multicast": rf"MULTICAST=(?:22[4-9]|23\d)(?:\.{OCTET}){{3}}:{PORT}",
}
EXTENDED = {
    "public": GRAMMAR["public"] + "(?:;JOURNAL)?",
    "machine": GRAMMAR["machine"] + "(?:;(?:JOURNAL|DEADLETTER|DEADXACT))?",
    "connector": GRAMMAR["connector"] + "(?:;XACTONLY)?",
}
PATH_NAME = (
    rf"{VISIBLE}{{1,256}}\\(?:{OLD}{{1,124}}|{NEW}{{1,124}};{NEW}{{1,32}})"
    rf"|{VISIBLE}{{1,256}}\\PRIVATE\$\\(?:{OLD}{{1,124}}|{NEW}{{1,124}};{NEW}{{1,32}})"
    rf"|{VISIBLE}{{1,256}}\\SYSTEM\$;(?:{OLD}{{1,124}}|{NEW}{{1,124}};{NEW}{{1,32}})"
)
# What 2.1.7 keeps out of lists
NO_ELEMENT = r"MACHINE=.*|(?:PUBLIC|PRIVATE|DIRECT)=.*;JOURNAL|DIRECT=[^\\]*\\SYSTEM\$;(?:DEADLETTER|DEADXACT)"
READ_ONLY = ("journal", "deadletter", "deadxact")


@dataclass(frozen=True)
class Options:
    """What is taken beyond the grammar."""

    extended: bool = False
    http_slashes: bool = False
    spx: bool = False


def is_element(text: str, extended: bool = False) -> bool:
    """Whether a text without commas is one format name, by the ABNF."""
    for kind, rule in GRAMMAR.items():
        found = re.fullmatch(EXTENDED.get(kind, rule) if extended else rule, text, FLAGS)
        if found and kind == "direct":
            address = found["ipv6"] if found["ipv6"] is not None else found["bracketed"]
            return (address is None or is_ipv6(address)) and (found["ipx"] or "").upper() != "SPX"
        if found:
            return True
    return False


def is_format_name(text: str, extended: bool = False) -> bool:
    """Whether a text is a format name, by the ABNF and the prose of 2.1.7."""
    elements = text.split(",")
    if not all(is_element(element, extended) for element in elements):
        return False
    return len(elements) == 1 or not any(re.fullmatch(NO_ELEMENT, element, FLAGS) for element in elements)


def is_path_name(text: str) -> bool:
    """Whether a text is a path name, by the ABNF."""
    return re.fullmatch(PATH_NAME, text, FLAGS) is not None


def is_ipv6(text: str) -> bool:
    """Whether a text is an IPv6 address."""
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


class RefusedError(Exception):
    """A text is no name: code, field, offset."""


@dataclass
class Reader:
    """A place in a text, of which the name read ends at ``end``."""

    text: str
    end: int
    at: int
    row: Row = field(default_factory=dict)

    def refuse(self, code: str, rule: str, at: int | None = None) -> RefusedError:
        place = self.at if at is None else at
        return RefusedError("truncated" if place == len(self.text) else code, rule, place)

    def maybe(self, pattern: str) -> str | None:
        found = re.compile(pattern, FLAGS).match(self.text, self.at, self.end)
        if found is None:
            return None
        self.at = found.end()
        return found[0]

    def need(self, pattern: str, rule: str) -> str:
        found = self.maybe(pattern)
        if found is None:
            raise self.refuse("bad_text", rule)
        return found

    def some(self, characters: str, most: int, rule: str) -> str:
        found = self.need(f"{characters}{{1,{most}}}", rule)
        if re.compile(characters, FLAGS).match(self.text, self.at, self.end):
            raise self.refuse("too_large", rule)
        return found

    def literal(self, words: tuple[str, ...], code: str, rule: str) -> str:
        """One of some words, or a fault behind the most characters that begin one."""
        for word in words:
            if self.text[self.at : self.end][: len(word)].translate(LOWER) == word:
                self.at += len(word)
                return word
        raise self.refuse(code, rule, self.at + max(self.common(word) for word in words))

    def common(self, word: str) -> int:
        here = self.text[self.at : self.end][: len(word)].translate(LOWER)
        return next((i for i, (a, b) in enumerate(zip(here, word, strict=False)) if a != b), len(here))

    def number(self, least: int, most: int, digits: int, rule: str) -> int:
        start = self.at
        value = int(self.need(rf"0|[1-9][0-9]{{0,{digits - 1}}}", rule))
        if not least <= value <= most:
            self.at = start
            raise self.refuse("bad_value", rule)
        return value

    def guid(self, rule: str) -> None:
        start = self.at
        for length, hyphen in ((8, "-"), (4, "-"), (4, "-"), (4, "-"), (12, "")):
            for _ in range(length):
                self.need("[0-9A-F]", rule)
            if hyphen:
                self.need(hyphen, rule)
        self.row["guid"] = UUID(self.text[start : self.at])

    def finish(self, rule: str) -> None:
        if self.at != self.end:
            raise self.refuse("bad_text", rule)

    def suffix(self, words: tuple[str, ...]) -> None:
        if self.at == self.end:
            return
        self.need(";", "Suffix")
        word = self.literal(words, "bad_text", "Suffix")
        self.finish("Suffix")
        self.row["suffix"] = word


LOWER = {upper: upper + 32 for upper in range(0x41, 0x5B)}


def ipv4(reader: Reader, least: int, most: int, rule: str) -> None:
    reader.number(least, most, 3, rule)
    for _ in range(3):
        reader.need(r"\.", rule)
        reader.number(0, 255, 3, rule)


def ipv6(reader: Reader, rule: str) -> None:
    start = reader.at
    text = reader.maybe("[0-9A-F:.]+") or ""
    if not is_ipv6(text):
        raise reader.refuse("too_large" if len(text) > 45 else "bad_value", rule, start)


def address(reader: Reader, protocol: str) -> None:
    rule = "ProtocolAddressSpecification"
    if protocol == "os":
        reader.some(COMPUTER, 256, rule)
    elif protocol == "tcp":
        if re.compile("[0-9A-F.]*:", FLAGS).match(reader.text, reader.at, min(reader.end, reader.at + 46)):
            ipv6(reader, rule)
        else:
            ipv4(reader, 0, 255, rule)
    elif protocol in ("ipx", "spx"):
        reader.some("[0-9A-F]", 8, rule)
        reader.need(":", rule)
        reader.some("[0-9A-F]", 12, rule)
    else:
        reader.need("//", rule)
        if reader.maybe(r"\["):
            ipv6(reader, "Host")
            reader.need(r"\]", "Host")
        else:
            reader.some(r"[\x21-\x2E\x30-\x39\x3B-\x5B\x5D-\x7E]", 256, "Host")
        reader.maybe(":[0-9]*")
        reader.need("/MSMQ", rule)


def queue(reader: Reader, suffixes: bool) -> None:
    rest = reader.text[reader.at : reader.end]
    if suffixes and (found := re.fullmatch(rf"({OLD}{{1,124}});JOURNAL", rest, FLAGS)):
        reader.row.update(queue=found[1], suffix="journal")
        return
    name = reader.row["queue"] = reader.some(OLD, 124, "QueueName")
    if reader.at == reader.end:
        return
    if not re.match(";", reader.text[reader.at]):
        raise reader.refuse("bad_text", "QueueName")
    if not re.fullmatch(f"{NEW}*", name):
        if suffixes:
            reader.suffix(("journal",))
        raise reader.refuse("bad_text", "QueueName")
    reader.at += 1
    reader.row["subqueue"] = reader.some(NEW, 32, "Subqueue")
    if suffixes and reader.text[reader.at : reader.end].startswith(";"):
        reader.suffix(("journal",))
    reader.finish("Subqueue")


def direct(reader: Reader, options: Options) -> None:
    protocols = ("tcp:", "os:", "ipx:", "http:", "https:", *(["spx:"] if options.spx else []))
    protocol = reader.literal(protocols, "bad_type", "Protocol")[:-1]
    start = reader.at
    address(reader, protocol)
    reader.row.update(protocol=protocol, address=reader.text[start : reader.at], queue_type="public")
    separator = r"[\\/]" if options.http_slashes and protocol.startswith("http") else r"\\"
    reader.need(separator, "ProtocolAddressSpecification")
    rest = reader.text[reader.at : reader.end]
    if found := re.fullmatch(r"SYSTEM\$;(JOURNAL|DEADLETTER|DEADXACT)", rest, FLAGS):
        reader.row.update(queue_type="system", suffix=found[1].lower())
        return
    if reader.maybe(r"PRIVATE\$" + separator):
        reader.row["queue_type"] = "private"
    queue(reader, True)


def element(reader: Reader, options: Options) -> Row:
    keywords = ("direct=", "public=", "private=", "dl=", "machine=", "connector=", "multicast=")
    keyword = reader.literal(keywords, "bad_type", "FormatName")[:-1]
    reader.row["kind"] = "distribution_list" if keyword == "dl" else keyword
    if keyword == "direct":
        direct(reader, options)
    elif keyword == "private":
        reader.guid("ComputerGuid")
        reader.need(r"\\", "ComputerGuid")
        reader.row["private_id"] = int(reader.some("[0-9A-F]", 8, "PrivateQueueIdentifier"), 16)
        reader.suffix(("journal",))
    elif keyword == "dl":
        reader.guid("DistributionListGuid")
        if reader.at != reader.end:
            reader.need("@", "DistributionListGuid")
            reader.row["domain"] = reader.some(VISIBLE, 255, "DomainName")
            reader.finish("DomainName")
    elif keyword == "multicast":
        start = reader.at
        ipv4(reader, 224, 239, "Address")
        reader.row["address"] = reader.text[start : reader.at]
        reader.need(":", "Address")
        reader.row["port"] = reader.number(0, 65535, 5, "Address.Port")
        reader.finish("Address.Port")
    else:
        rule = "QueueGuid" if keyword == "public" else "Guid"
        reader.guid(rule)
        if options.extended:
            suffixes = {"public": ("journal",), "machine": READ_ONLY, "connector": ("xactonly",)}
            reader.suffix(suffixes[keyword])
        reader.finish(rule)
    return reader.row


def read(text: str, options: Options = Options()) -> list[Row]:
    """The elements of a format name.

    Raises
    ------
    RefusedError
        It is none.
    """
    rows = []
    at = 0
    pieces = text.split(",")
    for piece in pieces:
        reader = Reader(text, at + len(piece), at)
        row = element(reader, options)
        if len(pieces) > 1 and row["kind"] == "machine":
            raise reader.refuse("bad_type", "FormatName", at)
        if len(pieces) > 1 and row.get("suffix") in READ_ONLY:
            raise reader.refuse("bad_value", "Suffix", at + piece.rindex(";"))
        rows.append(row)
        at += len(piece) + 1
    return rows


def read_path_name(text: str) -> Row:
    """The parts of a path name.

    Raises
    ------
    RefusedError
        It is none.
    """
    reader = Reader(text, len(text), 0)
    visible = re.match(f"{VISIBLE}*", text)
    assert visible
    computer, backslash, _ = visible[0].rpartition("\\")
    if not backslash and len(visible[0]) > 256:
        raise reader.refuse("too_large", "Computer", 256)
    if not backslash and visible[0]:
        raise reader.refuse("bad_text", "Computer", len(visible[0]))
    if not computer:
        raise reader.refuse("bad_text", "Computer", 0)
    name = text[len(computer) + 1 :]
    queue_type = "public"
    if re.fullmatch(r".+\\private\$", computer, FLAGS):
        system = re.match(r"system\$;", name, FLAGS)
        if not system or re.fullmatch(rf"{NEW}{{1,124}};{NEW}{{1,32}}", name):
            queue_type = "private"
    reader.at = len(computer) + 1
    if queue_type == "private":
        computer = computer[: -len("\\private$")]
    if len(computer) > 256:
        raise reader.refuse("too_large", "Computer", 256)
    if queue_type == "public" and reader.maybe(r"system\$;"):
        queue_type = "system"
    reader.row.update(kind="path_name", address=computer, queue_type=queue_type)
    queue(reader, False)
    return reader.row
