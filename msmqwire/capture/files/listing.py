"""The files that the name of a source stands for, on this machine or on others, alike for all readers of captures."""

from __future__ import annotations

import errno
import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote

from msmqwire.capture.files.compression import LONGEST_MAGIC, form_of
from msmqwire.errors import require

if TYPE_CHECKING:
    from msmqwire.capture.files.remote import Entry, RemoteStore, StorageOptions

STANDARD_INPUT = "-"
HIDDEN = (".", "_")


@dataclass(frozen=True, order=True)
class SourceFile:
    """A listed file.

    Attributes
    ----------
    name : str
        Its path, or its URI if it is on another machine.
    size : int
        In bytes.
    modified_ns : int or None
        The time of its last change in nanoseconds since 1970; None if unknown.
    """

    name: str
    size: int
    modified_ns: int | None = field(default=None, compare=False)


def files_at(
    source: str, *, recursive: bool = False, storage_options: StorageOptions | None = None
) -> list[SourceFile]:
    """The files that a name stands for, sorted by name.

    A folder stands for its files, with ``recursive`` also for the files of its subfolders. In globs, ``**`` matches any
    number of folders. Names that begin with ``.`` or ``_`` are hidden, as in Spark: neither folders nor globs find such
    files, or files in such folders. A link to a folder is followed if it is named, not inside a folder. A name with
    ``://`` is a URI; that of standard input, ``-``, stands for no file.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    OSError
        A file system cannot be read.
    ValueError
        There is no file system for a URI; or it is standard input, which the caller does not read.
    """
    if source == STANDARD_INPUT:
        raise ValueError("-: standard input cannot be read by several processes: write it to a file, and name that")
    if source.startswith("file:"):
        files = _local_files(local_path(source), recursive)
    elif "://" in source:
        files = _remote_files(_remote_store(source, storage_options), source, recursive)
    else:
        files = _local_files(source, recursive)
    if not files:
        of = "is in the folder" if os.path.isdir(local_path(source)) else "matches"
        raise FileNotFoundError(f"no capture {of} {source!r}")
    return sorted(files)


def _remote_store(uri: str, storage_options: StorageOptions | None) -> RemoteStore:
    require("pyarrow", f"reading {uri.partition('://')[0]}://")
    from msmqwire.capture.files.remote import RemoteStore

    return RemoteStore(uri, storage_options)


def find_files(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    recursive: bool = False,
    storage_options: StorageOptions | None = None,
    empty: Callable[[str], object] | None = None,
) -> tuple[SourceFile, ...]:
    """The files that several names stand for, as of ``files_at``, sorted by name, each once.

    Parameters
    ----------
    sources : path, folder, glob, URI, or a list of these
    recursive : bool
    storage_options : mapping, optional
        Keyword arguments of the file system of URIs, as for ``RemoteStore``.
    empty : callable, optional
        Called with a line for each folder without a capture, if other sources have captures: it is no error then.

    Raises
    ------
    FileNotFoundError, OSError, ValueError
        As of ``files_at``; or no source was named.
    """
    several = (sources,) if isinstance(sources, (str, os.PathLike)) else sources
    found: dict[str, SourceFile] = {}
    folders: list[FileNotFoundError] = []
    for source in several:
        one = os.fspath(source)
        try:
            files = files_at(one, recursive=recursive, storage_options=storage_options)
        except FileNotFoundError as error:
            if empty is None or not os.path.isdir(local_path(one)):
                raise
            folders.append(error)
        else:
            found |= {file.name: file for file in files}
    if not found:
        raise folders[0] if folders else FileNotFoundError("no capture was named")
    for folder in folders:
        assert empty is not None
        empty(str(folder))
    return tuple(sorted(found.values()))


def check_paths(sources: Iterable[str]) -> None:
    """Refuse paths of this machine that do not exist; whether a glob matches is only known when it is read.

    Raises
    ------
    FileNotFoundError
        A path does not exist.
    """
    for source in sources:
        path = local_path(source)
        if "://" not in path and not _split_glob(path)[1] and not os.path.lexists(path):
            raise FileNotFoundError(f"{source}: there is no such file or folder")


def open_source(name: str, storage_options: StorageOptions | None = None) -> IO[bytes]:
    """Open a file of ``find_files``, unbuffered; the caller closes it.

    Raises
    ------
    OSError
        It cannot be opened.
    """
    if "://" in name:
        return _remote_store(name, storage_options).open(name)  # type: ignore[return-value] # a RawIOBase is one
    return open(name, "rb", buffering=0)


