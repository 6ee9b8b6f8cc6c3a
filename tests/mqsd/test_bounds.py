"""No kernel reads a byte outside its payload: payloads stand against pages that kill the process when touched."""

from __future__ import annotations

import sys

import pytest

from tests.columns.processes import run

PROGRAM = """
import numpy as np, pyarrow as pa
from msmqwire import mqsd
from tests.columns.guard_pages import place, place_array
from tests.mqsd.rows import decode, read_all, assert_columns
from tests.reference import mqsd as reference
from tests.reference.mqsd_cases import cases
from tests.vectors import load

vectors = [vector.data for vector in load("mqsd")]
datas = [data[:size] for data in vectors for size in range(len(data) + 1)] + list(cases(2000, seed=77))
for at_the_end in (False, True):
    for data in datas:
        buffer = place(data, at_the_end)
        expected = reference.read(data)
        fault = expected if isinstance(expected, reference.Fault) else None
        single = decode(buffer)
        batch = mqsd.decode_batch(place_array(data, at_the_end))
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


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
def test_nothing_is_read_outside_a_payload() -> None:
    assert int(run("-c", PROGRAM)) > 4000
