"""From captures to tables: each protocol's table with the capture columns in front, as Arrow record batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.capture.reader import open as open_capture
from msmqwire.capture.schema import CAPTURE, MESSAGE_PORTS, PING_PORTS, TOPOLOGY_PORTS, TOPOLOGY_SOCKETS
from msmqwire.capture.sources import Source
from msmqwire.capture.stats import CaptureStats
from msmqwire.columns import Batch, Payloads, Table
from msmqwire.columns.schema import GuidForm
from msmqwire.wire.fault import FAULT_NAMES

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from msmqwire.capture.blocks import Block

__all__ = ["TABLES", "TableKind", "TableReader", "arrow_schema", "read_table", "table_columns"]

MOST_BATCHES = 4
GUID_FORMS = get_args(GuidForm)


@dataclass(frozen=True)
class TableKind:
    """How payloads become a table.

    Attributes
    ----------
    table : Table
        Its columns.
    decode_batch : callable
        What decodes its payloads; those of notifications are bodies of messages.
    ports : mapping of str to frozenset of int
        The ports where they are found, for each transport.
    packets : tuple of str
        The kinds of packets in TCP streams among them.
    transports : tuple of int
        What ``decode_batch(transport=)`` calls each of ``TRANSPORTS``; empty where it has no such argument.
    in_messages : bool
        They are bodies of messages.
    """

    table: Table
    decode_batch: Callable[..., Batch]
    ports: Mapping[str, frozenset[int]]
    packets: tuple[str, ...] = ()
    transports: tuple[int, ...] = ()
    in_messages: bool = False


TABLES: dict[str, TableKind] = {
    "topology": TableKind(
        mqsd.TOPOLOGY,
        mqsd.decode_batch,
        {"udp": TOPOLOGY_PORTS, "ipx": TOPOLOGY_SOCKETS},
        transports=(1, 0, 2),
    ),
    "notifications": TableKind(
        mqcn.NOTIFICATIONS, mqcn.decode_batch, {"tcp": MESSAGE_PORTS}, ("message",), in_messages=True
    ),
    "messages": TableKind(mqqb.MESSAGES, mqqb.decode_batch, {"tcp": MESSAGE_PORTS}, ("message",)),
    "sessions": TableKind(
        mqqb.SESSIONS,
        mqqb.decode_session_batch,
        {"udp": PING_PORTS, "tcp": MESSAGE_PORTS},
        ("session",),
        transports=(1, 2, 0),
    ),
}


def _kind(name: str) -> TableKind:
    if name not in TABLES:
        raise ValueError(f"{name!r} is no table; there is {', '.join(TABLES)}")
    return TABLES[name]


def table_columns(name: str) -> tuple[str, ...]:
    """Names of the columns of a table that is read from captures."""
    return (*CAPTURE.names, *_kind(name).table.names)


def _split(name: str, columns: Iterable[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns asked for, in the table's order: those of the capture, and those of the table."""
    known = table_columns(name)
    wanted = known if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
    unknown = [column for column in wanted if column not in known]
    if unknown:
        raise ValueError(f"{', '.join(map(repr, unknown))}: no such column of {name}; it has {', '.join(known)}")
    return (
        tuple(column for column in CAPTURE.names if column in wanted),
        tuple(column for column in _kind(name).table.names if column in wanted),
    )


def arrow_schema(name: str, columns: Iterable[str] | None = None, guid: GuidForm = "text") -> pa.Schema:
    """The Arrow schema of a table that is read from captures, or of some of its columns; needs pyarrow."""
    import pyarrow as pa

    first, last = _split(name, columns)
    return pa.schema([*CAPTURE.arrow_schema(first), *_kind(name).table.arrow_schema(last, guid=guid)])


