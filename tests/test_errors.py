"""Errors are those of Python as well, and can be caught in the usual ways."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire import capture, errors, mqqb, mqsd
from msmqwire.formatname import parse

EMPTY = bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 01000000")


def test_every_error_is_public() -> None:
    found = [getattr(errors, name) for name in errors.__all__]
    assert {name for name in errors.__all__ if name in msmqwire.__all__} >= {"CaptureReadError", "LakeError"}
    assert all(issubclass(each, errors.MsmqWireError) for each in found)


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda: mqsd.decode(b"\0"), errors.DecodeError),
        (lambda: mqqb.UserMessage(priority=9), errors.EncodeError),
        (lambda: parse("DIRECT="), errors.FormatNameError),
        (lambda: capture.open(io.BytesIO(b"no capture")), errors.CaptureFormatError),
        (lambda: capture.Checkpoint.from_bytes(b"nothing"), errors.CaptureFormatError),
    ],
)
def test_a_value_that_is_not_valid_is_a_value_error(use: Any, error: type[Exception]) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        use()
    assert type(caught.value) is error
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (error, str(caught.value))


class OnWait(io.RawIOBase):
    """A file that would wait for more bytes, which a reader in one thread cannot do."""

    def __init__(self) -> None:
        self._left = EMPTY

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if not self._left:
            return None
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def test_a_capture_that_cannot_be_read_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError, match="without waiting") as caught:
        list(capture.open(OnWait()))
    assert type(caught.value) is errors.CaptureReadError
    assert isinstance(caught.value, errors.CaptureError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_lake_that_is_none_has_the_error_of_its_package(tmp_path: Path) -> None:
    from msmqwire.spark import lake

    with pytest.raises(errors.LakeError, match="not a lake"):
        lake.history(tmp_path)
    assert lake.LakeError is errors.LakeError


@pytest.mark.parametrize("read", [capture.open, lambda *given: capture.read_tables(given[0], ("topology",), given[1])])
def test_a_mode_is_refused(read: Any) -> None:
    with pytest.raises(TypeError, match="'rb', not ReadOptions; give options by name"):
        read("examples/local-site.pcap", "rb")
