"""What the codec of every protocol does with the bytes of its caller: any kind is taken, none is changed or kept."""

from __future__ import annotations

import gc
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.errors import DecodeError
from tests import vectors

NAMES: dict[ModuleType, tuple[str, ...]] = {
    mqsd: ("V1-request", "V2-reply-local-site", "V3-reply-other-site"),
    mqcn: ("C1-delete", "C2-change-queue", "C3-body", "create-queue", "change-machine-with-riders"),
    mqqb: ("C1-delete", "C2-change-queue", "C3-body"),
}
EXAMPLES = [
    (codec, vectors.get(codec.__name__.rpartition(".")[2], name).data) for codec in NAMES for name in NAMES[codec]
]
each_codec = pytest.mark.parametrize("codec", NAMES, ids=lambda codec: codec.__name__)
each_example = pytest.mark.parametrize(
    ("codec", "data"), EXAMPLES, ids=lambda value: len(value) if isinstance(value, bytes) else value.__name__
)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
@each_example
def test_takes_any_bytes_like(codec: Any, data: bytes, kind: Any) -> None:
    assert codec.decode(kind(data)) == codec.decode(data)
    assert codec.decode(memoryview(b"x" + data)[1:]) == codec.decode(data)


@pytest.mark.parametrize("wrong", [None, "abc", 5, [1, 2], object()])
@each_codec
def test_takes_nothing_else(codec: Any, wrong: Any) -> None:
    with pytest.raises(TypeError):
        codec.decode(wrong)


@each_example
def test_options_are_by_name_only(codec: Any, data: bytes) -> None:
    with pytest.raises(TypeError):
        codec.decode(data, True)
    with pytest.raises(TypeError):
        codec.encode(codec.decode(data), False)


@each_example
def test_a_writable_buffer_is_copied(codec: Any, data: bytes) -> None:
    writable: list[Any] = [bytearray(data), np.frombuffer(bytearray(data), np.uint8)]
    for buffer in writable:
        packet = codec.decode(buffer)
        memoryview(buffer).cast("B")[:] = bytes(len(data))
        assert packet == codec.decode(data)
        assert codec.encode(packet) == data


@each_example
def test_decoding_leaves_nothing_behind(codec: Any, data: bytes) -> None:
    data, cut = bytes(bytearray(data)), bytes(bytearray(data[:-3]))
    before = sys.getrefcount(data), sys.getrefcount(cut)
    for _ in range(100):
        codec.encode(codec.decode(data))
        with pytest.raises(DecodeError):
            codec.decode(cut)
    gc.collect()
    assert (sys.getrefcount(data), sys.getrefcount(cut)) == before
