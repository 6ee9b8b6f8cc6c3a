"""Discovery between hosts: the command on one, servers on others, real broadcasts between them."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from msmqwire.capture import read_table
from tests.net.hosts import Hosts, two_networks
from tests.net.responders import DEADLINE, Asked, Script, other_site, own_site, reply, responding, silent
from tests.system_programs import require_program

PORT = 1801
ANYWHERE = ("", PORT)
#: Seconds for what has to be waited out, after an answer that must have come in the same time.
WAIT = 2
ENTERPRISE = uuid.UUID("e6eaba61-d1c6-11db-baac-0003ff4e2d22")
SITE, OTHER_SITE = (uuid.UUID(f"e6eaba6{n}-d1c6-11db-baac-0003ff4e2d22") for n in (0, 9))


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with two_networks() as made:
        yield made


@contextlib.contextmanager
def servers(hosts: Hosts, **scripts: Script) -> Iterator[dict[str, list[Asked]]]:
    """A scripted server on each host that is named, the requests to each."""
    with contextlib.ExitStack() as stack:
        yield {
            host: stack.enter_context(responding(hosts.socket(host, ANYWHERE), script))
            for host, script in scripts.items()
        }


def discover(hosts: Hosts, *options: object, status: int = 0) -> dict[str, Any]:
    """What the command finds; what must not happen takes no longer than a test may."""
    done = hosts.msmqwire("client", "discover", "-T", "json", "--site", SITE, "--timeout", 30, *options)
    assert done.returncode == status, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def sources(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(answer["source"], answer["address"]) for answer in found["answers"]]


def test_networks_are_those_of_the_host(hosts: Hosts) -> None:
    with servers(hosts, near=own_site, far=own_site) as requests:
        found = discover(hosts)
    assert found["networks"] == [
        {"interface": "eth0", "address": "10.71.1.25/24"},
        {"interface": "eth1", "address": "10.71.2.25/24"},
    ]
    assert found["unsent"] == []
    # Each heard the broadcast of its network, from the client's address there.
    assert [each.client[0] for each in requests["near"]] == ["10.71.1.25"]
    assert [each.client[0] for each in requests["far"]] == ["10.71.2.25"]
    assert requests["near"][0].run == requests["far"][0].run
    assert sources(found) == [("10.71.1.10:1801", "10.71.1.25/24"), ("10.71.2.10:1801", "10.71.2.25/24")]


def test_own_site(hosts: Hosts) -> None:
    with servers(hosts, near=own_site):
        found = discover(hosts, "--network", "eth0")
    assert (found["found"], found["servers_updated"], found["directory_servers"]) == (True, False, [])
    assert found["connected_networks"] == [str(uuid.UUID(int=0xC1))]


def test_other_site(hosts: Hosts) -> None:
    with servers(hosts, near=other_site("nt4pec", "nt4bsc")):
        found = discover(hosts, "--network", "eth0", "--timeout", WAIT)
    assert found["directory_servers"] == ["nt4pec", "nt4bsc"]
    (answer,) = found["answers"]
    assert answer["responding_site_id"] == str(uuid.UUID(int=0x52))
    assert answer["servers"][0] == {"name": "nt4pec", "ip": True, "ipx": False}


def test_own_and_other_site(hosts: Hosts) -> None:
    """The other site's answer comes first: that of the own site ends the run."""
    first = threading.Event()

    def remote(asked: Asked) -> Iterator[bytes]:
        yield reply(asked.run, "nt4pec", networks=[7])
        first.set()

    def local(asked: Asked) -> list[bytes]:
        assert first.wait(DEADLINE)
        return [reply(asked.run)]

    with servers(hosts, near=local, next=remote):
        found = discover(hosts, "--network", "10.71.1.0/24")
    assert [source for source, _ in sources(found)] == ["10.71.1.11:1801", "10.71.1.10:1801"]
    assert (found["directory_servers"], found["connected_networks"]) == (["nt4pec"], [str(uuid.UUID(int=7))])


def test_silence(hosts: Hosts) -> None:
    with servers(hosts, near=silent, far=silent) as requests:
        found = discover(hosts, "--timeout", 0.1, status=2)
    assert (found["found"], found["answers"]) == (False, [])
    assert [len(each) for each in requests.values()] == [1, 1]


