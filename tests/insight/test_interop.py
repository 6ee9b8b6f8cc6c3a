"""The dissector for Wireshark and the Kaitai descriptions show the values of our rows, on every vector."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire.capture import read_tables
from msmqwire.insight.interop import field_ids, kaitai, write
from msmqwire.insight.layouts import LAYOUTS, byte_map
from tests.insight.captures import EXAMPLES, WRITER, datagram, stream
from tests.insight.captures import write as write_capture
from tests.insight.test_layouts import cases
from tests.system_programs import require_program


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("interop")
    assert {path.name for path in write(made)} == {"msmq.lua", *(f"msmq_{layout}.ksy" for layout in LAYOUTS)}
    return made


@cache
def dissected(folder: Path, capture: Path) -> dict[str, list[str]]:
    """The values of each field with a column, in the order of the frames, as tshark shows them."""
    fields = sorted(
        {
            f"msmq.{layout}.{field.column}"
            for layout in LAYOUTS
            for field in LAYOUTS[layout]
            if field.column and layout != "notifications"
        }
    )
    command = [
        require_program("tshark"), "-X", f"lua_script:{folder / 'msmq.lua'}", "-r", str(capture), "-T", "json",
        *(word for field in fields for word in ("-e", field)),
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert "Lua" not in done.stderr, done.stderr
    layers = [packet["_source"].get("layers", {}) for packet in json.loads(done.stdout)]
    return {field: [value for layer in layers for value in layer.get(field, [])] for field in fields}


def as_shown(value: Any) -> str:
    """A value as tshark shows it."""
    return value.hex() if isinstance(value, bytes) else str(value)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every vector without a fault, in streams and datagrams."""
    frames, port = [], 20000
    for case in cases():
        layout, payload, row = case.values
        # tshark takes padding that is missing, and bytes after a packet, from the next packet
        if "trailing_bytes" in (row["violations"] or ()):
            continue
        if layout in ("messages", "sessions"):
            frames += stream([payload], port=port)
            port += 1
        else:
            frames.append(datagram(payload, to=3527 if layout == "ping" else 1801))
    return write_capture(tmp_path_factory.mktemp("vectors") / "vectors.pcap", frames)


@pytest.mark.parametrize("layout", ["topology", "messages", "sessions", "ping"])
def test_tshark_shows_our_values(folder: Path, vectors: Path, layout: str) -> None:
    columns = [field.column for field in LAYOUTS[layout] if field.column]
    for capture in (vectors, *EXAMPLES):
        rows = [
            row
            for table, batch in read_tables(capture, guid="text")
            if table == ("sessions" if layout == "ping" else layout)
            for row in batch.to_pylist()
            if layout in ("topology", "messages") or (row["kind"] == "ping") == (layout == "ping")
        ]
        found = dissected(folder, capture)
        shown = {column: found[f"msmq.{layout}.{column}"] for column in columns}
        for column in columns:
            expected = [as_shown(row[column]) for row in rows if row[column] not in (None, b"")]
            if any(row["fault"] for row in rows):
                # tshark shows the fields before the fault
                assert set(expected) <= set(shown[column])
            else:
                assert [value for value in shown[column] if value] == expected, column
        assert rows or capture in EXAMPLES


def test_tshark_shows_what_is_truncated(folder: Path, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "x.pcap", [datagram(WRITER["PRINTED_REQUEST"][:30])])
    shown = dissected(folder, capture)
    assert (len(shown["msmq.topology.enterprise_id"]), shown["msmq.topology.request_id"]) == (1, [])


_COMPILE = """
const compiler = require("kaitai-struct-compiler"), source = JSON.parse(require("fs").readFileSync(0, "utf8"));
compiler.compile("python", source, null, false).then(files => process.stdout.write(Object.values(files)[0]));
"""


def compiled(layout: str, folder: Path) -> Any:
    """The parser that kaitai-struct-compiler, a module of node, makes of a description."""
    yaml = pytest.importorskip("yaml")
    pytest.importorskip("kaitaistruct")
    node = shutil.which("node")
    if (
        node is None
        or subprocess.run([node, "-e", "require('kaitai-struct-compiler')"], capture_output=True).returncode
    ):
        pytest.skip("kaitai-struct-compiler is not installed (npm install kaitai-struct-compiler)")
    done = subprocess.run(
        [node, "-e", _COMPILE], input=json.dumps(yaml.safe_load(kaitai(layout))), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    path = folder / f"kaitai_{layout}.py"
    path.write_text(done.stdout)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return getattr(module, f"Msmq{layout.title()}")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_descriptions_are_yaml(layout: str) -> None:
    yaml = pytest.importorskip("yaml")
    description = yaml.safe_load(kaitai(layout))
    assert [item["id"] for item in description["seq"]] == [name for name, _ in field_ids(layout)]


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "notifications"])
def test_kaitai_reads_our_values(layout: str, tmp_path: Path) -> None:
    parser = compiled(layout, tmp_path)
    compared = 0
    for case in cases():
        name, payload, row = case.values
        if name != layout:
            continue
        parsed = parser.from_bytes(payload)
        values = {field: part.value for part in byte_map(layout, payload) for field in [part.field]}
        for id_, field in field_ids(layout):
            ours, theirs = values.get(field), getattr(parsed, id_, None)
            if field.type != "pad":
                assert (theirs or None) == (ours or None), (case.id, id_)
            if field.column and field.type == "guid" and theirs is not None:
                assert UUID(bytes_le=theirs).bytes == row[field.column]
        compared += 1
    assert compared
