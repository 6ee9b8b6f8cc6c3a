"""A batch written through ``out=`` is whole at every moment, whatever else happens to it."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import numpy as np
import pytest

from msmqwire import Batch, mqcn
from msmqwire.columns import allocated_bytes
from msmqwire.columns._batch import take
from msmqwire.columns.views import ListColumn
from tests.columns.formats import FORMATS, MESSAGES, NOTIFICATIONS, Format, each_format, one_format_first
from tests.columns.processes import run
from tests.reference import propvariant


@cache
def payloads_of(kind: Format) -> list[bytes]:
    return [*kind.cases(kind.count, 31), *kind.whole]


@each_format
def test_equal_results(kind: Format) -> None:
    rng = random.Random(11)
    out: Any = None
    for count in (10, 500, 3, 0, kind.count - 1, 100):
        payloads = rng.sample(payloads_of(kind), count)
        again = kind.decode_batch(payloads, out=out)
        assert out is None or again is out
        out = again
        kind.assert_rows(payloads, out)


@each_format
def test_no_new_memory(kind: Format) -> None:
    payloads = payloads_of(kind)
    out = kind.decode_batch(payloads)
    kind.look(out)
    held = allocated_bytes()
    place = out["violations"].__array_interface__["data"]
    for some in (payloads, payloads[:10], payloads[::-1]):
        assert kind.decode_batch(some, out=out) is out
        assert out["violations"].__array_interface__["data"] == place
        assert allocated_bytes() <= held + 32 * len(payloads)  # the addresses of a list of payloads


@each_format
def test_faults_and_violations_are_forgotten(kind: Format) -> None:
    out = kind.decode_batch(payloads_of(kind))
    assert len(out.faults)
    assert out.violations.any()
    kind.decode_batch(kind.whole, out=out)
    assert len(out.faults) == 0
    assert not out.violations.any()
    kind.assert_rows(kind.whole, out)


@each_format
def test_refused_while_an_arrow_consumer_holds_it(kind: Format) -> None:
    payloads = payloads_of(kind)

    def refused() -> None:
        with pytest.raises(BufferError, match="Arrow"):
            kind.decode_batch(payloads[::-1], out=out)

    out = kind.decode_batch(payloads)
    table = out.to_arrow(guid="text")
    before = table.to_pylist()
    refused()
    assert table.to_pylist() == before
    kind.assert_rows(payloads, out)
    # Made of the Buffer itself, as GUIDs in text and enumerations are not
    column = out.to_arrow()[kind.table.names[-1]]
    del table
    refused()
    part = column[10:20]
    del column
    refused()
    del part
    assert kind.decode_batch(payloads[::-1], out=out) is out
    capsules = out.__arrow_c_array__()
    refused()
    del capsules
    kind.decode_batch(payloads, out=out)
    kind.assert_rows(payloads, out)


def parts_of(column: Any) -> list[Any]:
    """The views that a column consists of and that give Python values."""
    if isinstance(column, dict):
        return [part for each in column.values() for part in parts_of(each)]
    if isinstance(column, ListColumn):
        return [column, *parts_of(column.values)]
    return [column] if hasattr(column, "to_pylist") else []


@each_format
def test_views_of_an_overwritten_batch_never_mix_payloads(kind: Format) -> None:
    """They are refused, or have memory of their own as derived texts do; what is taken then is right."""
    first, second = payloads_of(kind)[:300], payloads_of(kind)[300:600]
    out = kind.decode_batch(first)
    derived = {column.name for column in kind.table.columns if column.derived}
    parts = [(name in derived, part) for name in out.columns for part in parts_of(out[name])]
    values = [part.to_pylist() for _, part in parts]
    kind.decode_batch(second, out=out)
    assert any(map(any, values))
    for (lasts, part), before in zip(parts, values, strict=True):
        if lasts:
            assert part.to_pylist() == before
            continue
        with pytest.raises(ValueError, match="overwritten through out="):
            part.to_pylist()
        if not isinstance(part, ListColumn) and len(part):
            with pytest.raises(ValueError, match="overwritten through out="):
                part[0]
            with pytest.raises(ValueError, match="overwritten through out="):
                take(part, np.array([0]))
    kind.assert_rows(second, out)


def test_values_of_a_property_outlive_their_batch() -> None:
    first, second = payloads_of(NOTIFICATIONS)[:400], payloads_of(NOTIFICATIONS)[400:]
    out = mqcn.decode_batch(first)
    found = [out.property(propid).values for propid in propvariant.TYPE_OF]
    kept = [(each, each.to_pylist()) for each in found if hasattr(each, "to_pylist")]
    assert sum(len(values) for _, values in kept) > 100
    mqcn.decode_batch(second, out=out)
    assert all(each.to_pylist() == values for each, values in kept)


class Overwriter:
    """Overwrites a batch when a Python function is called, as another thread does that runs there."""

    def __init__(self, kind: Format, out: Batch, function: str) -> None:
        self.kind, self.out, self.function = kind, out, function
        self.refused = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == self.function:
            with pytest.raises(BufferError, match="held"):
                self.kind.decode_batch([], out=self.out)
            self.refused += 1


@pytest.mark.parametrize(
    ("kind", "function", "read"),
    [
        *((kind, "python_rows", lambda batch: batch._repr_html_()) for kind in FORMATS),
        (MESSAGES, "flatnonzero", lambda batch: [bytes(each) for each in batch.notifications().payloads]),
        (NOTIFICATIONS, "flatnonzero", lambda batch: batch.property(105).values.tolist()),
    ],
)
def test_a_batch_that_is_read_is_not_overwritten(kind: Format, function: str, read: Callable[[Any], object]) -> None:
    payloads = payloads_of(kind)
    out = kind.decode_batch(payloads)
    expected = read(out)
    overwriter = Overwriter(kind, out, function)
    sys.setprofile(overwriter)
    try:
        assert read(out) == expected
    finally:
        sys.setprofile(None)
    assert overwriter.refused
    kind.assert_rows(payloads, kind.decode_batch(payloads, out=out))


@each_format
def test_what_does_not_fit_is_refused(kind: Format) -> None:
    whole, names = list(kind.whole), kind.table.names[1:3]
    some = kind.decode_batch(whole, columns=names)
    with pytest.raises(ValueError, match="columns"):
        kind.decode_batch(whole, out=some)
    with pytest.raises(ValueError, match="columns"):
        kind.decode_batch(whole, out=some, columns=names[:1])
    assert kind.decode_batch(whole * 2, out=some, columns=names[::-1]) is some
    assert some.columns == names[::-1]
    assert len(some) == 2 * len(kind.expected(whole).rows)
    with pytest.raises(TypeError):
        kind.decode_batch(whole, out=[])
    for other in FORMATS:
        if other is not kind:
            with pytest.raises((TypeError, ValueError)):
                kind.decode_batch(whole, out=other.decode_batch([]))


@each_format
def test_a_batch_is_not_made_by_hand(kind: Format) -> None:
    with pytest.raises(TypeError):
        type(kind.decode_batch([]))()
    with pytest.raises(TypeError):
        Batch()


@pytest.mark.parametrize("options", [{"columns": ["no"]}, {"offsets": [1, 0]}], ids=str)
@each_format
def test_a_refused_call_leaves_the_batch_as_it_was(kind: Format, options: dict[str, Any]) -> None:
    out = kind.decode_batch(payloads_of(kind))
    with pytest.raises(ValueError, match=r"no|offsets"):
        kind.decode_batch(b"ab" if "offsets" in options else payloads_of(kind)[:3], out=out, **options)
    with pytest.raises(TypeError):
        kind.decode_batch([kind.whole[0], "text"], out=out)
    kind.assert_rows(payloads_of(kind), out)


@pytest.mark.long
@one_format_first
def test_threads_cannot_meet_in_a_batch(kind: Format) -> None:
    """The kernel runs without the GIL: who comes while it writes is refused, to write as to export."""
    run("-m", "tests.columns.meetings", str(kind))


OUT_OF_MEMORY = """
import faulthandler, resource, sys
import numpy as np, pyarrow
from msmqwire import Payloads
from tests.columns.formats import FORMATS

