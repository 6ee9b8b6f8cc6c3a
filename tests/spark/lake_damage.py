"""Damage to lakes: log entries, data files."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow.parquet as pq

from tests.spark.lake_runs import active_files


def entries(root: Path, table: str) -> list[Path]:
    """The entries of the log of a table, in their order."""
    return sorted((root / table / "_delta_log").glob("*.json"))


def spoil(entry: Path, how: str) -> None:
    """Change an entry of a log as a power failure, a full disk or an editor does."""
    data = entry.read_bytes()
    if how == "gone":
        entry.unlink()
    else:
        content = {"empty": b"", "cut": data[: len(data) * 2 // 3], "garbled": random.Random(1).randbytes(len(data))}
        entry.write_bytes(content[how])


def active(root: Path, table: str) -> list[Path]:
    """The files of a table."""
    return [Path(path) for path in sorted(active_files(root, table))]


def flip(path: Path, at: float = 0.0) -> None:
    """Change a bit in a page of a Parquet file, the last one of a column."""
    group = pq.ParquetFile(path).metadata.row_group(0)
    column = group.column(int(group.num_columns * at))
    start = column.dictionary_page_offset or column.data_page_offset
    data = bytearray(path.read_bytes())
    data[start + column.total_compressed_size - 1] ^= 4
    path.write_bytes(data)


#: Deletion vectors of rows 0 and 1: in the log, base 85 of a magic number and a RoaringTreemap; and in a file, which is
#: not there.
IN_LOG = {"storageType": "i", "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000315c8Xg00031"}
IN_FILE = {"storageType": "u", "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA", "offset": 1}
_FEATURES = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}


def delete_by_vector(root: Path, table: str, vector: dict[str, object] | None) -> None:
    """Delete two rows of a file, or only prepare the table for it, as Delta's own writer does."""
    log = entries(root, table)
    lines = [json.loads(line) for entry in log for line in entry.read_text().splitlines()]
    added = next(line["add"] for line in lines if "add" in line)
    removed = {name: added[name] for name in ("path", "partitionValues", "size", "dataChange")}
    lines = [{"protocol": {**_FEATURES, "writerFeatures": ["deletionVectors"]}}]
    if vector is not None:
        vector = {**vector, "sizeInBytes": 36, "cardinality": 2}
        lines += [{"remove": {**removed, "deletionTimestamp": 0}}, {"add": {**added, "deletionVector": vector}}]
    (log[0].parent / f"{len(log):020}.json").write_text("\n".join(map(json.dumps, lines)))
