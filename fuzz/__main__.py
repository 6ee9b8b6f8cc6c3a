"""Build the instrumented targets and fuzz each for a bounded time: ``python -m fuzz --help``."""

from __future__ import annotations

import argparse
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests import vectors

HERE = Path(__file__).parent
ROOT = HERE.parent
BUILD = ROOT / "build" / "fuzz"


class Target(NamedTuple):
    """A function of kernels_<kernels>.pyx and one of surface.py, with a dictionary and a corpus.

    The golden vectors of the same name are seeds, from byte ``start`` on; with None the corpus is the only seed.
    ``kernel_longest`` and ``surface_longest`` bound the bytes of an input, where the oracle is slow more tightly.
    ``share`` reduces the number of executions of a target whose inputs hold many operations. ``layout`` names the
    layout in mutator.c by which half of the mutations of the kernel target are made. Without ``kernels`` there is no
    kernel target.
    """

    kernels: str | None
    start: int | None = None
    kernel_longest: int = 4096
    surface_longest: int = 1024
    share: float = 1
    layout: str | None = None


TARGETS = {
    "topology": Target("mqsd", 0, layout="topology"),
    "server_array": Target("mqsd", 64),
    "notification_message": Target("mqcn", 0),
    "notification_body": Target("mqcn", 2),
    "property_values": Target("mqcn", 60),
    "message_packet": Target("mqqb", 0, layout="message_packet"),
    "session_packet": Target("mqqb", 0, layout="message_packet"),
    # An input is a complete file and is read twice; after a malformed record the oracle tries every byte
    "pcap": Target("capture", kernel_longest=1024, surface_longest=256, share=0.5, layout="pcap"),
    "pcapng": Target("capture", kernel_longest=1024, surface_longest=256, share=0.5, layout="pcapng"),
    "layers": Target("capture", kernel_longest=512, surface_longest=256),
    # Some twenty segments in an input, and an oracle that takes them byte by byte
    "streams": Target("streams", kernel_longest=512, surface_longest=64, share=0.2, layout="streams"),
    "format_names": Target("formatname", kernel_longest=1024, surface_longest=512),
    # An input is a packet, and what is written over it between decoding and each use of the batch
    "changing_bytes": Target(None, surface_longest=64, share=0.1),
    # Some fifty packets in an input, each for a machine and for the slow reference
    "session_machines": Target(None, surface_longest=256, share=0.05),
    # Some fifty operations in an input, each with a transaction of a store
    "sequences": Target(None, surface_longest=128, share=0.01),
}

# Undefined behaviour traps: no runtime of its own is needed, and libFuzzer reports the signal
SANITIZE = ["-fsanitize=address,undefined", "-fsanitize-trap=undefined"]
# Seconds by the clock for an input: one would do where nothing else runs
LIMITS = ["-timeout=20", "-rss_limit_mb=512", "-malloc_limit_mb=64"]


class FailedError(Exception):
    """A target failed: what it printed, and which one it is."""


class Effort(NamedTuple):
    """The time and the least number of executions of each target."""

    seconds: int
    kernel_executions: int
    surface_executions: int
    seed: int
    merge: bool
    replay: bool


def run(command: list[str], **variables: str) -> None:
    """Run a command of the build; raise when it fails."""
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, **variables})


def build_extensions(clang: str) -> None:
    """Build the package with coverage instrumentation and sanitizers, in a folder of its own."""
    base = ["--build-base", str(BUILD), "--build-lib", str(BUILD / "lib")]
    build = [sys.executable, "setup.py", "--quiet", "build", *base]
    run(build, MSMQWIRE_BUILD="fuzz", CC=clang, LDSHARED=f"{clang} -shared")


def kernels(target: str) -> str:
    """Name of the module with the kernel target."""
    return f"kernels_{TARGETS[target].kernels}"


def build_kernels(clang: str, module: str) -> None:
    """Compile a module of kernel targets, once for all of them."""
    cython = [sys.executable, "-m", "cython", "-3", "-X", "cdivision=True", "-I", str(ROOT)]
    run([*cython, str(HERE / f"{module}.pyx"), "-o", str(BUILD / f"{module}.c")])
    compiler = [*compile_command(clang), "-fsanitize=fuzzer-no-link", "-c"]
    run([*compiler, str(BUILD / f"{module}.c"), "-o", str(BUILD / f"{module}.o")])


