"""The account of each source, against readers that share nothing with the package; and jobs with wrong accounts."""

from __future__ import annotations

import dataclasses
import hashlib
import random
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msmqwire import cli
from msmqwire.columns import UNFRAMED_BIT
from msmqwire.spark import pipeline
from msmqwire.spark.lake.accounting import AccountingError, Decoded
from msmqwire.spark.source import planning
from tests.capture import build, oracle, traffic
from tests.capture.reading import Row
from tests.effort import first_of
from tests.reference import mqcn, mqqb, mqqb_cases, mqsd, mqsd_cases
from tests.reference.reader import Fault
from tests.spark.captures import LOCAL, OTHER, SESSION, frames_of, without_a_segment
from tests.spark.lakes import accounts, change_result, files_of, read
from tests.spark.tasks import TASKS

MSMQ, PING, DISCOVERY_SOCKET = 1801, 3527, 876
INTERNAL = 8  # the bit of BaseHeader.Flags that tells packets of sessions from messages


def datagrams(seed: int) -> list[bytes]:
    """Discovery over UDP and IPX, pings, and what is nobody's."""
    return [
        *(build.plain(payload) for payload in mqsd_cases.cases(150, seed)),
        *(build.ethernet(0x8137, build.ipx(payload)) for payload in mqsd_cases.cases(20, seed)),
        *(build.plain(payload, target=PING) for payload in mqqb_cases.cases(30, seed, "sessions")),
        *(build.plain(b"a question", target=53) for _ in range(17)),
        build.ethernet(build.ARP, bytes(46)),
        build.plain(b"a frame that is cut")[:50],
        *(
            build.ethernet(build.IPV4, build.ipv4(b"\7\t" * 4 + more, fragment=0x2000))
            for more in (bytes(8), b"\xff" * 8)
        ),
    ]


def talk(seed: int) -> list[bytes]:
    """Messages and packets of sessions one behind the other in a stream, good ones and bad ones."""
    packets = [*mqqb_cases.cases(60, seed, "messages"), *mqqb_cases.cases(30, seed, "sessions")]
    random.Random(seed).shuffle(packets)
    stream = b"".join(packets)
    return [build.segment(stream[start : start + 900], start) for start in range(0, len(stream), 900)]


def foreign() -> list[bytes]:
    """A stream of HTTP requests."""
    stream = b"GET / HTTP/1.0\r\n\r\n" * 40
    return [build.segment(stream[start : start + 90], start, source=40009) for start in range(0, len(stream), 90)]


def captures(folder: Path) -> list[Path]:
    """The samples; and what else there may be in a capture, in both formats, malformed and cut."""
    folder.mkdir()
    gap, mixed, rough, cut = (folder / name for name in ("gap.pcap", "mixed.pcap", "rough.pcapng", "cut.pcap"))
    without_a_segment(Path(SESSION), gap)
    mixed.write_bytes(build.pcap([*datagrams(1), *talk(1), *foreign(), *frames_of(Path(SESSION))]))
    rough.write_bytes(build.pcapng(traffic.conversation(random.Random(2), 400, bad=0.4), ">"))
    whole = build.pcap([*talk(3), *datagrams(3)])
    cut.write_bytes(whole[:9_000] + random.Random(3).randbytes(700) + whole[9_000:-7])
    return [Path(LOCAL), Path(OTHER), Path(SESSION), gap, mixed, rough, cut]


def outcomes(row: Row) -> dict[str, list[Any]]:
    """What the oracles make of a payload, by the table that it has rows in."""
    if row.stream_offset is None and PING in row[3:6]:
        return {"sessions": [mqqb.read(row.payload, "sessions", transport="udp")]}
    if row.stream_offset is None:
        return {"topology": [mqsd.read(row.payload, transport="ipx" if DISCOVERY_SOCKET in row[3:6] else "udp")]}
    (flags,) = struct.unpack_from("<2xH", row.payload)
    if flags & INTERNAL:
        return {"sessions": [mqqb.read(row.payload, "sessions", transport="tcp")]}
    message = mqqb.read(row.payload, "messages")
    if isinstance(message, mqqb.Fault) or message.values.get("notification") != "plain":
        return {"messages": [message]}
    changes = mqcn.rows(mqcn.read(message.values["body"].data))
    return {"messages": [message], "notifications": [change["fault"] for change in changes]}


def lost_outcomes(row: Row) -> dict[str, list[Any]]:
    """The faults that readers give to a payload that lost bytes, and to a run."""
    if row.lost & UNFRAMED_BIT:
        # A header whose size no packet has begins a run by its size, other bytes by their signature
        found = mqqb.read(row.payload, "messages")
        named = isinstance(found, Fault) and found.field == "PacketSize" and found.code != "truncated"
        return {"messages": [found if named else Fault("bad_signature", "BaseHeader", 0)]}
    padded = row._replace(payload=row.payload + bytes(row.lost))
    ((table, (made, *_)),) = list(outcomes(padded).items())[:1]
    if not isinstance(made, Fault) or made.offset + 4 > len(row.payload):
        made = Fault("incomplete", "", 0)
    return {table: [made]}


