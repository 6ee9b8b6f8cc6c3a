"""Golden vectors: packets as data, with their section and the expected result of every function.

A vector is a table of ``<format>.toml``:

``name``, ``section``
    its subject, and the section of the rule.
``hex``
    the bytes; white space, ``|`` and ``#`` comments to the end of the line are ignored. Text between apostrophes
    is UTF-16LE, ``5a*512`` repeats the bytes before the asterisk 512 times, ``<name>`` is one of the file's
    ``[pieces]``.
``base``
    in place of ``hex``, the name of a vector with few other bytes and columns: ``patch`` has the bytes from an offset
    on, ``append`` the bytes at the end, ``size`` the number of bytes that are left; ``packet`` has the other columns
    (of a notification, those of its only row), and ``absent`` the columns that are null.
``transports``
    its transports; those of the base, or all of them, when absent.
``packet``
    the fields, under the names of the table's columns; absent when the bytes are not a packet. A name with a lone
    surrogate, which TOML cannot hold, is given as its code units (``units``).
``fault``
    ``[code, field, offset]`` when the bytes are not a packet, for every transport and strictness.
``exact``
    false when an encoder writes other bytes for the same packet (ignored bytes are not written back).
``violations``, ``strict_fault``
    per transport, or ``any``: the violations, and the fault they become in strict decoding.

A notification's ``packet`` is its ``version`` and its ``rows``, one for each change, under the names of the table's
columns; each row of a message of several changes has its own violations. A property is its PROPID and its
value: GUIDs in text form, bytes in hexadecimal, other values as TOML has them.

``table`` names the table of a message packet; its ``packet`` has the columns that differ from
``[defaults]``. GUIDs are in text form, bytes in hexadecimal, times as TOML has them, queues as format names
or, where the packet has no host, by the number alone. ``absent`` are the defaults that are null;
``UNSTATED`` columns repeat bytes of others and are compared only where they are given.

One vector drives decode, encode, the batch, every truncation, trailing bytes and a fuzz seed.
"""

from __future__ import annotations

import copy
import re
import struct
import tomllib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

from tests.reference.mqsd import Server
from tests.reference.propvariant import TYPE_OF, units_of

HERE = Path(__file__).parent
Transport = Literal["unknown", "udp", "tcp", "ipx"]
_FORMATS: dict[str, tuple[Transport, ...]] = {
    "mqsd": ("unknown", "udp", "ipx"),
    "mqcn": ("unknown",),
    "mqqb": ("unknown", "udp", "tcp"),
}
Fault = tuple[str, str, int]


@dataclass(frozen=True)
class Outcome:
    """Expected result of one way to decode a vector: ``packet`` and ``violations``, or ``fault``."""

    transport: Transport
    strict: bool
    packet: dict[str, Any] | None
    violations: tuple[str, ...]
    fault: Fault | None


@dataclass(frozen=True)
class Vector:
    """One golden packet."""

    name: str
    section: str
    data: bytes
    outcomes: tuple[Outcome, ...]
    exact: bool = True
    table: Literal["", "messages", "sessions"] = ""

    @property
    def packet(self) -> dict[str, Any] | None:
        """The fields, or None when the bytes are not a packet."""
        return next((outcome.packet for outcome in self.outcomes if outcome.packet is not None), None)

    @property
    def canonical(self) -> bool:
        """Whether an encoder writes these bytes: on some transport there is no violation."""
        return self.exact and any(
            outcome.strict and outcome.fault is None and not outcome.violations for outcome in self.outcomes
        )

    def __str__(self) -> str:
        return self.name


def _data(text: str, pieces: dict[str, str] | None = None) -> bytes:
    def plain(match: re.Match[str]) -> str:
        text, repeated, times, piece = match.groups()
        if piece:
            return _data((pieces or {})[piece], pieces).hex()
        if repeated:
            return str(repeated) * int(times)
        return (text or "").encode("utf-16-le").hex() + " "

    return bytes.fromhex(re.sub(r"#[^\n]*|\||'([^']*)'|([0-9a-f]+)\*([0-9]+)|<([a-z]+)>", plain, text))


