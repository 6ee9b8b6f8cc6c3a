"""``msmqwire serve``: the file, the signals and the log, on a real socket."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.restricted import CALLS
from tests.cli.site_files import OTHER_SITE
from tests.cli.support import COMMAND, EXAMPLES, ROOT, environ, msmqwire
from tests.discovery.sites import CLIENT_SITE_ID, SERVER_SITE_ID, V1, V2, V3
from tests.effort import first_of, long_cases

SECONDS = 60

OWN_SITE = OTHER_SITE.replace(str(SERVER_SITE_ID), str(CLIENT_SITE_ID))
LONG = OTHER_SITE.replace("nt4pec", "n" * 100)


class Server:
    """The command as a process; its log is read as it is written."""

    def __init__(self, path: Path, program: Sequence[str] = COMMAND) -> None:
        self.path = path
        self.process = subprocess.Popen(
            [*program, "serve", "--config", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=environ(),
            text=True,
        )
        self.log: list[dict[str, Any]] = []
        self.client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.client.settimeout(SECONDS)

    def wait_for(self, event: str) -> dict[str, Any]:
        """The next event of that name; those before it are in ``log``."""
        assert self.process.stderr
        for line in self.process.stderr:
            self.log.append(json.loads(line))
            if self.log[-1]["event"] == event:
                return self.log[-1]
        raise AssertionError(f"no {event} in {self.log}")

    def start(self) -> None:
        (where,) = self.wait_for("listening")["addresses"]
        host, _, port = where.rpartition(":")
        self.client.connect((host, int(port)))

    def ask(self, data: bytes = V1) -> bytes:
        self.client.send(data)
        return self.client.recv(2048)

    def reload(self, text: str) -> None:
        self.path.write_text(text)
        self.process.send_signal(signal.SIGHUP)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(SECONDS)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(OTHER_SITE)
    return path


@pytest.fixture
def running(site: Path) -> Iterator[Server]:
    server = Server(site)
    try:
        server.start()
        yield server
    finally:
        server.client.close()
        if server.process.poll() is None:
            server.process.kill()
        server.process.communicate()


# --- a running server ---


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_answers_and_ends_with_its_counters(running: Server, number: signal.Signals) -> None:
    assert running.ask() == V3
    assert running.stop(number) == 0
    stopped = running.wait_for("stopped")
    assert (stopped["received"], stopped["answered"], stopped["other_sites"]) == (1, 1, 1)
    assert stopped["dropped_by_kernel"] == 0
    assert running.process.stdout
    assert running.process.stdout.read() == ""


def test_every_line_of_the_log_is_json_with_a_time_and_a_level(running: Server) -> None:
    running.client.send(V2)
    assert running.ask() == V3
    refused = running.wait_for("refused")
    host, port = running.client.getsockname()
    assert (refused["rule"], refused["source"], refused["so_far"]) == ("reply", f"{host}:{port}", 1)
    assert running.stop() == 0
    running.wait_for("stopped")
    for line in running.log:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
        assert line["level"] == "info"
    assert [line["event"] for line in running.log] == ["listening", "refused", "stopped"]
    assert running.log[0]["site"] == str(SERVER_SITE_ID)


def test_counters_on_sigusr1(running: Server) -> None:
    for answered in (1, 2):
        assert running.ask() == V3
        running.process.send_signal(signal.SIGUSR1)
        counters = running.wait_for("counters")
        assert counters["answered"] == answered
        assert counters["refused"]["reply"] == 0


def test_sighup_reads_the_file_again(running: Server) -> None:
    assert running.ask() == V3
    running.reload(OWN_SITE)
    assert running.wait_for("reloaded")["site"] == str(CLIENT_SITE_ID)
    assert running.ask() == V2  # from the same socket
    assert running.stop() == 0
    stopped = running.wait_for("stopped")
    assert (stopped["own_site"], stopped["other_sites"]) == (1, 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[site", "not TOML"),
        *long_cases(
            [
                ("x = " + "[" * 10_000, "not TOML"),
                (OWN_SITE.replace("[site]", "[seit]"), "[seit]: no such table; did you mean site?"),
                (OWN_SITE.replace("nt4pec", "a,b"), "[[site.servers]] number 1 name"),
            ]
        ),
        (OWN_SITE + 'addresses = ["192.0.2.1"]\n', "192.0.2.1:0: Cannot assign requested address"),
    ],
)
def test_a_file_that_is_wrong_changes_nothing_and_says_why(running: Server, text: str, reason: str) -> None:
    running.reload(text)
    said = running.wait_for("not_reloaded")
    assert reason in said["reason"]
    assert said["level"] == "error"
    assert running.ask() == V3
    running.reload(OWN_SITE)
    running.wait_for("reloaded")
    assert running.ask() == V2


def test_a_log_that_is_not_read_does_not_stop_answers_or_sigterm(site: Path) -> None:
    read_end, write_end = os.pipe()
    try:
        os.set_blocking(write_end, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(write_end, b"x" * 4096)
        os.set_blocking(write_end, True)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        site.write_text(OTHER_SITE.replace("port = 0", f"port = {port}"))
        command = [*COMMAND, "serve", "--config", str(site)]
        with subprocess.Popen(command, stderr=write_end, cwd=ROOT, env=environ()) as process:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
                asking.settimeout(0.2)
                asking.connect(("127.0.0.1", port))
                for data in (V1, b"malformed", V1):
                    answered(asking, data)
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
    finally:
        os.close(read_end)
        os.close(write_end)


def answered(asking: socket.socket, data: bytes) -> None:
    """Send until there is an answer; malformed data once."""
    for _ in range(SECONDS * 5):
        with contextlib.suppress(OSError):
            asking.send(data)
            if data != V1:
                return
            assert asking.recv(2048) == V3
            return
        time.sleep(0.05)
    raise AssertionError("no answer")


@pytest.mark.long
@pytest.mark.skipif(not CALLS, reason="needs seccomp, and the numbers of system calls")
def test_where_interfaces_are_not_listed(site: Path) -> None:
    """As a unit of systemd with RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX."""
    limited = [sys.executable, "-m", "tests.cli.restricted", "netlink", *COMMAND]
    command = [*limited, "discover", "--network", "lo", "--timeout", "0.1"]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, env=environ(), timeout=SECONDS)
    said = "the networks of this computer cannot be listed: Address family not supported by protocol"
    assert (done.returncode, done.stderr.decode()) == (1, f"msmqwire: {said}\n")
    server = Server(site, limited)
    try:
        server.start()
        assert server.ask() == V3
        assert server.stop() == 0
    finally:
        server.client.close()
        server.process.kill()
        server.process.communicate()


@pytest.mark.long
@pytest.mark.skipif(not CALLS, reason="needs seccomp, and the numbers of system calls")
def test_where_no_thread_can_be_started(site: Path) -> None:
    """Where the limit of tasks of a container is reached."""
    limited = [sys.executable, "-m", "tests.cli.restricted", "threads", *COMMAND]
    name, port = r"DIRECT=TCP:127.0.0.1\q", "18099"
    for arguments, complaint in (
        (("serve", "--config", str(site)), "no thread can be started"),
        (("receive", "--port", port), f"cannot listen on 127.0.0.1 port {port}: Resource temporarily unavailable"),
        (("send", name, "--rows"), "standard input: no thread can be started"),
        (("send", name, "--text", "x", "--port", port, "--timeout", "0.5"),
         f"no acknowledgment within 0.5 s: cannot connect to 127.0.0.1 port {port}: Resource temporarily unavailable"),
    ):  # fmt: skip
        done = subprocess.run(
            [*limited, *arguments], input=b"{}\n", capture_output=True, cwd=ROOT, env=environ(), timeout=SECONDS
        )
        assert (done.returncode, done.stderr.decode()) == (1, f"msmqwire: {complaint}\n")


@pytest.mark.parametrize("redirection", first_of(["<&- >&- 2>&-", "2>&-", "2>/dev/full"]))
def test_without_a_log(site: Path, redirection: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.bind(("127.0.0.1", 0))
        client.settimeout(0.1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        site.write_text(OTHER_SITE.replace("port = 0", f"port = {port}"))
        command = ["sh", "-c", f'exec "$@" {redirection}', "sh", *COMMAND, "serve", "--config", str(site)]
        with subprocess.Popen(command, cwd=ROOT, env=environ()) as process:
            try:
                answer = b""
                while not answer and process.poll() is None:
                    with contextlib.suppress(TimeoutError):
                        client.sendto(V1, ("127.0.0.1", port))
                        answer = client.recv(2048)
            finally:
                process.terminate()
        assert (answer, process.returncode) == (V3, 0)


def test_a_reload_from_a_pipe_does_not_stop_answers_or_sigterm(running: Server) -> None:
    running.path.unlink()
    os.mkfifo(running.path)
    running.process.send_signal(signal.SIGHUP)
    running.process.send_signal(signal.SIGUSR1)
    running.wait_for("counters")
    assert running.ask() == V3
    assert running.stop() == 0


@pytest.mark.long
def test_a_reload_that_takes_long_does_not_stop_answers_or_sigterm(running: Server) -> None:
    """An array of six million bytes takes the reader of TOML seconds."""
    running.reload(f"a = [{'0,' * 3_000_000}]\n")
    for _ in range(50):
        assert running.ask() == V3
    running.process.send_signal(signal.SIGUSR1)
    # The second answer at the latest would come after the end of a reload that stops answers
    assert running.wait_for("counters")["answered"] == 50
    assert [line["event"] for line in running.log] == ["listening", "counters"]
    assert running.stop() == 0


@pytest.mark.long
def test_signals_are_obeyed_under_a_flood(running: Server) -> None:
    port = str(running.client.getpeername()[1])
    arguments = [sys.executable, "-m", "tests.net.flood", port, str(SECONDS), "100000", SERVER_SITE_ID.bytes_le.hex()]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as flood:
        try:
            running.wait_for("refused")  # it has begun
            running.process.send_signal(signal.SIGUSR1)
            counters = running.wait_for("counters")
            running.reload(OWN_SITE)
            running.wait_for("reloaded")
            assert running.stop() == 0
        finally:
            flood.kill()
    stopped = running.wait_for("stopped")
    assert 0 < counters["received"] <= stopped["received"]
    for counted in (counters, stopped):
        assert counted["received"] == counted["answered"] + counted["unsent"] + sum(counted["refused"].values())


def test_a_file_that_is_gone_changes_nothing(running: Server) -> None:
    running.path.unlink()
    running.process.send_signal(signal.SIGHUP)
    assert running.wait_for("not_reloaded")["reason"] == f"{running.path}: No such file or directory"
    assert running.ask() == V3


def test_sighup_can_listen_elsewhere(running: Server) -> None:
    running.reload(OTHER_SITE + 'addresses = ["127.0.0.5", "127.0.0.1"]\n')
    assert [where.split(":")[0] for where in running.wait_for("reloaded")["addresses"]] == ["127.0.0.1", "127.0.0.5"]
    assert running.ask() == V3


def test_an_answer_that_exceeds_a_limit_is_warned_of(site: Path) -> None:
    site.write_text(LONG + "[limits]\naddress_bytes = 200\n")
    server = Server(site)
    try:
        server.start()
        warning = server.wait_for("restricted")
        assert (warning["level"], warning["clients"]) == ("warning", "other_sites")
        assert warning["answer"] == "not answered: 270 bytes, more than [limits] address_bytes, 200"
        server.reload(LONG)
        server.wait_for("reloaded")
        assert len(server.ask()) == 48 + 16 + 2 * 103
    finally:
        server.stop()
        server.process.communicate()
        server.client.close()


def test_an_address_in_use(site: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        site.write_text(OTHER_SITE.replace("port = 0", f"port = {port}"))
        done = msmqwire("serve", "--config", site)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"msmqwire: 127.0.0.1:{port}: Address already in use\n"


# --- --check, and what is wrong before a server runs ---


def test_the_example_is_right() -> None:
    done = msmqwire("serve", "--config", EXAMPLES / "site.toml", "--check")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines() == [
        "enterprise e6eaba61-d1c6-11db-baac-0003ff4e2d22, site e6eaba60-d1c6-11db-baac-0003ff4e2d22",
        "1 connected network, 2 directory servers",
        "listens on 127.0.0.1:1801",
        "clients of its own site: 48 bytes, to anyone",
        "clients of other sites:  100 bytes, to anyone",
    ]


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (("[site]", "check = true\n[site]"), "clients of other sites:  82 bytes, to clients of this enterprise"),
        (("nt4pec", "n" * 43), "clients of other sites:  156 bytes, to anyone"),
        (("nt4pec", "n" * 702), "clients of other sites:  1,474 bytes, to anyone"),
        (("nt4pec", "n" * 32719), "other sites:  not answered: the answer would have more than 65,507 bytes"),
        (("port = 0", "port = 0\n[limits]\nnetwork_bytes = 81"),
         "clients of other sites:  not answered: 82 bytes, more than [limits] network_bytes, 81"),
        (('[[site.servers]]\nname = "nt4pec"', ""), "other sites:  not answered: [[site.servers]] names none"),
        (('["e6eaba62-d1c6-11db-baac-0003ff4e2d22"]', "[]"), "not answered: connected_networks must be 1 to 32"),
    ],
)  # fmt: skip
def test_check_says_who_is_answered(site: Path, change: tuple[str, str], answer: str) -> None:
    site.write_text(OTHER_SITE.replace(*change))
    done = msmqwire("serve", "--config", site, "--check")
    assert (done.returncode, done.stderr) == (0, b"")
    assert answer in done.stdout.decode()


def test_wrong_files_are_one_line_of_error(site: Path, tmp_path: Path) -> None:
    site.write_text(OTHER_SITE.replace("port", "prot"))
    wrong = (
        (("--config", site), f"{site}: [listen] prot: no such key; did you mean port?"),
        (("--config", tmp_path / "none.toml"), f"{tmp_path / 'none.toml'}: No such file or directory"),
        (("--config", tmp_path), f"{tmp_path}: Is a directory"),
    )
    for arguments, complaint in wrong:
        done = msmqwire("serve", *arguments)
        assert (done.returncode, done.stdout, done.stderr.decode()) == (1, b"", f"msmqwire: {complaint}\n")


def test_a_file_that_is_no_text(site: Path) -> None:
    site.write_bytes(b"\xff\xfe[site]")
    done = msmqwire("serve", "--config", site, "--check")
    assert done.returncode == 1
    assert done.stderr.decode().startswith(f"msmqwire: {site}: not TOML: ")


def test_usage() -> None:
    done = msmqwire("serve")
    assert done.returncode == 1
    assert done.stderr.decode() == (
        "msmqwire serve: the following arguments are required: --config (see msmqwire serve --help)\n"
    )
