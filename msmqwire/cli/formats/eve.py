"""Events as Suricata writes them to eve.json: the capture columns by its names, the others in the object ``msmq``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from msmqwire.cli.formats.cells import LineWriter
from msmqwire.columns.json_text import Array, joined, json_text, pc, utf8_of

if TYPE_CHECKING:
    from msmqwire.cli.target import Sink

# The capture columns that a row of every table has, in the order of Suricata
_NAMES = {
    "time": "timestamp",
    "file": "pcap_filename",
    "frame": "pcap_cnt",
    "src": "src_ip",
    "src_port": "src_port",
    "dst": "dest_ip",
    "dst_port": "dest_port",
    "transport": "proto",
}


class Writer(LineWriter):
    """UTF-8, a line feed after each event."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, table: str = "") -> None:
        super().__init__(sink)
        self._own = [name for name in schema.names if name not in _NAMES]
        self._start = f'"msmq":{{"table":{json.dumps(table)}'

    def _lines(self, batch: pa.RecordBatch) -> memoryview:
        parts: list[Array | str] = ["{"]
        for name, eve_name in _NAMES.items():
            if name in batch.schema.names:
                parts += [f'"{eve_name}":', _value(name, json_text(batch[name])), ","]
        parts += ['"event_type":"msmq",', self._start]
        for name in self._own:
            parts += [f",{json.dumps(name)}:", json_text(batch[name])]
        return utf8_of(joined(*parts, "}}\n"))


def _value(name: str, value: Array) -> Array:
    if name == "time":  # microseconds, and a zone without a colon
        return pc.replace_substring_regex(value, r'\d{3}Z"$', '+0000"')
    return pc.utf8_upper(value) if name == "transport" else value
