"""No kernel reads a byte outside its payload: payloads stand against pages that kill the process when touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

#: Two pages without access around some with it; payloads are put at either end of these, aligned and not.
PROGRAM = """
import ctypes, faulthandler, mmap, sys
import numpy as np, pyarrow as pa
from msmqwire import mqsd
from tests.mqsd.rows import decode, read_all, assert_columns
from tests.reference import mqsd as reference
from tests.reference.mqsd_cases import cases
from tests.vectors import load

faulthandler.enable()
PAGE, INSIDE = mmap.PAGESIZE, 64 * mmap.PAGESIZE
area = mmap.mmap(-1, INSIDE + 2 * PAGE)
first = ctypes.addressof(ctypes.c_char.from_buffer(area))
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for guard in (first, first + PAGE + INSIDE):
    assert libc.mprotect(guard, PAGE, mmap.PROT_READ * 0) == 0

def place(data, at_the_end):
    at = first + PAGE + (INSIDE - len(data) if at_the_end else 0)
    ctypes.memmove(at, data, len(data))
    return pa.foreign_buffer(at, len(data))

vectors = [vector.data for vector in load("mqsd")]
datas = [data[:size] for data in vectors for size in range(len(data) + 1)] + list(cases(2000, seed=77))
for at_the_end in (False, True):
    for data in datas:
        buffer = place(data, at_the_end)
        expected = reference.read(data)
        fault = expected if isinstance(expected, reference.Fault) else None
        single = decode(buffer)
        batch = mqsd.decode_batch([buffer])
        assert batch.fault(0) == fault
        if fault is not None:
            assert single == fault
            continue
        repr(single)
        batch.__arrow_c_array__()
        if not expected.violations:
            assert bytes(mqsd.encode_batch(batch)[0]) == mqsd.encode(single) == reference.write(expected)
    for i in range(0, len(datas), 100):
        some = datas[i : i + 100]
        joined = b"".join(some)
        offsets = np.cumsum([0, *map(len, some)]).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets), place(joined, at_the_end)]
        array = pa.Array.from_buffers(pa.binary(), len(some), buffers)
        batch = mqsd.decode_batch(array, threads=1 + i // 100 % 2)
        assert_columns(batch, read_all(some))
        batch.to_arrow()
print(len(datas))
"""

TOUCH = "import ctypes\nctypes.string_at(first + PAGE + INSIDE, 1)\n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
def test_nothing_is_read_outside_a_payload() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 4000


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
def test_the_guard_pages_do_guard() -> None:
    """A gate proves that it would have caught something."""
    setup = PROGRAM.partition("vectors = [")[0]
    command = [sys.executable, "-c", setup + TOUCH]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode < 0
    assert "Segmentation fault" in done.stderr
