"""What type checkers say of ``batch["name"]`` is what it is."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msmqwire import formatname, mqcn, mqqb, mqsd
from msmqwire.columns import views

STUB = Path(views.__file__).parent / "names.pyi"
ALIASES = {
    node.targets[0].id: ast.literal_eval(node.value.slice)
    for node in ast.parse(STUB.read_text("utf-8")).body
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Subscript)
}
KINDS: dict[str, Any] = {"Bool": np.bool_, "Record": np.void, "Time": np.datetime64}

PROGRAM = """
from typing import Any, assert_type
import numpy as np
from numpy.typing import NDArray
from msmqwire import mqcn, mqqb, mqsd
from msmqwire.columns import views
topology, messages = mqsd.decode_batch([b""]), mqqb.decode_batch([b""])
assert_type(topology["enterprise_id"], NDArray[np.uint8])
assert_type(topology["servers"], views.ListColumn)
assert_type(messages["label"], views.TextColumn)
assert_type(messages["body"], views.BytesColumn)
assert_type(messages["body_text"], views.Utf8Column)
assert_type(messages["sent_time"], NDArray[np.datetime64])
assert_type(messages["fault"], NDArray[np.void])
assert_type(mqcn.decode_batch([b""])["path_name"].text(0), str)
name: str = "label"
assert_type(messages[name], Any)
"""


@pytest.mark.parametrize(
    ("table", "decode"),
    [
        (mqsd.TOPOLOGY, mqsd.decode_batch),
        (mqcn.NOTIFICATIONS, mqcn.decode_batch),
        (mqqb.MESSAGES, mqqb.decode_batch),
        (mqqb.SESSIONS, mqqb.decode_session_batch),
        (formatname.FORMAT_NAMES, lambda payloads, columns: formatname.parse_batch(["a", "b"], columns=columns)),
    ],
)
def test_columns_have_the_type_of_their_alias(table: Any, decode: Any) -> None:
    batch = decode([b"", b""], columns=[column.name for column in table.all_columns])
    for column in table.all_columns:
        (alias,) = [kind for kind, names in ALIASES.items() if column.name in names]
        found = batch[column.name]
        if isinstance(found, np.ndarray):
            assert issubclass(found.dtype.type, KINDS.get(alias) or getattr(np, alias.lower())), column.name
        else:
            assert type(found) is getattr(views, f"{alias}Column"), column.name


@pytest.mark.long
def test_type_checkers_know_the_columns(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, "utf-8")
    output, errors, status = api.run(["--strict", str(program)])
    assert status == 0, output + errors
