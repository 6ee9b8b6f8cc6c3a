"""Columns of names: what goes in, what comes out, and how it is used again."""

from __future__ import annotations

import gc
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from msmqwire import Payloads
from msmqwire.columns import allocated_bytes
from msmqwire.formatname import FORMAT_NAMES, parse, parse_batch
from msmqwire.formatname.schema import EXPECTED
from tests.formatname.answers import of_batch, of_parse
from tests.reference.formatname_cases import GUID, NAMES, cases

TEXTS: list[str | None] = [*NAMES, None, "", "DIRECT=OS:é\\q", None, "x" * 300, *cases(300, seed=71)]
# Arrow holds no lone surrogates
TEXTS = [text for text in TEXTS if text is None or not any("\ud800" <= character <= "\udfff" for character in text)]
LIST = f"DIRECT=OS:a\\q,PUBLIC={GUID},MULTICAST=234.1.1.1:1"


def rows(texts: Any, **options: Any) -> list[dict[str, Any]]:
    return parse_batch(texts, **options).to_arrow(guid="uuid").to_pylist()


EXPECTED_ROWS = rows(TEXTS)


def test_rows_are_what_parse_gives() -> None:
    assert of_batch(EXPECTED_ROWS) == [None if text is None else of_parse(text) for text in TEXTS]


@pytest.mark.parametrize(
    "texts",
    [
        tuple(TEXTS),
        np.array(TEXTS, object),
        pd.Series(TEXTS, dtype=object),
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.string_view()),
        pa.array([None if text is None else text.encode() for text in TEXTS], pa.binary()),
        pa.array(["before", *TEXTS, "behind"])[1:-1],
        pa.chunked_array([TEXTS[:7], TEXTS[7:7], TEXTS[7:]], pa.string()),
        Payloads.of([None if text is None else text.encode() for text in TEXTS]),
        Payloads.of_texts(TEXTS),
    ],
    ids=lambda texts: f"{type(texts).__name__} {getattr(texts, 'type', '')}",
)
def test_texts_come_in_any_column(texts: Any) -> None:
    assert rows(texts) == EXPECTED_ROWS


def test_a_lone_surrogate_is_a_character_that_no_name_has() -> None:
    for text in ("\ud800", "DIRECT=OS:m\\q\udfff"):
        (row,) = rows([text])
        assert of_batch([row]) == [of_parse(text)]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("PUBLIC=x", "texts must be many"),
        (b"PUBLIC=x", "texts must be many"),
        ([b"PUBLIC=x"], "text 0 is bytes, not str or None"),
        (["x", 5], "text 1 is int, not str or None"),
        (pa.array([1, 2]), "payloads must be Arrow strings, not int64"),
    ],
)
def test_what_is_no_column_of_text(texts: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        parse_batch(texts)
    if isinstance(texts, pa.Array):
        with pytest.raises(TypeError, match="payloads must be Arrow binary"):
            Payloads.of(texts)


def test_one_text_may_be_of_a_subclass() -> None:
    for text in np.array(["PUBLIC=00000000-0000-0000-0000-000000000005", r"DIRECT=OS:a\b"]):
        assert type(text) is np.str_
        assert parse(text) == parse(str(text))
    for wrong in (None, b"PUBLIC=", 5):
        with pytest.raises(TypeError, match="must be str"):
            parse(wrong)  # type: ignore[arg-type]


def test_no_texts() -> None:
    texts: object
    for texts in ([], pa.array([], pa.string()), pa.chunked_array([], pa.string())):
        batch = parse_batch(texts)
        assert len(batch) == 0
        assert batch.to_arrow().num_rows == 0


@pytest.mark.parametrize("column", FORMAT_NAMES.names)
def test_only_the_columns_asked_for(column: str) -> None:
    batch = parse_batch(TEXTS, columns=[column])
    assert batch.columns == (column,)
    assert batch.to_arrow(guid="uuid").to_pylist() == [{column: row[column]} for row in EXPECTED_ROWS]


def test_out_is_written_again() -> None:
    batch = parse_batch([LIST] * 2_000)
    assert parse_batch(TEXTS, out=batch) is batch
    assert batch.to_arrow(guid="uuid").to_pylist() == EXPECTED_ROWS
    held = batch.to_arrow(guid="uuid")
    with pytest.raises(BufferError):
        parse_batch(TEXTS, out=batch)
    del held
    with pytest.raises(ValueError, match="out= has the columns"):
        parse_batch(TEXTS, out=batch, columns=["kind"])
    with pytest.raises(ValueError, match="'nombre': no such column of format_names"):
        parse_batch(TEXTS, columns=["nombre"])


def test_numpy_views() -> None:
    batch = parse_batch([f"PRIVATE={GUID}\\1F", "DIRECT=OS:server\\q;late", LIST, None, "x", "MULTICAST=224.0.0.1:9"])
    assert UUID(bytes_le=batch["guid"][0].tobytes()) == UUID(GUID)
    assert batch["private_id"].tolist() == [0x1F, 0, 0, 0, 0, 0]
    assert batch["port"].dtype == np.uint16
    assert (batch["address"].text(1), batch["subqueue"].text(1), batch["address"].text(5)) == (
        "server",
        "late",
        "224.0.0.1",
    )
    assert batch["elements"].offsets.tolist() == [0, 0, 0, 3, 3, 3, 3]
    assert batch["elements"].values.text(2) == "MULTICAST=234.1.1.1:1"
    assert batch["kind"].tolist() == [2, 3, 8, 255, 255, 7]
    assert batch.is_valid("queue").tolist() == [False, True, False, False, False, False]
    assert batch.fault(4) == ("bad_type", "FormatName", 0, None, None)
    assert EXPECTED[batch.faults[0]["available"]].startswith("DIRECT=")
    with pytest.raises(KeyError):
        batch["violations"]


@pytest.mark.parametrize("guid", ["uuid", "text", "binary"])
def test_the_schema_is_the_table(guid: Any) -> None:
    made = parse_batch(TEXTS).to_arrow(guid=guid)
    assert made.schema.equals(FORMAT_NAMES.arrow_schema(guid=guid))
    made.validate(full=True)
    assert FORMAT_NAMES.names[-1] == "fault"
    assert all(column.about for column in FORMAT_NAMES.all_columns)


def test_text_in_arrow_lives_on_without_the_texts() -> None:
    texts = [f"DIRECT=OS:server{i}\\queue{i}" for i in range(1_000)]
    table = parse_batch(texts, columns=["queue"]).to_arrow()
    del texts
    assert table["queue"].to_pylist() == [f"queue{i}" for i in range(1_000)]


def test_what_a_batch_holds_is_released() -> None:
    gc.collect()
    before = allocated_bytes()
    batch = parse_batch(TEXTS)
    view, table = batch["queue"], batch.to_arrow(guid="uuid")
    assert allocated_bytes() > before
    del batch, view
    assert table.to_pylist() == EXPECTED_ROWS
    del table
    gc.collect()
    assert allocated_bytes() == before


def test_an_element_needs_the_least_room_there_is() -> None:
    """Elements are reserved by the bytes of the shortest: lists of nothing but those fit."""
    text = ",".join(["DIRECT=OS:a\\b"] * 100)
    batch = parse_batch([text, text + ",x", text])
    assert batch["elements"].offsets.tolist() == [0, 100, 100, 200]
    assert {batch["elements"].values.text(i) for i in range(200)} == {"DIRECT=OS:a\\b"}
