"""Files on other machines, through the file systems of pyarrow and fsspec."""

from __future__ import annotations

import errno
import io
import json
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs

from msmqwire.errors import missing

StorageOptions = Mapping[str, Any]

BLOCK_SIZE = 8 << 20  # bytes of a request, enough to outweigh its latency

# File systems of pyarrow; s3a is Hadoop's name of S3
_BUCKETS = {"s3": "S3FileSystem", "s3a": "S3FileSystem", "gs": "GcsFileSystem", "gcs": "GcsFileSystem"}
_NATIVE = {
    **_BUCKETS,
    "abfs": "AzureFileSystem",
    "abfss": "AzureFileSystem",
    "hdfs": "HadoopFileSystem",
    "viewfs": "HadoopFileSystem",
}


# Answers of an HTTP server that do not say whether there is a file
_REFUSALS = frozenset({401, 403, 407, 429})
_SERVER_ERRORS = 500


class Entry(NamedTuple):
    """A file or a folder: its URI, its size in bytes, and the time of its last change, if known."""

    name: str
    is_folder: bool
    size: int
    modified_ns: int | None


def options_text(options: StorageOptions) -> str:
    """Storage options as text of JSON, by which equal ones are found.

    Raises
    ------
    ValueError
        JSON cannot hold an option.
    """
    texts = {}
    for name in sorted(options, key=str):
        try:
            if not isinstance(name, str):
                raise TypeError
            texts[name] = json.dumps(options[name], sort_keys=True, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            # Its value may be a secret
            kind = type(options[name]).__name__
            raise ValueError(f"storage option {name!r} of type {kind} has no form in JSON") from None
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in texts.items()) + "}"


class RemoteStore:
    """The file system of a URI. The path of a URI is taken literally, without escapes.

    ``options`` are keyword arguments of the file system of pyarrow or fsspec. By default it finds its server and its
    credentials in the environment, in its configuration files, or through the machine it runs on.

    Raises
    ------
    ValueError
        There is no file system for the URI, its library is not installed, or it does not accept the options.
    """

    def __init__(self, uri: str, options: StorageOptions | None = None) -> None:
        scheme, _, rest = uri.partition("://")
        self._base = f"{scheme}://{rest.partition('/')[0]}"
        self._files, self._root = _file_system(self._base, options_text(options or {}))

    def lookup(self, uri: str) -> Entry | None:
        """What a URI names, a file or a folder; None if the server has neither.

        Raises
        ------
        OSError
            The server cannot be reached, or does not say.
        """
        path = self._path(uri)
        info = self._files.get_file_info(path)
        if info.type != fs.FileType.NotFound:
            return self._entry(info)
        if uri.startswith(("http://", "https://")):
            self._check_answer(uri, path)
        return None

    def _check_answer(self, uri: str, path: str) -> None:
        """Raise the error that fsspec takes for a missing file: no connection, no permission, a failing server."""
        files: Any = self._files
        try:
            files.handler.fs.info(path)
        except FileNotFoundError as error:
            cause: Any = error.__cause__
            status = getattr(cause, "status", None)
            if cause is not None and (status is None or status in _REFUSALS or status >= _SERVER_ERRORS):
                reason = cause if status is None else f"{status} {cause.message}"
                raise OSError(errno.EIO, f"cannot be looked up: {reason}", uri) from None

    def entries(self, uri: str, *, recursive: bool = False) -> list[Entry]:
        """List a folder, and its subfolders if ``recursive``, by name; empty if the folder does not exist."""
        path = self._path(uri)
        infos = self._files.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=recursive))
        return sorted(self._entry(info) for info in infos if info.path.rstrip("/") != path.rstrip("/"))

    def open(self, uri: str) -> RemoteFile:
        """Open a file for reading.

        Raises
        ------
        OSError
            It cannot be opened.
        """
        try:
            return RemoteFile(uri, self._files.open_input_file(self._path(uri)))
        except Exception as error:  # each library has its own exceptions
            number = errno.ENOENT if isinstance(error, FileNotFoundError) else errno.EIO
            raise OSError(number, f"cannot be opened: {error}", uri) from error

    def _path(self, uri: str) -> str:
        return self._root + uri.removeprefix(self._base)

    def _entry(self, info: fs.FileInfo) -> Entry:
        folder = info.type == fs.FileType.Directory
        return Entry(self._base + info.path.removeprefix(self._root), folder, info.size or 0, info.mtime_ns)


