"""Readers and decoding across fork, spawn, threads, and the end of the interpreter."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msmqwire import Payloads, capture, mqsd
from msmqwire.capture.frame_table import FrameReader
from msmqwire.capture.reader import ClosingIterator
from tests.capture import build
from tests.capture.reading import read
from tests.effort import long_cases

FRAMES = 4000
REQUEST = bytes.fromhex("0300 0000") + bytes(36)

# Workers of pytest-xdist have a thread of their own; the children of these tests wait for no lock
forks = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures") / "some.pcap"
    path.write_bytes(build.pcap(build.plain(b"%d" % number) for number in range(FRAMES)))
    return path


READERS: dict[str, Callable[[Path], ClosingIterator[Any]]] = {
    "open": lambda path: capture.open(path, block_size=4096),
    "table": lambda path: capture.read_table(path, "topology", block_size=4096),
    "tables": lambda path: capture.read_tables(path, ["topology"], block_size=4096),
    "frames": lambda path: FrameReader(path, block_size=4096),
    "checkpoints": lambda path: capture.checkpoints(path, 4096),
}


@forks
@pytest.mark.parametrize("name", READERS)
def test_a_reader_is_of_the_process_that_opened_it(name: str, path: Path) -> None:
    """The two would share the offset of the file: parent and child together would have a part of the rows."""
    with READERS[name](path) as reader:
        before = next(reader)
        child = os.fork()
        if not child:
            try:
                next(reader)
            except RuntimeError as error:
                right = str(os.getpid()) in str(error) and "open the capture in each process" in str(error)
                os._exit(0 if right else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with READERS[name](path) as other:
            expected = sum(1 for _ in other)
        assert before is not None
        assert 1 + sum(1 for _ in reader) == expected


def count_rows(path: Path) -> int:
    return len(read(path)[0])


@forks
@pytest.mark.parametrize("method", ["fork", "forkserver", *long_cases(["spawn"])])
def test_each_process_reads_all_of_its_own_reader(method: str, path: Path) -> None:
    """``spawn`` and ``forkserver`` import again, ``fork`` has the memory of a process that has read before."""
    assert count_rows(path) == FRAMES
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(count_rows, [path] * 3) == [FRAMES] * 3


def test_threads_decode_one_buffer() -> None:
    """Sixteen threads, each with a batch of its own, over the payloads of one buffer."""
    payloads = Payloads(REQUEST * 5000, np.arange(5001, dtype=np.int32) * len(REQUEST))
    expected = mqsd.decode_batch(payloads).to_arrow()
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: mqsd.decode_batch(payloads).to_arrow(), range(32)))
    assert all(batch.equals(expected) for batch in found)


ENDING = f"""
import threading, time
import numpy as np
from msmqwire import Payloads, mqsd

payloads = Payloads(bytes({len(REQUEST)}) * 20000, np.arange(20001, dtype=np.int32) * {len(REQUEST)})

def work():
    while True:
        mqsd.decode_batch(payloads)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
"""


@pytest.mark.long
def test_the_interpreter_ends_while_threads_decode() -> None:
    """No traceback, whichever threads decode."""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("delay", [0.01, 0.05, 0.1])
def test_an_interrupt_ends_decoding(delay: float) -> None:
    script = ENDING.split("def work")[0] + "print(flush=True)\nwhile True:\n    mqsd.decode_batch(payloads)\n"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert errors.decode().rstrip().endswith("KeyboardInterrupt"), errors
