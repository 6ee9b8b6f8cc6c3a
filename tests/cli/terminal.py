"""A terminal for a process to talk to: a pseudo-terminal of a given size, and all that was drawn on it."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tests.cli.support import COMMAND, ROOT, environ


class Terminal:
    """A pseudo-terminal; ``descriptor`` goes to the process, ``text()`` is what it wrote there."""

    def __init__(self, columns: int = 120, lines: int = 50) -> None:
        self._master, self.descriptor = pty.openpty()
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("4H", lines, columns, 0, 0))
        self._read: list[bytes] = []
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    def _drain(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # EIO: the last process has closed it
                return
            if not data:
                return
            self._read.append(data)

    def text(self) -> str:
        """All that was written; call when the process has ended."""
        os.close(self.descriptor)
        self._reader.join(10)
        os.close(self._master)
        return b"".join(self._read).decode().replace("\r\n", "\n")


def start(
    arguments: Sequence[object], variables: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[bytes]:
    """The command with its streams where ``Popen`` is told, its width asked of the terminal."""
    environment = environ(TERM="xterm-256color", **(variables or {}))
    for name in ("COLUMNS", "NO_COLOR"):
        environment.pop(name, None)
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, cwd=ROOT, **{"preexec_fn": _take_hangups, **options})


def _take_hangups() -> None:
    """As in a terminal, even where the tests were started with nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def take_terminal() -> None:
    """Let the keys of the terminal on standard input, such as Ctrl-C, send signals to a process in a new session."""
    _take_hangups()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
