"""GUIDs in a column of their own, as text, against ``uuid``."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable

import pyarrow as pa
import pytest

from msmqwire.columns import Payloads, allocated_bytes
from msmqwire.columns._guids import guid_texts

GUIDS = [random.Random(3).randbytes(16) for _ in range(500)]
MIXED = [None if number % 7 == 0 else guid[: 16 - (number % 5 == 0)] for number, guid in enumerate(GUIDS)]


@pytest.mark.parametrize("values", [GUIDS, MIXED, [], [None]], ids=["guids", "mixed", "nobody", "null"])
@pytest.mark.parametrize("order", ["text", "packet"])
def test_texts_are_those_of_uuid(values: list[bytes | None], order: str) -> None:
    made: Callable[[bytes], uuid.UUID] = {
        "text": lambda guid: uuid.UUID(bytes=guid),
        "packet": lambda guid: uuid.UUID(bytes_le=guid),
    }[order]
    expected = [str(made(guid)) if guid and len(guid) == 16 else None for guid in values]
    for given in (values, pa.array(values, pa.binary()), pa.array([b"", *values], pa.binary_view())[1:]):
        texts = guid_texts(given, order=order)  # type: ignore[arg-type]
        array = pa.array(texts)  # type: ignore[call-overload]  # it has __arrow_c_array__
        array.validate(full=True)
        assert array.type == pa.string()
        assert len(texts) == len(array)
        assert array.to_pylist() == expected


def test_the_first_malformed_row_is_told() -> None:
    assert guid_texts(GUIDS).malformed is None
    assert guid_texts([None, GUIDS[0], b"", GUIDS[0], b"1" * 17]).malformed == 2
    assert guid_texts(Payloads.of([None, b"1" * 15])).malformed == 1


def test_the_texts_outlive_what_they_came_from() -> None:
    before = allocated_bytes()
    array = pa.array(guid_texts(list(GUIDS)))  # type: ignore[call-overload]  # it has __arrow_c_array__
    assert array[0].as_py() == str(uuid.UUID(bytes=GUIDS[0]))
    assert allocated_bytes() > before
    del array
    assert allocated_bytes() == before


def test_an_order_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="order='wire' is not one of 'text', 'packet'"):
        guid_texts(GUIDS, order="wire")  # type: ignore[arg-type]
