"""The dissector for Wireshark and the Kaitai descriptions show the values of our rows, on every vector."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
import yaml  # type: ignore[import-untyped]

from msmqwire import mqcn
from msmqwire.errors import DecodeError
from msmqwire.insight.interop import kaitai, write
from msmqwire.insight.layouts import LAYOUTS, byte_map, field_ids
from msmqwire.insight.wireshark import dissector
from msmqwire.mqcn import schema as mqcn_schema
from msmqwire.properties import PROPID_Q_QUOTA
from tests.insight.test_layouts import cases
from tests.system_programs import require_node_module
from tests.vectors import load


def test_a_file_for_each_description(tmp_path: Path) -> None:
    written = write(tmp_path / "new" / "folder")
    assert {path.name for path in written} == {"msmq.lua", *(f"msmq_{layout}.ksy" for layout in LAYOUTS)}
    assert written[0].read_text("utf-8") == dissector()
    assert [path.read_text("utf-8") for path in written[1:]] == [kaitai(layout) for layout in LAYOUTS]
    assert write(tmp_path / "new" / "folder") == written


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
    node = require_node_module("kaitai-struct-compiler")
    done = subprocess.run(
        [node, "-e", _COMPILE], input=json.dumps(yaml.safe_load(kaitai(layout))), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    path = folder / f"kaitai_{layout}.py"
    path.write_text(done.stdout)
    return loaded(path, layout)


def loaded(path: Path, layout: str) -> Any:
    """The parser in a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return getattr(module, f"Msmq{layout.title()}")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_descriptions_are_yaml(layout: str) -> None:
    description = yaml.safe_load(kaitai(layout))
    assert [item["id"] for item in description["seq"]] == [name for name, _ in field_ids(LAYOUTS[layout])]


BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "kaitai"


@pytest.mark.parametrize("layout", ["messages", "topology"])
def test_the_parsers_of_the_benchmarks_read_the_fields_of_the_tables(layout: str) -> None:
    read = re.findall(r"self\.(\w+) = self\._io\.", (BENCHMARKS / f"msmq_{layout}.py").read_text("utf-8"))
    assert read == [name for name, _ in field_ids(LAYOUTS[layout])]


def test_the_parser_of_the_benchmarks_reads_the_values_of_updates() -> None:
    assert_same_updates(loaded(BENCHMARKS / "msmq_notifications.py", "notifications"))


def test_kaitai_reads_the_values_of_updates(tmp_path: Path) -> None:
    assert_same_updates(compiled("notifications", tmp_path))


def test_kaitai_reads_nothing_after_an_unknown_property() -> None:
    """Bytes of its value are not taken for the next value, nor for the next update."""
    parser = loaded(BENCHMARKS / "msmq_notifications.py", "notifications")
    head = b"\1\1\1\1" + bytes(16 + 16 + 24)
    unknown, quota = (number.to_bytes(4, "little") for number in (100, PROPID_Q_QUOTA))
    with pytest.raises(DecodeError, match="unknown_property"):
        mqcn.decode(head + b"\2" + unknown + quota + b"abcd\7\0\0\0")
    (update,) = parser.from_bytes(head + b"\2" + quota + unknown + b"\7\0\0\0abcd").notification_update
    assert [value if isinstance(value, int) else value.value for value in update.property_value] == [7, b"abcd"]
    with pytest.raises(EOFError):
        parser.from_bytes(head + b"\2" + unknown + quota + b"abcd\7\0\0\0")


def assert_same_updates(parser: Any) -> None:
    """On every vector of notifications, but those with a lone surrogate, which Python does not decode."""
    compared = 0
    for vector in load("mqcn"):
        if vector.packet is None or not vector.data[1]:
            continue
        message = mqcn.decode(vector.data)
        try:
            found = parser.from_bytes(vector.data)
        except UnicodeDecodeError:
            assert r"\ud" in repr(message)
            continue
        assert (found.version, found.updates) == (message.version, vector.data[1])
        if message.version == 2:
            assert vector.data[2:] == found.notificationbody
            continue
        for update, theirs in zip(message.updates, found.notification_update, strict=True):
            assert theirs.command == mqcn_schema.OPERATIONS.index(update.command)
            if update.guid_identifier is not None:
                assert update.use_guid
                assert theirs.object_guid == update.guid_identifier.bytes_le
            else:
                assert theirs.path_name == update.path_name
            assert theirs.master_guid == update.guid_master_id.bytes_le
            assert theirs.reserved == update.reserved
            assert theirs.property_id == [each.id for each in update.properties]
            values = [getattr(value, "value", value) for value in theirs.property_value]
            assert values == [as_kaitai(each.value) for each in update.properties]
            compared += 1
    assert compared > 40


def as_kaitai(value: Any) -> Any:
    if isinstance(value, UUID):
        return value.bytes_le
    if isinstance(value, np.ndarray):
        return value.tobytes() if value.ndim == 1 else [row.tobytes() for row in value]
    return list(value) if isinstance(value, tuple) else value


_SIZES = {"u1": 1, "u2": 2, "u4": 4, "u8": 8}


def interpreted(description: dict[str, Any], payload: bytes) -> dict[str, Any]:
    """The values that a description of simple fields has in a payload."""
    values: dict[str, Any] = {}
    at = 0

    def value_of(expression: str) -> int:
        text = expression.replace("_io.pos", str(at)).replace("_io.size", str(len(payload)))
        condition, choice, rest = text.partition(" ? ")
        if choice:
            first, _, second = rest.partition(" : ")
            text = f"({first}) if ({condition}) else ({second})"
        return int(eval(text, {}, values))

    assert description["meta"]["endian"] == "le"
    for item in description["seq"]:
        if not value_of(item.get("if", "1")):
            continue
        size = _SIZES[item["type"]] if "type" in item else value_of(item["size"])
        data = payload[at : at + size]
        assert len(data) == size
        values[item["id"]] = int.from_bytes(data, "little") if "type" in item else data
        at += size
    return values


def assert_same_values(layout: str, values_of: Callable[[bytes], dict[str, Any]]) -> None:
    """On every vector, without what is padding."""
    compared = 0
    for case in cases():
        name, payload, row = case.values
        if name != layout:
            continue
        found, ours = values_of(payload), {part.field: part.value for part in byte_map(layout, payload)}
        for id_, field in field_ids(LAYOUTS[layout]):
            theirs = found.get(id_)
            if field.type != "pad":
                assert (theirs or None) == (ours.get(field) or None), (case.id, id_)
            if field.shown and field.type == "guid" and theirs is not None:
                assert UUID(bytes_le=theirs).bytes == row[field.shown]
        compared += 1
    assert compared


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "notifications"])
def test_descriptions_have_our_values(layout: str) -> None:
    assert_same_values(layout, partial(interpreted, yaml.safe_load(kaitai(layout))))


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "notifications"])
def test_kaitai_reads_our_values(layout: str, tmp_path: Path) -> None:
    parser = compiled(layout, tmp_path)
    assert_same_values(layout, lambda payload: vars(parser.from_bytes(payload)))
