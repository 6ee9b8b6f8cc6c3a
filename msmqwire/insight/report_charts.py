"""The charts of a report: declarations of Vega-Lite and Vega in ``charts``, whose data are rows of a summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

from msmqwire.insight.findings import Finding
from msmqwire.insight.frames import printable
from msmqwire.insight.query_files import SECTIONS, Section, read_sections
from msmqwire.insight.rules import SEVERITIES
from msmqwire.insight.summary import Summary

#: The files of the charts, the bundle that draws them, and its licences.
FOLDER = Path(__file__).with_name("charts")
#: The most rows of a table of a report.
MOST_ROWS = 1000
# The sections whose further rows are counted or drawn
_COUNTED = ("totals", "hosts", "conversations", "queues", "answers")
#: The sections of a summary that a report needs: those of summaries, and those of its charts.
REPORT_SECTIONS: Mapping[str, Section] = {
    **{name: each if name in _COUNTED else replace(each, limit=MOST_ROWS) for name, each in SECTIONS.items()},
    **read_sections(Path(__file__).with_name("queries") / "charts"),
}
#: The most hosts of a drawing.
MOST_HOSTS = 40
_MOST_NETWORKS = 10
_BUSIEST = 15
_MOST_EDGES = 300
_MOST_QUEUES = 20
_MOST_LABELS = 14
# A host of several roles has the colour of the first
_ROLES = ("scanner", "directory_server", "router", "queue_manager", "client", "receiver")
_OTHERS = "other hosts"
_LAST_LANE = 1000


def _declaration(name: str, **rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A chart with the rows of its data sets."""
    chart: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    chart["config"] = json.loads((FOLDER / "config.json").read_text("utf-8"))
    rows = {each: _printable(values) for each, values in rows.items()}
    if "marks" in chart:  # Vega
        for each in chart["data"]:
            if each["name"] in rows:
                each["values"] = rows[each["name"]]
    else:
        chart["datasets"] = rows
    return chart


def _printable(value: Any) -> Any:
    """Rows whose texts can be shown."""
    if isinstance(value, str):
        return printable(value, lines=True)
    if isinstance(value, Mapping):
        return {name: _printable(each) for name, each in value.items()}
    return list(map(_printable, value)) if isinstance(value, list) else value


def activity_chart(summary: Summary, findings: Sequence[Finding]) -> dict[str, Any] | None:
    """Packets over time, and a lane for each pair of hosts; None if no packet has a time."""
    rows = summary.records("activity")
    if not rows:
        return None
    lanes = {_OTHERS: _LAST_LANE}
    bars, points = [], []
    for row in rows:
        lane = _OTHERS if row["src"] is None and row["dst"] is None else f"{row['src']} → {row['dst']}"
        number = lanes.setdefault(lane, len(lanes))
        shared = {"kind": row["kind"], "packets": row["packets"]}
        begin = 1000 * row["begin"]
        bars.append({"begin": begin, "end": begin + 1000 * row["step"], **shared})
        rank = ("other packet", "message", "refusal").index(row["kind"])
        points.append(
            {"lane": lane, "number": number, "rank": rank, "time": _milliseconds(row["first_seen"]), **shared}
        )
    for number, finding in enumerate(findings, 1):
        seen, src = finding.evidence.get("first_seen"), finding.evidence.get("src")
        if seen is None or src is None:
            continue
        lane = f"{src} → {finding.evidence.get('dst')}"
        if lane not in lanes:
            lane = _OTHERS
        points.append({
            "lane": lane, "number": lanes.setdefault(lane, len(lanes)), "rank": 3, "kind": "finding", "finding": number,
            "time": _milliseconds(datetime.fromisoformat(seen)), "packets": finding.evidence.get("packets", 1),
            "title": f"{finding.severity}: {finding.title}",
        })  # fmt: skip
    return _declaration("activity", activity=bars, lanes=points)


def _milliseconds(time: datetime) -> float:
    return time.timestamp() * 1000


def queues_chart(summary: Summary) -> dict[str, Any] | None:
    """The queues with the most bytes; None if no message names a queue."""
    rows = summary.records("queue_bytes")
    return _declaration("queues", queues=rows) if rows else None


def latency_chart(summary: Summary) -> dict[str, Any] | None:
    """How soon messages to a queue were acknowledged, of those that most asked for; None if none was."""
    columns = ("queue", "asked", "unanswered", "negative", "fastest_ms", "median_ms", "p90_ms", "p99_ms", "slowest_ms")
    rows = summary.section("answers").select(list(columns)).to_pylist()
    timed = [row for row in rows if row["slowest_ms"] is not None][:_MOST_QUEUES]
    return _declaration("latency", queues=timed) if timed else None


def hosts_chart(summary: Summary, findings: Sequence[Finding]) -> dict[str, Any] | None:
    """Hosts and the packets between them; None if there are no packets."""
    pairs = [row for row in summary.records("conversations") if row["src"] is not None and row["dst"] is not None]
    if not pairs:
        return None
    packets: Counter[str] = Counter()
    for row in pairs:
        for address in {row["src"], row["dst"]}:
            packets[address] += row["packets"]
    found = _findings_by_address(findings)
    order = sorted(packets, key=lambda address: (-packets[address], address))
    # After the busiest hosts, those with findings are the last that a network takes
    order[_BUSIEST:] = sorted(order[_BUSIEST:], key=lambda address: address not in found)
    node_of = folded(order)
    roles = {row["address"]: row["roles"] for row in summary.records("hosts")}
    members: dict[str, list[str]] = {}
    for address in order:
        members.setdefault(node_of[address], []).append(address)
    hosts = [_host(node, addresses, packets, roles, found) for node, addresses in members.items()]
    return _declaration("hosts", hosts=hosts, edges=_edges(pairs, node_of))


