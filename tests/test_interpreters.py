"""A second interpreter of a process cannot import the package: numpy refuses it with an error, and nothing crashes."""

from __future__ import annotations

import subprocess
import sys

IN_SECOND = """
import sys
from msmqwire import mqsd
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
else:
    import _xxsubinterpreters as interpreters
second = interpreters.create()
run = interpreters.exec if sys.version_info >= (3, 13) else interpreters.run_string
try:
    failure = run(second, "from msmqwire import mqsd")
except Exception as error:  # of older versions
    failure = error
print(failure)
print(mqsd.decode_batch([bytes(52)]).fault(0).code)
"""


def test_second_interpreter_is_refused() -> None:
    done = subprocess.run([sys.executable, "-c", IN_SECOND], capture_output=True, text=True, timeout=60, check=True)
    assert "ImportError" in done.stdout
    assert done.stdout.endswith("bad_type\n")
