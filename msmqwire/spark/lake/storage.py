"""The files of a lake: a folder of this machine, or any URI that deltalake knows."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

from pyarrow import fs

from msmqwire.capture.files.listing import local_path
from msmqwire.capture.files.remote import options_text
from msmqwire.errors import LakeError

LakeOptions = Mapping[str, str]

#: The folder of what runs under way keep for their tasks; readers of Delta tables pass over such names.
SCRATCH = "accounting/_scratch"

_REQUESTS_AT_ONCE = 16
_BUFFER = 1 << 20
_MESSAGE_CHARACTERS = 160
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Of deltalake, between an error and its cause
_CAUSE = " \N{DOWNWARDS ARROW WITH TIP RIGHTWARDS} "
# What deltalake 1.6 takes for an escape or a separator, or refuses, in paths of folders
_MISREAD = re.compile(r"%[0-9A-Fa-f]{2}|[\\^|\x00-\x1f\x7f\ud800-\udfff]")


class StoredFile(NamedTuple):
    """A file of a lake: its name relative to the lake, its size, and when it was written in seconds since 1970."""

    name: str
    size: int
    modified: float


@dataclass(frozen=True)
class Storage:
    """Where a lake is, and how its files are read and written; names are relative to it.

    Attributes
    ----------
    uri : str
        An absolute path, or a URI.
    options : mapping of str to str
        As deltalake's ``storage_options``; sent to the workers as they are.
    """

    uri: str
    options: LakeOptions = field(default_factory=dict, repr=False)  # they have secrets

    @classmethod
    def of(cls, lake: str | os.PathLike[str], options: LakeOptions | None = None) -> Storage:
        """The storage of a path or URI; workers need not run in the folder that the driver runs in.

        Raises
        ------
        LakeError
            The name is empty or that of a file, or deltalake cannot open tables in a folder of this name.
        """
        text = local_path(os.fspath(lake))
        # The absolute path of an empty name would be the current folder
        if not text or ("://" in text and not text.partition("://")[2].strip("/")):
            raise LakeError(f"{text!r} names no lake: give a folder or a URI")
        if "://" in text:
            return cls(text.rstrip("/"), dict(options or {}))
        path = os.path.abspath(text)
        # Windows has backslashes in every path
        if found := _MISREAD.search(path.replace(os.sep, "/")):
            raise LakeError(f"{path!r}: deltalake cannot open a folder whose path has {found[0]!r}; choose another")
        if os.path.lexists(path) and not os.path.isdir(path):
            raise LakeError(f"{path}: is not a folder, so it is not a lake: msmqwire pipeline makes one")
        return cls(path, dict(options or {}))

    @property
    def is_local(self) -> bool:
        """True if the lake is a folder."""
        return "://" not in self.uri

    def path(self, name: str) -> str:
        """The path or URI of a file."""
        return f"{self.uri}/{name}"

    def create(self, name: str) -> Any:
        """Open a new file for writing; a folder that is missing is made."""
        if not self.is_local:
            # Without a buffer deltalake is given pyarrow's buffers, which it does not take
            with self._reached():
                return self._files.open_output_stream(name, buffer_size=_BUFFER)
        path = Path(self.path(name))
        try:
            return path.open("wb")
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            return path.open("wb")

    def open(self, name: str) -> Any:
        """Open a file for reading.

        Raises
        ------
        FileNotFoundError
            It is not there.
        """
        if self.is_local:
            return open(self.path(name), "rb")
        with self._reached():
            return self._files.open_input_file(name)

    def read(self, name: str, start: int = 0, size: int = -1) -> bytes:
        """A file's bytes, or some of them.

        Raises
        ------
        FileNotFoundError
            It is not there.
        """
        with self.open(name) as file, self._reached():
            file.seek(start)
            return bytes(file.read(None if size < 0 and not self.is_local else size))

    def sync(self, names: Iterable[str]) -> None:
        """Make files durable, and the folders that name them; an object store does so by itself."""
        if not self.is_local:
            return
        folders: set[str] = set()
        for name in names:
            _sync(self.path(name))
            folder = os.path.dirname(self.path(name))
            while folder not in folders and len(folder) >= len(self.uri):
                folders.add(folder)
                folder = os.path.dirname(folder)
        for folder in sorted(folders, reverse=True):
            _sync(folder)

    def sizes(self, names: Iterable[str]) -> list[int | None]:
        """The sizes of files, None for each that is not there."""
        if self.is_local:
            return [_size(self.path(name)) for name in names]
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as threads, self._reached():
            infos = threads.map(lambda name: self._files.get_file_info(name), names)
            return [info.size if info.type == fs.FileType.File else None for info in infos]

    def list(self, folder: str) -> list[StoredFile]:
        """All files below a folder."""
        if self.is_local:
            files = []
            for place, _, names in os.walk(self.path(folder)):
                for name in names:
                    path = os.path.join(place, name)
                    try:
                        found = os.stat(path)
                    except FileNotFoundError:
                        continue
                    files.append(StoredFile(os.path.relpath(path, self.uri), found.st_size, found.st_mtime))
            return files
        with self._reached():
            infos = self._files.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=True))
        return [
            StoredFile(info.path, info.size or 0, info.mtime.timestamp() if info.mtime else 0.0)
            for info in infos
            if info.type == fs.FileType.File
        ]

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; one that is not there is passed over."""
        for name in names:
            try:
                if self.is_local:
                    os.unlink(self.path(name))
                else:
                    with self._reached():
                        self._files.delete_file(name)
            except FileNotFoundError:
                continue

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with all that is in it."""
        if self.is_local:
            shutil.rmtree(self.path(folder), ignore_errors=True)
        else:
            self.delete(file.name for file in self.list(folder))

    def exists(self, name: str) -> bool:
        """Return True if there is such a file."""
        return self.sizes([name]) != [None]

    @property
    def _files(self) -> fs.FileSystem:
        return _file_system(self.uri, options_text(self.options))

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Raise a LakeError for what an object store answers, but for a file that is not there."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            if self.is_local:
                raise
            raise LakeError(f"{self.uri}: {one_line(error)}") from None


def parsed(text: bytes) -> Any:
    """The value of JSON in a file; raises ValueError if it is malformed or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def one_line(error: Exception) -> str:
    """The message of an error of a library in one short line; deltalake adds colours, all causes and a backtrace."""
    text = " ".join(_COLOUR.sub("", str(error)).split("\n   0: ")[0].split())
    what, *_, cause = text.split(_CAUSE) if len(text) > _MESSAGE_CHARACTERS and _CAUSE in text else (text, "")
    return shorten(f"{what}: {cause}" if cause else what, _MESSAGE_CHARACTERS)


@lru_cache(maxsize=8)
def _file_system(uri: str, options: str) -> fs.FileSystem:
    from deltalake.exceptions import DeltaError
    from deltalake.fs import DeltaStorageHandler

    try:
        return fs.PyFileSystem(DeltaStorageHandler(uri, json.loads(options)))
    except DeltaError as error:
        raise LakeError(f"{uri}: no lake can be there: {one_line(error)}") from None


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None
