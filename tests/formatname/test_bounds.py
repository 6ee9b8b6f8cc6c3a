"""The kernel reads no byte outside its text: texts stand against pages that kill the process when touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

#: Two pages without access around some with it; texts are put at either end of these, alone and in columns.
PROGRAM = """
import ctypes, faulthandler, mmap
import numpy as np, pyarrow as pa
from msmqwire.formatname import parse_batch
from tests.formatname.answers import of_batch, of_reference
from tests.reference.formatname_cases import NAMES, PATH_NAMES, cases

faulthandler.enable()
PAGE, INSIDE = mmap.PAGESIZE, 16 * mmap.PAGESIZE
area = mmap.mmap(-1, INSIDE + 2 * PAGE)
first = ctypes.addressof(ctypes.c_char.from_buffer(area))
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for guard in (first, first + PAGE + INSIDE):
    assert libc.mprotect(guard, PAGE, mmap.PROT_READ * 0) == 0

def column(texts, at_the_end):
    joined = b"".join(texts)
    at = first + PAGE + (INSIDE - len(joined) if at_the_end else 0)
    ctypes.memmove(at, joined, len(joined))
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.foreign_buffer(at, len(joined))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)

OPTIONS = {"extended": True, "spx": True, "http_slashes": True}
checked = 0
for names, options in ((NAMES, OPTIONS), (PATH_NAMES, {"path_names": True})):
    texts = [text[:size] for text in names for size in range(len(text) + 1)] + list(cases(1000, 78, names))
    texts = [text for text in texts if not any("\\ud800" <= character <= "\\udfff" for character in text)]
    expected = [of_reference(text, **options) for text in texts]
    encoded = [text.encode() for text in texts]
    for at_the_end in (False, True):
        for text, answer in zip(encoded, expected):
            batch = parse_batch(column([text], at_the_end), **options)
            if isinstance(answer, tuple):
                assert batch.fault(0) == (*answer, None, None)
            else:
                batch.__arrow_c_array__()
            checked += 1
        for i in range(0, len(texts), 100):
            batch = parse_batch(column(encoded[i : i + 100], at_the_end), **options)
            assert of_batch(batch.to_arrow(guid="uuid").to_pylist(), **options) == expected[i : i + 100]
print(checked)
"""

TOUCH = "ctypes.string_at(first + PAGE + INSIDE, 1)\n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
def test_nothing_is_read_outside_a_text() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 4000