def test_nobody_there(hosts: Hosts) -> None:
    """Ports are closed, so hosts complain by ICMP; that is silence too."""
    assert discover(hosts, "--timeout", 0.1, status=2)["discarded"] == {}


def test_noise_and_spoofed_answers(hosts: Hosts) -> None:
    def noise(asked: Asked) -> list[bytes]:
        guessed = uuid.UUID(int=asked.run.int ^ 1 << 127)
        return [b"", b"\0\2\0\0", reply(guessed), reply(guessed, "evil"), reply(asked.run) + b"\0", reply(asked.run)]

    with servers(hosts, near=noise):
        found = discover(hosts, "--network", "eth0")
    assert found["discarded"] == {"malformed": 3, "other_request": 2}
    assert found["directory_servers"] == []


def test_late_answer(hosts: Hosts) -> None:
    """An answer of the first network, when the second was asked already, counts for neither."""
    second_asked, late_sent = threading.Event(), threading.Event()

    def late(asked: Asked) -> Iterator[bytes]:
        assert second_asked.wait(DEADLINE)
        yield reply(asked.run, "late")
        late_sent.set()

    def after_it(asked: Asked) -> list[bytes]:
        second_asked.set()
        assert late_sent.wait(DEADLINE)
        return [reply(asked.run)]

    with servers(hosts, near=late, far=after_it):
        found = discover(hosts, "--timeout", WAIT)
    assert sources(found) == [("10.71.2.10:1801", "10.71.2.25/24")]
    assert found["discarded"] == {"other_network": 1}


def test_answer_by_another_way(hosts: Hosts) -> None:
    """What was sent to the right address and came in on the wrong network is not of the network that was asked."""
    with contextlib.closing(hosts.socket("far", ("", 0))) as elsewhere:

        def detour(asked: Asked) -> Iterator[bytes]:
            elsewhere.sendto(reply(asked.run, "elsewhere"), asked.client)
            yield reply(asked.run)

        with servers(hosts, near=detour):
            found = discover(hosts, "--network", "eth0")
    assert sources(found) == [("10.71.1.10:1801", "10.71.1.25/24")]
    assert found["discarded"] == {"other_network": 1}


def test_server_on_the_clients_own_host(hosts: Hosts) -> None:
    """Its answer comes in through loopback, and is of the network all the same."""
    with servers(hosts, client=own_site):
        found = discover(hosts, "--network", "eth1")
    assert sources(found) == [("10.71.2.25:1801", "10.71.2.25/24")]


@pytest.mark.long
def test_network_by_its_names(hosts: Hosts) -> None:
    with servers(hosts, far=own_site) as requests:
        for name in ("eth1", "10.71.2.25", "10.71.2.25/24", "10.71.2.0/24"):
            assert [each["interface"] for each in discover(hosts, "--network", name)["networks"]] == ["eth1"]
    assert len(requests["far"]) == 4
    done = hosts.msmqwire("client", "discover", "--network", "eth7")
    assert done.returncode == 1
    assert done.stderr == (
        "msmqwire: --network eth7: no such network; there is 127.0.0.1/8 on lo, 10.71.1.25/24 on eth0, "
        "10.71.2.25/24 on eth1\n"
    )


def test_host_without_networks(hosts: Hosts) -> None:
    done = hosts.msmqwire("hub", "discover")
    assert done.returncode == 2
    assert done.stderr == "there is no network to ask: no interface that is up has an IPv4 network\n"


SITE_FILE = """\
[enterprise]
id = "{enterprise}"

[site]
id = "{site}"
connected_networks = ["e6eaba62-d1c6-11db-baac-0003ff4e2d22"]

[[site.servers]]
name = "{name}"

[listen]
addresses = ["0.0.0.0"]
"""


@contextlib.contextmanager
def serving(hosts: Hosts, folder: Path, host: str, site: uuid.UUID) -> Iterator[None]:
    """Our own server on a host."""
    config = folder / f"{host}.toml"
    config.write_text(SITE_FILE.format(enterprise=ENTERPRISE, site=site, name=f"{host}-server"))
    serve = [sys.executable, "-m", "msmqwire", "serve", "--config", config]
    with hosts.running(host, serve, "listening"):
        yield