def _text(value: Any) -> bytes:
    """The code units of a text; one with a lone surrogate is given as them."""
    return struct.pack(f"<{len(value['units'])}H", *value["units"]) if isinstance(value, dict) else units_of(value)


def _server(item: dict[str, Any]) -> Server:
    return Server(_text(item if "units" in item else item["name"]), item["ip"], item["ipx"])  # type: ignore[arg-type]


def _topology(packet: dict[str, Any]) -> None:
    """The values of a topology packet as the oracle has them."""
    for column, value in packet.items():
        if column.endswith("_id"):
            packet[column] = uuid.UUID(value).bytes_le
        elif column == "trailing":
            packet[column] = _data(value)
        elif column == "connected_networks":
            packet[column] = tuple(uuid.UUID(network).bytes_le for network in value)
        elif column == "servers":
            packet[column] = tuple(map(_server, value))
        elif column == "ipx_networks":
            packet[column] = tuple(value)


def _value(type_: str, value: Any) -> Any:
    if type_.endswith("|VT_VECTOR") and type_ != "VT_UI1|VT_VECTOR":
        return tuple(_value(type_.removesuffix("|VT_VECTOR"), item) for item in value)
    if type_ == "VT_CLSID":
        return uuid.UUID(value).bytes_le
    if type_ in ("VT_BLOB", "VT_UI1|VT_VECTOR"):
        return bytes.fromhex(value)
    return _text(value) if type_ == "VT_LPWSTR" else value


def _notification(packet: dict[str, Any], violations: list[str]) -> None:
    """The rows of a change notification message as the oracle has them, except offsets of properties."""
    version = packet["version"]
    if not packet["rows"]:
        packet["rows"] = [{"version": version, "violations": tuple(violations)}]
        return
    for index, row in enumerate(packet["rows"]):
        row |= {"version": version, "index": index}
        alone = violations if len(packet["rows"]) == 1 else []
        row["violations"] = tuple(row.get("violations", alone))
        for column in ("object_guid", "master_guid"):
            if column in row:
                row[column] = uuid.UUID(row[column]).bytes_le
        if "reserved" in row:
            row["reserved"] = _data(row["reserved"])
        for column in ("path_name", "domain_controller"):
            if column in row:
                row[column] = _text(row[column])
        if "properties" in row:
            row["properties"] = tuple((i, _value(TYPE_OF[i], value)) for i, value in row["properties"])


_GUIDS = frozenset(
    (
        "source_queue_manager", "queue_manager_address", "connector_type", "connector_queue_manager",
        "correlation_guid", "debug_queue", "acknowledged_source_queue_manager", "queue_manager", "client_guid",
        "server_guid",
    )
)  # fmt: skip
#: Columns of message packets that are flags as received, trailing bytes or made from other columns
UNSTATED = frozenset(
    (
        "base_flags", "user_flags", "transaction_flags", "properties_flags", "internal_flags", "sender_sid",
        "body_type_name", "body_format", "body_text", "extension_format", "extension_text", "trailing",
    )
)  # fmt: skip
_BYTES = frozenset(
    (
        "security_id", "encryption_key", "signature", "sender_certificate", "provider_info", "extension_data", "body",
        "multi_queue_signature", "http_body", "compound_body", "trailing",
    )
)  # fmt: skip


def _message_packet(packet: dict[str, Any]) -> None:
    """The columns of a message packet as the oracle has them, except offsets of texts and bytes."""
    for column, value in packet.items():
        if column in _GUIDS:
            packet[column] = uuid.UUID(value).bytes_le
        elif column in _BYTES:
            packet[column] = _data(value)
        elif isinstance(value, datetime):
            packet[column] = int(value.timestamp()) * 1_000_000_000
        elif column in ("label", "srmp_envelope", "soap_header", "soap_body"):
            packet[column] = _text(value)
        elif isinstance(value, list):
            packet[column] = tuple(value)


