from __future__ import annotations

import io
import os
import pickle
import re
from collections import Counter
from dataclasses import fields
from datetime import UTC, datetime
from operator import add
from pathlib import Path
from time import time_ns
from typing import Any

import numpy as np
import pandas as pd
import pytest

from msmqwire import capture
from msmqwire.capture.frames._frame import REASONS
from msmqwire.capture.options import ReadKeywords, ReadOptions, options_of, parse_ports, ports_text
from msmqwire.capture.reader import first_time
from msmqwire.capture.tcp._streams import StreamTable
from tests.capture import build
from tests.capture.build import segment

PATH = Path(__file__).parents[2] / "examples" / "local-site.pcap"


def test_every_field_is_a_keyword() -> None:
    assert set(ReadKeywords.__annotations__) == {field.name for field in fields(ReadOptions)}


def test_counts_of_streams_have_the_fields_of_their_stats() -> None:
    assert set(StreamTable(3, capture.StreamLimits(), 0).counts()) == {
        field.name for field in fields(capture.StreamStats)
    }


def test_stats_are_added() -> None:
    """Every count; of the problems the first hundred are kept."""
    counts = {field.name: number for number, field in enumerate(fields(capture.StreamStats), 1)}
    streams = capture.StreamStats(**counts)
    kinds = ("gaps", "conflicts", "uncompared", "no_packet", "unfinished", "evictions")
    assert streams.problems == sum(counts[kind] for kind in kinds)
    names = [field.name for field in fields(capture.CaptureStats) if field.name not in ("streams", "problems")]
    by_name = {"unsupported_links", "unsupported_encapsulations", "unread_streams"}
    values: dict[str, Any] = {
        name: Counter(one=number) if name in by_name else number for number, name in enumerate(names, 1)
    }
    one = capture.CaptureStats(**values, streams=streams)
    assert vars((one + one).streams) == {name: 2 * count for name, count in counts.items()}
    assert {name: getattr(one + one, name) for name in names} == {name: one + one for name, one in values.items()}
    assert not any(getattr(capture.CaptureStats(), name) for name in names)
    assert not any(vars(capture.StreamStats()).values())
    for number in range(101):
        one._add_truncated(f"{number}.pcap.gz", number, "ends early")
    assert one.truncated_files == 101 + 1 + names.index("truncated_files")
    assert (len(one.problems), one.problems[99].file) == (100, "99.pcap.gz")
    one._describe("late.pcap", 0, 1, 0, 0, 7, "")
    assert one.problems == (one + one).problems
    for stats in (one, streams):
        with pytest.raises(TypeError):
            add(stats, 1)


def test_every_reason_has_a_text() -> None:
    declared = (
        (PATH.parents[1] / "msmqwire/capture/frames/_frame.pxd").read_text("utf-8").partition("cdef enum Reason:\n")[2]
    )
    names = declared.partition("\n\n\n")[0].split()
    assert names[0] == "SOUND"
    assert list(REASONS) == list(range(1, len(names)))


