"""Every byte of a buffer that is handed out was written: none shows what its memory held before."""

from __future__ import annotations

import sys

import pytest

from tests.columns.formats import Format, each_format
from tests.columns.processes import run

# Batches of few rows, whose buffers are not among the blocks that are kept
BYTES = """
import sys
from hashlib import sha256
from msmqwire import EncodeError, Payloads
from tests.columns.formats import FORMATS
from tests.columns.rows import contents
from tests.columns.views import arrays

kind = next(each for each in FORMATS if str(each) == sys.argv[1])
payloads = [*kind.packets, *kind.whole, None, *kind.cases(100, 7)]
whole = [data for data in (*kind.packets, *kind.whole) if data]
lost = [len(data) % 3 for data in whole]

def show(name, data):
    print(name, sha256(data).hexdigest())

def show_arrow(name, array):
    for number, buffer in enumerate(array.buffers()):
        if buffer is not None:
            show(f"{name} {number}", buffer)
    if hasattr(array, "dictionary"):
        show_arrow(f"{name} dictionary", array.dictionary)

out = None
batches = [(payloads[at : at + 20], None) for at in range(0, len(payloads), 20)]
for some, cut in [*batches, (whole[:30], lost[:30])]:
    for out in (None, out):
        batch = out = kind.decode_batch(Payloads.of(some, None, cut), out=out)
        for path, array in arrays(batch):
            show(path, array.tobytes())
        for guid in ("uuid", "text", "binary"):
            for dictionaries in (True, False):
                rows = batch.to_arrow(guid=guid, dictionaries=dictionaries)
                for name, array in zip(rows.schema.names, rows.columns):
                    show_arrow(name, array)
                del rows, array
for data in whole:
    try:
        written = kind.encode_batch(kind.decode_batch([data]))
    except EncodeError:
        continue
    show("encoded", b"".join(contents(written)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs MALLOC_PERTURB_ of glibc")
@each_format
def test_buffers_are_written(kind: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C library fills new memory with a byte, another one in each process."""
    shown = []
    for byte in ("85", "170"):
        monkeypatch.setenv("MALLOC_PERTURB_", byte)
        shown.append(run("-c", BYTES, str(kind)).splitlines())
    assert len(shown[0]) > 100
    assert [one for one, other in zip(*shown, strict=True) if one != other] == []
