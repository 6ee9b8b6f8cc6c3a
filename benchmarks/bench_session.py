"""Messages over a session on loopback, both ends in one process: what one costs, beside copying its bytes to a socket.

Nothing here fails for being slow; messages that are lost, doubled or out of order fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.comparison import OURS, mebibytes
from benchmarks.ratios import Contender, measure, peak_growth
from benchmarks.report import Report, Target
from benchmarks.scale import FULL, Scale
from msmqwire import mqqb, net
from msmqwire.session import MessageReceived, Store

BODY = bytes(1000)
QUEUE = "DIRECT=TCP:127.0.0.1\\private$\\orders"
MESSAGES = {
    "express": mqqb.UserMessage(destination_queue=QUEUE, body=BODY, delivery_mode="express"),
    "recoverable": mqqb.UserMessage(destination_queue=QUEUE, body=BODY, delivery_mode="recoverable"),
}
PAIR = "a socket pair: sendall of 64 KiB, recv"
CHUNK = 1 << 16
TRANSACTIONAL = MESSAGES["recoverable"].replace(
    transaction=mqqb.TransactionHeader(tx_sequence_id=1, tx_sequence_number=1, previous_tx_sequence_number=0),
    priority=0,
)
BATCH, PAGE = 32, 256  # messages that receive --store reads, and writes to a file, at once
ROWS = "private.orders.jsonl"
WANTED = 20_000
"""Messages of 1 kB that one core is to send and receive in a second."""


def copy_through_a_pair(count: int) -> None:
    """The bytes of as many packets, through one pair of sockets, 64 KiB at a time."""
    data = mqqb.encode(MESSAGES["express"]) * count
    view = memoryview(data)
    near, far = socket.socketpair()
    with near, far:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * CHUNK)  # room for a chunk with its overhead
        received = 0
        for start in range(0, len(data), CHUNK):
            near.sendall(view[start : start + CHUNK])
            wanted = min(start + CHUNK, len(data))
            while received < wanted:
                received += len(far.recv(CHUNK))
    assert received == len(data)


async def exchange(message: mqqb.UserMessage, count: int) -> None:
    """Send a message again and again until all are acknowledged."""
    numbers: list[int] = []

    async def store(received: Sequence[MessageReceived]) -> None:
        numbers.extend(each.message.message_id for each in received)

    async with net.serve(store, port=0) as server, net.connect("127.0.0.1", server.port) as client:
        for _ in range(count):
            await client.send(message)
    assert numbers == list(range(1, count + 1))


def sending(message: mqqb.UserMessage, count: int) -> Callable[[], None]:
    """The exchange in an event loop of its own."""
    return lambda: asyncio.run(exchange(message, count))


def test_send_and_receive(benchmark: BenchmarkFixture, scale: Scale, report: Report) -> None:
    count = 20_000 if scale is FULL else 2_000
    ours = {f"{OURS}, {mode} messages": sending(message, count) for mode, message in MESSAGES.items()}
    contenders = [Contender(PAIR, lambda: copy_through_a_pair(count), count)]
    contenders += [Contender(name, run, count) for name, run in ours.items()]
    rounds = measure(contenders, scale.slow_rounds)
    size = len(mqqb.encode(MESSAGES["express"]))
    report.section(f"Send and receive {count:,} messages of 1 kB on loopback, system calls included")
    report.heading("of the pair", "message")
    report.yardstick(rounds, PAIR, size * count)
    for name in ours:
        report.ratio(rounds, name, rounds.times_faster(name, PAIR), rounds.spread(name, PAIR))
    for name in ours:
        a_second = 1 / rounds.per_packet(name)
        verdict = f", {Target(WANTED).verdict(a_second)}" if report.judge else ""
        report.figure(f"{name}, a second of CPU time{verdict}", f"{a_second:,.0f}")
        benchmark.extra_info[f"{name}, of the pair"] = round(rounds.times_faster(name, PAIR), 4)
    report.figure("peak memory taken", mebibytes(peak_growth(sending(MESSAGES["recoverable"], count))))
    benchmark.pedantic(ours[f"{OURS}, recoverable messages"], rounds=scale.slow_rounds, iterations=1)


def seconds_of_children() -> float:
    """CPU seconds of the processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_commands(count: int, receive: Sequence[str], send: Sequence[str], rows: bytes = b"") -> tuple[float, float]:
    """CPU seconds of ``send`` and of ``receive``, which ends after so many messages."""
    command = [sys.executable, "-m", "msmqwire"]
    before = seconds_of_children()
    receiver = subprocess.Popen(
        [*command, "receive", "--port", "0", "--count", str(count), *receive], stderr=subprocess.PIPE, text=True
    )
    assert receiver.stderr
    port = receiver.stderr.readline().split(" port ")[1].split()[0]
    subprocess.run([*command, "send", QUEUE, "--port", port, "--quiet", *send], check=True, input=rows)
    of_send = seconds_of_children() - before
    receiver.communicate()
    assert receiver.returncode == 0
    return of_send, seconds_of_children() - before - of_send


