"""TCP streams as Wireshark follows them, in captures that Scapy wrote and Wireshark's tools shuffled; and real ones."""

from __future__ import annotations

import random
import re
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import EDecimal, PcapWriter

from msmqwire import capture
from tests.capture.build import internal, message
from tests.capture.reading import read
from tests.system_programs import capturing, require_program

START = 1_709_539_200.5
ROOT = Path(__file__).parents[2]


def run(program: str, *arguments: str | Path) -> str:
    """What a program prints."""
    command = [require_program(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def followed(path: Path, stream: int) -> list[bytes]:
    """The bytes of both directions of a connection as Wireshark puts them together, the client's first."""
    text = run("tshark", "-r", path, "-n", "-q", "-z", f"follow,tcp,raw,{stream}")
    lines = re.findall(r"^(\t?)([0-9a-f]+)$", text, re.MULTILINE)
    return [b"".join(bytes.fromhex(data) for tab, data in lines if bool(tab) == back) for back in (False, True)]


def ours(path: Path, **options: Any) -> tuple[dict[tuple[str, int, str, int], bytes], capture.CaptureStats]:
    """The packets of every direction behind one another."""
    rows, stats = read(path, **options)
    found: dict[tuple[str, int, str, int], bytes] = {}
    for row in rows:
        ends = row[2:6]
        assert row.stream_offset == len(found.get(ends, b""))
        found[ends] = found.get(ends, b"") + row.payload
    return found, stats


class Connection:
    """The frames of a connection, as both ends see them."""

    def __init__(self, client: int, rng: random.Random, network: type[Packet] = IP) -> None:
        self.rng = rng
        ends = ("10.0.0.1", "10.0.0.2") if network is IP else ("2001:db8::1", "2001:db8::2")
        ether = Ether(src="02:00:5e:00:00:01", dst="02:00:5e:00:00:02")  # else Scapy asks the network for them
        self.there = ether / network(src=ends[0], dst=ends[1]), (client, 1801)
        self.back = ether / network(src=ends[1], dst=ends[0]), (1801, client)
        self.sequences = [rng.randrange(1 << 32), (1 << 32) - rng.randrange(3000)]
        self.sent = [b"", b""]
        self.frames = [self.frame(0, b"", "S"), self.frame(1, b"", "SA")]
        self.sequences = [(sequence + 1) % (1 << 32) for sequence in self.sequences]

    def frame(self, back: int, payload: bytes, flags: str) -> Packet:
        """A segment from one end."""
        network, (source, target) = self.back if back else self.there
        tcp = TCP(sport=source, dport=target, seq=self.sequences[back], ack=self.sequences[1 - back], flags=flags)
        return network / tcp / Raw(payload)

    def send(self, back: int, data: bytes, most: int) -> None:
        """Send some bytes, in several segments if need be."""
        for start in range(0, len(data), most):
            part = data[start : start + most]
            self.frames.append(self.frame(back, part, "PA"))
            self.sequences[back] = (self.sequences[back] + len(part)) % (1 << 32)
        self.sent[back] += data

    def talk(self) -> list[Packet]:
        """Packets in both directions."""
        for _ in range(12):
            body = self.rng.randbytes(self.rng.choice((0, 30, 700, 3000)))
            packet = self.rng.choice((message(body), message(body, session=True), internal()))
            self.send(self.rng.randrange(2), packet, self.rng.choice((100, 536, 1460)))
        return self.frames


def write(path: Path, frames: list[Packet]) -> None:
    """A capture with a millisecond between frames."""
    for number, frame in enumerate(frames):
        frame.time = EDecimal(str(START)) + EDecimal("0.001") * number
    with PcapWriter(str(path), linktype=1) as writer:
        writer.write(frames)


@pytest.mark.parametrize("network", [IP, IPv6])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_as_wireshark_follows(tmp_path: Path, network: type[Packet], seed: int) -> None:
    rng = random.Random(seed)
    connections = [Connection(50000 + number, rng, network) for number in range(3)]
    queues = [connection.talk() for connection in connections]
    frames = []
    while any(queues):
        frames.append(rng.choice([queue for queue in queues if queue]).pop(0))
    # The network delivers late and twice, but not before a connection is set up
    for _ in range(20):
        at = rng.randrange(10, len(frames) - 5)
        frames.insert(at + rng.randrange(5), frames[at].copy())
        at = rng.randrange(10, len(frames) - 5)
        frames.insert(at + rng.randrange(1, 3), frames.pop(at))
    path = tmp_path / "session.pcap"
    write(path, frames)
    found, stats = ours(path)
    streams = [int(line) for line in run("tshark", "-r", path, "-n", "-T", "fields", "-e", "tcp.stream").split()]
    assert sorted(set(streams)) == [0, 1, 2]
    expected = {bytes(data) for stream in range(3) for data in followed(path, stream) if data}
    assert set(found.values()) == expected
    assert expected == {data for connection in connections for data in connection.sent if data}
    assert stats.streams.problems == stats.streams.uncompared  # repeats of packets that were read
    assert stats.streams.duplicate > 0
    assert stats.segments == len(streams)


def test_shuffled_by_wiresharks_tools(tmp_path: Path) -> None:
    """Cut in two, merged in the wrong order, put in order again: the same streams each time."""
    connection = Connection(50000, random.Random(9))
    frames = connection.talk()
    whole, twice = tmp_path / "whole.pcap", tmp_path / "twice.pcapng"
    write(whole, frames)
    odd, even = tmp_path / "odd.pcap", tmp_path / "even.pcapng"
    odds = [str(number) for number in range(1, len(frames) + 1) if number % 2]
    run("editcap", "-F", "pcap", "-r", whole, odd, *odds)
    run("editcap", whole, even, *odds)
    together, late = tmp_path / "together.pcapng", tmp_path / "late.pcapng"
    run("mergecap", "-w", together, odd, even)
    run("mergecap", "-a", "-w", late, odd, even)
    run("mergecap", "-w", twice, whole, whole)
    ordered = tmp_path / "ordered.pcapng"
    run("reordercap", late, ordered)
    expected = {data for data in followed(whole, 0) if data}
    assert expected == {data for data in connection.sent if data}
    for path in (whole, together, late, twice, ordered):
        found, stats = ours(path)
        assert set(found.values()) == expected, path.name
        repeats = stats.streams.uncompared if path == twice else 0
        assert stats.streams.problems == repeats, path.name
    packets = [row.payload for row in read(whole)[0]]
    with capture.open([odd, even], columns=()) as blocks:
        assert sorted(bytes(payload or b"") for block in blocks for payload in block.payloads) == sorted(packets)


@pytest.mark.parametrize("name", ["message-session.pcap", "local-site.pcap"])
@pytest.mark.parametrize("option", [("-d",), ("-D", "100")], ids=str)
def test_frames_that_were_captured_twice(tmp_path: Path, name: str, option: tuple[str, ...]) -> None:
    """Copies are read as the manual says, and without those that editcap finds a capture is what it was."""
    once, twice, without = ROOT / "examples" / name, tmp_path / "twice.pcapng", tmp_path / "without.pcapng"
    run("mergecap", "-w", twice, once, once)
    run("editcap", *option, twice, without)
    rows, stats = read(once)
    double_rows, double_stats = read(twice)
    datagrams = [row.payload for row in rows if row.first_frame is None]
    packets = [row.payload for row in rows if row.first_frame is not None]
    assert [row.payload for row in double_rows if row.first_frame is None][::2] == datagrams
    assert [row.payload for row in double_rows if row.first_frame is not None] == packets
    assert len(double_rows) == 2 * len(datagrams) + len(packets)
    assert bool(double_stats.streams.uncompared) is bool(packets)
    assert double_stats.streams.conflicts == 0
    hint = (
        "an eighth of the segments or more not compared: if frames were captured twice, editcap -d removes the copies"
    )
    assert (hint in double_stats.report({"messages": 1}, {})) is bool(packets)
    assert hint not in stats.report({"messages": 1}, {})
    found, found_stats = read(without)
    assert found == rows
    assert found_stats.streams == stats.streams


def test_payloads_and_frames(tmp_path: Path) -> None:
    """The bytes of every packet lie in the segments that Wireshark finds from its first frame to its last."""
    path = tmp_path / "session.pcap"
    write(path, Connection(50000, random.Random(4)).talk())
    fields = run(
        "tshark", "-r", path, "-n", "-T", "fields", "-e", "frame.number", "-e", "tcp.srcport", "-e", "tcp.payload"
    )
    segments: dict[int, tuple[int, bytes]] = {}
    for line in fields.splitlines():
        number, port, payload = line.split("\t")
        segments[int(number)] = int(port), bytes.fromhex(payload)
    rows, _ = read(path)
    assert len(rows) == 12
    for row in rows:
        assert row.first_frame is not None
        numbers = [n for n in range(row.first_frame, row.frame + 1) if segments[n][0] == row.src_port]
        assert row.payload in b"".join(segments[number][1] for number in numbers)
        assert segments[numbers[0]][1]
        assert segments[numbers[-1]][1]


def test_a_real_connection(tmp_path: Path) -> None:
    """Sockets on loopback, captured while they talk."""
    path = tmp_path / "loopback.pcap"
    rng = random.Random(5)
    packets = [message(rng.randbytes(rng.choice((10, 1000, 100_000)))) for _ in range(30)]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        program = [require_program("tcpdump"), "--immediate-mode", "-U", "-B", "65536", "-i", "lo", "-w", str(path)]
        with capturing([*program, f"tcp port {port}"], "listening on"):
            sender = threading.Thread(target=send, args=(port, packets))
            sender.start()
            with server.accept()[0] as connection:
                while connection.recv(65536):
                    pass
            sender.join()
            assert received(path, port, len(packets)) == packets


def send(port: int, packets: list[bytes]) -> None:
    """Open a connection and send."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        for packet in packets:
            client.sendall(packet)


def received(path: Path, port: int, count: int) -> list[bytes]:
    """The packets in a file that is still being written, once there are so many."""
    for _ in range(100):
        rows, stats = read(path, ports=[port])
        if len(rows) >= count:
            assert stats.streams.gaps == stats.streams.conflicts == stats.streams.no_packet == 0
            return [row.payload for row in rows]
        threading.Event().wait(0.1)
    raise AssertionError(f"{len(rows)} packets of {count} were captured")
