"""Sockets and clocks: what drives the roles that do no I/O themselves."""

from __future__ import annotations
