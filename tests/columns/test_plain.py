"""Columns of GUIDs in every form that a table has them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from msmqwire.columns.plain import equals_guid, guid_text, guid_values, plain

GUIDS = [UUID(int=1), None, UUID(int=2)]
PACKED = pa.array([guid and guid.bytes for guid in GUIDS], pa.binary(16))
TEXTS = pa.array([None if guid is None else str(guid) for guid in GUIDS])
FORMS = {
    "binary": PACKED,
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), PACKED),
    "text": TEXTS,
    "dictionary": TEXTS.dictionary_encode(),
    "large": TEXTS.cast(pa.large_string()),
    "chunks": pa.chunked_array([PACKED.slice(0, 1), PACKED.slice(1)]),
}


@pytest.mark.parametrize("form", FORMS)
def test_guids_of_any_form(form: str) -> None:
    column: Any = FORMS[form]
    assert guid_values(column) == GUIDS
    assert guid_text(plain(column)).to_pylist() == TEXTS.to_pylist()
    assert equals_guid(plain(column), UUID(int=2)).to_pylist() == [False, None, True]
