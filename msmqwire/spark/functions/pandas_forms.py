"""The bodies of pandas UDFs. Workers that run the other functions do not import pandas, which takes 0.3 s."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from msmqwire.spark.executors import Sent
from msmqwire.spark.functions.decoder import Decoder, GuidFormatter


class _ArrowColumn(pd.arrays.ArrowExtensionArray):
    """A column of a pandas frame that stays in Arrow in Spark.

    Spark maps a conversion over lists and structs, one Python object at a time, so that Arrow accepts them. These
    columns are Arrow already.
    """

    def map(self, mapper: Any, na_action: Any = None) -> _ArrowColumn:
        return self


def _items(column: Any) -> Any:
    """The values of a column; a call without a column, or with several, has a tuple, which is refused later."""
    return column if isinstance(column, tuple) else column.tolist()


@dataclass(frozen=True)
class PandasDecoder(Sent):
    """The decoder of a function, for columns of pandas."""

    decoder: Decoder

    def structs(self, batches: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
        """A frame has no null rows, so all members of a null payload are null."""
        for payloads in batches:
            rows, _ = self.decoder.decode(self.decoder.values(_items(payloads)))
            columns = {name: _ArrowColumn(array) for name, array in zip(rows.schema.names, rows.columns, strict=True)}
            yield pd.DataFrame(columns, copy=False)

    def lists(self, batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        """The result of a null payload is null."""
        for payloads in batches:
            given = self.decoder.values(_items(payloads))
            missing = payloads.isna().to_numpy()
            array = self.decoder.array(given, pa.array(missing) if missing.any() else None)
            yield pd.Series(_ArrowColumn(array), copy=False)


@dataclass(frozen=True)
class PandasGuidFormatter(Sent):
    """The formatter of GUIDs, for columns of pandas."""

    formatter: GuidFormatter

    def texts(self, batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        """The result of a null GUID is null."""
        for guids in batches:
            yield pd.Series(_ArrowColumn(self.formatter.format(self.formatter.values(_items(guids)))), copy=False)


def pandas_body(one: Decoder | GuidFormatter) -> Callable[..., Any]:
    """The body of the pandas UDF of a decoder or a formatter."""
    if isinstance(one, GuidFormatter):
        return PandasGuidFormatter(one).texts
    return PandasDecoder(one).lists if one.lists else PandasDecoder(one).structs
