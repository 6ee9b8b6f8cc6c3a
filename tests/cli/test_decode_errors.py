"""``msmqwire decode``: what cannot be read or asked for is one clear line, and the exit status says what happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import (
    COMMAND,
    LOCAL,
    OTHER,
    ROOT,
    V1,
    V2,
    capture,
    environ,
    expected_rows,
    from_json,
    msmqwire,
    reply_from,
)


def refused(*arguments: str | Path, status: int = 1, **options: object) -> str:
    """The one line that a command which cannot be carried out says; nothing is on standard output."""
    done = msmqwire(*arguments, **options)
    text = done.stderr.decode()
    assert done.returncode == status, text
    assert done.stdout == b""
    assert text.endswith("\n")
    assert len(text.splitlines()) == 1, text
    assert text.startswith("msmqwire")
    return text


# --- Exit statuses ---


def test_status_0_when_all_is_decoded(printed: Path) -> None:
    done = msmqwire("decode", printed)
    assert done.returncode == 0
    assert done.stderr.decode().splitlines() == ["3 frames: 3 rows, 0 of other protocols, 0 damaged"]


def test_status_2_when_payloads_have_faults() -> None:
    done = msmqwire("decode", LOCAL, OTHER)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        "20 frames: 14 rows, 6 of other protocols, 0 damaged",
        "3 payloads with faults: truncated 1, bad_flag 1, bad_count 1",
    ]


def test_quiet_says_nothing_and_has_the_same_status() -> None:
    done = msmqwire("decode", "--quiet", OTHER)
    assert (done.returncode, done.stderr) == (2, b"")


def test_status_2_when_a_frame_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(LOCAL.read_bytes()[:-7])
    done = msmqwire("decode", path)
    text = done.stderr.decode()
    assert done.returncode == 2
    assert text.splitlines()[0] == "8 frames: 3 rows, 4 of other protocols, 1 damaged"
    assert f"{path}: at byte " in text
    assert "the file ends inside this record" in text
    assert from_json(done.stdout) == expected_rows(path)


def test_a_long_list_of_problems_is_cut_short(tmp_path: Path) -> None:
    frames = bytearray(capture([V1.data] * 30))
    place = -1
    while (place := frames.find(V1.data, place + 1)) >= 0:
        frames[place - 4 : place - 2] = b"\xff\xff"  # the length in the UDP header
    path = tmp_path / "bad.pcapng"
    path.write_bytes(frames)
    done = msmqwire("decode", path)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 2
    assert lines[0] == "30 frames: 0 rows, 0 of other protocols, 30 damaged"
    assert sum("at byte" in line for line in lines) == 10
    assert lines[-1] == "... and 20 more problems"


# --- Files ---


def test_a_file_that_is_missing() -> None:
    assert refused("decode", "nosuch.pcap") == "msmqwire: nosuch.pcap: No such file or directory\n"


def test_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    assert refused("decode", tmp_path / "*.pcap").endswith("no file matches\n")


def test_a_pattern_that_no_shell_has_expanded(tmp_path: Path) -> None:
    for name in ("b.pcapng", "a.pcapng"):
        (tmp_path / name).write_bytes(capture([V1.data]))
    done = msmqwire("decode", "*.pcapng", cwd=tmp_path)
    assert [row["file"] for row in from_json(done.stdout)] == ["a.pcapng", "b.pcapng"]


def test_a_directory(tmp_path: Path) -> None:
    text = refused("decode", tmp_path)
    assert f"{tmp_path} is a directory" in text
    assert f"{tmp_path}/*" in text


def test_a_file_on_another_machine() -> None:
    assert "s3://captures/a.pcap: only files of this machine are read here" in refused("decode", "s3://captures/a.pcap")


def test_a_file_that_is_no_capture(tmp_path: Path) -> None:
    path, out = tmp_path / "note.txt", tmp_path / "out.parquet"
    path.write_bytes(b"dear all, \x1b[2J")
    text = refused("decode", path, "-o", out)
    assert str(path) in text
    assert "64 65 61 72" in text
    assert "pcap" in text
    assert sorted(tmp_path.iterdir()) == [path]


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.touch()
    assert str(path) in refused("decode", path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(printed: Path) -> None:
    printed.chmod(0)
    assert refused("decode", printed) == f"msmqwire: {printed}: Permission denied\n"


def test_a_capture_cut_anywhere_is_an_error_or_a_reported_loss(tmp_path: Path) -> None:
    """In one process, since there are hundreds of cuts; rows never disagree with the whole capture."""
    program = (
        "import contextlib, io, json, sys\n"
        "from pathlib import Path\n"
        "from msmqwire.cli import main\n"
        "data, path = Path(sys.argv[1]).read_bytes(), sys.argv[2]\n"
        "for size in range(0, len(data)):\n"
        "    Path(path).write_bytes(data[:size])\n"
        "    said = io.StringIO()\n"
        "    with contextlib.redirect_stderr(said):\n"
        "        status = main(['decode', path, '-T', 'json', '-o', path + '.json'])\n"
        "    rows = Path(path + '.json').read_text().count('\\n') if status != 1 else None\n"
        "    print(json.dumps([size, status, rows, said.getvalue()]))\n"
    )
    for name in (LOCAL, OTHER):
        command = [sys.executable, "-c", program, str(name), str(tmp_path / "cut")]
        done = subprocess.run(command, capture_output=True, env=environ(), timeout=300, check=True)
        whole = len(expected_rows(name))
        results = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(results) == name.stat().st_size
        seen = 0
        for size, status, rows, said in results:
            assert status in (0, 1, 2)
            assert said.strip()
            if status == 1:
                assert size < 64  # inside the header of the file
                continue
            assert seen <= rows <= whole
            seen = rows
            reported = ", 0 damaged" not in said
            assert status == (2 if reported or "with faults" in said else 0), (size, said)


def test_a_file_name_that_is_not_text(printed: Path, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9.pcapng"
    os.rename(printed, name)
    done = subprocess.run(
        [*map(os.fsencode, COMMAND), b"decode", name], capture_output=True, env=environ(), cwd=ROOT, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert from_json(done.stdout)[0]["file"].endswith("/caf\ufffd.pcapng")
    os.rename(name, os.fsencode(tmp_path) + b"/caf\xe9.dir")
    name = os.fsencode(tmp_path) + b"/caf\xe9.pcapng"
    done = subprocess.run(
        [*map(os.fsencode, COMMAND), b"decode", name], capture_output=True, env=environ(), cwd=ROOT, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.decode().count("\n") == 1


# --- Standard input and output ---


def test_standard_input() -> None:
    done = msmqwire("decode", "-", input=LOCAL.read_bytes())
    assert done.returncode == 0
    expected = [{**row, "file": "-"} for row in expected_rows(LOCAL)]
    assert from_json(done.stdout) == expected


def test_standard_input_among_files() -> None:
    done = msmqwire("decode", OTHER, "-", input=LOCAL.read_bytes())
    assert [row["file"] for row in from_json(done.stdout)] == [str(OTHER)] * 10 + ["-"] * 4


def test_standard_input_without_a_capture() -> None:
    refused("decode", "-", input=b"")
    refused("decode", "-", input=b"hello")


@pytest.mark.parametrize(
    "arguments",
    [
        ("decode", "-", "-"),
        ("decode", "-", LOCAL, "-", "--table", "notifications", "-q"),
        ("decode", "-", "-", "--table", "all", "-T", "json"),
        ("replay", "-", "-"),
    ],
)
def test_standard_input_given_twice(arguments: tuple[str | Path, ...]) -> None:
    expected = "msmqwire: - is given twice, but standard input has one capture only: name files for the others\n"
    assert refused(*arguments, input=LOCAL.read_bytes()) == expected


def test_standard_input_given_twice_for_bodies() -> None:
    text = refused("decode", "--kind", "notification", "-", "-", input=b"\1\0")
    assert "standard input has one body only" in text


def test_standard_streams_that_are_closed(printed: Path, tmp_path: Path) -> None:
    def run(redirection: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = ["sh", "-c", f'exec "$@" {redirection}', "sh", *COMMAND, "decode", *arguments]
        return subprocess.run(command, capture_output=True, env=environ(), cwd=ROOT, timeout=60)

    done = run("<&-", "-")
    assert (done.returncode, done.stderr) == (1, b"msmqwire: standard input is closed\n")
    done = run(">&-", str(printed))
    assert (done.returncode, done.stderr) == (1, b"msmqwire: standard output is closed; name a file with -o\n")
    out = tmp_path / "out.json"
    done = run(">&- 2>&-", str(printed), "-o", str(out))
    assert done.returncode == 0
    assert from_json(out.read_bytes()) == expected_rows(printed)


def test_dash_is_standard_output(printed: Path) -> None:
    assert msmqwire("decode", printed, "-o", "-").stdout == msmqwire("decode", printed).stdout


def test_parquet_into_a_pipe(printed: Path, tmp_path: Path) -> None:
    """A pipe cannot tell where it is, which writers of Parquet ask for."""
    out = tmp_path / "direct.parquet"
    msmqwire("decode", printed, "-o", out)
    assert msmqwire("decode", printed, "-T", "parquet").stdout == out.read_bytes()


def test_a_reader_that_leaves_early(tmp_path: Path) -> None:
    path = tmp_path / "many.pcapng"
    path.write_bytes(capture([V2.data] * 20_000))
    for form in ("json", "csv", "table"):
        with subprocess.Popen(
            [*COMMAND, "decode", str(path), "-T", form],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ(), cwd=ROOT,
        ) as process:  # fmt: skip
            assert process.stdout
            assert process.stderr
            assert process.stdout.read(1000)
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(60) == -13  # SIGPIPE, as of any tool


# --- Arguments ---


def test_usage(printed: Path, tmp_path: Path) -> None:
    for arguments, expected in (
        ((), "SUBCOMMAND"),
        (("decode",), "FILE"),
        (("dekode", printed), "dekode"),
        (("decode", printed, "-T", "xml"), "xml"),
        (("decode", printed, "--table", "queues"), "there is topology"),
        (
            ("decode", printed, "--columns", "frame,sorce"),
            "sorce: no such column; topology has file, frame, first_frame, time",
        ),
        (("decode", printed, "--columns", "frame,frame"), "twice"),
        (("decode", printed, "--ports", "0"), "ports from 1 to 65535"),
        (("decode", printed, "--ports", "msmq"), "ports from 1 to 65535"),
        (("decode", printed, "--table", "all", "-T", "csv"), "csv has one table; name it: topology"),
        (("decode", printed, "--table", "all", "-T", "json", "--columns", "frame"), "--columns is for one table"),
        (("decode", printed, "--table", "all", "-T", "json", "--ports", "1801"), "--ports is for one table"),
        (("decode", printed, "--address", "10.20.1.0/33"), "'10.20.1.0/33' is neither an address nor a network"),
        (("decode", printed, "--since", "yesterday"), "'yesterday' is not an ISO 8601 time, as in 2024-03-04"),
        (("decode", printed, "--since", "2024-03-04T08:00:00.1234567890"), "is not an ISO 8601 time"),
        (("decode", printed, "--until", "1500-01-01"), "not between 1678 and 2262"),
        (("decode", printed, "--since", "2024-03-04", "--until", "2024-03-04"), "--until must be later than --since"),
        (("decode", printed, "--kind", "notification", "--address", "::1"), "--address is for captures"),
        (("decode", printed, "--guid", "binary"), "--guid binary is for Parquet"),
        (("decode", printed, "-o", tmp_path / "out.xls"), ".parquet, .json, .jsonl, .ndjson, .csv"),
        (("decode", printed, "-o", tmp_path / "out"), "-T"),
        (("decode", printed, "-o", tmp_path / "no" / "out.csv"), "No such file or directory"),
        (("decode", printed, "-T", "csv", "-o", tmp_path), "is a directory"),
        (("decode", printed, "-T", "json", "-o", printed), "one of the captures to be read"),
        (("decode", "--stric", printed), "--stric"),
    ):
        assert expected in refused(*arguments), arguments
    assert list(tmp_path.iterdir()) == [printed]
    assert len(expected_rows(printed)) == 3


def test_a_capture_is_not_overwritten_through_another_name(printed: Path, tmp_path: Path) -> None:
    data = printed.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(printed)
    assert "one of the captures" in refused("decode", printed, "-o", link)
    assert printed.read_bytes() == data


def test_help_and_version() -> None:
    done = msmqwire("--version")
    assert done.returncode == 0
    assert done.stdout.startswith(b"msmqwire ")
    for arguments in (("--help",), ("decode", "--help"), ("pipeline", "--help")):
        done = msmqwire(*arguments)
        assert done.returncode == 0
        assert "examples:" in done.stdout.decode()
        assert max(map(len, done.stdout.decode().splitlines())) <= 120


@pytest.mark.parametrize(
    ("absent", "arguments", "hint"),
    [
        ("pyarrow", ("-T", "json"), "msmqwire decode needs pyarrow"),
        ("rich", ("-T", "table"), "the table on a terminal needs rich"),
    ],
)
def test_what_is_not_installed(absent: str, arguments: tuple[str, ...], hint: str, printed: Path) -> None:
    program = f"import sys; sys.modules[{absent!r}] = None; from msmqwire.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "decode", str(printed), *arguments]
    done = subprocess.run(command, capture_output=True, env=environ(), timeout=60)
    assert done.returncode == 1
    assert done.stderr.decode() == f"msmqwire: {hint}, which is not installed: pip install 'msmqwire[tables]'\n"


def test_rich_is_not_needed_for_other_forms(printed: Path) -> None:
    program = "import sys; sys.modules['rich'] = None; from msmqwire.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "decode", str(printed)]
    done = subprocess.run(command, capture_output=True, env=environ(), timeout=60)
    assert done.returncode == 0
    assert from_json(done.stdout) == expected_rows(printed)


@pytest.mark.parametrize("form", ["json", "csv", "parquet", "table"])
def test_decode_imports_only_what_it_needs(form: str, tmp_path: Path) -> None:
    """Starting Spark's or pandas' Python side takes longer than most captures."""
    path = tmp_path / "odd.pcapng"
    path.write_bytes(capture([V1.data, reply_from("a\x1b;b", "=c"), b"short"]))
    program = (
        "import sys\nfrom msmqwire.cli import main\nmain()\n"
        "heavy = {'pandas', 'pyspark', 'scipy', 'importlib.metadata'} & set(sys.modules)\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else 0)\n"
    )
    command = [sys.executable, "-c", program, "decode", "-q", str(path), "-T", form]
    done = subprocess.run(command, capture_output=True, env=environ(), timeout=60)
    assert done.returncode == 0, done.stderr
