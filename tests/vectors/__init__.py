"""Golden vectors: packets as data, with the section they come from and what every door must make of them.

A vector is a table of ``<format>.toml``:

``name``, ``section``
    what it shows, and where the rule stands.
``hex``
    the bytes; white space, ``|`` and ``#`` comments to the end of the line are for the reader.
``transports``
    the transports it is meant for; all of them when absent.
``packet``
    the fields, under the names of the table's columns; absent when the bytes are no packet. A name that TOML
    cannot hold, because of a lone surrogate, is given as its code units (``units``).
``fault``
    ``[code, field, offset]`` when the bytes are no packet, whatever the transport and however strict.
``exact``
    false when an encoder writes other bytes for the same packet (ignored bytes are not written back).
``violations``, ``strict_fault``
    per transport, or ``any``: what is found in the packet, and the fault it becomes when decoding is strict.

One vector drives decode, encode, the batch, every truncation, trailing bytes and a fuzz seed.
"""

from __future__ import annotations

import re
import tomllib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).parent
Transport = Literal["unknown", "udp", "ipx"]
_TRANSPORTS: tuple[Transport, ...] = ("unknown", "udp", "ipx")
Fault = tuple[str, str, int]


@dataclass(frozen=True)
class Outcome:
    """What one way of decoding a vector must give: ``packet`` and ``violations``, or ``fault``."""

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

    @property
    def packet(self) -> dict[str, Any] | None:
        """The fields, whatever the transport (absent when the bytes are no packet)."""
        return next((outcome.packet for outcome in self.outcomes if outcome.packet is not None), None)

    @property
    def canonical(self) -> bool:
        """True when these are the bytes an encoder writes: on some transport there is no violation."""
        return self.exact and any(
            outcome.strict and outcome.fault is None and not outcome.violations for outcome in self.outcomes
        )

    def __str__(self) -> str:
        return self.name


def _data(text: str) -> bytes:
    return bytes.fromhex(re.sub(r"#[^\n]*|\|", " ", text))


def _server(item: dict[str, Any]) -> dict[str, Any]:
    if "units" in item:
        units = b"".join(unit.to_bytes(2, "little") for unit in item["units"])
        item["name"] = units.decode("utf-16-le", "surrogatepass")
    return {key: item[key] for key in ("name", "ip", "ipx")}


def _chosen(table: dict[str, Any], transport: str) -> Any:
    return table.get(transport, table.get("any"))


def _fault(item: list[Any] | None) -> Fault | None:
    return None if item is None else (str(item[0]), str(item[1]), int(item[2]))


def _outcomes(item: dict[str, Any]) -> Iterator[Outcome]:
    always = _fault(item.get("fault"))
    if (always is None) != ("packet" in item):
        raise ValueError(f"{item['name']}: either a packet or a fault")
    for transport in item.get("transports", _TRANSPORTS):
        violations = tuple(_chosen(item.get("violations", {}), transport) or ())
        strictly = always or _fault(_chosen(item.get("strict_fault", {}), transport))
        yield Outcome(transport, False, item.get("packet"), violations, always)
        if strictly:
            yield Outcome(transport, True, None, (), strictly)
        else:
            yield Outcome(transport, True, item.get("packet"), violations, None)


@cache
def load(name: str) -> tuple[Vector, ...]:
    """Every vector of one format, e.g. ``load("mqsd")``."""
    known = {
        "name", "section", "hex", "transports", "exact", "packet", "fault", "violations", "strict_fault",
    }  # fmt: skip
    vectors = []
    for item in tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))["vector"]:
        if unknown := set(item) - known:
            raise ValueError(f"{item['name']}: {sorted(unknown)}")
        packet = item.get("packet", {})
        for column, value in packet.items():
            if column.endswith("_id"):
                packet[column] = uuid.UUID(value)
            elif column == "connected_networks":
                packet[column] = [uuid.UUID(network) for network in value]
            elif column == "servers":
                packet[column] = [_server(server) for server in value]
        outcomes, exact = tuple(_outcomes(item)), item.get("exact", True)
        vectors.append(Vector(item["name"], item["section"], _data(item["hex"]), outcomes, exact))
    return tuple(vectors)


def get(name: str, vector: str) -> Vector:
    """One vector by its name."""
    return next(item for item in load(name) if item.name == vector)
