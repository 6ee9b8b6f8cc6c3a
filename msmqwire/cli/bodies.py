"""Message bodies for ``msmqwire decode --kind notification``: a file for each, or a Parquet file of many."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from msmqwire import mqcn
from msmqwire.capture.files.sources import shown_name
from msmqwire.cli.console import CommandError
from msmqwire.cli.formats.cells import strings
from msmqwire.columns import Payloads
from msmqwire.wire.fault import FAULT_NAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from msmqwire.columns.schema import GuidForm

__all__ = ["BodyReader"]

COLUMN = "payload"
_MAGIC = b"PAR1"
#: No message is larger
_LARGEST = 4 << 20
_ROWS = 4096
_BYTES = 16 << 20


class BodyReader:
    """The rows of the table ``notifications`` after the columns ``file`` and, for Parquet, ``row``: [MS-MQCN] 2.2.4.

    Attributes
    ----------
    schema : pyarrow.Schema
        Known before anything is decoded.
    messages, bytes_read, rows : int
        What was read so far.
    faults : Counter
        The messages with a fault, by its code.

    Raises
    ------
    CommandError
        A column does not exist; or, when iterating, a Parquet file cannot be read or has no binary column ``payload``,
        or a body is larger than a message can be.
    """

    def __init__(
        self, files: Sequence[str], *, columns: Sequence[str] | None, guid: GuidForm, strict: bool = False
    ) -> None:
        self._files = tuple(files)
        self._tables = frozenset(name for name in self._files if _is_parquet(name))
        places = {"file": pa.string(), **({"row": pa.uint64()} if self._tables else {})}
        known = (*places, *mqcn.NOTIFICATIONS.names)
        for name in columns or ():
            if name not in known:
                raise CommandError(f"--columns {name}: no such column; notifications has {', '.join(known)}")
        self._places = tuple(name for name in places if columns is None or name in columns)
        self._columns = tuple(name for name in mqcn.NOTIFICATIONS.names if columns is None or name in columns)
        self._strict = strict
        self._guid: GuidForm = guid
        self.schema = pa.schema(
            [
                *((name, places[name]) for name in self._places),
                *mqcn.NOTIFICATIONS.arrow_schema(self._columns, guid=guid, dictionaries=False),
            ]
        )
        self.faults: Counter[str] = Counter()
        self.messages = self.bytes_read = self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows of all files; they can be read once."""
        for is_table, names in groupby(self._files, self._tables.__contains__):
            if is_table:
                for name in names:
                    yield from self._read_table(name)
            else:
                yield from self._read_files(names)

    def _read_files(self, files: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Decode the bodies of many small files together."""
        names: list[str] = []
        bodies: list[bytes] = []
        held = 0
        for name in files:
            names.append(name)
            bodies.append(_body(name))
            held += len(bodies[-1])
            self.bytes_read += len(bodies[-1])
            if len(bodies) >= _ROWS or held >= _BYTES:
                yield self._decoded(names, bodies)
                names, bodies, held = [], [], 0
        if bodies:
            yield self._decoded(names, bodies)

    def _read_table(self, name: str) -> Iterator[pa.RecordBatch]:
        row = 0
        for payloads in _payloads(name):
            yield self._decoded([name], payloads, row)
            row += len(payloads)
        self.bytes_read += os.path.getsize(name)

    def _decoded(self, names: Sequence[str], payloads: Any, first: int | None = None) -> pa.RecordBatch:
        """The rows of bodies from several files, or from one Parquet file whose row ``first`` is the first body."""
        bodies = Payloads.of(payloads)
        batch = mqcn.decode_batch(bodies, columns=self._columns, strict=self._strict)
        self.messages += len(bodies)
        self.rows += len(batch)
        for code in batch.faults["code"].tolist():
            self.faults[FAULT_NAMES[code]] += 1
        messages = np.repeat(np.arange(len(bodies)), np.diff(batch.messages))
        columns: list[Any] = []
        for place in self._places:
            if place == "row":
                columns.append(pa.nulls(len(batch), pa.uint64()) if first is None else _numbers(messages + first))
            else:
                shown = strings([shown_name(name) for name in names])
                columns.append(shown.take(_numbers(messages if first is None else np.zeros_like(messages))))
        if self._columns:
            columns += batch.to_arrow(guid=self._guid, dictionaries=False).columns
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _numbers(values: NDArray[np.int64]) -> Any:
    # pa.array would import pandas
    return pa.Array.from_buffers(pa.uint64(), len(values), [None, pa.py_buffer(values.astype("<u8").tobytes())])


def _is_parquet(name: str) -> bool:
    """Whether a file is Parquet. A pipe is not: the end of a Parquet file is read first."""
    if name == "-" or not os.path.isfile(name):
        return False
    with open(name, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _body(name: str) -> bytes:
    if name == "-":
        return _read_all(sys.stdin.buffer, "standard input")
    with open(name, "rb") as file:
        return _read_all(file, name)


def _read_all(file: IO[bytes], name: str) -> bytes:
    data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise CommandError(f"{name} is no message body: it is larger than 4 MiB, the limit of a message")
    return data


def _payloads(name: str) -> Iterator[Any]:
    """The column ``payload`` of a Parquet file, in batches of moderate size."""
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(name) as file:
            _check(file.schema_arrow, name)
            for batch in file.iter_batches(batch_size=_ROWS, columns=[COLUMN]):
                payloads = batch.column(0)
                step = max(1, len(payloads) * _BYTES // max(payloads.nbytes, _BYTES))
                for start in range(0, len(payloads), step):
                    yield payloads.slice(start, step)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise CommandError(f"{name} cannot be read as Parquet: {reason}") from error


def _check(schema: pa.Schema, name: str) -> None:
    if COLUMN not in schema.names:
        raise CommandError(f"{name} has no column {COLUMN}; it has {', '.join(schema.names)}")
    kind = schema.field(COLUMN).type
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        raise CommandError(f"{name}: column {COLUMN} is {kind}, not binary")