def _findings_by_address(findings: Sequence[Finding]) -> dict[str, list[tuple[int, Finding]]]:
    found: dict[str, list[tuple[int, Finding]]] = {}
    for number, finding in enumerate(findings, 1):
        listed = finding.evidence.get("address") or []
        for address in {finding.evidence.get("src"), *([listed] if isinstance(listed, str) else listed)} - {None}:
            found.setdefault(str(address), []).append((number, finding))
    return found


def _host(
    node: str,
    addresses: Sequence[str],
    packets: Mapping[str, int],
    roles: Mapping[str, Sequence[str]],
    found: Mapping[str, Sequence[tuple[int, Finding]]],
) -> dict[str, Any]:
    """A row of the drawing's hosts: a host, or a network with several."""
    known = {role for address in addresses for role in roles.get(address) or ()}
    role = next((each for each in _ROLES if each in known), "other")
    marks = sorted(
        (each for address in addresses for each in found.get(address, ())),
        key=lambda each: SEVERITIES.index(each[1].severity),
    )
    total = sum(packets[address] for address in addresses)
    # The keys are what the tooltip shows
    about: dict[str, Any] = {"title": node, "packets": f"{total:,}"}
    host: dict[str, Any] = {"id": node, "label": node, "packets": total, "tooltip": about}
    if node not in addresses:
        host["label"] = f"{node} ({len(addresses):,})"
        role = "network"
        about["hosts"] = _few(addresses)
    if known:
        about["roles"] = ", ".join(each.replace("_", " ") for each in sorted(known))
    if marks:
        host |= {"finding": marks[0][0], "severity": marks[0][1].severity}
        about["findings"] = _few(dict.fromkeys(f"{each.severity}: {each.title}" for _, each in marks))
    return {**host, "role": role.replace("_", " ")}


def _few(texts: Iterable[str], most: int = 8) -> str:
    """The first texts, one a line."""
    lines = list(texts)
    return "\n".join(lines[:most] + ([f"and {len(lines) - most:,} more"] if len(lines) > most else []))


def _edges(pairs: Sequence[Mapping[str, Any]], node_of: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of the drawing's edges, those with the most packets first."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    queues: dict[tuple[str, str], dict[str, None]] = {}
    for row in pairs:
        ends = node_of[row["src"]], node_of[row["dst"]]
        sums.setdefault(ends, Counter()).update({name: row[name] for name in ("packets", "messages")})
        queues.setdefault(ends, {}).update(dict.fromkeys(row["queues"] or ()))
    busiest = sorted(sums, key=lambda ends: -sums[ends]["packets"])[:_MOST_EDGES]
    made = []
    for ends in busiest:
        counts, names = sums[ends], list(queues[ends])
        src, dst = ends
        about = {"title": f"{src} → {dst}", **{name: f"{count:,}" for name, count in counts.items()}}
        label = ""
        if names:
            about["queues"] = _few(names)
            if len(busiest) <= _MOST_LABELS:
                label = _short(names[0]) + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")
        # The layout replaces source and target
        made.append({
            "source": src, "target": dst, "from": src, "to": dst, "packets": counts["packets"], "label": label,
            "tooltip": about,
        })  # fmt: skip
    return made


def _short(queue: str) -> str:
    """The end of a format name; the number of a private queue alone says nothing."""
    end = queue.rpartition("\\")[2]
    return f"PRIVATE=…\\{end}" if queue.startswith("PRIVATE=") else end


def folded(addresses: Sequence[str]) -> dict[str, str]:
    """The node of each address: itself, or of those beyond ``MOST_HOSTS`` a network.

    Parameters
    ----------
    addresses : sequence of str
        Those to keep apart come first.

    Examples
    --------
    >>> nodes = folded([f"10.0.{number // 100}.{number % 100}" for number in range(400)])
    >>> len(set(nodes.values())), nodes["10.0.0.1"], nodes["10.0.3.99"]
    (34, '10.0.0.1', '10.0.3.0/24')
    """
    if len(addresses) <= MOST_HOSTS:
        return {address: address for address in addresses}
    kept, others = addresses[: MOST_HOSTS - _MOST_NETWORKS], addresses[MOST_HOSTS - _MOST_NETWORKS :]
    for lengths in ((24, 64), (16, 48), (8, 32), (0, 0)):
        networks = {address: _network(address, lengths) for address in others}
        if len(set(networks.values())) <= _MOST_NETWORKS:
            break
    sizes = Counter(networks.values())
    alone = {address: address for address, network in networks.items() if sizes[network] == 1}
    return {**{address: address for address in kept}, **networks, **alone}


def _network(address: str, lengths: tuple[int, int]) -> str:
    try:
        known = ip_address(address)
    except ValueError:
        return "IPX"
    return str(ip_network(f"{known}/{lengths[known.version == 6]}", strict=False))
