"""Captures: payloads and tables read from pcap and pcapng files."""

from __future__ import annotations

from msmqwire.capture.checkpoint import Checkpoint
from msmqwire.capture.chosen_frames import FRAME_COLUMNS, write
from msmqwire.capture.files._blocks import Block
from msmqwire.capture.files.sources import Source
from msmqwire.capture.options import Columns, Ports, ReadKeywords, ReadOptions, Time
from msmqwire.capture.reader import Capture, Checkpoints, checkpoints, open
from msmqwire.capture.schema import CAPTURE, DEFAULT_PORTS, TOPOLOGY_PORTS, FileLimits, StreamLimits
from msmqwire.capture.stats import CaptureStats, Problem, StreamStats
from msmqwire.capture.table_rows import (
    ALL_TABLES,
    TABLES,
    TableKind,
    TableRows,
    arrow_schema,
    table_columns,
    table_options,
)
from msmqwire.capture.tables import TableReader, TablesReader, read_table, read_tables
from msmqwire.capture.tcp._packets import PACKET_KINDS

__all__ = [
    "ALL_TABLES",
    "CAPTURE",
    "DEFAULT_PORTS",
    "FRAME_COLUMNS",
    "PACKET_KINDS",
    "TABLES",
    "TOPOLOGY_PORTS",
    "Block",
    "Capture",
    "CaptureStats",
    "Checkpoint",
    "Checkpoints",
    "Columns",
    "FileLimits",
    "Ports",
    "Problem",
    "ReadKeywords",
    "ReadOptions",
    "Source",
    "StreamLimits",
    "StreamStats",
    "TableKind",
    "TableReader",
    "TableRows",
    "TablesReader",
    "Time",
    "arrow_schema",
    "checkpoints",
    "open",
    "read_table",
    "read_tables",
    "table_columns",
    "table_options",
    "write",
]


def __dir__() -> list[str]:
    return __all__