def is_compressed(name: str, storage_options: StorageOptions | None = None) -> bool:
    """Return True if a file of ``find_files`` is compressed, by its first bytes.

    Raises
    ------
    OSError
        It cannot be opened or read.
    """
    with open_source(name, storage_options) as file:
        return form_of(file.read(LONGEST_MAGIC)) is not None


def local_path(source: str) -> str:
    """The path of a ``file:`` URI, which may be a glob: ``?`` and ``#`` are part of it; other names as they are."""
    path = source.removeprefix("file:")
    if path == source:
        return source
    return unquote("/" + path[2:].partition("/")[2] if path.startswith("//") else path)


def _local_files(source: str, recursive: bool) -> list[SourceFile]:
    if os.path.lexists(source):
        matches = [source]
    elif not glob.has_magic(source):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
    else:
        base, pattern = _split_glob(source)
        found = glob.glob(source, recursive=True)
        matches = [path for path in found if not _is_hidden(path.removeprefix(base), pattern)]
    return [
        file
        for match in matches
        for file in (_in_folder(match, recursive) if os.path.isdir(match) else _local_file(match))
    ]


def _in_folder(folder: str, recursive: bool) -> Iterator[SourceFile]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if recursive and not name.startswith(HIDDEN)]
        for path in (os.path.join(parent, name) for name in names if not name.startswith(HIDDEN)):
            try:
                status = os.stat(path)
            except OSError:  # a broken link, or a file that was just deleted
                continue
            if stat.S_ISREG(status.st_mode):
                yield SourceFile(path, status.st_size, status.st_mtime_ns)


def _local_file(path: str) -> Iterator[SourceFile]:
    """A file that was named or found by a glob; nothing if it was just deleted."""
    try:
        status = os.stat(path)
    except OSError:
        if os.path.lexists(path):  # reading it will report the reason
            yield SourceFile(path, 0)
    else:
        yield SourceFile(path, status.st_size, status.st_mtime_ns)


def _remote_files(store: RemoteStore, source: str, recursive: bool) -> list[SourceFile]:
    found = store.lookup(source)
    if found is not None:
        matches = [found]
    else:
        base, pattern = _split_glob(source)
        globbed = _remote_glob(store, base, pattern) if pattern else ()
        matches = [entry for entry in globbed if not _is_hidden(entry.name.removeprefix(base), pattern)]
    files: list[SourceFile] = []
    for match in matches:
        if not match.is_folder:
            files.append(_remote_file(match))
            continue
        for entry in store.entries(match.name, recursive=recursive):
            if not entry.is_folder and not _is_hidden(entry.name.removeprefix(match.name)):
                files.append(_remote_file(entry))
    return files


def _remote_file(entry: Entry) -> SourceFile:
    return SourceFile(entry.name, entry.size, entry.modified_ns)


def _remote_glob(store: RemoteStore, folder: str, pattern: list[str]) -> Iterator[Entry]:
    """The entries of a folder that match the parts of a pattern."""
    if "**" in pattern:
        for entry in store.entries(folder, recursive=True):
            if _matches(entry.name.removeprefix(f"{folder}/").split("/"), pattern):
                yield entry
        return
    first, *rest = pattern
    for entry in store.entries(folder):
        if not fnmatchcase(entry.name.removeprefix(f"{folder}/"), first):
            continue
        if not rest:
            yield entry
        elif entry.is_folder:
            yield from _remote_glob(store, entry.name, rest)


def _matches(parts: list[str], pattern: list[str]) -> bool:
    """Return True if the parts of a path match a pattern, in which ``**`` matches any number of parts."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[start:], pattern[1:]) for start in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _split_glob(source: str) -> tuple[str, list[str]]:
    """The folder before the first part with a wildcard, and the parts from there."""
    parts = source.split("/")
    # ``scheme://authority`` is never a pattern
    start = 3 if "://" in source else 0
    wild = next((at for at in range(start, len(parts)) if glob.has_magic(parts[at])), len(parts))
    return "/".join(parts[:wild]), parts[wild:]


def _is_hidden(path: str, pattern: Iterable[str] = ()) -> bool:
    """Return True if a part of a path is hidden and no part of the pattern begins with the same character."""
    shown = {part[:1] for part in pattern}
    return any(part.startswith(HIDDEN) and part[0] not in shown for part in path.split("/"))
