"""An encoder that refuses a row of a batch says which row it is and why."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire import DecodeError, EncodeError, mqcn, mqqb, mqsd
from tests.vectors import get

PACKETS = [
    (mqsd, get("mqsd", "reply-many-servers").data),
    (mqcn, get("mqcn", "change-machine-with-riders").data),
    (mqqb, mqqb.encode(mqqb.UserMessage())),
]


@pytest.mark.parametrize(("module", "data"), PACKETS)
def test_a_refusal_names_row_and_rule(module: Any, data: bytes) -> None:
    for wrong, reason in (
        (data + bytes(8), "trailing_bytes"),
        (None, "the row is null"),
        (data[:3], "the row has the fault truncated of "),
    ):
        with pytest.raises(EncodeError, match=reason) as raised:
            module.encode_batch(module.decode_batch([data, wrong]))
        assert raised.value.row == 1


def test_bad_text_names_the_code_unit() -> None:
    with pytest.raises(DecodeError, match=r"byte 36: code unit 0x0061"):
        mqcn.decode(b"\2\1" + "<Notification><Evant>".encode("utf-16-le"))
    with pytest.raises(DecodeError, match=r"byte 44: the text ends here"):
        mqcn.decode(b"\2\1" + "<Notification><Event>".encode("utf-16-le"))
