"""Captures: pcap and pcapng files to payloads, with where each came from; and to tables."""

from __future__ import annotations

from msmqwire.capture.blocks import Block
from msmqwire.capture.checkpoint import Checkpoint
from msmqwire.capture.reader import Capture, Checkpoints, checkpoints, open
from msmqwire.capture.schema import CAPTURE, DEFAULT_PORTS, PACKET_KINDS, TOPOLOGY_PORTS, StreamLimits
from msmqwire.capture.stats import CaptureStats, Problem, StreamStats
from msmqwire.capture.tables import (
    TABLES,
    TableKind,
    TableReader,
    TableRows,
    TablesReader,
    arrow_schema,
    read_table,
    read_tables,
    table_columns,
    table_payloads,
)

__all__ = [
    "CAPTURE",
    "DEFAULT_PORTS",
    "PACKET_KINDS",
    "TABLES",
    "TOPOLOGY_PORTS",
    "Block",
    "Capture",
    "CaptureStats",
    "Checkpoint",
    "Checkpoints",
    "Problem",
    "StreamLimits",
    "StreamStats",
    "TableKind",
    "TableReader",
    "TableRows",
    "TablesReader",
    "arrow_schema",
    "checkpoints",
    "open",
    "read_table",
    "read_tables",
    "table_columns",
    "table_payloads",
]
