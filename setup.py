"""The one list of extensions and the one set of compiler directives.

``MSMQWIRE_BUILD`` chooses the build:

- ``release`` (default): optimised, no checks that the kernels make themselves;
- ``trace``: line tracing for coverage and debuggers, annotated HTML beside each ``.pyx``;
- ``sanitize``: AddressSanitizer and UndefinedBehaviorSanitizer, debug symbols (import it under ``LD_PRELOAD=libasan``);
- ``coverage``: which lines and branches of the kernels the tests reach, for gcov (``make coverage`` sets it);
- ``fuzz``: coverage for libFuzzer and the same sanitizers, for clang (``make fuzz`` sets it);
- ``none``: no extensions, for an environment that gets its dependencies first and is built in place afterwards.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

HERE = Path(__file__).parent

EXTENSIONS = [
    "msmqwire.wire.address",
    "msmqwire.wire.fault",
    "msmqwire.wire.guid",
    "msmqwire.wire.transport",
    "msmqwire.wire.utf16",
    "msmqwire.wire.format_name",
    "msmqwire.columns.buffer",
    "msmqwire.columns.payloads",
    "msmqwire.columns.arrow",
    "msmqwire.columns.convert",
    "msmqwire.columns.batch",
    "msmqwire.columns.layout",
    "msmqwire.columns.decoder",
    "msmqwire.columns.encoded",
    "msmqwire.columns.guids",
    "msmqwire.properties.lookup",
    "msmqwire.propvariant.codec",
    "msmqwire.formatname.kernel",
    "msmqwire.formatname.scan",
    "msmqwire.formatname.batch",
    "msmqwire.mqcn.kernel",
    "msmqwire.mqcn.packet",
    "msmqwire.mqcn.property_columns",
    "msmqwire.mqcn.batch",
    "msmqwire.mqcn.encode",
    "msmqwire.mqsd.kernel",
    "msmqwire.mqsd.packet",
    "msmqwire.mqsd.batch",
    "msmqwire.mqsd.encode",
    "msmqwire.mqqb.kernel",
    "msmqwire.mqqb.queues",
    "msmqwire.mqqb.messages",
    "msmqwire.mqqb.sessions",
    "msmqwire.mqqb.layout",
    "msmqwire.mqqb.values",
    "msmqwire.mqqb.packet",
    "msmqwire.mqqb.batch",
    "msmqwire.mqqb.encode",
    "msmqwire.capture.selection",
    "msmqwire.capture.fragments",
    "msmqwire.capture.layers",
    "msmqwire.capture.flows",
    "msmqwire.capture.guesses",
    "msmqwire.capture.packets",
    "msmqwire.capture.streams",
    "msmqwire.capture.pcap",
    "msmqwire.capture.pcapng",
    "msmqwire.capture.blocks",
    "msmqwire.capture.state",
    "msmqwire.capture.joining",
    "msmqwire.capture.captured",
]

DIRECTIVES = {
    "language_level": "3",
    "initializedcheck": False,
    "cdivision": True,
    "binding": True,
    "embedsignature": False,
    "freethreading_compatible": False,
}

BUILDS: dict[str, tuple[list[str], list[str], dict[str, bool]]] = {
    "release": (["-O3", "-g0"], [], {}),
    "trace": (["-O1", "-g", "-DCYTHON_TRACE_NOGIL=1"], [], {"linetrace": True}),
    "sanitize": (
        ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        ["-fsanitize=address,undefined"],
        {},
    ),
    "coverage": (["-O0", "-w", "--coverage"], ["--coverage"], {}),
    "fuzz": (
        [
            *("-O1", "-g", "-w", "-fsanitize=fuzzer-no-link,address,undefined", "-fsanitize-trap=undefined"),
            f"-fsanitize-coverage-ignorelist={HERE / 'fuzz' / 'coverage_ignorelist.txt'}",
        ],
        ["-fsanitize=address"],
        {},
    ),
    "none": ([], [], {}),
}


# What is inline in a kernel is inlined: left to its own judgement GCC keeps one shared copy of the larger readers,
# where each caller's constants should have made a loop of its own (a fifth of the instructions).
INLINE = ("CYTHON_INLINE", "inline __attribute__((always_inline))")


# The loops over a block of records are a few instructions each: unrolled they take a tenth fewer.
UNROLLED = {"msmqwire.columns.layout"}


def chosen_build() -> tuple[list[str], list[str], dict[str, bool]]:
    """Flags of the build that ``MSMQWIRE_BUILD`` names; an unknown name is an error, never a silent default."""
    name = os.environ.get("MSMQWIRE_BUILD", "release")
    if name not in BUILDS:
        sys.exit(f"MSMQWIRE_BUILD={name!r} is not one of {', '.join(BUILDS)}")
    return BUILDS[name]


def extensions() -> list[Extension]:
    compile_args, link_args, _ = chosen_build()
    headers = sorted(str(path.relative_to(HERE)) for path in (HERE / "msmqwire").rglob("*.h"))
    return [
        Extension(
            name,
            [name.replace(".", "/") + ".pyx"],
            depends=headers,
            include_dirs=["."],
            define_macros=[INLINE],
            extra_compile_args=[*compile_args, *(["-funroll-loops"] if name in UNROLLED else [])],
            extra_link_args=link_args,
        )
        for name in EXTENSIONS
        if os.environ.get("MSMQWIRE_BUILD") != "none"
    ]


setup(
    ext_modules=cythonize(
        extensions(),
        compiler_directives={**DIRECTIVES, **chosen_build()[2]},
        annotate=os.environ.get("MSMQWIRE_BUILD") == "trace",
        build_dir="build",
    )
)
