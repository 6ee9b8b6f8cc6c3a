"""The section that a packet lacks: zeros."""

from libc.string cimport memset

__all__ = ["Field", "Presence", "SessionPresence", "Violation"]

memset(BLANK, 0, sizeof(BLANK))
