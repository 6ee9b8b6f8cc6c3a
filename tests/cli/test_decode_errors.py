"""``msmqwire decode``: exit statuses, and one clear line for what cannot be done."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capture import build
from tests.cli.support import (
    COMMAND,
    EXAMPLES,
    LOCAL,
    OTHER,
    ROOT,
    SESSION,
    V1,
    V2,
    capture,
    environ,
    expected_rows,
    from_json,
    msmqwire,
    process,
    refused,
    reply_from,
)

# --- Exit statuses ---


def test_status_0_when_all_is_decoded(printed: Path) -> None:
    done = msmqwire("decode", printed)
    assert done.returncode == 0
    assert done.stderr.decode() == "3 frames: 3 datagrams, 0 of other protocols, 0 malformed\n3 rows of topology\n"


def test_status_2_when_payloads_have_faults() -> None:
    for quiet in ((), ("--quiet",)):
        done = msmqwire("decode", LOCAL, OTHER, *quiet)
        assert done.returncode == 2
        assert (
            done.stderr.decode().splitlines() == []
            if quiet
            else [
                "20 frames: 14 datagrams, 1 segment, 5 of other protocols, 0 malformed",
                "14 rows of topology",
                "1 segment of 1 stream, 0 packets",
                "3 payloads with faults: bad_count 1, bad_flag 1, truncated 1",
            ]
        )


def test_status_2_when_a_frame_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(LOCAL.read_bytes()[:-7])
    done = msmqwire("decode", path, "--table", "topology")
    text = done.stderr.decode()
    assert done.returncode == 2
    assert text.splitlines()[:2] == ["8 frames: 3 datagrams, 4 of other protocols, 1 malformed", "3 rows of topology"]
    assert f"{path}: at byte " in text
    assert from_json(done.stdout) == expected_rows(path)


def test_what_is_not_read_is_named(tmp_path: Path) -> None:
    """The status is 2 where the link type of frames, or the encapsulation of all of them, is not read."""
    esp = build.ethernet(build.IPV4, build.ipv4(bytes(40), 50))
    path = tmp_path / "one.pcapng"
    path.write_bytes(build.pcapng([esp, esp]))
    done = msmqwire("decode", path)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        "2 frames: 0 of other protocols, 2 not read, 0 malformed",
        "0 rows of any table",
        "2 frames in an encapsulation that is not read: ESP",
        "nothing was read, since frames are in an encapsulation that is not read",
    ]
    path.write_bytes(build.pcapng([esp, build.plain(V1.data)]))
    done = msmqwire("decode", path)
    assert done.returncode == 0
    assert b"nothing was read" not in done.stderr
    blocks = build.interface(link=195) + build.packet(bytes(40), number=1)
    path.write_bytes(build.pcapng([esp]) + blocks)
    done = msmqwire("decode", path)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[2] == "1 frame of link type 195 (IEEE802_15_4_WITHFCS), not read"


def test_a_long_list_of_problems_is_truncated(tmp_path: Path) -> None:
    frames = bytearray(capture([V1.data] * 30))
    place = -1
    while (place := frames.find(V1.data, place + 1)) >= 0:
        frames[place - 4 : place - 2] = b"\xff\xff"  # the length in the UDP header
    path = tmp_path / "bad.pcapng"
    path.write_bytes(frames)
    done = msmqwire("decode", path, "--table", "topology")
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 2
    assert lines[:2] == ["30 frames: 0 of other protocols, 30 malformed", "0 rows of topology"]
    assert sum("at byte" in line for line in lines) == 10
    assert lines[-1] == "... and 20 more problems"


# --- Files ---


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    note, empty, out = tmp_path / "note.txt", tmp_path / "empty.pcap", tmp_path / "out.parquet"
    note.write_bytes(b"dear all, \x1b[2J")
    empty.touch()
    assert refused("decode", "nosuch.pcap") == "msmqwire: nosuch.pcap: No such file or directory\n"
    assert refused("decode", "") == "msmqwire: '': No such file or directory\n"
    assert refused("decode", tmp_path / "*.pcapng") == f"msmqwire: no capture matches '{tmp_path}/*.pcapng'\n"
    assert refused("decode", "nosuch://host/a.pcap") == "msmqwire: nosuch://host: Protocol not known: nosuch\n"
    assert re.search(rf"{note}: .*64 65 61 72.*pcap", refused("decode", note, "-o", out))
    assert str(empty) in refused("decode", empty)
    folder = msmqwire("decode", tmp_path)
    assert folder.returncode == 1
    assert folder.stderr.decode().splitlines()[-1] == "msmqwire: none of the 2 files is a capture"
    assert sorted(tmp_path.iterdir()) == [empty, note]


def test_files_among_captures_that_are_none(printed: Path, tmp_path: Path) -> None:
    """They are reported, the others are read, and the exit status says so."""
    (tmp_path / "note.txt").write_bytes(b"dear all")
    (tmp_path / "folder").mkdir()
    files = sorted(tmp_path.iterdir())
    done = msmqwire("decode", *files, "--table", "topology")
    assert (done.returncode, from_json(done.stdout)) == (2, expected_rows(printed))
    lines = done.stderr.decode().splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["msmqwire", "msmqwire"]
    assert lines[0] == f"msmqwire: no capture is in the folder '{tmp_path}/folder'"
    assert "note.txt: begins with" in lines[1]
    assert lines[-1] == "2 files not read"
    assert msmqwire("replay", *files).returncode == 2
    done = msmqwire("decode", tmp_path / "note.txt", tmp_path / "folder")
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1] == "msmqwire: none of the 2 files is a capture"


def test_a_folder_with_many_other_files(printed: Path, tmp_path: Path) -> None:
    """Three files are named, the others counted."""
    for number in range(50):
        (tmp_path / f"note{number:02}.txt").write_bytes(b"dear all")
    lines = msmqwire("decode", tmp_path, "--table", "topology").stderr.decode().splitlines()
    assert [line for line in lines if "note" in line] == lines[:3]
    assert lines[3] == "msmqwire: ... and 47 more files, no captures either"
    assert lines[-1] == "50 files not read"


def test_names_that_no_shell_has_expanded(tmp_path: Path) -> None:
    """A folder, a pattern and a URI stand for their files; hidden ones are skipped."""
    for name in ("b.pcapng", "a.pcapng", "_c.pcapng"):
        (tmp_path / name).write_bytes(capture([V1.data]))
    for source in (f"{tmp_path}/", f"file://{tmp_path}"):
        done = msmqwire("decode", source, "--table", "topology")
        assert (done.returncode, [row["file"].split("/")[-1] for row in from_json(done.stdout)]) == (
            0,
            ["a.pcapng", "b.pcapng"],
        )
    done = msmqwire("decode", "*.pcapng", "--table", "topology", cwd=tmp_path)
    assert [row["file"] for row in from_json(done.stdout)] == ["a.pcapng", "b.pcapng"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(printed: Path) -> None:
    printed.chmod(0)
    assert refused("decode", printed) == f"msmqwire: {printed}: Permission denied\n"


@pytest.mark.parametrize("step", [23, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("source", [LOCAL, OTHER], ids=["pcap", "pcapng"])
def test_a_truncated_capture_is_an_error_or_a_reported_loss(source: Path, step: int, tmp_path: Path) -> None:
    """Its rows never disagree with the complete capture."""
    data, path = source.read_bytes(), tmp_path / "cut"
    complete = len(expected_rows(source))
    seen = 0
    for size in [*range(64), *range(64, len(data), step)]:
        path.write_bytes(data[:size])
        done = msmqwire("decode", path, "--table", "topology", "-T", "json")
        said = done.stderr.decode()
        assert said.strip()
        if done.returncode == 1:
            assert size < 64  # inside the header of the file
            continue
        rows = done.stdout.count(b"\n")
        assert seen <= rows <= complete
        seen = rows
        assert done.returncode == (2 if ", 0 malformed" not in said or "with faults" in said else 0), (size, said)


@pytest.mark.long
def test_a_file_name_that_is_not_text(printed: Path, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9.pcapng"
    os.rename(printed, name)
    done = process("decode", name)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["file"].endswith("/caf\ufffd.pcapng")
    os.remove(name)
    done = process("decode", name)
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)


# --- Standard input and output ---


def test_standard_input() -> None:
    done = msmqwire("decode", OTHER, "-", "--table", "topology", input=LOCAL.read_bytes())
    expected = [*expected_rows(OTHER), *({**row, "file": "-"} for row in expected_rows(LOCAL))]
    assert from_json(done.stdout) == expected


def test_standard_input_without_a_capture() -> None:
    refused("decode", "-", input=b"")
    refused("decode", "-", input=b"hello")


@pytest.mark.parametrize("arguments", [("decode", "-", LOCAL, "-", "-q"), ("replay", "-", "-")])
def test_standard_input_given_twice(arguments: tuple[str | Path, ...]) -> None:
    expected = "msmqwire: - is given twice, but standard input has one capture only: name files for the others\n"
    assert refused(*arguments, input=LOCAL.read_bytes()) == expected


@pytest.mark.long
def test_standard_streams_that_are_closed(printed: Path, tmp_path: Path) -> None:
    def run(redirection: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = ["sh", "-c", f'exec "$@" {redirection}', "sh", *COMMAND, "decode", *arguments]
        return subprocess.run(command, capture_output=True, env=environ(), cwd=ROOT, timeout=60)

    done = run("<&-", "-")
    assert (done.returncode, done.stderr) == (1, b"msmqwire: standard input is closed\n")
    done = run("<&-", "--hex", "-")
    assert (done.returncode, done.stderr) == (1, b"msmqwire: standard input is closed\n")
    done = run(">&-", str(printed))
    assert (done.returncode, done.stderr) == (1, b"msmqwire: standard output is closed; name a file with -o\n")
    out = tmp_path / "out.json"
    done = run(">&- 2>&-", str(printed), "-o", str(out), "--table", "topology")
    assert done.returncode == 0
    assert from_json(out.read_bytes()) == expected_rows(printed)


@pytest.mark.parametrize(
    "arguments",
    [
        ["replay", SESSION],
        ["--version"],
        *(
            pytest.param(arguments, marks=pytest.mark.long)
            for arguments in (
                ["replay", SESSION, "-T", "json"],
                ["resolve", "DIRECT=OS:host\\queue"],
                ["serve", "--config", EXAMPLES / "site.toml", "--check"],
                ["explain", "bad_terminator"],
            )
        ),
    ],
    ids=lambda arguments: " ".join(map(str, arguments[:2])),
)
def test_an_answer_without_standard_output_is_an_error(arguments: list[str | Path]) -> None:
    command = ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, env=environ(), cwd=ROOT, timeout=60)
    assert (done.returncode, done.stderr) == (1, b"msmqwire: standard output is closed\n")


def test_dash_is_standard_output(printed: Path) -> None:
    assert msmqwire("decode", printed, "-o", "-").stdout == msmqwire("decode", printed).stdout


def test_parquet_into_a_pipe(printed: Path, tmp_path: Path) -> None:
    """Writers of Parquet ask for the position, which a pipe does not have."""
    out = tmp_path / "direct.parquet"
    msmqwire("decode", printed, "-o", out)
    assert process("decode", printed, "-T", "parquet").stdout == out.read_bytes()


@pytest.mark.long
def test_a_reader_that_leaves_early(tmp_path: Path) -> None:
    path = tmp_path / "many.pcapng"
    path.write_bytes(capture([V2.data] * 20_000))
    for format in ("json", "table"):
        with subprocess.Popen(
            [*COMMAND, "decode", str(path), "-T", format, "--table", "topology"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ(), cwd=ROOT,
        ) as child:  # fmt: skip
            assert child.stdout
            assert child.stderr
            assert child.stdout.read(1000)
            child.stdout.close()
            assert child.stderr.read() == b""
            assert child.wait(60) == -13  # SIGPIPE, as of any tool


# --- Arguments ---


def test_usage(printed: Path, tmp_path: Path) -> None:
    decode = ("decode", printed)
    for arguments, expected in (
        (("decode",), "FILE"),
        (("dekode", printed), "dekode"),
        ((*decode, "-T", "xml"), "xml"),
        ((*decode, "--table", "queues"), "there is topology"),
        ((*decode, "--table", "topology", "--columns", "frame,sorce"),
         "sorce: no such column; did you mean src of topology"),
        ((*decode, "--table", "topology", "--columns", "frame,xyzzy"),
         "xyzzy: no such column; topology has file, frame, first_frame, time"),
        ((*decode, "--columns", "servers,label"), "no table has all of these"),
        ((*decode, "--columns", "frame,frame"), "twice"),
        ((*decode, "--limit", "0"), "'0' is not a number, at least 1"),
        ((*decode, "--ports", "0"), "ports from 1 to 65535"),
        ((*decode, "--ports", "msmq"), "ports from 1 to 65535"),
        ((*decode, "--table", "all", "-T", "csv"), "csv holds one table; name it: topology"),
        ((*decode, "--address", "10.20.1.0/33"), "'10.20.1.0/33' is neither an address nor a network"),
        ((*decode, "--since", "yesterday"), "'yesterday' is not an ISO 8601 time, as in 2024-03-04"),
        ((*decode, "--since", "2024-03-04T08:00:00.1234567890"), "is not an ISO 8601 time"),
        ((*decode, "--until", "1500-01-01"), "not between the years 1678 and 2262"),
        ((*decode, "--since", "2024-03-04", "--until", "2024-03-04"), "until must be later than since"),
        (("decode", "--hex", "--address", "::1", "00"), "--address is not for --hex"),
        ((*decode, "--guid", "binary"), "--guid binary is for Parquet"),
        ((*decode, "-o", tmp_path / "out.xls"), ".parquet, .json, .jsonl, .ndjson, .csv"),
        ((*decode, "-o", tmp_path / "out"), "-T"),
        ((*decode, "-o", tmp_path / "no" / "out.csv"), "No such file or directory"),
        ((*decode, "-T", "csv", "-o", tmp_path), "is a directory"),
        ((*decode, "-T", "json", "-o", printed), "one of the files to be read"),
        (("decode", "--stric", printed), "--stric"),
    ):  # fmt: skip
        assert expected in refused(*arguments), arguments
    assert list(tmp_path.iterdir()) == [printed]
    assert len(expected_rows(printed)) == 3


def test_a_capture_is_not_overwritten_through_another_name(printed: Path, tmp_path: Path) -> None:
    data = printed.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(printed)
    assert "one of the files to be read" in refused("decode", printed, "-o", link)
    assert printed.read_bytes() == data


# --- What is imported, and what is not installed ---


@pytest.mark.parametrize(("absent", "format"), [("pyarrow", "json"), ("rich", "table")])
def test_what_is_not_installed(absent: str, format: str, printed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    said = refused("decode", printed, "-T", format)
    assert re.search(
        rf"needs {absent}, which is not installed: pip install '{absent}>=\d+', or all of msmqwire\[tables\]\n$", said
    ), said


@pytest.mark.parametrize("subcommand", ["decode", "anonymize", "summary", "detect", "report", "replay"])
def test_commands_that_read_captures_need_pyarrow(
    subcommand: str, printed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    output = {"anonymize": "safe.pcap", "report": "page.html"}.get(subcommand)
    to: list[str | Path] = ["-o", tmp_path / output] if output else []
    said = refused(subcommand, printed, *to)
    assert f"msmqwire {subcommand} needs pyarrow, which is not installed: pip install " in said
    assert [*tmp_path.iterdir()] in ([], [printed])


@pytest.mark.parametrize(
    "format", ["json", "table", *(pytest.param(each, marks=pytest.mark.long) for each in ("csv", "parquet", "brief"))]
)
def test_decode_imports_only_what_it_needs(format: str, tmp_path: Path) -> None:
    """The Python side of Spark or pandas takes longer to import than most captures take to decode."""
    path = tmp_path / "odd.pcapng"
    path.write_bytes(capture([V1.data, reply_from("a\x1b;b", "=c"), b"short"]))
    heavy = {"pandas", "pyspark", "scipy", "importlib.metadata", "msmqwire.insight"}
    heavy |= {"rich"} if format != "table" else set()
    program = (
        "import sys\nfrom msmqwire.cli import command\ntry:\n  command()\nexcept SystemExit:\n  pass\n"
        f"heavy = {heavy} & set(sys.modules)\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else 0)\n"
    )
    command = [sys.executable, "-c", program, "decode", "-q", str(path), "-T", format]
    done = subprocess.run(command, capture_output=True, env=environ(), timeout=60)
    assert done.returncode == 0, done.stderr
