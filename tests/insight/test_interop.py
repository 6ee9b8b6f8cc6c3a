"""The dissector for Wireshark and the Kaitai descriptions show the values of our rows, on every vector."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire.insight.interop import kaitai, write
from msmqwire.insight.layouts import LAYOUTS, byte_map, field_ids
from tests.insight.test_layouts import cases


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("interop")
    assert {path.name for path in write(made)} == {"msmq.lua", *(f"msmq_{layout}.ksy" for layout in LAYOUTS)}
    return made


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "msmqwire.insight.interop", str(tmp_path / "new" / "folder")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert sorted(map(Path, done.stdout.splitlines())) == sorted((tmp_path / "new" / "folder").iterdir())


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
