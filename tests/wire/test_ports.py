"""The numbers of ports stand in one module."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from msmqwire.wire import ports

PACKAGE = Path(ports.__file__).parent.parent
PORTS = {value for name, value in vars(ports).items() if name.endswith(("_PORT", "_SOCKET"))}


def test_no_other_module_has_the_number_of_a_port() -> None:
    found = {
        (path.name, node.value)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value in PORTS
    }
    assert found == {("ports.py", port) for port in PORTS}
    lua = (PACKAGE / "insight" / "dissector.lua").read_text("utf-8")
    assert not PORTS & set(map(int, re.findall(r"\b\d+\b", lua)))
