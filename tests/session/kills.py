"""Points at which a process with a store can end, with a copy of its files as they are on disk then."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msmqwire.cli import message_files


class Killed(BaseException):
    """The process has ended."""


class Points:
    """Counts the points at which a process can end, and ends it at one of them, with a copy of its folder."""

    def __init__(self, folder: Path, ends_at: int | None = None) -> None:
        self.folder = folder
        self.ends_at = ends_at
        self.count = 0
        self.names: list[str] = []

    def __call__(self, name: str) -> None:
        self.count += 1
        self.names.append(name)
        if self.count == self.ends_at:
            shutil.copytree(self.folder, f"{self.folder}.copy")
            raise Killed(name)


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, int | None], Points]:
    """Put points around each statement of SQL and each fsync."""
    current: list[Points] = []

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            if sql.startswith("COMMIT"):
                current[-1]("before COMMIT")
            done = super().execute(sql, *arguments)
            if sql.startswith("COMMIT"):
                current[-1]("after COMMIT")
            return done

        def executemany(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            done = super().executemany(sql, *arguments)
            current[-1](sql.split(maxsplit=3)[2])
            return done

    class System:
        """The module os with points around fsync."""

        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        def fsync(self, descriptor: int) -> None:
            current[-1]("before fsync")
            os.fsync(descriptor)
            current[-1]("after fsync")

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Connection))
    monkeypatch.setattr(message_files, "os", System())

    def started(folder: Path, ends_at: int | None) -> Points:
        current.append(Points(folder, ends_at))
        return current[-1]

    return started