class TableReader(Iterator["pa.RecordBatch"]):
    """The rows of a table, a record batch for each block of a capture; a context manager that closes its files.

    Attributes
    ----------
    schema : pyarrow.Schema
        Known before anything is read.
    stats : CaptureStats
        What became of the frames read so far.
    faults : Counter
        How many payloads had a fault, by its code.
    rows : int
        How many rows there were so far.
    encrypted : int
        Of notifications: messages to the notify queue that cannot be read because they are encrypted.
    unread : int
        Of notifications: messages that cannot be decoded, whatever queue they were for.
    """

    def __init__(
        self,
        source: Source,
        table: str = "topology",
        *,
        columns: Iterable[str] | None = None,
        guid: GuidForm = "text",
        strict: bool = False,
        ports: Iterable[int] | None = None,
        addresses: Iterable[str] = (),
        since: datetime | int | None = None,
        until: datetime | int | None = None,
    ) -> None:
        if guid not in GUID_FORMS:
            raise ValueError(f"guid={guid!r} is not one of {', '.join(map(repr, GUID_FORMS))}")
        kind = _kind(table)
        self._first, self._last = _split(table, columns)
        self.schema = arrow_schema(table, (*self._first, *self._last), guid)
        self.faults: Counter[str] = Counter()
        self.rows = self.encrypted = self.unread = 0
        self._kind = kind
        self._strict = strict
        self._guid = guid
        self._batches: list[Batch] = []
        self._messages: Batch | None = None
        self._capture = open_capture(
            source,
            ports=kind.ports if ports is None else dict.fromkeys(kind.ports, frozenset(ports)),
            packets=kind.packets,
            columns=self._first,
            addresses=addresses,
            since=since,
            until=until,
        )

    @property
    def stats(self) -> CaptureStats:
        """What became of the frames read so far."""
        return self._capture.stats

    def __next__(self) -> pa.RecordBatch:
        import pyarrow as pa

        block = next(self._capture)
        first = block.capture.to_arrow()
        if self._kind.in_messages:
            batch, rows = self._notifications(block)
            first = first.take(rows)
        else:
            batch = self._decoded(block.payloads, **self._transport(block))
        self.rows += len(batch)
        for code in batch.faults["code"].tolist():
            self.faults[FAULT_NAMES[code]] += 1
        if not self._last:
            return first
        last = batch.to_arrow(guid=self._guid)
        return pa.RecordBatch.from_arrays([*first.columns, *last.columns], schema=self.schema)

    def __enter__(self) -> TableReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file that is being read; record batches stay good, and there are no more of them."""
        self._capture.close()

    def _transport(self, block: Block) -> dict[str, Any]:
        """What carried the payloads, in the decoder's own numbers."""
        if not self._kind.transports:
            return {}
        if block.transports is None:
            return {"transport": "udp"}
        return {"transport": np.array(self._kind.transports, np.uint8)[block.transports]}

    def _notifications(self, block: Block) -> tuple[Batch, NDArray[np.uint32]]:
        """The changes in a block of messages, and the row of the block that each of them belongs to."""
        columns = ("body", "notification")
        messages = mqqb.decode_batch(block.payloads, columns=columns, out=self._messages)
        self._messages = messages
        found = messages.notifications()
        self.encrypted += len(found.encrypted)
        self.unread += len(messages.faults)
        batch = self._decoded(found.payloads)
        assert isinstance(batch, mqcn.NotificationBatch)
        return batch, np.repeat(found.rows, np.diff(batch.messages))

    def _decoded(self, payloads: Payloads, **transport: Any) -> Batch:
        """Decode payloads into a batch that no Arrow consumer holds any more, or into a new one."""
        decode = partial(self._kind.decode_batch, payloads, strict=self._strict, columns=self._last, **transport)
        for out in self._batches:
            try:
                return decode(out=out)
            except BufferError:
                continue
        batch = decode()
        if len(self._batches) < MOST_BATCHES:
            self._batches.append(batch)
        return batch


def read_table(
    source: Source,
    table: str = "topology",
    *,
    columns: Iterable[str] | None = None,
    guid: GuidForm = "text",
    strict: bool = False,
    ports: Iterable[int] | None = None,
    addresses: Iterable[str] = (),
    since: datetime | int | None = None,
    until: datetime | int | None = None,
) -> TableReader:
    """Read captures as a table: record batches with the capture columns in front; needs pyarrow.

    Parameters
    ----------
    source : path, glob, binary file object, or a list of these
        As for ``capture.open``.
    table : str
        One of ``TABLES``.
    columns : iterable of str, optional
        The columns to build, all of them by default; they come in the table's order.
    guid : {"text", "uuid", "binary"}
        The Arrow form of GUIDs.
    strict : bool
        Make violations faults.
    ports : iterable of int, optional
        Read payloads of these ports in place of the table's own, of the same transports.
    addresses, since, until
        As for ``capture.open``.

    Raises
    ------
    CaptureError
        A file is no capture, or a glob matches nothing.
    ValueError
        There is no such table, column, address or time.
    """
    return TableReader(
        source,
        table,
        columns=columns,
        guid=guid,
        strict=strict,
        ports=ports,
        addresses=addresses,
        since=since,
        until=until,
    )
