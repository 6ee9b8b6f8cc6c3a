"""A Batch written through ``out=`` is whole at every moment, whatever else happens to it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from msmqwire import mqsd
from tests.columns.processes import run
from tests.mqsd.rows import assert_arrow, assert_columns, read_all
from tests.reference.mqsd_cases import cases
from tests.vectors import get

SOME = list(cases(500, seed=31))
V3 = get("mqsd", "V3-reply-other-site").data


@pytest.mark.parametrize("meeting", ["write", "read"])
def test_threads_cannot_meet_in_a_batch(meeting: str) -> None:
    """The kernel runs without the GIL: who comes while it writes is refused, to write as to export."""
    run("-m", "tests.mqsd.races", meeting)


OUT_OF_MEMORY = """
import faulthandler, resource
import numpy as np, pyarrow
from msmqwire import Payloads, mqsd
from tests.vectors import get

faulthandler.enable()
V1, V3 = (get("mqsd", name).data for name in ("V1-request", "V3-reply-other-site"))
small, big = Payloads.of([V3] * 10), Payloads(V1 * 2_000_000, np.arange(2_000_001) * 52)
unlimited = resource.getrlimit(resource.RLIMIT_AS)
failed = 0
for megabytes in range(10, 400, 30):
    out = mqsd.decode_batch(small)
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 2**20, unlimited[1]))
    try:
        mqsd.decode_batch(big, out=out)
        continue
    except MemoryError:
        failed += 1
    finally:
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
    assert len(out) in (0, len(small)), len(out)
    assert out.to_arrow().num_rows == len(out["site_id"]) == len(out)
    assert len(mqsd.encode_batch(out)) == len(out)
    assert mqsd.decode_batch(small, out=out).to_arrow().num_rows == len(small)
print(failed)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS and /proc")
def test_a_batch_survives_a_lack_of_memory() -> None:
    """When a column cannot be had, the batch holds no rows (or those it had), never rows without columns."""
    assert int(run("-c", OUT_OF_MEMORY)) >= 3


@pytest.mark.parametrize("options", [{"columns": ["no"]}, {"transport": "tcp"}, {"threads": 0}, {"offsets": [1, 0]}])
def test_a_refused_call_leaves_the_batch_as_it_was(options: dict[str, Any]) -> None:
    out = mqsd.decode_batch(SOME)
    payloads: Any = b"ab" if "offsets" in options else SOME[:3]
    with pytest.raises(ValueError, match=r"no|tcp|threads|offsets"):
        mqsd.decode_batch(payloads, out=out, **options)
    with pytest.raises(TypeError):
        mqsd.decode_batch([V3, "text"], out=out)
    assert_columns(out, read_all(SOME))
    assert_arrow(out, read_all(SOME))
