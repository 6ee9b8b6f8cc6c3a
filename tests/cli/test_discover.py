"""``msmqwire discover`` on loopback: what it prints, and what it does not do."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.support import Done, msmqwire, refused
from tests.cli.terminal import Terminal, start
from tests.net.responders import Asked, Script, reply, responding, silent

SITE = "dcc51bf6-d4ad-4543-8739-71568e8f9128"
DEADLINE = 60


@contextlib.contextmanager
def server(script: Script) -> Iterator[int]:
    """A server that hears broadcasts on loopback; its port."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bound.bind(("", 0))
    with responding(bound, script):
        yield bound.getsockname()[1]


def two_sites(asked: Asked) -> list[bytes]:
    """Another site's answer, then that of the own site."""
    return [reply(asked.run, "nt4pec", "nt4bsc", networks=[7, 8]), reply(asked.run)]


def unfriendly(asked: Asked) -> list[bytes]:
    """Names made to steer a terminal or to break JSON."""
    names = ("\x1b]0;owned\x07", "\x9b31m", "\u202e", 'a"\\', "\x7f", "\ud800", "é\u4e2d")
    return [b"noise", reply(asked.run, *names), reply(asked.run)]


def discover(port: int, *options: object) -> Done:
    return msmqwire("discover", "--network", "lo", "--port", str(port), *map(str, options))


def test_answers_for_people() -> None:
    with server(two_sites) as port:
        done = discover(port, "--site", f"{{{SITE.upper()}}}")
    assert (done.returncode, done.stderr) == (0, b"2 answers on 1 of 1 network\n")
    assert done.stdout.decode().splitlines() == [
        f"127.0.0.1:{port} on 127.0.0.1/8 on lo: another site",
        "  site      00000000-0000-0000-0000-000000000052",
        "  networks  00000000-0000-0000-0000-000000000007",
        "            00000000-0000-0000-0000-000000000008",
        "  servers   nt4pec (ip)",
        "            nt4bsc (ip)",
        f"127.0.0.1:{port} on 127.0.0.1/8 on lo: your site",
        f"  site      {SITE}",
        "  networks  00000000-0000-0000-0000-0000000000c1",
        "directory servers   nt4pec, nt4bsc",
        "connected networks  00000000-0000-0000-0000-000000000007, 00000000-0000-0000-0000-000000000008",
    ]


def test_json() -> None:
    with server(two_sites) as port:
        done = discover(port, "-T", "json", "--quiet")
    assert (done.returncode, done.stderr) == (0, b"")
    (line,) = done.stdout.splitlines()
    place = {"interface": "lo", "address": "127.0.0.1/8"}
    networks = ["00000000-0000-0000-0000-000000000007", "00000000-0000-0000-0000-000000000008"]
    assert json.loads(line) == {
        "found": True,
        "directory_servers": ["nt4pec", "nt4bsc"],
        "connected_networks": networks,
        "servers_updated": True,
        "answers": [
            {
                "source": f"127.0.0.1:{port}",
                **place,
                "responding_site_id": "00000000-0000-0000-0000-000000000052",
                "connected_networks": networks,
                "servers": [{"name": name, "ip": True, "ipx": False} for name in ("nt4pec", "nt4bsc")],
            },
            {
                "source": f"127.0.0.1:{port}",
                **place,
                "responding_site_id": None,
                "connected_networks": ["00000000-0000-0000-0000-0000000000c1"],
                "servers": [],
            },
        ],
        "networks": [place],
        "unsent": [],
        "discarded": {},
    }


@pytest.mark.parametrize("format", [[], ["-T", "json"]])
def test_a_terminal_is_not_steered(format: list[str]) -> None:
    terminal = Terminal()
    with server(unfriendly) as port:
        arguments = ["discover", "--network", "lo", "--port", port, *format]
        process = start(arguments, stdout=terminal.descriptor, stderr=subprocess.PIPE)
        _, said = process.communicate(timeout=DEADLINE)
    assert said.decode() == "2 answers on 1 of 1 network\n1 datagram discarded: malformed 1\n"
    text = terminal.text()
    assert not re.search(r"[\x00-\x09\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202e]", re.sub(r"\x1b\[[\d;]*m", "", text))
    if format:
        assert json.loads(text)["directory_servers"][3:] == ['a"\\', "\x7f", "\ud800", "é\u4e2d"]


def test_nobody_answers() -> None:
    with server(silent) as port:
        for form, output in (([], b"no server answered\n"), (["-T", "json"], b'{"found":false,')):
            done = discover(port, "--timeout", 0.1, *form)
            assert done.returncode == 2
            assert done.stdout.startswith(output)
            assert done.stderr == b"0 answers on 0 of 1 network\n"


def test_progress_is_drawn_on_a_terminal_and_taken_away() -> None:
    """It says on which network it waits, and for how long yet; nothing of it stays."""
    terminal = Terminal()
    with server(silent) as port:
        arguments = ["discover", "--network", "lo", "--port", port, "--timeout", 2]
        process = start(arguments, stdout=subprocess.PIPE, stderr=terminal.descriptor)
        output, _ = process.communicate(timeout=DEADLINE)
    assert output == b"no server answered\n"
    text = terminal.text()
    assert "asking on 127.0.0.1/8 on lo, 1 of 1" in text
    assert re.search(r"\b[12] s", text)
    # Erased, and the cursor shown again, before the last words.
    erased, words = text.rsplit("\x1b[2K", 1)
    assert erased.count("\x1b[?25l") == text.count("\x1b[?25h") == 1
    assert words.endswith("0 answers on 0 of 1 network\n")


@pytest.mark.parametrize("options", [["--quiet"], []])
def test_no_progress_where_nobody_looks(options: list[str]) -> None:
    stderr: int | Terminal = Terminal() if options else subprocess.PIPE
    with server(silent) as port:
        arguments = ["discover", "--network", "lo", "--port", port, "--timeout", 0.7, *options]
        process = start(
            arguments,
            stdout=subprocess.PIPE,
            stderr=stderr.descriptor if isinstance(stderr, Terminal) else stderr,
        )
        _, said = process.communicate(timeout=DEADLINE)
    assert (stderr.text() if isinstance(stderr, Terminal) else said.decode()) == (
        "" if options else "0 answers on 0 of 1 network\n"
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--site", "here"], "'here' is not a GUID, as in"),
        (["--port", "0"], "'0' is not a port from 1 to 65535"),
        (["--port", "x"], "'x' is not a port from 1 to 65535"),
        (["--timeout", "0"], "'0' is not a number of seconds greater than 0"),
        (["--timeout", "inf"], "'inf' is not a number of seconds greater than 0"),
        (["--timeout", "soon"], "'soon' is not a number of seconds greater than 0"),
        (["--network", "no-such"], "--network no-such: no such network; there is 127.0.0.1/8 on lo"),
        (["everywhere"], "unknown: everywhere"),
    ],
)
def test_wrong_usage(arguments: list[str], complaint: str) -> None:
    assert complaint in refused("discover", *arguments)


def test_without_psutil(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    said = refused("discover")
    assert said.startswith("msmqwire: msmqwire discover needs psutil, which is not installed: pip install 'psutil")


def test_output_that_cannot_be_written() -> None:
    with server(two_sites) as port, open("/dev/full", "wb") as full:
        process = start(["discover", "--network", "lo", "--port", port], stdout=full, stderr=subprocess.PIPE)
        _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 1
    assert said == b"msmqwire: cannot write standard output: No space left on device\n"
