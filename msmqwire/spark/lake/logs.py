"""Logs of a lake's tables that cannot be read: malformed entries that the table does not need are replaced."""

from __future__ import annotations

import json
import re
import tempfile
import time
from pathlib import Path

from msmqwire.spark.lake.storage import LakeError, Storage, parsed
from msmqwire.spark.lake.tables import CHECKPOINT, LAST_CHECKPOINT, ColumnsError, DeletionVectorsError, LakeTable

_ENTRY = re.compile(r"([0-9]{20})\.json")
# More entries than these are not lost together but were never written: a run each minute makes them in two months
_MOST_LOST = 100_000


def mend_log(storage: Storage, name: str, *, dry_run: bool) -> list[str]:
    """Make the log of a table readable; what was done, or would be.

    An entry that cannot be read becomes one that changes nothing: files that it added are not in the table, and files
    that it removed are. Checkpoints that cannot be read are deleted, and an entry that follows too many that are not
    there. Where this is not enough, the table begins anew.
    """
    done: list[str] = []
    if _is_readable(storage, name):
        return done
    done += _mend_entries(storage, name, dry_run=dry_run)
    if _is_readable(storage, name) or (dry_run and done):
        return done
    # The hint of the last checkpoint comes first: a checkpoint may be all that is left of the entries before it
    for file in sorted(filter(CHECKPOINT.fullmatch, _files(storage, name)), reverse=True):
        done.append(f"{_path(name, file)}: cannot be read: deleted")
        if dry_run:
            return done
        storage.delete([_path(name, file)])
        done += _mend_entries(storage, name, dry_run=False)
        if _is_readable(storage, name):
            return done
    done.append(f"{name}: its log cannot be mended: the table begins anew, without rows")
    if dry_run:
        return done
    storage.delete(_path(name, file) for file in _files(storage, name))
    LakeTable(storage, name).create()
    return done


def _mend_entries(storage: Storage, name: str, *, dry_run: bool) -> list[str]:
    files = _files(storage, name)
    versions = [int(match[1]) for match in map(_ENTRY.fullmatch, files) if match]
    checkpoints = [int(file[:20]) for file in files if CHECKPOINT.fullmatch(file) and file != LAST_CHECKPOINT]
    last = max(checkpoints, default=-1)
    done: list[str] = []
    if last < 0 and min(versions, default=0) > _MOST_LOST:
        return done
    for found in sorted(version for version in versions if version > last):
        if found - last > _MOST_LOST:
            done.append(f"{_entry(name, found)}: the entries before it are not there: deleted")
            if not dry_run:
                storage.delete([_entry(name, found)])
            continue
        for version in range(last + 1, found + 1):
            path = _entry(name, version)
            if not _is_entry(storage, path):
                done.append(f"{path}: cannot be read: replaced by an entry that changes nothing")
                if not dry_run:
                    storage.replace(path, _first_entry(name) if version == 0 else _empty_entry())
        last = found
    return done


def _is_readable(storage: Storage, name: str) -> bool:
    try:
        table = LakeTable(storage, name)
        if table.exists:
            table.active()
    except (ColumnsError, DeletionVectorsError):
        # A log that can be read, of a table that must not begin anew
        raise
    except LakeError:
        return False
    return True


def _is_entry(storage: Storage, path: str) -> bool:
    try:
        lines = storage.read(path).splitlines()
        return bool(lines) and all(isinstance(parsed(line), dict) for line in lines)
    except (FileNotFoundError, ValueError):
        return False


def _empty_entry() -> bytes:
    now = time.time_ns() // 1_000_000
    return json.dumps({"commitInfo": {"timestamp": now, "operation": "REPAIR", "operationParameters": {}}}).encode()


def _first_entry(name: str) -> bytes:
    """The entry that creates a table."""
    with tempfile.TemporaryDirectory() as folder:
        LakeTable(Storage.of(folder), name).create()
        return Path(folder, _path(name, f"{0:020}.json")).read_bytes()


def _files(storage: Storage, name: str) -> list[str]:
    folder = _path(name, "")
    return sorted(file.name.removeprefix(folder) for file in storage.list(folder.rstrip("/")))


def _entry(name: str, version: int) -> str:
    return _path(name, f"{version:020}.json")


def _path(name: str, file: str) -> str:
    return f"{name}/_delta_log/{file}"
