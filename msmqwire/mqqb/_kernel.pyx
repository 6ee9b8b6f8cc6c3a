"""The section that a packet lacks: zeros."""

from libc.string cimport memset

memset(BLANK, 0, sizeof(BLANK))