@lru_cache(maxsize=64)
def _file_system(base: str, options: str) -> tuple[fs.FileSystem, str]:
    """The file system of ``scheme://authority``, and the prefix that replaces it in paths."""
    scheme, _, authority = base.partition("://")
    given = json.loads(options)
    if scheme in _BUCKETS and "@" in authority:
        raise ValueError(f"{scheme}://: URIs are shown in rows and messages; put credentials into storageOptions")
    try:
        if scheme not in _NATIVE:
            return _by_fsspec(base, given)
        if given:
            files = getattr(fs, _NATIVE[scheme])(**given)
        else:
            # This finds the region of the bucket, too
            files = fs.FileSystem.from_uri(f"{scheme.replace('s3a', 's3')}://{authority}/")[0]
    except ModuleNotFoundError as error:
        ours = error.name in ("fsspec", "aiohttp")
        raise ValueError(f"{base}: {missing(str(error.name), f'reading {scheme}://') if ours else error}") from error
    except (ImportError, TypeError, ValueError) as error:
        raise ValueError(f"{base}: {error}") from error
    if scheme in _BUCKETS:
        return files, authority
    return files, authority.partition("@")[0] if scheme.startswith("abfs") else ""


def _by_fsspec(base: str, options: StorageOptions) -> tuple[fs.FileSystem, str]:
    import fsspec

    files, root = fsspec.url_to_fs(base, **options)
    handler = fs.FSSpecHandler(files)  # type: ignore[abstract] # its stub lists what it has as missing
    return fs.PyFileSystem(handler), root.rstrip("/")


class PositionedFile(io.RawIOBase):
    """A readable file that keeps the offset of its next byte in ``_position``."""

    _position = 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The offset of the next byte."""
        return self._position


class RemoteFile(PositionedFile):
    """A file that is read in large blocks; the next block is fetched while the current one is used.

    Every failure is an ``OSError`` with a number, so that it is not taken for a malformed capture.
    """

    def __init__(self, name: str, file: pa.NativeFile) -> None:
        self.name = name
        self._thread: ThreadPoolExecutor | None = None
        self._file = file
        self._size: int = file.size()
        self._block = memoryview(b"")
        self._fetched = 0  # offset of the next byte to fetch
        self._next: Future[bytes] | None = None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the offset of the next byte; drops fetched blocks."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"offset {start + offset} is before the beginning of the file")
        if start + offset != self._position:
            self._position = self._fetched = start + offset
            self._block, self._next = memoryview(b""), None
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; the number of bytes, 0 at the end."""
        view = memoryview(buffer).cast("B")
        if not self._block:
            self._block = self._next_block()
        count = min(len(view), len(self._block))
        view[:count] = self._block[:count]
        self._block = self._block[count:]
        self._position += count
        return count

    def close(self) -> None:
        """Close the file after a running request has ended."""
        if not self.closed:
            self._stop_fetching()
            self._file.close()
        super().close()

    def _stop_fetching(self) -> None:
        """End the thread; the next fetch starts another one."""
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None

    def _next_block(self) -> memoryview:
        waiting = self._next or self._fetch()
        if waiting is None:
            self._stop_fetching()
            return memoryview(b"")
        try:
            block = waiting.result()
        except Exception as error:  # each library has its own exceptions
            raise OSError(errno.EIO, f"cannot be read at byte {self._position}: {error}", self.name) from error
        self._next = self._fetch()
        return memoryview(block)

    def _fetch(self) -> Future[bytes] | None:
        """Start fetching the next block, if there is one."""
        offset = self._fetched
        count = min(BLOCK_SIZE, self._size - offset)
        if count <= 0:
            return None
        self._fetched += count
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="msmqwire-fetch")
        return self._thread.submit(lambda: self._file.read_at(count, offset))  # type: ignore[call-arg]