def test_stored_values() -> None:
    options = ReadOptions(
        ports=[1801, 53],
        packets=("session", "message"),
        addresses="10.0.0.1",
        since=datetime(2024, 3, 4, tzinfo=UTC),
        columns={"messages": ["label"]},
    )
    assert options.ports == dict.fromkeys(("udp", "tcp", "ipx"), frozenset({1801, 53}))
    assert options.packets == ("message", "session")
    assert options.addresses == ("10.0.0.1",)
    assert options.since == 1_709_510_400_000_000_000
    assert options.columns == {"messages": ("label",)}
    assert pickle.loads(pickle.dumps(options)) == options
    assert hash(options) == hash(options_of(options, {"since": options.since}))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"ports": [65536]}, "port 65536 is not 0 to 65535"),
        ({"ports": {"sctp": [1]}}, "unknown transport 'sctp'; known: udp, tcp, ipx"),
        ({"packets": "ping"}, "unknown kind of packet 'ping'; known: message, session"),
        ({"addresses": ["kiosk"]}, "'kiosk' is neither an address nor a network"),
        ({"since": datetime(2024, 3, 4)}, "since=2024-03-04T00:00:00: has no time zone"),
        ({"since": 3, "until": 3}, "until must be later than since"),
        ({"guid": "hex"}, "guid='hex' is not one of '"),
        ({"block_size": 4095}, "block_size=4095 must be at least 4096"),
        ({"since": 1 << 63}, "since=9223372036854775808 is not between the years 1678 and 2262"),
        ({"until": datetime.max.replace(tzinfo=UTC)}, "until=9999-12-31.* is not between the years"),
        ({"until": np.datetime64("NaT", "ns")}, "'NaT' is not an ISO 8601 time"),
    ],
)
def test_values_that_cannot_be(keywords: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReadOptions(**keywords)


def test_times_keep_their_nanoseconds() -> None:
    expected = 1_709_510_400_000_000_123
    for time in (pd.Timestamp(expected, tz="UTC"), np.datetime64(expected, "ns"), np.int64(expected)):
        assert ReadOptions(since=time).since == expected
    assert ReadOptions(since=np.datetime64("2024-03-04")).since == expected - 123


def test_numbers_that_are_no_integers() -> None:
    for keywords in ({"ports": [1801.5]}, {"ports": "1801"}, {"since": 1.5e18}):
        with pytest.raises(TypeError, match="integer"):
            ReadOptions(**keywords)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"addresses": None}, "addresses=None must be addresses"),
        ({"limits": None}, "limits=None must be StreamLimits"),
        ({"file_limits": capture.StreamLimits()}, "file_limits=StreamLimits.* must be FileLimits"),
        ({"block_size": None}, "block_size=None must be an integer"),
        ({"jobs": "2"}, "jobs='2' must be an integer"),
        ({"resume": "x"}, "resume='x' must be a Checkpoint or None"),
        ({"stop": b"x"}, "stop=b'x' must be a Checkpoint or None"),
    ],
)
def test_values_of_another_type(keywords: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ReadOptions(**keywords)


def test_options_and_keywords() -> None:
    options = ReadOptions(columns=["frame"], ports={1})
    with capture.open(PATH, options) as blocks:
        assert not list(blocks)
    with capture.open(PATH, options, ports={1801}) as blocks:
        assert {block.capture.columns for block in blocks} == {("frame",)}


def test_options_as_text() -> None:
    strings = {
        "ports": "1801, 2000-2001",
        "addresses": "10.20.1.0/24, 2001:db8::1",
        "since": "2024-03-04",
        "until": "2024-03-04T08:00+01:00",
        "guid": "TEXT",
        "copies": "True",
        "strict": "false",
        "storageOptions": '{"region": "eu-west-1"}',
    }
    midnight = 1_709_510_400_000_000_000
    assert ReadOptions.from_strings(strings, jobs=2) == ReadOptions(
        ports=[1801, 2000, 2001],
        addresses=["10.20.1.0/24", "2001:db8::1"],
        since=midnight,
        until=midnight + 7 * 3600 * 10**9,
        guid="text",
        copies=True,
        storage_options={"region": "eu-west-1"},
        jobs=2,
    )
    assert ReadOptions.from_strings({"storage_options": '{"a": 1}'}).storage_options == {"a": 1}
    assert ReadOptions.from_strings({}) == ReadOptions()


@pytest.mark.parametrize(
    ("strings", "message"),
    [
        ({"port": "1801"}, "^port: no such option; there are ports, addresses, since, until, copies, strict, guid"),
        ({"ports": "1801;53"}, "^ports='1801;53' is not a list of ports"),
        ({"addresses": "10.0.0.1, site"}, "^addresses='site' is neither an address nor a network"),
        ({"since": "noon"}, "^since='noon' is not an ISO 8601 time.*; other forms are a time of day"),
        ({"until": "08:10"}, "^a time of day needs the day when the capture begins: give the date"),
        ({"copies": "1"}, "^copies='1' is neither true nor false"),
        ({"guid": "hex"}, "^guid='hex' is not one of"),
        ({"storageOptions": '{"key": "secret"'}, r"^storageOptions=\(not shown\) is not a JSON object"),
        ({"since": "2024-03-04", "until": "2024-03-04"}, "^until must be later than since"),
    ],
)
def test_text_that_is_no_option(strings: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReadOptions.from_strings(strings)


def test_times_as_text(tmp_path: Path) -> None:
    """A time of day is on the day of the first frame, whatever its port; a pipe is not read for that."""
    day = 1_709_510_400_000_000_000
    frames = (build.plain(b"other", 53, 53), day - 10**9), (build.plain(b"one"), day + 10**9)
    path = tmp_path / "x.pcap"
    path.write_bytes(build.pcap([]) + b"".join(build.pcap_record(frame, time=at) for frame, at in frames))
    given = {"since": "23:59:59", "until": "23:59:59"}
    for name, text in given.items():
        options = ReadOptions.from_strings({name: text}, lambda: first_time([str(path)]))
        assert getattr(options, name) == day - 10**9
    path.write_bytes(build.pcap([]))
    assert ReadOptions.from_strings({"since": "08:10"}, lambda: first_time([str(path)])).since is None
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for name in ("-", str(pipe)):
        with pytest.raises(ValueError, match="begins, which a pipe does not tell: give the date"):
            first_time([name])
    before = time_ns()
    ago = ReadOptions.from_strings({"since": "-1.5h"}).since
    assert ago is not None
    assert before - 5400 * 10**9 <= ago <= time_ns() - 5400 * 10**9


def test_storage_options_are_kept_and_not_shown() -> None:
    options = ReadOptions(storage_options={"secret_key": "wJalrXUtnFEMI"})
    assert "wJalr" not in f"{options!r} {options}"
    assert pickle.loads(pickle.dumps(options)).storage_options == options.storage_options
    assert hash(options) == hash(ReadOptions())
    assert options != ReadOptions()
    values: list[Any] = [None, "a=b", [("a", "b")]]
    for value in values:
        with pytest.raises(TypeError, match="storage_options must be a mapping"):
            ReadOptions(storage_options=value)


@pytest.mark.parametrize(
    ("function", "keyword"),
    [
        (capture.open, "strict"),
        (lambda path, **keywords: capture.checkpoints(path, 100, **keywords), "columns"),
        (capture.read_table, "packets"),
        (capture.read_tables, "packets"),
        (capture.read_table, "threads"),
    ],
)
def test_keywords_without_a_use(function: Any, keyword: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument: {keyword}"):
        function(PATH, **{keyword: None})


@pytest.mark.parametrize(
    "text", ["0", "65536", "1801;53", "", "msmq", "5-", "-5", "6-5", "0-5", "5-65536", "1-2-3", "all,5"]
)
def test_ports_that_cannot_be(text: str) -> None:
    with pytest.raises(ValueError, match="is not a list of ports from 1 to 65535"):
        parse_ports(text)


def test_parse_ports() -> None:
    assert parse_ports("1801, 53") == {1801, 53}
    assert parse_ports("1801, 20-22,5 - 5") == {1801, 20, 21, 22, 5}
    assert parse_ports("all") == set(range(1, 65536))
    assert ports_text([1801, 20, 22, 21, 5, 6]) == "5-6, 20-22, 1801"
    assert ports_text(parse_ports("all")) == "1-65535"
    assert ports_text([]) == ""


def test_the_classes_of_frames_add_up() -> None:
    """Frames by class in the first line, and rows, of which a truncated datagram is one, in the second."""
    frames = [build.plain(b"payload")] * 2 + [build.plain(b"payload")[:-3]] * 8 + [segment(b"", 1, 2), segment(b"")]
    frames += [build.ethernet(build.IPV4, build.ipv4(bytes(8), fragment=0x2000)), build.ethernet(build.ARP, bytes(28))]
    frames += [build.ethernet(build.IPV4, build.ipv4(bytes(40), 50))]
    with capture.read_table(io.BytesIO(build.pcap(frames))) as reader:
        assert sum(len(batch) for batch in reader) == 10
    with capture.open(io.BytesIO(build.pcap(frames))) as blocks:
        assert sum(map(len, blocks)) == 10
    first, rows, *_ = blocks.stats.report({"topology": 10}, {})
    assert first == "15 frames: 2 datagrams, 2 segments, 1 fragment, 1 of other protocols, 1 not read, 8 malformed"
    numbers = [int(number) for number in re.findall(r"\d+", first)]
    assert numbers[0] == sum(numbers[1:])
    assert rows == "10 rows of topology"
