"""A batch written through ``out=`` is whole at every moment, whatever else happens to it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from msmqwire import mqcn
from tests.columns.processes import run
from tests.mqcn.messages import read_all
from tests.mqcn.rows import Expected, assert_arrow, assert_columns
from tests.reference.mqcn_cases import cases
from tests.vectors import get

SOME = list(cases(500, seed=31))
C1 = get("mqcn", "C1-delete").data


@pytest.mark.parametrize("meeting", ["write", "read"])
def test_threads_cannot_meet_in_a_batch(meeting: str) -> None:
    """The kernel runs without the GIL: who comes while it writes is refused, to write as to export."""
    run("-m", "tests.mqcn.races", meeting)


OUT_OF_MEMORY = """
import faulthandler, resource
import numpy as np, pyarrow
from msmqwire import Payloads, mqcn
from tests.vectors import get

faulthandler.enable()
C1, C2 = (get("mqcn", name).data for name in ("C1-delete", "C2-change-queue"))
small, big = Payloads.of([C2] * 10), Payloads(C1 * 500_000, np.arange(500_001) * len(C1))
unlimited = resource.getrlimit(resource.RLIMIT_AS)
failed = 0
for megabytes in range(5, 300, 25):
    out = mqcn.decode_batch(small)
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 2**20, unlimited[1]))
    try:
        mqcn.decode_batch(big, out=out)["properties"]
        continue
    except MemoryError:
        failed += 1
    finally:
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
    assert len(out) in (0, len(small), len(big)), len(out)
    assert out.to_arrow().num_rows == len(out["object_guid"]) == len(out)
    assert len(out["properties"].values["id"]) == out["properties"].offsets[-1]
    assert mqcn.decode_batch(small, out=out).to_arrow().num_rows == len(small)
print(failed)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS and /proc")
def test_a_batch_survives_a_lack_of_memory() -> None:
    """When a column cannot be had, the batch holds no rows (or those it had), never rows without columns."""
    assert int(run("-c", OUT_OF_MEMORY)) >= 3


@pytest.mark.parametrize("options", [{"columns": ["no"]}, {"threads": 0}, {"offsets": [1, 0]}])
def test_a_refused_call_leaves_the_batch_as_it_was(options: dict[str, Any]) -> None:
    out = mqcn.decode_batch(SOME)
    payloads: Any = b"ab" if "offsets" in options else SOME[:3]
    with pytest.raises(ValueError, match=r"no|threads|offsets"):
        mqcn.decode_batch(payloads, out=out, **options)
    wrong: Any = [C1, "text"]
    with pytest.raises(TypeError):
        mqcn.decode_batch(wrong, out=out)
    assert_columns(out, Expected(read_all(SOME)))
    assert_arrow(out, Expected(read_all(SOME)))
