"""Instructions a row, counted by valgrind: a measure of speed that no other program on the machine disturbs.

    python -m benchmarks.instructions            # compare with instructions.toml; exit status 1 where one left the band
    python -m benchmarks.instructions --write    # count again and write instructions.toml
    python -m benchmarks.instructions requests   # only this

Only the work is counted, after it was done twice: neither the start of Python nor the first reservation of memory.
The counts depend on the compiler and the version of Python, which the file names.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from msmqwire import Payloads, capture, formatname, mqcn, mqqb, mqsd
from msmqwire.wire._utf16 import to_utf8

RECORDED = Path(__file__).with_name("instructions.toml")
BAND = 0.05
ROWS = 10_000
REPEATS = 5
# Valgrind writes a count at each call of this function, which no work calls
MARK = "__pyx_pw_*to_utf8"

Work = Callable[[], object]


def saved(path: Path) -> Payloads:
    with np.load(path) as arrays:
        return Payloads(arrays["data"].tobytes(), arrays["offsets"])


def decoding(decode: Callable[..., Any], **options: Any) -> Callable[[Path], Work]:
    """Decode into columns that are written again."""

    def prepare(path: Path) -> Work:
        payloads = saved(path)
        out = decode(payloads, **options)
        return lambda: decode(payloads, out=out, **options)

    return prepare


def small_batches(path: Path) -> Work:
    """Requests in batches of 100, into columns that are written again."""
    payloads = saved(path)
    out = mqsd.decode_batch(payloads, columns=mqsd.REQUEST_COLUMNS)
    parts = [payloads[start : start + 100] for start in range(0, len(payloads), 100)]

    def work() -> None:
        for part in parts:
            mqsd.decode_batch(part, columns=mqsd.REQUEST_COLUMNS, out=out)

    return work


def encoding(protocol: Any, columns: Iterable[str] | None = None) -> Callable[[Path], Work]:
    def prepare(path: Path) -> Work:
        batch = protocol.decode_batch(saved(path), columns=columns)
        out = protocol.encode_batch(batch)
        return lambda: protocol.encode_batch(batch, out=out)

    return prepare


def framing(**options: Any) -> Callable[[Path], Work]:
    """From a file to payloads, without capture columns."""

    def prepare(path: Path) -> Work:
        def work() -> None:
            # The payloads of a block that the capture hardly fills would be copied
            with capture.open(path, columns=(), block_size=1 << 20, **options) as blocks:
                for block in blocks:
                    len(block.payloads)

        return work

    return prepare


def tables(path: Path) -> Work:
    """From a file to Arrow, all columns of the topology table."""

    def work() -> None:
        with capture.read_table(path, "topology") as batches:
            for batch in batches:
                len(batch)

    return work


# name: the input, and what is done with it
KINDS: dict[str, tuple[str, Callable[[Path], Work]]] = {
    "requests": ("requests", decoding(mqsd.decode_batch, columns=mqsd.REQUEST_COLUMNS)),
    "requests in batches of 100": ("requests", small_batches),
    "replies": ("replies", decoding(mqsd.decode_batch, columns=mqsd.REPLY_COLUMNS)),
    "notifications": ("notifications", decoding(mqcn.decode_batch)),
    "messages": ("messages", decoding(mqqb.decode_batch)),
    "format names": ("names", decoding(formatname.parse_batch)),
    "encode requests": ("requests", encoding(mqsd, mqsd.REQUEST_COLUMNS)),
    "encode replies": ("replies", encoding(mqsd, mqsd.REPLY_COLUMNS)),
    "encode notifications": ("notifications", encoding(mqcn)),
    "encode messages": ("messages", encoding(mqqb)),
    "capture to payloads (UDP)": ("datagrams", framing(ports=[1801])),
    "capture to payloads (TCP)": ("streams", framing(ports={"tcp": [1801]})),
    "capture to payloads (others)": ("others", framing(ports={"udp": [1801], "tcp": [1801]})),
    "capture to Arrow": ("datagrams", tables),
}


def write_input(name: str, path: Path) -> None:
    """Write the packets or the capture, outside of valgrind."""
    from benchmarks import format_names, messages, notifications, spark_forms, streams, workloads

    if name == "streams":
        streams.write_streams(path, streams.packets(ROWS))
    elif name == "others":
        spark_forms.write_others(path, ROWS)
    elif name == "datagrams":
        workloads.write_capture(path, workloads.requests(ROWS))
    elif name == "names":
        texts = format_names.format_names(ROWS).texts
        save(path, "".join(texts).encode(), np.cumsum([0, *map(len, texts)]))
    else:
        make = {
            "requests": workloads.requests,
            "replies": workloads.replies,
            "notifications": notifications.notifications,
            "messages": messages.user_messages,
        }[name]
        work = make(ROWS)
        save(path, work.data, work.offsets)


def save(path: Path, data: bytes, offsets: Any) -> None:
    with path.open("wb") as file:
        np.savez(file, data=np.frombuffer(data, np.uint8), offsets=np.asarray(offsets, np.int32))


def run_kinds(kinds: Iterable[str], folder: Path) -> None:
    """Do the work of each kind between two marks; valgrind runs this."""
    for kind in kinds:
        name, prepare = KINDS[kind]
        work = prepare(folder / name)
        work()
        work()
        to_utf8(b"")
        for _ in range(REPEATS):
            work()
        to_utf8(b"")


def count_between_marks(*program: str) -> list[int]:
    """Instructions that a program of Python takes between each two marks: calls of ``to_utf8``."""
    with tempfile.TemporaryDirectory() as temporary:
        counts = Path(temporary) / "counts"
        done = subprocess.run(
            [
                *("valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", f"--dump-before={MARK}"),
                *(sys.executable, *program),
            ],
            capture_output=True,
            text=True,
            # The order of sets changes the count of the interpreter
            env={**os.environ, "PYTHONHASHSEED": "0"},
            cwd=Path(__file__).parents[1],
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        numbers = range(2, len(list(counts.parent.iterdir())), 2)
        dumps = [counts.with_suffix(f".{number}").read_text() for number in numbers]
    return [int(total) for dump in dumps for total in re.findall(r"^totals: (\d+)", dump, re.MULTILINE)]


def count_instructions(kinds: Iterable[str]) -> dict[str, float]:
    """Instructions a row of each kind."""
    kinds = list(kinds)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in {KINDS[kind][0] for kind in kinds}:
            write_input(name, folder / name)
        totals = count_between_marks("-m", "benchmarks.instructions", "--run", temporary, *kinds)
    return {kind: round(total / REPEATS / ROWS, 1) for kind, total in zip(kinds, totals, strict=True)}


def counted_with() -> str:
    """The compiler, its version up to the first dot, and the version of Python, as ``instructions.toml`` names them."""
    said = subprocess.run([os.environ.get("CC", "cc"), "--version"], capture_output=True, text=True, check=True).stdout
    name = "clang" if "clang" in said else "gcc"
    version = re.search(r"(\d+)\.\d+\.\d+", said)
    python = "{}.{}".format(*sys.version_info)
    return f"{name} {version.group(1) if version else '?'} {os.uname().machine}, Python {python}"


def recorded() -> tuple[str, dict[str, float]]:
    """What the instructions were counted with, and those a row of each kind."""
    content = tomllib.loads(RECORDED.read_text())
    return content["counted_with"], content["instructions"]


def write_recorded(counts: dict[str, float]) -> None:
    lines = [
        "# Instructions a row; `make instructions ARGS=--write` writes this file",
        f'counted_with = "{counted_with()}"',
        "",
        "[instructions]",
        *(f'"{kind}" = {count}' for kind, count in counts.items()),
    ]
    RECORDED.write_text("\n".join(lines) + "\n")


def outside_band(counts: dict[str, float]) -> list[str]:
    """A line for each kind that takes more or fewer instructions than its band allows."""
    _, expected = recorded()
    return [
        f"{kind}: {count} instructions a row, recorded {expected.get(kind, 'nowhere')}"
        for kind, count in counts.items()
        if kind not in expected or abs(count - expected[kind]) > BAND * expected[kind]
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; all when none is given")
    parser.add_argument("--write", action="store_true", help=f"write {RECORDED.name}")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run:
        run_kinds(options.kinds, options.run)
        return 0
    for kind in options.kinds:
        if kind not in KINDS:
            parser.error(f"{kind!r} is not one of {', '.join(KINDS)}")
    counts = count_instructions(options.kinds or KINDS)
    for kind, count in counts.items():
        print(f"{kind:30}{count:10,.1f}")
    if options.write:
        write_recorded({**(recorded()[1] if options.kinds else {}), **counts})
        return 0
    for line in (found := outside_band(counts)):
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