def _chosen(table: dict[str, Any], transport: str) -> Any:
    return table.get(transport, table.get("any"))


def _fault(item: list[Any] | None) -> Fault | None:
    return None if item is None else (str(item[0]), str(item[1]), int(item[2]))


def _outcomes(item: dict[str, Any], transports: tuple[Transport, ...]) -> Iterator[Outcome]:
    always = _fault(item.get("fault"))
    if (always is None) != ("packet" in item):
        raise ValueError(f"{item['name']}: either a packet or a fault")
    for transport in item.get("transports", transports):
        violations = tuple(_chosen(item.get("violations", {}), transport) or ())
        strictly = always or _fault(_chosen(item.get("strict_fault", {}), transport))
        yield Outcome(transport, False, item.get("packet"), violations, always)
        if strictly:
            yield Outcome(transport, True, None, (), strictly)
        else:
            yield Outcome(transport, True, item.get("packet"), violations, None)


_KEYS = frozenset(
    (
        "name", "section", "hex", "base", "patch", "append", "size", "transports", "exact", "packet", "absent",
        "fault", "violations", "strict_fault", "table",
    )
)  # fmt: skip


def _patched(data: bytes, item: dict[str, Any]) -> bytes:
    """The bytes of a base as the vector has them."""
    for offset, other in item.get("patch", {}).items():
        start, new = int(offset), _data(other)
        data = data[:start] + new + data[start + len(new) :]
    return data[: item.get("size")] + _data(item.get("append", ""))


def _inherit(item: dict[str, Any], base: dict[str, Any]) -> None:
    """What a vector does not say is as in its base; a vector with a fault has no packet."""
    for key in ("transports", "table"):
        if key in base:
            item.setdefault(key, base[key])
    if "fault" in item:
        return
    packet, stated = base["packet"], item.get("packet", {})
    columns = packet["rows"][0] if len(packet.get("rows", ())) == 1 else packet
    columns |= stated
    absent = [each for each in base.get("absent", ()) if each not in stated] + item.get("absent", [])
    item["packet"] = packet
    if "table" in item:
        item["absent"] = absent
    else:
        for column in absent:
            del columns[column]


@cache
def load(name: str) -> tuple[Vector, ...]:
    """Every vector of one format, e.g. ``load("mqsd")``."""
    vectors = []
    file = tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))
    pieces = file.get("pieces")
    bases = {item["name"]: copy.deepcopy(item) for item in file["vector"] if "base" not in item}
    for item in file["vector"]:
        if unknown := set(item) - _KEYS:
            raise ValueError(f"{item['name']}: {sorted(unknown)}")
        if "base" in item:
            base = copy.deepcopy(bases[item["base"]])
            data = _patched(_data(base["hex"], pieces), item)
            _inherit(item, base)
        else:
            data = _data(item["hex"], pieces)
        if "table" in item:
            if "packet" in item:
                defaults = file["defaults"].get(item["table"], {})
                item["packet"] = {**defaults, **item["packet"]}
                for column in item.get("absent", ()):
                    del item["packet"][column]
                _message_packet(item["packet"])
        elif "rows" in item.get("packet", ()):
            _notification(item["packet"], item.get("violations", {}).get("any", []))
        else:
            _topology(item.get("packet", {}))
        outcomes, exact = tuple(_outcomes(item, _FORMATS[name])), item.get("exact", True)
        vectors.append(Vector(item["name"], item["section"], data, outcomes, exact, item.get("table", "")))
    return tuple(vectors)


def get(name: str, vector: str) -> Vector:
    """One vector by its name."""
    return next(item for item in load(name) if item.name == vector)
