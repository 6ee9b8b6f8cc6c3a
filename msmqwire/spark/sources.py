"""Which files a path means: one file, a folder, a glob, or several of these."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

__all__ = ["expand"]


def expand(sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """The files that ``sources`` name, sorted, each once.

    A folder stands for the files in it, without those in folders below it and those whose names begin with ``.`` or
    ``_``, which Spark takes for hidden as well.

    Raises
    ------
    FileNotFoundError
        One of the sources names no file.
    """
    several = (sources,) if isinstance(sources, (str, os.PathLike)) else sources
    found = {file for source in several for file in _files(_local(os.fspath(source)))}
    if not found:
        raise FileNotFoundError("no capture was named")
    return tuple(sorted(found))


def _local(source: str) -> str:
    scheme, _, path, _, _ = urlsplit(source)
    if scheme == "file":
        return unquote(path)
    if "://" in source:
        raise ValueError(f"{source!r}: only local files can be read, not {scheme}://")
    return source


def _files(source: str) -> list[str]:
    if os.path.isdir(source):
        visible = [name for name in os.listdir(source) if not name.startswith((".", "_"))]
        files = [path for name in visible if os.path.isfile(path := os.path.join(source, name))]
    elif os.path.lexists(source):
        files = [source]
    else:
        files = [path for path in glob.glob(source, recursive=True) if not os.path.isdir(path)]
    if not files:
        raise FileNotFoundError(f"no capture matches {source!r}")
    return files