def compile_command(clang: str) -> list[str]:
    """The compiler with the flags and include folders of kernel targets."""
    folders = ["-I", str(ROOT), "-I", str(BUILD), "-I", sysconfig.get_path("include")]
    return [clang, "-gline-tables-only", "-O1", "-w", *SANITIZE, *folders]


def build_kernel_target(clang: str, target: str) -> None:
    """Link one executable of libFuzzer, the harness and the target; it loads the instrumented extensions."""
    module = kernels(target)
    layout = TARGETS[target].layout
    mutator = [f"-DLAYOUT={layout}", str(HERE / "mutator.c")] if layout else []
    library = sysconfig.get_config_var("LIBDIR")
    run(
        [
            *(*compile_command(clang), "-fsanitize=fuzzer", f"-DMODULE={module}", f"-DTARGET=fuzz_{target}"),
            *mutator,
            *(str(HERE / "harness.c"), str(BUILD / f"{module}.o"), "-rdynamic", "-L", library, f"-Wl,-rpath,{library}"),
            *(f"-lpython{sysconfig.get_config_var('LDVERSION')}", "-lm", "-o", str(BUILD / target)),
        ]
    )


def seeds(target: str) -> Path:
    """Folder with the golden vectors, to which libFuzzer adds inputs that reach new code."""
    folder = BUILD / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    name, start = TARGETS[target][:2]
    for number, vector in enumerate(vectors.load(name) if name is not None and start is not None else ()):
        if not vector.table or target.startswith(vector.table.removesuffix("s")):
            (folder / f"vector-{number}").write_bytes(vector.data[start:])
    return folder