@contextlib.contextmanager
def captured(hosts: Hosts, interface: str, frames: int, file: Path) -> Iterator[None]:
    """Capture as many frames of discovery on an interface of the client; the block ends when they have come."""
    tcpdump = [require_program("tcpdump"), "-i", interface, "-c", frames, "-Z", "root", "--immediate-mode"]
    with hosts.running("client", [*tcpdump, "-w", file, "udp", "port", PORT], "listening on") as process:
        yield
        process.wait(DEADLINE)


def test_our_own_server_and_what_is_on_the_wire(hosts: Hosts, tmp_path: Path) -> None:
    """Another site's server answers on net1, our site's on net2; tcpdump sees it, and we read what it saw."""
    captures = [tmp_path / "net1.pcap", tmp_path / "net2.pcap"]
    with (
        serving(hosts, tmp_path, "near", OTHER_SITE),
        serving(hosts, tmp_path, "far", SITE),
        captured(hosts, "eth0", 2, captures[0]),
        captured(hosts, "eth1", 2, captures[1]),
    ):
        found = discover(hosts, "--enterprise", ENTERPRISE, "--timeout", WAIT)
    assert found["directory_servers"] == ["near-server"]
    assert sources(found) == [("10.71.1.10:1801", "10.71.1.25/24"), ("10.71.2.10:1801", "10.71.2.25/24")]

    reader = read_table([str(capture) for capture in captures], "topology", strict=True, guid="text")
    rows = pa.Table.from_batches(list(reader), reader.schema).to_pylist()
    assert reader.stats.frames == 4
    asked, answered, asked_next, answered_next = rows
    assert [row["fault"] for row in rows] == [None] * 4
    assert [row["violations"] for row in rows] == [[]] * 4
    assert [(row["type"], row["src"], row["dst"], row["dst_port"] == PORT) for row in rows] == [
        ("request", "10.71.1.25", "10.71.1.255", True),
        ("reply", "10.71.1.10", "10.71.1.25", False),
        ("request", "10.71.2.25", "10.71.2.255", True),
        ("reply", "10.71.2.10", "10.71.2.25", False),
    ]
    assert (asked["enterprise_id"], asked["site_id"]) == (str(ENTERPRISE), str(SITE))
    assert asked["request_id"] == asked_next["request_id"] == answered["correlation_id"]
    assert answered["responding_site_id"] == str(OTHER_SITE)
    assert answered["servers"] == [{"name": "near-server", "ip": True, "ipx": False}]
    assert (answered_next["responding_site_id"], answered_next["servers"]) == (None, None)


def test_the_table(hosts: Hosts) -> None:
    with servers(hosts, near=other_site("nt4pec", "\x1b[2Jevil"), far=own_site):
        done = hosts.msmqwire("client", "discover", "--site", SITE, "--timeout", WAIT)
    assert done.returncode == 0
    assert done.stderr == "2 answers on 2 of 2 networks\n"
    assert "\x1b" not in done.stdout
    for text in ("10.71.1.10:1801", "another site", str(uuid.UUID(int=0x52)), "nt4pec (ip)", "your site", str(SITE)):
        assert text in done.stdout


@pytest.mark.parametrize(("number", "words"), [(signal.SIGINT, "msmqwire: interrupted\n"), (signal.SIGTERM, "")])
def test_stopped_while_it_waits(hosts: Hosts, number: signal.Signals, words: str) -> None:
    """It dies of the signal, as a shell expects, and prints nothing."""
    asked = threading.Event()

    def tell(_: Asked) -> list[bytes]:
        asked.set()
        return []

    with servers(hosts, near=tell):
        command = hosts.command("client", sys.executable, "-m", "msmqwire", "discover", "--network", "eth0")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert asked.wait(DEADLINE)
        process.send_signal(number)
        output, said = process.communicate(timeout=DEADLINE)
    assert (process.returncode, output, said) == (-number, "", words)
