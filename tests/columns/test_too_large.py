"""A payload of 2 GiB is one row with a fault, and is not encoded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from msmqwire import DecodeError, EncodeError, mqcn, mqqb, mqsd
from tests.vectors import get

PACKETS = [
    (mqsd, get("mqsd", "reply-many-servers").data),
    (mqcn, get("mqcn", "change-machine-with-riders").data),
    (mqqb, mqqb.encode(mqqb.UserMessage())),
]


def payload_rows(batch: Any) -> list[int]:
    """The first row of each payload."""
    return batch.messages[:-1].tolist() if hasattr(batch, "messages") else list(range(len(batch)))


@pytest.mark.parametrize(("module", "data"), PACKETS)
def test_a_payload_of_2_gib_is_one_faulty_row(module: Any, data: bytes) -> None:
    large = np.zeros(2**31, np.uint8)  # memory that is never touched
    batch = module.decode_batch([data, large, data, b""])
    (_, fault, _, empty) = [batch.fault(row) for row in payload_rows(batch)]
    assert fault == ("too_large", batch.table.fields[0], 0, 2**31, 2**31 - 1)
    assert empty.code == "truncated"
    assert batch.to_arrow()["fault"].null_count == len(batch) - 2
    assert batch.payloads[1].nbytes == 2**31
    with pytest.raises(EncodeError, match=f"row {payload_rows(batch)[1]}: .* the row has the fault too_large of"):
        module.encode_batch(batch)
    with pytest.raises(DecodeError, match="is 2147483648, can be at most 2147483647"):
        module.decode(large)
    with pytest.raises(ValueError, match="decode in slices"):
        module.decode_batch(memoryview(bytes(2**31)), offsets=[0, 2**30, 2**31])
