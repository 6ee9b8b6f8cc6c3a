"""Every form of the vector operations gives the results of their plain definitions: SSE2, NEON and portable."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from tests.system_programs import require_program

ROOT = Path(__file__).parent.parent.parent
CASES = Path(__file__).parent / "simd_cases.c"
NATIVE = {"x86_64": "SSE2", "aarch64": "NEON", "arm64": "NEON"}
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror")


def run(folder: Path, form: str, *compile: str, emulator: tuple[str, ...] = ()) -> None:
    """Compile the cases and run them; they must be of this form."""
    program = folder / "cases"
    subprocess.run([*compile, *FLAGS, f"-I{ROOT}", "-o", program, CASES], check=True)
    done = subprocess.run([*emulator, program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, f"{form} 200000\n"), done.stderr


@pytest.mark.parametrize("form", ["native", "portable"])
def test_on_this_machine(tmp_path: Path, form: str) -> None:
    if form == "portable":
        run(tmp_path, form, "cc", "-DMSMQWIRE_PORTABLE")
    else:
        run(tmp_path, NATIVE[platform.machine()], "cc")


@pytest.mark.long
def test_on_an_emulated_aarch64(tmp_path: Path) -> None:
    compiler, emulator = require_program("aarch64-linux-gnu-gcc"), require_program("qemu-aarch64")
    run(tmp_path, "NEON", compiler, "-static", emulator=(emulator,))


@pytest.mark.long
def test_compiles_for_windows(tmp_path: Path) -> None:
    compiler = require_program("x86_64-w64-mingw32-gcc")
    for macros in ((), ("-DMSMQWIRE_PORTABLE",)):
        command = [compiler, *FLAGS, *macros, f"-I{ROOT}", "-o", tmp_path / "cases.exe", CASES]
        subprocess.run(command, check=True)
