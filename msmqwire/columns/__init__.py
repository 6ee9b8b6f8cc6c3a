"""Columns: payloads in, buffers that numpy and Arrow look into without a copy out."""

from msmqwire.columns._batch import Batch
from msmqwire.columns._buffer import Buffer, allocated_bytes
from msmqwire.columns._packet import WirePacket
from msmqwire.columns._payloads import UNFRAMED_BIT, Payloads
from msmqwire.columns.schema import Column, DataType, FaultRule, GuidForm, GuidOrder, Table, Values
from msmqwire.columns.views import AsciiColumn, BytesColumn, FaultEntry, ListColumn, TextColumn, Utf8Column

__all__ = [
    "UNFRAMED_BIT",
    "AsciiColumn",
    "Batch",
    "Buffer",
    "BytesColumn",
    "Column",
    "DataType",
    "FaultEntry",
    "FaultRule",
    "GuidForm",
    "GuidOrder",
    "ListColumn",
    "Payloads",
    "Table",
    "TextColumn",
    "Utf8Column",
    "Values",
    "WirePacket",
    "allocated_bytes",
]


def __dir__() -> list[str]:
    return __all__
