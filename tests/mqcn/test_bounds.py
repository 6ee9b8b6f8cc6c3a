"""No kernel reads a byte outside its payload: payloads stand against pages that kill the process when touched."""

from __future__ import annotations

import sys

import pytest

from tests.columns.processes import run

MESSAGES = """
import numpy as np, pyarrow as pa
from msmqwire import mqcn
from tests.columns.guard_pages import place, place_array
from tests.mqcn.messages import assert_message, decode, read_all
from tests.mqcn.rows import Expected, assert_columns
from tests.reference import mqcn as reference
from tests.reference.mqcn_cases import cases
from tests.vectors import load

vectors = [vector.data for vector in load("mqcn")]
datas = [data[:size] for data in vectors for size in range(0, len(data) + 1, 1 + len(data) // 40)]
datas += [*vectors, *cases(600, seed=77)]
for at_the_end in (False, True):
    for data in datas:
        buffer = place(data, at_the_end)
        expected = reference.read(data)
        single = decode(buffer)
        assert_message(single, expected)
        batch = mqcn.decode_batch(place_array(data, at_the_end))
        batch["properties"]
        batch.__arrow_c_array__()
        if isinstance(expected, reference.Message):
            repr(single)
            if not expected.found:
                assert bytes(mqcn.encode_batch(batch)[0]) == mqcn.encode(single) == reference.write(expected)
    for i in range(0, len(datas), 200):
        some = datas[i : i + 200]
        joined = b"".join(some)
        offsets = np.cumsum([0, *map(len, some)]).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets), place(joined, at_the_end)]
        array = pa.Array.from_buffers(pa.binary(), len(some), buffers)
        batch = mqcn.decode_batch(array, threads=1 + i // 200 % 2)
        assert_columns(batch, Expected(read_all(some)))
        for propid in (103, 105, 115, 206, 207, 223, 1101):
            batch.property(propid)
        batch.to_arrow()
print(len(datas))
"""

VALUES = """
import random
from msmqwire import propvariant
from tests.columns.guard_pages import place, place_array
from tests.propvariant.values import TYPES, VT, fault_of, plain, read
from tests.reference.mqcn_cases import value
from tests.reference.mqsd import Fault

checked = 0
for type_ in TYPES:
    rng = random.Random(type_)
    for data in [value(rng, type_) for _ in range(60)]:
        for cut in {len(data), len(data) - 1, len(data) // 2, 0}:
            for at_the_end in (False, True):
                buffer = place(data[: max(cut, 0)], at_the_end)
                expected = read(type_, data[: max(cut, 0)])
                got = fault_of(propvariant.decode, VT[type_], buffer, exact=False)
                fault_of(propvariant.size, VT[type_], buffer)
                fault_of(propvariant.view, VT[type_], buffer)
                assert (got if isinstance(got, Fault) else plain(type_, got)) == (
                    expected if isinstance(expected, Fault) else expected[0]
                )
                checked += 1
print(checked)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
@pytest.mark.parametrize("program", [MESSAGES, VALUES], ids=["messages", "values"])
def test_nothing_is_read_outside_a_payload(program: str) -> None:
    assert int(run("-c", program)) > 4000
