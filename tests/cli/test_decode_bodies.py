"""``msmqwire decode --kind notification``: bodies of messages, one a file or a Parquet file of many."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from msmqwire import mqcn
from tests.cli.support import LOCAL, msmqwire
from tests.vectors import get, load

EXAMPLES = {name: get("mqcn", name).data for name in ("C1-delete", "C2-change-queue", "C3-body")}
THREE = get("mqcn", "three-updates").data
TEXTS = {"file", "operation", "object", "object_guid", "path_name", "master_guid", "domain_controller"}
KIND = ("--kind", "notification")


@pytest.fixture
def bodies(tmp_path: Path) -> list[Path]:
    """The constructed examples of a delete, a change and a body, each in a file of its own."""
    paths = []
    for name, data in EXAMPLES.items():
        path = tmp_path / f"{name}.bin"
        path.write_bytes(data)
        paths.append(path)
    return paths


def parquet(path: Path, payloads: list[bytes | None], type_: Any = None) -> Path:
    numbers = pa.array(range(len(payloads)))
    pq.write_table(pa.table({"id": numbers, "payload": pa.array(payloads, type_ or pa.binary())}), path)
    return path


def without_bytes(value: Any) -> Any:
    """A value as JSON has it: bytes in hexadecimal."""
    if isinstance(value, dict):
        return {name: without_bytes(item) for name, item in value.items()}
    if isinstance(value, list):
        return [without_bytes(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value


def table_rows(payload: bytes | None, place: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    """The rows of one body, with where it lies in front."""
    batch = mqcn.decode_batch([payload], **options).to_arrow(guid="text")
    return [{**place, **row} for row in batch.to_pylist()]


def from_csv(data: bytes) -> list[dict[str, Any]]:
    rows = []
    for record in csv.DictReader(io.StringIO(data.decode(), newline=""), strict=True):
        rows.append({name: _value(name, cell) for name, cell in record.items()})
    return rows


def _value(name: str, cell: str) -> Any:
    if cell == "":
        return None
    return cell if name in {*TEXTS, "reserved"} else json.loads(cell)


def rows_in(format: str, tmp_path: Path, *sources: Path, status: int = 0) -> list[dict[str, Any]]:
    if format == "parquet":
        out = tmp_path / "rows.parquet"
        done = msmqwire("decode", *KIND, *sources, "-o", out)
        rows = without_bytes(pq.read_table(out).to_pylist())
    else:
        done = msmqwire("decode", *KIND, *sources, "-T", format)
        rows = from_csv(done.stdout) if format == "csv" else [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == status, done.stderr
    assert isinstance(rows, list)
    return rows


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_a_file_is_a_body(format: str, bodies: list[Path], tmp_path: Path) -> None:
    """Against what the golden vectors say, not against what the package does."""
    rows = rows_in(format, tmp_path, *bodies)
    assert [row["file"] for row in rows] == [str(path) for path in bodies]
    assert [(row["version"], row["operation"], row["object"]) for row in rows] == [
        (1, "delete", "queue"),
        (1, "change", "queue"),
        (2, "change", "queue"),
    ]
    assert {row["object_guid"] for row in rows} == {"00112233-4455-6677-8899-aabbccddeeff"}
    properties = [[(item["name"], item["int"]) for item in row["properties"] or ()] for row in rows]
    assert properties == [
        [("PROPID_D_SCOPE", 1), ("PROPID_D_OBJTYPE", 1)],
        [("PROPID_Q_QMID", None), ("PROPID_Q_QUOTA", 1024)],
        [],
    ]
    assert rows[2]["domain_controller"] == "dc1"
    assert list(rows[0]) == ["file", *mqcn.NOTIFICATIONS.names]


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_every_vector_in_a_parquet_file_and_a_body_before_it(format: str, bodies: list[Path], tmp_path: Path) -> None:
    payloads = [*(vector.data for vector in load("mqcn")), None, THREE]
    table = parquet(tmp_path / "many.parquet", payloads)
    expected = table_rows(EXAMPLES["C1-delete"], {"file": str(bodies[0]), "row": None})
    for number, payload in enumerate(payloads):
        expected += table_rows(payload, {"file": str(table), "row": number})
    if format == "csv":
        # Python's reader takes an empty name in quotes for no name
        expected = [{**row, "path_name": row["path_name"] or None} for row in expected]
    assert rows_in(format, tmp_path, bodies[0], table, status=2) == without_bytes(expected)


def test_rows_of_many_batches(tmp_path: Path) -> None:
    table = parquet(tmp_path / "many.parquet", [THREE, None, EXAMPLES["C3-body"]] * 4_000, pa.large_binary())
    out = tmp_path / "out.parquet"
    done = msmqwire("decode", *KIND, table, "-o", out)
    assert (done.returncode, done.stderr) == (0, b"12,000 messages: 20,000 rows\n")
    rows = pq.read_table(out, columns=["row", "index"]).to_pylist()
    assert [(row["row"], row["index"]) for row in rows] == [
        (3 * number + at, index) for number in range(4_000) for at, index in ((0, 0), (0, 1), (0, 2), (1, None), (2, 0))
    ]


def test_table_shows_changes_with_all_their_properties(bodies: list[Path], tmp_path: Path) -> None:
    (tmp_path / "create.bin").write_bytes(get("mqcn", "create-queue").data)
    (tmp_path / "cut.bin").write_bytes(THREE[:40])
    done = msmqwire(
        "decode", *KIND, "C1-delete.bin", "C3-body.bin", "create.bin", "cut.bin", "-T", "table", cwd=tmp_path
    )
    assert done.returncode == 2
    text = done.stdout.decode()
    assert text.splitlines()[0].split() == ["file", "change"]
    for part in (
        "delete queue", "PROPID_D_SCOPE 1", "domain_controller dc1", "create queue", "PROPID_Q_SECURITY 0100048014",
        "PROPID_Q_AUTHENTICATE 0", "PROPID_Q_TRANSACTION 1", "fault truncated: Reserved at byte 36",
    ):  # fmt: skip
        assert part in text, text
    assert max(map(len, text.splitlines())) <= 120


def test_status_2_and_counts_when_a_message_has_faults(bodies: list[Path], tmp_path: Path) -> None:
    cut = tmp_path / "cut.bin"
    cut.write_bytes(b"\x01\x01")
    done = msmqwire("decode", *KIND, *bodies, cut, "--columns", "file")
    assert done.returncode == 2
    assert done.stderr == b"4 messages: 4 rows\n1 message with faults: truncated 1\n"
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"file": str(path)} for path in (*bodies, cut)]


def test_strict_makes_violations_faults(tmp_path: Path) -> None:
    path = tmp_path / "trailing.bin"
    path.write_bytes(get("mqcn", "trailing-bytes").data)
    assert msmqwire("decode", *KIND, path).returncode == 0
    done = msmqwire("decode", *KIND, path, "--strict")
    assert done.returncode == 2
    assert json.loads(done.stdout) == table_rows(path.read_bytes(), {"file": str(path)}, strict=True)[0]


def test_columns_in_the_order_asked_for_and_guids_as_bytes(tmp_path: Path) -> None:
    table, out = parquet(tmp_path / "many.parquet", [None, THREE]), tmp_path / "out.parquet"
    done = msmqwire("decode", *KIND, table, "--columns", "object_guid,row", "--guid", "binary", "-o", out)
    assert done.returncode == 0
    rows = pq.read_table(out)
    assert rows.schema.names == ["object_guid", "row"]
    assert rows.schema.field("object_guid").type == pa.binary(16)
    assert rows["row"].to_pylist() == [0, 1, 1, 1]


def test_standard_input_is_a_body() -> None:
    done = msmqwire("decode", *KIND, "-", "-q", "--columns", "file,operation", input=EXAMPLES["C1-delete"])
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout) == {"file": "-", "operation": "delete"}


def test_what_is_no_body_is_refused_in_one_line(bodies: list[Path], tmp_path: Path) -> None:
    large, torn = tmp_path / "large.bin", tmp_path / "torn.parquet"
    large.write_bytes(bytes((4 << 20) + 1))
    torn.write_bytes(b"PAR1 and no more")
    text = parquet(tmp_path / "text.parquet", ["no", "bytes"], pa.string())  # type: ignore[list-item]
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"body": [b""]}), other)
    for arguments, message in (
        ((large,), "is larger than 4 MiB"),
        ((torn,), f"{torn} cannot be read as Parquet: "),
        ((text,), "column payload is string, not binary"),
        ((other,), f"{other} has no column payload; it has body"),
        ((tmp_path,), "is a directory"),
        ((tmp_path / "none.bin",), "No such file or directory"),
        ((bodies[0], "--columns", "row"), "--columns row: no such column; notifications has file, version"),
        ((bodies[0], "--ports", "1801"), "--ports is for captures"),
        ((bodies[0], "--table", "topology"), "--table is for captures"),
    ):
        done = msmqwire("decode", *KIND, *arguments)
        assert (done.returncode, done.stdout) == (1, b""), arguments
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert message in done.stderr.decode()


def test_a_capture_is_a_body_with_a_fault() -> None:
    done = msmqwire("decode", *KIND, LOCAL, "--columns", "fault")
    assert done.returncode == 2
    assert json.loads(done.stdout)["fault"] == {"code": "bad_version", "field": "Version", "offset": 0}
