"""Answers from decoded tables: who speaks MSMQ, which queues there are and who uses them, what is wrong.

``summarize`` counts, ``SECTIONS`` has the tables of its result, and ``COLUMNS`` the columns that it needs.
"""

from __future__ import annotations

from msmqwire.insight.sections import COLUMNS, SECTIONS, Section
from msmqwire.insight.summary import Summary, summarize

__all__ = ["COLUMNS", "SECTIONS", "Section", "Summary", "summarize"]
