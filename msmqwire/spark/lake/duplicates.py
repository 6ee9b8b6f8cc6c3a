"""Rows that are in a table of a lake more than once, as two merges at once left them in version 0.2.0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa

from msmqwire.spark.lake.rewriting import parquet_file
from msmqwire.spark.lake.schemas import file_schema
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.lake.verification import Contents

# What tells the rows of a table from each other, as far as the table has them
_PLACE = ("capture", "frame", "stream_offset", "index", "table", "code", "field", "offset")


def rows_to_keep(
    storage: Storage, table: str, contents: Contents, said: Counter[int], captures: Collection[int]
) -> tuple[dict[str, np.ndarray[Any, Any]], set[int]]:
    """Choose one of each row that is there more than once.

    Parameters
    ----------
    storage : Storage
    table : str
    contents : Contents
        What is in the files of the table.
    said : Counter of int
        How many rows each capture has.
    captures : collection of int
        Those to look at; each has rows.

    Returns
    -------
    dict of str to array of bool
        By path of a file, whether each of its rows is kept.
    set of int
        Captures whose rows cannot be chosen.
    """
    paths = sorted(set().union(*(contents.files[capture] for capture in captures)))
    columns = [name for name in _PLACE if name in file_schema(table).names]
    read = []
    for path in paths:
        with parquet_file(storage, f"{table}/{path}") as source:
            read.append(source.read(columns, use_threads=False))
    rows = pa.concat_tables(read).append_column("at", pa.array(np.arange(sum(map(len, read)))))
    groups = rows.group_by(columns).aggregate([("at", "list")])
    # Numbers of equal rows, one after the other for each different row
    numbers: Any = groups["at_list"].combine_chunks()
    counts = np.diff(numbers.offsets.to_numpy())
    owners = groups["capture"].to_numpy()
    order_of = np.array(sorted(captures))
    here = np.isin(owners, order_of)
    owner = np.searchsorted(order_of, owners[here])
    wanted = np.array([said[capture] for capture in order_of.tolist()])
    different = np.bincount(owner, minlength=len(order_of))
    times, rest = np.divmod(np.bincount(owner, counts[here], len(order_of)).astype(int), wanted)
    uneven = np.bincount(owner, counts[here] % np.maximum(times, 1)[owner], len(order_of)) + rest
    once = different == wanted
    # Of one payload there may be two equal rows of faults
    divided = ~once & (uneven == 0) if table == "faults" else np.zeros(len(once), bool)
    kept = counts.copy()
    kept[here] = np.select(
        [once[owner], divided[owner]], [1, counts[here] // np.maximum(times, 1)[owner]], counts[here]
    )
    failed = set(order_of[~once & ~divided].tolist())
    order = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    is_kept = np.ones(len(rows), bool)
    is_kept[numbers.flatten().to_numpy()[order >= np.repeat(kept, counts)]] = False
    ends = np.cumsum([len(one) for one in read])
    return dict(zip(paths, np.split(is_kept, ends[:-1]), strict=True)), failed
