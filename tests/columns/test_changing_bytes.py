"""Bytes that change between decoding and each use give wrong values at worst: no other memory is read or written."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from msmqwire import mqcn, mqqb, mqsd, propvariant
from tests.columns.processes import ROOT
from tests.columns.rows import contents
from tests.mqqb.messages import FULL
from tests.vectors import get

PROGRAM = """
import ctypes, random
import numpy as np, pyarrow as pa
from msmqwire import EncodeError, formatname
from tests.columns.formats import FORMATS
from tests.columns.guard_pages import place
from tests.columns.views import arrays
from tests.reference.formatname_cases import NAMES

def arrow_over(payloads, at_the_end):
    joined = b"".join(payloads)
    buffer = place(joined, at_the_end)
    offsets = np.cumsum([0, *map(len, payloads)]).astype(np.int32)
    return buffer, offsets, pa.Array.from_buffers(
        pa.binary(), len(payloads), [None, pa.foreign_buffer(offsets.ctypes.data, offsets.nbytes, offsets), buffer])

def changed(data, rng):
    yield bytes(len(data))
    yield b"\\xff" * len(data)
    yield b"A\\0" * (len(data) // 2) + b"A" * (len(data) % 2)
    yield data[::-1]
    yield data[7:] + data[:7]
    for _ in range(6):
        some = bytearray(data)
        for _ in range(rng.choice((1, 10, len(data) // 8))):
            some[rng.randrange(len(some))] = rng.choice((0, 1, 2, 255, rng.randrange(256)))
        yield bytes(some)

def values_of(batch):
    for path, array in arrays(batch):
        array.tobytes()
    for name in batch.columns:
        column = batch[name]
        if hasattr(column, "text"):
            for row in range(len(column)):
                try:
                    column.text(row)
                except UnicodeDecodeError:
                    pass
    [batch.violation_names(row) for row in range(len(batch)) if batch.table.violations]

def properties_of(batch):
    for propid in np.unique(batch["properties"].values["id"]).tolist():
        values, rows = batch.property(propid)
        for place in range(len(values)) if hasattr(values, "text") else ():
            values[place].tobytes()

uses = (
    lambda kind, batch: values_of(batch),
    lambda kind, batch: batch.to_arrow(guid="text").validate(full=True),
    lambda kind, batch: kind.encode_batch(batch),
    lambda kind, batch: kind.look(batch),
    lambda kind, batch: properties_of(batch) if hasattr(batch, "property") else None,
    lambda kind, batch: pa.array(batch.payloads),
)
rng = random.Random(3)
count = 0
for kind in FORMATS:
    payloads = [*kind.packets, *kind.whole, *kind.cases(60, 5)]
    payloads = [data for data in payloads if kind.decode_batch([data]).fault(0) is None]
    valid = [data for data in payloads if not any(kind.decode_batch([data]).violations)] or payloads
    for some in (payloads, valid, kind.whole[:1]):
        data = b"".join(some)
        for use in uses:
            for at_the_end in (False, True):
                for other in changed(data, rng):
                    buffer, offsets, array = arrow_over(some, at_the_end)
                    batch = kind.decode_batch(array)
                    ctypes.memmove(buffer.address, other, len(other))
                    offsets[1:] = 0x7FFFFFF0
                    try:
                        use(kind, batch)
                    except EncodeError:
                        pass
                    count += 1

names = [name.encode() for name in NAMES if len(name) < 1000]
for use in (values_of, lambda batch: batch.to_arrow(guid="text").validate(full=True)):
    for at_the_end in (False, True):
        for other in changed(b"".join(names), rng):
            buffer, offsets, array = arrow_over(names, at_the_end)
            batch = formatname.parse_batch(array)
            ctypes.memmove(buffer.address, other, len(other))
            offsets[1:] = 0x7FFFFFF0
            use(batch)
print(count)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
def test_batches_over_bytes_that_change() -> None:
    # The debug allocator of Python ends the process when a block was written past its end
    environment = {**os.environ, "PYTHONMALLOC": "debug"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 1000


PACKETS = [
    (mqsd.decode, get("mqsd", "reply-many-servers").data),
    (mqsd.decode, get("mqsd", "request-ipx-three-networks").data),
    (mqcn.decode, get("mqcn", "change-machine-with-riders").data),
    (mqqb.decode, mqqb.encode(FULL)),
]


@pytest.mark.parametrize(("decode", "data"), PACKETS)
def test_a_packet_does_not_change_with_its_bytes(decode: object, data: bytes) -> None:
    """A view that is read-only may be of memory that is not."""
    memory = bytearray(data)
    packet, expected = (decode(view) for view in (memoryview(memory).toreadonly(), data))  # type: ignore[operator]
    memory[:] = b"\xff" * len(memory)
    assert packet == expected
    assert repr(packet) == repr(expected)
    assert hash(packet) == hash(expected)


def test_values_and_batches_do_not_change_with_read_only_views() -> None:
    memory = bytearray(propvariant.encode(propvariant.VT_UI4 | propvariant.VT_VECTOR, [1, 2]))
    value = propvariant.decode(propvariant.VT_UI4 | propvariant.VT_VECTOR, memoryview(memory).toreadonly())
    memory[:] = bytes(len(memory))
    assert value.tolist() == [1, 2]
    memory = bytearray(PACKETS[0][1])
    batch = mqsd.decode_batch([memoryview(memory).toreadonly()])
    memory[:] = bytes(len(memory))
    assert contents(batch.payloads) == [PACKETS[0][1]]