def environment(preload: str | None = None) -> dict[str, str]:
    """Environment in which an interpreter finds the instrumented package, numpy and the tests."""
    paths = [str(BUILD / "lib"), str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    asan = "detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=32"
    # The safe path keeps the checkout's own, uninstrumented extensions out of reach
    python = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
    return {**os.environ, **python, "ASAN_OPTIONS": asan, **({"LD_PRELOAD": preload} if preload else {})}


def fuzz_kernel(clang: str, target: str, effort: Effort) -> None:
    """Build and fuzz the kernel target."""
    build_kernel_target(clang, target)
    command = [str(BUILD / target), f"-max_len={TARGETS[target].kernel_longest}"]
    fuzz(f"kernel {target}", command, target, effort, effort.kernel_executions)


def fuzz_surface(target: str, effort: Effort) -> None:
    """Fuzz the Python surface under atheris, which must be loaded before extensions built with AddressSanitizer."""
    import atheris

    command = [sys.executable, "-m", "fuzz.surface", target, f"-max_len={TARGETS[target].surface_longest}"]
    preload = str(Path(atheris.path()) / "asan_with_fuzzer.so")  # type: ignore[attr-defined]  # not in its stubs
    fuzz(f"surface {target}", command, target, effort, effort.surface_executions, preload)


def fuzz(
    name: str, command: list[str], target: str, effort: Effort, executions: int, preload: str | None = None
) -> None:
    """Fuzz one target for its number of executions, and until its time is over; raise FailedError when it fails."""
    executions = int(executions * TARGETS[target].share)
    regressions = HERE / "corpus" / target
    if effort.replay:
        replay(name, [*command, *LIMITS], regressions, preload)
        return
    dictionary = HERE / "dictionaries" / f"{target}.dict"
    fixed = [
        *LIMITS,
        "-print_final_stats=1",
        f"-dict={dictionary}",
        f"-artifact_prefix={regressions}/",
        f"-seed={effort.seed}",
    ]
    done, edges = 0, 0
    begin = time.monotonic()
    left, bound = effort.seconds, f"-runs={executions}"
    # Most take longer than their time, and start once
    while left > 0:
        arguments = [*command, *fixed, bound, str(seeds(target)), str(regressions)]
        result = subprocess.run(arguments, cwd=ROOT, env=environment(preload), capture_output=True, text=True)
        counted = re.search(r"stat::number_of_executed_units:\s*(\d+)", result.stderr)
        done += int(counted.group(1)) if counted else 0
        edges = max(edges, *map(int, re.findall(r" cov: (\d+) ", result.stderr)), 0)
        if result.returncode:
            # What Python raised is on stdout; libFuzzer ends with the input in base64
            raise FailedError(
                f"{result.stdout[-4000:]}\n{result.stderr[-4000:]}\n"
                f"{name}: FAILED; the input is in {regressions}: fix the parser, and rename the file after the fault"
            )
        left = math.ceil(begin + effort.seconds - time.monotonic())
        bound = f"-max_total_time={left}"
    print(f"{name}: {done:,} executions in {time.monotonic() - begin:.0f} s, {edges:,} edges", flush=True)
    if done < executions:
        raise FailedError(f"{name}: FAILED, fewer than {executions:,} executions")
    if effort.merge:
        merge(name, [*command, *LIMITS], target, preload)


def replay(name: str, command: list[str], regressions: Path, preload: str | None) -> None:
    """Run every input of the corpus once."""
    inputs = sorted(map(str, regressions.iterdir()))
    result = subprocess.run([*command, *inputs], cwd=ROOT, env=environment(preload), capture_output=True, text=True)
    done = len(re.findall(r"^Executed .* in \d+ ms$", result.stderr, re.MULTILINE))
    print(f"{name}: {done} of {len(inputs)} inputs", flush=True)
    if result.returncode or not done == len(inputs) > 0:
        raise FailedError(f"{result.stdout[-4000:]}\n{result.stderr[-4000:]}\n{name}: FAILED")


def merge(name: str, command: list[str], target: str, preload: str | None) -> None:
    """Add the inputs to the corpus that reach code no input of the corpus reaches."""
    regressions = HERE / "corpus" / target
    before = len(list(regressions.iterdir()))
    arguments = [*command, "-merge=1", str(regressions), str(seeds(target))]
    result = subprocess.run(arguments, cwd=ROOT, env=environment(preload), capture_output=True, text=True)
    print(f"{name}: {len(list(regressions.iterdir())) - before} new inputs in {regressions.relative_to(ROOT)}")
    if result.returncode:
        raise FailedError(f"{result.stderr[-4000:]}\n{name}: FAILED to merge")


def main() -> int:
    """Build, then fuzz every target; return 0 when each reached its executions without a failure."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help=f"any of {', '.join(TARGETS)}; default: all")
    parser.add_argument("--seconds", type=int, default=10, help="time for each target (default %(default)s)")
    parser.add_argument("--kernel-executions", type=int, default=1_000_000, help="at least (default %(default)s)")
    parser.add_argument("--surface-executions", type=int, default=200_000, help="at least (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the random inputs; 0: another each time (default 1)")
    parser.add_argument("--replay", action="store_true", help="run the inputs of the corpus only")
    parser.add_argument("--merge", action="store_true", help="add inputs that reach further to the corpus")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--parallel", type=int, default=cores, help="targets at a time (default: a core each)")
    options = parser.parse_args()
    unknown = [target for target in options.targets if target not in TARGETS]
    if unknown:
        parser.error(f"no such target: {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    clang = shutil.which("clang")
    if clang is None:
        print("fuzzing needs clang: apt-get install -y clang libclang-rt-dev", file=sys.stderr)
        return 1
    chosen = options.targets or list(TARGETS)
    native = [target for target in chosen if TARGETS[target].kernels]
    begin = time.monotonic()
    build_extensions(clang)
    least = options.kernel_executions, options.surface_executions
    effort = Effort(options.seconds, *least, options.seed, options.merge, options.replay)
    with ThreadPoolExecutor(options.parallel) as pool:
        for built in [pool.submit(build_kernels, clang, module) for module in dict.fromkeys(map(kernels, native))]:
            built.result()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        building = used.ru_utime + used.ru_stime
        print(f"built in {time.monotonic() - begin:.0f} s, {building:.0f} CPU seconds", flush=True)
        # The surface targets run longer: started first, they leave no core idle at the end
        jobs = [pool.submit(fuzz_surface, target, effort) for target in chosen]
        jobs += [pool.submit(fuzz_kernel, clang, target, effort) for target in native]
        failures = [error for job in jobs if (error := job.exception()) is not None]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime - building:,.0f} CPU seconds without the build", flush=True)
    for error in failures:
        if not isinstance(error, FailedError):
            raise error
        print(error, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
