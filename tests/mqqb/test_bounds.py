"""No kernel reads a byte outside its payload: payloads stand against pages that kill the process when touched."""

from __future__ import annotations

import sys

import pytest

from tests.columns.processes import run

PROGRAM = """
import numpy as np, pyarrow as pa
from msmqwire import mqqb
from tests.columns.guard_pages import place, place_array
from tests.mqqb.messages import FULL, some, vectors
from tests.mqqb.packets import decode
from tests.mqqb.rows import Expected, assert_columns, decode_batch, read_all

checked = 0
for table in ("messages", "sessions"):
    whole = [*vectors(table), mqqb.encode(FULL)]
    whole = [data for data in whole if len(data) < 10000]
    datas = [data[:size] for data in whole for size in range(0, len(data) + 1, 1 + len(data) // 15)]
    # Cut packets that say so themselves: the end of the packet is the end of the payload
    datas += [
        data[:8] + size.to_bytes(4, "little") + data[12:size]
        for data in whole for size in range(16, len(data), 1 + len(data) // 20)
    ]
    datas += [*whole, *some(table, 1000, seed=77)]
    checked += len(datas)
    batch = decode_batch([], table)
    for at_the_end in (False, True):
        for i, data in enumerate(datas):
            buffer = place(data, at_the_end)
            packet = decode(buffer)
            decode_batch(place_array(data, at_the_end), table, out=batch)
            if hasattr(packet, "violations"):
                hash(packet)
                if not packet.violations and batch.fault(0) is None:
                    assert bytes(mqqb.encode_batch(batch)[0]) == mqqb.encode(packet)
                if i % 5 == 0:
                    repr(packet)
                    batch.__arrow_c_array__()
        for i in range(0, len(datas), 150):
            some_of_them = datas[i : i + 150]
            joined = b"".join(some_of_them)
            if len(joined) > 60 * 4096:
                continue
            offsets = np.cumsum([0, *map(len, some_of_them)]).astype(np.int32)
            buffers = [None, pa.py_buffer(offsets), place(joined, at_the_end)]
            array = pa.Array.from_buffers(pa.binary(), len(some_of_them), buffers)
            whole_batch = decode_batch(array, table, threads=1 + i // 150 % 2)
            assert_columns(whole_batch, Expected(read_all(some_of_them, table), table))
            whole_batch.to_arrow()
            if table == "messages":
                whole_batch.notifications()
print(checked)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
def test_nothing_is_read_outside_a_payload() -> None:
    assert int(run("-c", PROGRAM)) > 4000
