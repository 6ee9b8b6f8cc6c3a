"""Files on other machines: whatever pyarrow has a file system for, and through fsspec what that has one for."""

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

__all__ = ["Entry", "RemoteFile", "RemoteStore", "StorageOptions"]

StorageOptions = Mapping[str, Any]

BLOCK_SIZE = 8 << 20  # bytes asked for at once: a request takes as long as many of them on their way

# What pyarrow has itself; Hadoop's s3a is an S3 like any other
_BUCKETS = {"s3": "S3FileSystem", "s3a": "S3FileSystem", "gs": "GcsFileSystem", "gcs": "GcsFileSystem"}
_NATIVE = {
    **_BUCKETS,
    "abfs": "AzureFileSystem",
    "abfss": "AzureFileSystem",
    "hdfs": "HadoopFileSystem",
    "viewfs": "HadoopFileSystem",
}


class Entry(NamedTuple):
    """A file or a folder: its URI, its size in bytes, and when it was changed last, if that is known."""

    name: str
    is_folder: bool
    size: int
    modified_ns: int | None


class RemoteStore:
    """The file system of a URI. What is behind ``scheme://authority`` in a URI is meant as it stands, without escapes.

    ``options`` are keyword arguments of pyarrow's or fsspec's file system. Without them it finds its credentials and
    its server as it does everywhere, in the environment, in its own configuration, or from the machine it runs on.

    Raises
    ------
    ValueError
        No file system is known for the URI, or its library is not installed, or it does not take these options.
    """

    def __init__(self, uri: str, options: StorageOptions | None = None) -> None:
        scheme, _, rest = uri.partition("://")
        self._base = f"{scheme}://{rest.partition('/')[0]}"
        self._files, self._root = _file_system(self._base, json.dumps(dict(options or {}), sort_keys=True))

    def lookup(self, uri: str) -> Entry | None:
        """What the URI names; None when there is nothing."""
        info = self._files.get_file_info(self._path(uri))
        return None if info.type == fs.FileType.NotFound else self._entry(info)

    def entries(self, uri: str, *, recursive: bool = False) -> list[Entry]:
        """What is in a folder, or in those below it as well, by name; nothing where there is no such folder."""
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
        except Exception as error:  # each library has types of its own
            number = errno.ENOENT if isinstance(error, FileNotFoundError) else errno.EIO
            raise OSError(number, f"cannot be opened: {error}", uri) from error

    def _path(self, uri: str) -> str:
        return self._root + uri.removeprefix(self._base)

    def _entry(self, info: fs.FileInfo) -> Entry:
        folder = info.type == fs.FileType.Directory
        return Entry(self._base + info.path.removeprefix(self._root), folder, info.size or 0, info.mtime_ns)


@lru_cache(maxsize=64)
def _file_system(base: str, options: str) -> tuple[fs.FileSystem, str]:
    """The file system of ``scheme://authority``, and what its paths have in place of that."""
    scheme, _, authority = base.partition("://")
    given = json.loads(options)
    if scheme in _BUCKETS and "@" in authority:
        raise ValueError(f"{scheme}://: a URI is shown wherever its file is; credentials belong into storageOptions")
    try:
        if scheme not in _NATIVE:
            return _by_fsspec(base, given)
        if given:
            files = getattr(fs, _NATIVE[scheme])(**given)
        else:
            # It finds the region of the bucket, too
            files = fs.FileSystem.from_uri(f"{scheme.replace('s3a', 's3')}://{authority}/")[0]
    except ModuleNotFoundError as error:
        needed = "; pip install 'msmqwire[remote]'" if error.name in ("fsspec", "aiohttp") else ""
        raise ValueError(f"{base}: {error}{needed}") from error
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


class RemoteFile(io.RawIOBase):
    """A file that is read in large blocks, each fetched while the one before is used.

    Whatever goes wrong on the way is an ``OSError`` with a number, so that nobody takes it for damage of the data.
    """

    def __init__(self, name: str, file: pa.NativeFile) -> None:
        self.name = name
        self._thread: ThreadPoolExecutor | None = None
        self._file = file
        self._size: int = file.size()
        self._block = memoryview(b"")
        self._position = 0  # in the file, of what is given next
        self._fetched = 0  # in the file, of what is fetched next
        self._next: Future[bytes] | None = None

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where reading goes on."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go on elsewhere; what was fetched for this place is forgotten."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"{start + offset} lies before the file")
        if start + offset != self._position:
            self._position = self._fetched = start + offset
            self._block, self._next = memoryview(b""), None
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill a writable buffer with what there is; the number of bytes, 0 at the end."""
        view = memoryview(buffer).cast("B")
        if not self._block:
            self._block = self._next_block()
        count = min(len(view), len(self._block))
        view[:count] = self._block[:count]
        self._block = self._block[count:]
        self._position += count
        return count

    def close(self) -> None:
        """Close the file, when what is on its way has come."""
        if not self.closed:
            self._rest()
            self._file.close()
        super().close()

    def _rest(self) -> None:
        """Do without the thread until more is to be fetched."""
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None

    def _next_block(self) -> memoryview:
        waiting = self._next or self._fetch()
        if waiting is None:
            self._rest()
            return memoryview(b"")
        try:
            block = waiting.result()
        except Exception as error:  # each library has types of its own
            raise OSError(errno.EIO, f"cannot be read at byte {self._position}: {error}", self.name) from error
        self._next = self._fetch()
        return memoryview(block)

    def _fetch(self) -> Future[bytes] | None:
        """Have the next block fetched, if there is one."""
        offset = self._fetched
        count = min(BLOCK_SIZE, self._size - offset)
        if count <= 0:
            return None
        self._fetched += count
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="msmqwire-fetch")
        return self._thread.submit(lambda: self._file.read_at(count, offset))  # type: ignore[call-arg]
