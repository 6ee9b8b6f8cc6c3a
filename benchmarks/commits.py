"""The speed of two commits: the same work in turn in a process of each, and a loss over 5% fails.

    python -m benchmarks.commits BASE               # this working tree beside BASE, built in build/commits
    python -m benchmarks.commits BASE summary       # only the work whose name has this

A ratio is taken within each round of CPU times, and the median over the rounds is compared. Work that BASE cannot do,
because its names or options are others, is left out and named.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

import numpy as np

from benchmarks import notifications, workloads
from benchmarks.messages import user_messages
from benchmarks.spark_forms import write_mixed
from benchmarks.streams import write_streams

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "build" / "commits"
MOST = 1.05
ROUNDS = 15

#: Runs in a process of each commit: reads names of work from standard input, answers with CPU seconds.
WORKER = """
import gc, json, sys, time
from pathlib import Path

sys.path.insert(0, sys.argv[1])
inputs = Path(sys.argv[2])

import numpy
import msmqwire
from msmqwire import Payloads, capture, insight, mqcn, mqqb, mqsd
from msmqwire.cli import main

assert msmqwire.__file__.startswith(sys.argv[1]), msmqwire.__file__


def batch(protocol, name):
    with numpy.load(inputs / f"{name}.npz") as arrays:
        payloads = Payloads(arrays["data"].tobytes(), arrays["offsets"])
    return lambda: protocol.decode_batch(payloads)


def tables(name, *wanted):
    def run():
        with capture.read_tables(inputs / name, wanted or tuple(capture.TABLES)) as reader:
            for _ in reader:
                pass

    return run


def command(name, table, format):
    out = inputs / f"{Path(sys.argv[1]).name}.{format}"

    def run():
        assert main(["decode", "-q", "-j1", str(inputs / name), "--table", table, "-T", format, "-o", str(out)]) == 0

    return run


WORK = {
    "decode requests": batch(mqsd, "requests"),
    "decode replies": batch(mqsd, "replies"),
    "decode notifications": batch(mqcn, "notifications"),
    "decode messages": batch(mqqb, "messages"),
    "capture of requests to Arrow": tables("requests.pcap", "topology"),
    "capture of messages to Arrow": tables("messages.pcap", "messages"),
    "mixed captures to Arrow": tables("mixed"),
    "summary of messages": lambda: insight.summarize(inputs / "messages.pcap").section("totals"),
    "summary of mixed captures": lambda: insight.summarize(inputs / "mixed").section("totals"),
    "capture of requests to Parquet": command("requests.pcap", "topology", "parquet"),
    "capture of messages to Parquet": command("messages.pcap", "messages", "parquet"),
    "capture of messages to JSON": command("messages.pcap", "messages", "json"),
}
print(json.dumps(list(WORK)), flush=True)
gc.disable()
for line in sys.stdin:
    name = line.strip()
    try:
        start = time.process_time()
        WORK[name]()
        answer = time.process_time() - start
    except Exception as error:
        answer = f"{type(error).__name__}: {error}"
    gc.collect()
    print(json.dumps(answer), flush=True)
"""


class Worker:
    """A process with the package of one tree."""

    def __init__(self, tree: Path, inputs: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", WORKER, str(tree), str(inputs)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=inputs,
        )  # fmt: skip
        self.names: list[str] = json.loads(self._line())

    def run(self, name: str) -> float | str:
        """CPU seconds of some work, or why it cannot be done."""
        stdin = self._process.stdin
        assert stdin is not None
        print(name, file=stdin, flush=True)
        answer: float | str = json.loads(self._line())
        return answer

    def _line(self) -> str:
        stdout: IO[str] | None = self._process.stdout
        assert stdout is not None
        if not (line := stdout.readline()):
            raise SystemExit(f"a process ended: exit status {self._process.wait()}")
        return line

    def close(self) -> None:
        self._process.communicate()


def built(commit: str) -> Path:
    """The tree of a commit with its extensions, kept from run to run."""
    found = subprocess.run(
        ["git", "rev-parse", "--verify", f"{commit}^{{commit}}"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    tree = BUILT / found.stdout.strip()
    if (tree / "done").exists():
        return tree
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", tree.name], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", tree], input=archive, check=True)
    environment = os.environ | {"MSMQWIRE_BUILD": "release", "PYTHONPATH": str(tree)}
    for step in (["declarations.py"], ["setup.py", "--quiet", "build_ext", "--inplace"]):
        if (tree / step[0]).exists():
            subprocess.run([sys.executable, *step], cwd=tree, env=environment, check=True)
    (tree / "done").touch()
    return tree


def write_inputs(folder: Path) -> None:
    requests, messages = workloads.requests(200_000), user_messages(20_000)
    kinds = {
        "requests": requests,
        "replies": workloads.replies(50_000),
        "notifications": notifications.notifications(50_000),
        "messages": messages,
    }
    for name, work in kinds.items():
        np.savez(folder / name, data=np.frombuffer(work.data, "u1"), offsets=work.offsets)
    workloads.write_capture(folder / "requests.pcap", requests)
    write_streams(folder / "messages.pcap", messages.split())
    write_mixed(folder / "mixed", 40_000)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the speed of this working tree with that of a commit.")
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("name", nargs="?", default="", help="only work whose name has this")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of each work (default: %(default)s)")
    options = parser.parse_args()
    tree, lost = built(options.base), []
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        base, here = (Worker(each, Path(folder)) for each in (tree, ROOT))
        print(f"{'':32}{'of ' + options.base:>12}{'quartiles':>16}")
        for name in here.names:
            if options.name not in name:
                continue
            ratios = []
            for number in range(options.rounds + 1):
                before, now = base.run(name), here.run(name)
                if isinstance(now, str):
                    raise SystemExit(f"{name}: {now}")
                if isinstance(before, str):
                    print(f"{name:32}  left out: {before}")
                    break
                if number:  # the first is a warm-up
                    ratios.append(now / before)
            else:
                low, ratio, high = statistics.quantiles(ratios, n=4, method="inclusive")
                slower = ratio > MOST
                lost += [name] if slower else []
                print(f"{name:32}{ratio:12.2f}{low:9.2f} - {high:.2f}{'  slower' if slower else ''}", flush=True)
        for worker in (base, here):
            worker.close()
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