def report_commands(report: Report, count: int, of_send: float, of_receive: float) -> None:
    """The figures of a run."""
    report.figure("send: microseconds of CPU time a message", f"{1e6 * of_send / count:,.0f}")
    report.figure("receive: microseconds of CPU time a message", f"{1e6 * of_receive / count:,.0f}")
    report.figure("both: messages a second of CPU time", f"{count / (of_send + of_receive):,.0f}")


def test_commands(scale: Scale, report: Report, tmp_path: Path) -> None:
    """``send`` to ``receive`` as processes; the rows go to a file."""
    count = 20_000 if scale is FULL else 1_000
    (tmp_path / "body").write_bytes(BODY)
    send = ["--count", str(count), "--body", str(tmp_path / "body"), "--recoverable"]
    seconds = run_commands(count, ["-o", str(tmp_path / "rows")], send)
    assert len((tmp_path / "rows" / ROWS).read_bytes().splitlines()) == count
    report.section(f"msmqwire send to msmqwire receive: {count:,} recoverable messages of 1 kB, the start included")
    report_commands(report, count, *seconds)


def write_to_sqlite(folder: Path, count: int) -> None:
    """Insert and delete the rows of both stores, in the batches of ``send --store`` and ``receive --store``."""
    packet = mqqb.encode(TRANSACTIONAL)
    outgoing, inbox = (Store(folder / name).database for name in ("outgoing", "inbox"))
    with contextlib.closing(outgoing), contextlib.closing(inbox):
        outgoing.execute("BEGIN")
        outgoing.execute("INSERT INTO sequence VALUES (x'', '', x'', 1, 0, x'', '')")
        outgoing.executemany(
            "INSERT INTO outgoing VALUES (x'', ?1, ?1, NULL, 0, NULL, NULL, 0, 0, ?2)",
            ((number, packet) for number in range(count)),
        )
        outgoing.execute("COMMIT")
        for start in range(0, count, PAGE):
            for first in range(start, start + PAGE, BATCH):
                inbox.execute("BEGIN")
                inbox.executemany(
                    "INSERT INTO inbox(source, queue, sequence_id, number, queue_manager, address, port, "
                    "received_time, packet) VALUES (x'', x'', x'', ?, x'', '', 0, 0, ?)",
                    ((number, packet) for number in range(first, first + BATCH)),
                )
                inbox.execute("COMMIT")
            inbox.execute("BEGIN")
            inbox.execute("DELETE FROM inbox")
            inbox.execute("COMMIT")
            outgoing.execute("BEGIN")
            outgoing.execute("DELETE FROM outgoing WHERE number < ?", (start + PAGE,))
            outgoing.execute("COMMIT")


def test_exactly_once(scale: Scale, report: Report, tmp_path: Path) -> None:
    """``send --transactional --store`` to ``receive --store``, beside their rows in SQLite alone."""
    count = 19_968 if scale is FULL else 1_024
    rows = [b'{"body": "%064x%s"}\n' % (number, b"00" * 968) for number in range(count)]

    def run(folder: Path, sent: Sequence[bytes]) -> tuple[float, float]:
        receive = ["--store", str(folder / "receiver"), "-o", str(tmp_path / "rows")]
        send = ["--transactional", "--rows", "--store", str(folder / "sender")]
        return run_commands(len(sent), receive, send, b"".join(sent))

    starts = run(tmp_path / "start", rows[:1])
    of_send, of_receive = (whole - start for whole, start in zip(run(tmp_path, rows[1:]), starts, strict=True))
    written = (tmp_path / "rows" / ROWS).read_bytes().splitlines()
    assert [json.loads(each)["body"][:64] for each in written] == [f"{number:064x}" for number in range(count)]
    before = time.process_time()
    write_to_sqlite(tmp_path, count)
    of_sqlite = time.process_time() - before
    report.section(
        f"msmqwire send --store to msmqwire receive --store: {count:,} transactional messages of 1 kB, "
        "the start of the commands not counted"
    )
    report_commands(report, count, of_send, of_receive)
    report.figure("the same rows in SQLite alone, a second of CPU time", f"{count / of_sqlite:,.0f}")
    report.figure("of SQLite alone", f"{of_sqlite / (of_send + of_receive):.2f}")
