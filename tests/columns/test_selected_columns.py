"""``columns=``: only what is asked for is made, and nothing else changes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.columns.formats import Format, each_format


@cache
def payloads_of(kind: Format) -> list[bytes]:
    return [*kind.cases(kind.count, 20240229), *kind.whole]


@each_format
def test_one_column_alone(kind: Format) -> None:
    names = kind.table.names
    full = kind.decode_batch(payloads_of(kind)).to_arrow()
    for name, other in zip(names, names[1:] + names[:1], strict=True):
        for wanted in ([name], name):
            batch = kind.decode_batch(payloads_of(kind), columns=wanted)
            assert batch.columns == (name,)
            table = batch.to_arrow()
            assert table.schema.names == [name]
            assert table[name].equals(full[name])
            table.validate(full=True)
            with pytest.raises(KeyError, match=other):
                batch[other]


@each_format
def test_every_pair_of_columns(kind: Format) -> None:
    """In the order in which they are requested; those of a set in the table's order."""
    payloads = payloads_of(kind)[-300:]
    full = kind.decode_batch(payloads).to_arrow()
    for one in kind.table.names:
        for other in kind.table.names:
            table = kind.decode_batch(payloads, columns={one, other}).to_arrow()
            assert table.schema.names == [name for name in kind.table.names if name in (one, other)]
            assert table.equals(full.select(table.schema.names))
            wanted = list(dict.fromkeys([one, other]))
            batch = kind.decode_batch(payloads, columns=[one, other, one])
            assert [*batch.columns] == batch.to_arrow().schema.names == wanted
            assert batch.to_arrow().equals(full.select(wanted))
            assert [column.name for column in kind.table.ordered([one, other, one])] == wanted
            assert kind.table.arrow_schema([one, other]) == batch.to_arrow().schema


@each_format
def test_what_is_not_asked_for_is_read_all_the_same(kind: Format) -> None:
    """A fault in it stays a fault, also where there are no columns at all."""
    for strict in (False, True):
        full = kind.decode_batch(payloads_of(kind), strict=strict)
        assert len(full.faults)
        for columns in ([kind.table.names[0]], ()):
            batch = kind.decode_batch(payloads_of(kind), columns=columns, strict=strict)
            np.testing.assert_array_equal(batch.faults, full.faults)
            assert batch.to_arrow().num_rows == len(batch) == len(full)


@each_format
def test_unknown_columns_are_refused(kind: Format) -> None:
    with pytest.raises(ValueError, match="'size'"):
        kind.decode_batch(kind.whole, columns=[kind.table.names[0], "size"])
    with pytest.raises(KeyError, match="size"):
        kind.decode_batch(kind.whole)["size"]
