"""The section that a packet lacks: zeros."""

from libc.string cimport memset

from msmqwire.wire.flags import make_flags

__all__ = ["Field", "Presence", "SessionPresence", "Violation"]

make_flags(globals(), "Presence", "SessionPresence", "Violation")

memset(BLANK, 0, sizeof(BLANK))
