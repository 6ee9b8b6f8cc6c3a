"""Answers from decoded tables: who speaks MSMQ, which queues there are and who uses them, what is wrong.

``summarize`` counts, ``SECTIONS`` has the tables of its result, and ``COLUMNS`` the columns that it needs. They are
imported when they are first used, and need pyarrow and DuckDB.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from msmqwire.errors import require

if TYPE_CHECKING:
    from msmqwire.insight.query_files import SECTIONS, Section
    from msmqwire.insight.summary import COLUMNS, Summary, summarize

__all__ = ["COLUMNS", "SECTIONS", "Section", "Summary", "summarize"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    purpose = f"msmqwire.insight.{name}"
    require("pyarrow", purpose)
    if name in ("SECTIONS", "Section"):
        module = "query_files"
    else:
        require("duckdb", purpose)
        module = "summary"
    value = globals()[name] = getattr(import_module(f"msmqwire.insight.{module}"), name)
    return value
