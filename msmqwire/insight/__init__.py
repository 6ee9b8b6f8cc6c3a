"""Answers from decoded tables: who speaks MSMQ, which queues there are and who uses them, what is wrong.

``summarize`` counts, ``SECTIONS`` has the tables of its result, and ``COLUMNS`` the columns that it needs.
"""

from __future__ import annotations

from msmqwire.errors import require

require("pyarrow", "msmqwire.insight")

from msmqwire.insight.sections import COLUMNS, SECTIONS, Section  # noqa: E402
from msmqwire.insight.summary import Summary, summarize  # noqa: E402

__all__ = ["COLUMNS", "SECTIONS", "Section", "Summary", "summarize"]