faulthandler.enable()
kind = next(each for each in FORMATS if str(each) == sys.argv[1])
few, small = Payloads.of([kind.whole[0]] * 10), kind.whole[1]
count = 100_000_000 // len(small)
many = Payloads(small * count, np.arange(count + 1) * len(small))
unlimited = resource.getrlimit(resource.RLIMIT_AS)
failed = 0
for megabytes in range(5, 400, 40):
    out = kind.decode_batch(few)
    rows = len(out)
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 2**20, unlimited[1]))
    try:
        kind.decode_batch(many, out=out)
        kind.look(out)
        continue
    except MemoryError:
        failed += 1
    finally:
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
    assert len(out) in (0, rows, len(many)), len(out)
    assert out.to_arrow().num_rows == len(out["violations"]) == len(out)
    kind.look(out)
    if len(out) <= rows:
        assert len(kind.encode_batch(out)) in (0, len(few))
    assert kind.decode_batch(few, out=out).to_arrow().num_rows == rows
print(failed)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS and /proc")
@one_format_first
def test_a_batch_survives_a_lack_of_memory(kind: Format) -> None:
    """When a column cannot be had, the batch holds no rows (or those it had), never rows without columns."""
    assert int(run("-c", OUT_OF_MEMORY, str(kind))) >= 3
