"""Write the pages of the manual that come from code: ``tables.md``, from the tables of the package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msmqwire.capture import CAPTURE, TABLES
from msmqwire.columns.schema import Table, manual_rows
from msmqwire.mqcn.schema import NOTIFICATIONS
from msmqwire.mqqb.schema import MESSAGES, SESSIONS
from msmqwire.wire.fault import FAULT_NAMES

HERE = Path(__file__).parent

INTRODUCTION = """\
# Tables

Written by `make docs` from the schemas in the code; do not edit.

A table has the same columns in numpy, Arrow, Parquet, JSON and Spark, in this order. Read from a capture, it has the
columns of [capture](#capture) in front. Types are Arrow's; an `address` is text, a `uuid` is
`arrow.uuid` in Arrow and lower-case text in Parquet, JSON, CSV and Spark. Spark has neither unsigned integers nor
nanoseconds: there integers widen, and `time`, in microseconds, is followed by `time_ns`. A column is null where the
packet does not carry the field; of a row with a fault every column is null but `fault` and those of the capture.
"""

AFTERWORD = """\
## Codes of faults

The `code` of a fault is one of these, in every table; `field` names the part of the packet by its name in the
specification, `offset` is in bytes from the start of the payload. [Decoding](decoding.md) says when each arises.
"""


def table(schema: Table) -> Iterator[str]:
    """The part of the page about one table."""
    yield f"## {schema.name}"
    yield ""
    yield f"Source: {schema.section}."
    yield ""
    yield from manual_rows(schema.all_columns)
    if schema.violations is not None:
        yield ""
        yield "Violations: " + ", ".join(f"`{name}`" for name in schema.violation_names) + "."
    if schema.fields:
        yield ""
        yield "Fields that a fault can name: " + ", ".join(f"`{name}`" for name in schema.fields) + "."
    yield ""


def pages() -> dict[Path, str]:
    """Every generated page, by its file."""
    lines = [
        INTRODUCTION,
        *table(CAPTURE),
        *(line for kind in TABLES.values() for line in table(kind.table)),
        *table(NOTIFICATIONS),
        *table(MESSAGES),
        *table(SESSIONS),
        AFTERWORD,
    ]
    lines += [", ".join(f"`{name}`" for name in FAULT_NAMES if name) + "."]
    return {HERE / "tables.md": "\n".join(lines) + "\n"}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote docs/{path.name}")
