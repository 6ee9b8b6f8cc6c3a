"""Makes a process that reads a capture wait in the middle of it until the test goes on: ``MSMQWIRE_PAUSED``.

Python imports it when it starts. A reader that has come to the second half of the file opens the named pipe beside it,
whose name ends with ``.pipe``, and waits until the test has written to it.
"""

from __future__ import annotations

import builtins
import io
import os
from typing import Any

_PAUSED = os.environ.get("MSMQWIRE_PAUSED", "")
# To identify a capture takes reading 64 KiB at a time
_LARGE = 128 << 10
_open = builtins.open


class _Waiting(io.FileIO):
    def readinto(self, buffer: Any) -> int | None:
        if len(memoryview(buffer).cast("B")) >= _LARGE and self.tell() * 2 >= os.stat(_PAUSED).st_size:
            with _open(f"{_PAUSED}.pipe", "rb", buffering=0) as pipe:
                pipe.read(1)
        return super().readinto(buffer)


def _opened(file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
    if file == _PAUSED and mode == "rb" and os.path.exists(f"{_PAUSED}.pipe"):
        return _Waiting(file)
    return _open(file, mode, *arguments, **named)


if _PAUSED:
    builtins.open = _opened
