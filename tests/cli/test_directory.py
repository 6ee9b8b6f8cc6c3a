"""``msmqwire directory``: what it prints, what it writes, how it ends."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from uuid import UUID

import pytest

from tests.cli.support import EXAMPLES, SESSION, msmqwire, refused
from tests.system_programs import require_program

ENTERPRISE = EXAMPLES / "enterprise.toml"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    text = ENTERPRISE.read_text("utf-8")
    path = tmp_path / "broken.toml"
    path.write_text(
        text.replace("actual_cost = 3", "actual_cost = -3")
        .replace('["DEPOT"', '["DEP\x1bOT"')
        .replace('site_identifier_list = ["Lugano"]', 'site_identifier_list = ["Lug\\u001bano"]'),
        "utf-8",
    )
    return path


def test_check_of_an_enterprise_that_is_well() -> None:
    done = msmqwire("directory", "check", ENTERPRISE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"24 objects: no findings\n")


def test_check_of_one_that_is_not(broken: Path) -> None:
    done = msmqwire("directory", "check", broken)
    assert done.returncode == 2
    lines = done.stdout.decode().splitlines()
    assert "routing_link Zurich - Basel: actual_cost: -3 is not from 1 to 999,999" in lines
    assert (
        "queue_manager 6 (LUGGATE): site_identifier_list: "
        "'Lug\\x1bano' is not an identifier, and is the name of no site" in lines
    )
    assert "site Lugano: no link has a gate in it, so it cannot be reached" in lines
    assert b"\x1b" not in done.stdout
    assert done.stderr == f"24 objects: {len(lines)} findings\n".encode()


def test_check_as_json(broken: Path) -> None:
    done = msmqwire("directory", "check", "-T", "json", broken)
    assert done.returncode == 2
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    assert {
        "object": "routing_link Zurich - Basel",
        "attribute": "actual_cost",
        "what": "-3 is not from 1 to 999,999",
    } in findings


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("none.toml", None, b"none.toml: No such file or directory"),
        ("bad.toml", b"[[", b"bad.toml: "),
        ("bad.json", b"[1]", b"is not an object of tables"),
        ("capture.pcap", b"\xd4\xc3\xb2\xa1", b"is not UTF-8 text; expected TOML or JSON"),
    ],
)
def test_check_of_a_file_that_cannot_be_read(tmp_path: Path, name: str, data: bytes | None, message: bytes) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    assert message.decode() in refused("directory", "check", tmp_path / name)


def test_directories_that_are_no_files(tmp_path: Path) -> None:
    forms = "name a file of TOML or JSON, or an Active Directory as ldap://HOST or ldaps://HOST"
    for source, message in (
        ("", f"the name of the directory is empty: {forms}"),
        ("-", f"a directory is not read from standard input; {forms}"),
        ("http://a:s3cret@dc1/enterprise.toml", f"no directory is read from http://; {forms}"),
        (tmp_path, f"{tmp_path}: Is a directory; name a file of TOML or JSON"),
    ):
        for command in (
            ("directory", "check", source),
            ("directory", "draw", source),
            ("route", "--directory", source, "A", "B"),
            ("resolve", r"DIRECT=OS:a\b", "--directory", source),
            ("send", r"DIRECT=OS:a\b", "--directory", source),
            ("receive", "--notifications", "--directory", source, "--queue-manager", str(UUID(int=1))),
            ("notify", "change", r"a\b", "--directory", source),
            ("notify", "--before", source, "--directory", ENTERPRISE, "--server", "dc1"),
            ("replay", SESSION, "--directory", source),
        ):
            assert refused(*command) == f"msmqwire: {message}\n", command


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
def test_a_device_without_end_is_not_read_forever(tmp_path: Path) -> None:
    message = "/dev/zero: has more than 268,435,456 bytes, the limit of such a file"
    assert refused("directory", "check", "/dev/zero") == f"msmqwire: {message}\n"
    assert refused("serve", "--config", "/dev/zero") == f"msmqwire: {message}\n"
    safe = tmp_path / "safe.pcap"
    assert refused("anonymize", SESSION, "--key-file", "/dev/zero", "-o", safe) == f"msmqwire: {message}\n"
    longest = "/dev/zero: line 1: it has more than 67,108,864 bytes"
    assert refused("encode", "/dev/zero", "-T", "hex") == f"msmqwire: {longest}\n"


def test_a_pipe_is_a_file(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(ENTERPRISE.read_bytes(),))
    writer.start()
    assert msmqwire("directory", "check", fifo).stderr == b"24 objects: no findings\n"
    writer.join()


def test_draw(tmp_path: Path) -> None:
    require_program("dot")
    drawn = msmqwire("directory", "draw", ENTERPRISE)
    assert drawn.returncode == 0
    assert drawn.stdout.startswith(b'graph "Contoso" {')
    for name, format in (("e.dot", ()), ("e.gv", ()), ("e.txt", ("-T", "dot"))):
        assert msmqwire("directory", "draw", ENTERPRISE, *format, "-o", tmp_path / name).returncode == 0
        assert (tmp_path / name).read_bytes() == drawn.stdout
    assert msmqwire("directory", "draw", ENTERPRISE, "-o", tmp_path / "e.svg").returncode == 0
    svg = (tmp_path / "e.svg").read_text("utf-8")
    assert "<svg" in svg
    assert ">ZURGATE2<" in svg
    assert ">25<" in svg


def test_draw_what_cannot_be_drawn(tmp_path: Path, broken: Path) -> None:
    for arguments, message in (
        ([ENTERPRISE, "-o", tmp_path / "e"], b"end it in .svg, .dot or .gv"),
        ([ENTERPRISE, "-o", tmp_path / "e.docx"], b"end it in .svg, .dot or .gv"),
        ([broken], b"site_identifier_list"),
        ([ENTERPRISE, "-o", tmp_path / "no" / "e.dot"], b"e.dot"),
    ):
        done = msmqwire("directory", "draw", *arguments)
        assert (done.returncode, done.stdout) == (1, b"")
        assert message in done.stderr


def test_draw_without_graphviz(tmp_path: Path) -> None:
    done = msmqwire("directory", "draw", ENTERPRISE, "-o", tmp_path / "e.svg", env={"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert b"needs the program dot of Graphviz" in done.stderr
    assert not (tmp_path / "e.svg").exists()


def test_graphviz_that_fails(tmp_path: Path) -> None:
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho no fonts >&2\nexit 3\n")
    program.chmod(0o755)
    done = msmqwire("directory", "draw", ENTERPRISE, "-o", tmp_path / "e.svg", env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stderr) == (1, b"msmqwire: dot failed: no fonts\n")
    assert not (tmp_path / "e.svg").exists()


def test_usage() -> None:
    assert msmqwire("directory").returncode == 1
    assert b"check" in msmqwire("directory", "--help").stdout
