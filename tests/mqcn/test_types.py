"""Every type of value has its member, those too that no PROPID of a notification has."""

from __future__ import annotations

from tests.columns.processes import run

# The kernels take their table from Python when they are imported: here it has more rows by then. The package itself
# would import them first, so that an empty one stands in for it.
PROGRAM = """
import importlib.util, struct, sys, types

for name in ("msmqwire", "msmqwire.properties"):
    places = importlib.util.find_spec(name).submodule_search_locations
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = list(places)

from msmqwire.properties import table
from msmqwire.properties.vartype import VT_BOOL, VT_I1, VT_I8, VT_UI4, VT_UI8, VT_VECTOR

VALUES = [
    (VT_I1, struct.pack("<b", -5), "int", -5),
    (VT_BOOL, b"\\xff\\xff", "int", 1),
    (VT_BOOL, b"\\0\\0", "int", 0),
    (VT_I8, struct.pack("<q", -(1 << 40)), "int", -(1 << 40)),
    (VT_UI8, struct.pack("<Q", 1 << 62), "int", 1 << 62),
    (VT_UI4 | VT_VECTOR, struct.pack("<I3I", 3, 1, 0xFFFFFFFF, 2), "ints", [1, 0xFFFFFFFF, 2]),
    (VT_UI4 | VT_VECTOR, bytes(4), "ints", []),
]
table.NUMBERED += tuple(
    table.Property(f"PROPID_{number}", number, vt, "Queue", "none", {})
    for number, (vt, *_) in enumerate(VALUES, 5500)
)
from msmqwire import mqcn

ids = struct.pack(f"<{len(VALUES)}I", *range(5500, 5500 + len(VALUES)))
update = b"\\1\\1" + bytes(56) + bytes([len(VALUES)]) + ids + b"".join(value for _, value, _, _ in VALUES)
batch = mqcn.decode_batch([b"\\1\\1" + update])
(row,) = batch.to_arrow().to_pylist()
assert row["fault"] is None
for found, (number, (_, _, member, value)) in zip(row["properties"], enumerate(VALUES, 5500), strict=True):
    expected = dict.fromkeys(("int", "text", "guid", "bytes", "ints", "guids", "texts"))
    expected[member] = value
    assert found.pop("type").startswith("VT_"), found
    assert found == {"id": number, "name": f"PROPID_{number}", **expected}, found
print(len(VALUES))
"""


def test_every_type_has_its_member() -> None:
    assert run("-c", PROGRAM) == "7\n"