def expected(path: Path) -> dict[str, Any]:
    """The account of a source, counted without the package."""
    data = path.read_bytes()
    found = oracle.read(data, {MSMQ, PING, DISCOVERY_SOCKET})
    rows = dict.fromkeys(("topology", "notifications", "messages", "sessions"), 0)
    faults: Counter[str] = Counter()
    for row in found.rows:
        for table, made in (lost_outcomes(row) if row.lost else outcomes(row)).items():
            rows[table] += len(made)
            faults.update(one.code for one in made if isinstance(one, Fault))
    complete = [row for row in found.rows if not row.lost]
    streamed = sum(row.stream_offset is not None for row in complete)
    return {
        "file": str(path),
        "digest": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "bytes_skipped": found.skipped,
        "frames": found.frames,
        "payloads": len(complete) - streamed,
        "segments": found.segments,
        "fragments": found.fragments,
        "other": found.other,
        "unsupported": 0,
        "unsupported_links": {},
        "unsupported_encapsulations": {},
        "malformed": len(found.malformed),
        "incomplete_datagrams": found.incomplete,
        "fragment_conflicts": found.conflicts,
        "invalid_times": found.invalid_times,
        "truncated_files": 0,
        "packets": streamed,
        "streams": {name: count for name, count in found.streams.account.items() if count},
        "rows": rows,
        "faults": dict(faults),
        "problem": None,
    }


def rows_by_source(lake: Path, table: str) -> Counter[str]:
    return Counter(row["file"] for row in read(lake, table, ["file"]).to_pylist())


@pytest.mark.parametrize("parts", first_of([True, False]), ids=["parts", "whole"])
def test_each_source_is_what_others_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: bool) -> None:
    if parts:
        monkeypatch.setattr(planning, "SPLIT_SIZE", 15_000)
    sources, lake = captures(tmp_path / "captures"), tmp_path / "lake"
    wanted = sorted(map(expected, sources), key=lambda account: account["file"])
    for name in ("other", "fragments", "malformed", "incomplete_datagrams", "fragment_conflicts", "bytes_skipped"):
        assert any(account[name] for account in wanted), name
    for name in ("duplicate", "missing", "gaps", "no_packet", "unfinished"):
        assert any(account["streams"].get(name) for account in wanted), name
    assert all(any(account["rows"][table] for account in wanted) for table in wanted[0]["rows"])
    pipeline.run(TASKS, sources, lake, digest=True)
    found = accounts(lake)
    for one in wanted:
        row = found.pop(one["file"])
        row["streams"] = {name: count for name, count in row["streams"].items() if count}
        row.update({name: dict(row[name]) for name, value in one.items() if isinstance(value, dict)})
        assert {name: row[name] for name in one} == one
    assert not found
    for table in wanted[0]["rows"]:
        assert rows_by_source(lake, table) == +Counter({one["file"]: one["rows"][table] for one in wanted})
    assert rows_by_source(lake, "faults") == +Counter({one["file"]: sum(one["faults"].values()) for one in wanted})


# Accounts that are wrong


def one_row_too_many(decoded: Decoded) -> None:
    """The account of the last source says so."""
    decoded.accounts[-1].rows["topology"] += 1


def a_file_without_its_first_row(table: str) -> Callable[[Decoded], None]:
    """The last file of a table."""

    def cut(decoded: Decoded) -> None:
        last = [at for at, file in enumerate(decoded.files) if file.table == table][-1]
        decoded.files[last] = dataclasses.replace(decoded.files[last], rows=decoded.files[last].rows - 1)

    return cut


def a_frame_too_many(decoded: Decoded) -> None:
    """Of a protocol that is not looked at."""
    decoded.accounts[-1].frames += 1


def content(lake: Path) -> dict[str, bytes]:
    """The files of every table, and its log, byte for byte."""
    named = {f"{name}/{file}" for name in ("topology", "accounting") for file in files_of(lake, name)}
    paths = {str(path.relative_to(lake)): path for path in lake.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in paths.items() if name in named or "_delta_log" in name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (one_row_too_many, f"{OTHER}: 10 payloads for topology, but 11 rows of it"),
        (a_file_without_its_first_row("topology"), f"{OTHER}: 10 rows of topology, but 9 in its files"),
        (a_file_without_its_first_row("faults"), f"{OTHER}: 3 rows of faults, but 2 in its files"),
        (
            a_frame_too_many,
            f"{OTHER}: 13 frames, but 12 payloads, segments, fragments, other, unsupported and malformed",
        ),
    ],
    ids=["account", "rows", "faults", "frames"],
)
def test_a_job_whose_accounts_do_not_add_up_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Decoded], None],
    message: str,
) -> None:
    """The lake is what it was, byte for byte, and the next run finds it sound."""
    pipeline.run(TASKS, LOCAL, tmp_path)
    before = content(tmp_path)
    with monkeypatch.context() as patches:
        change_result(patches, change)
        with pytest.raises(AccountingError) as refusal:
            pipeline.run(TASKS, [LOCAL, OTHER], tmp_path)
    assert str(refusal.value) == message
    assert content(tmp_path) == before
    assert pipeline.run(TASKS, [LOCAL, OTHER], tmp_path).sources == 1
    assert rows_by_source(tmp_path, "topology") == {LOCAL: 4, OTHER: 10}


@pytest.mark.long
def test_the_command_says_in_a_line_what_does_not_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of captures that share files, their rows are counted together."""
    change_result(monkeypatch, a_file_without_its_first_row("topology"))
    assert cli.main(["pipeline", LOCAL, OTHER, "--lake", str(tmp_path)]) == 1
    said = f"msmqwire: {LOCAL} and 1 more: 14 rows of topology, but 13 in its files\n"
    assert capsys.readouterr() == ("", said)
    assert not files_of(tmp_path, "accounting")


def test_parts_of_a_capture_that_do_not_add_up_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One pass over the capture has counted the frames of all parts but its end."""
    monkeypatch.setattr(planning, "SPLIT_SIZE", 1_500)
    change_result(monkeypatch, a_frame_too_many, 0)
    with pytest.raises(AccountingError, match=f"^{SESSION}: 20 frames in parts, but 19 in one pass$"):
        pipeline.run(TASKS, [LOCAL, SESSION], tmp_path)
    assert not files_of(tmp_path, "accounting")
