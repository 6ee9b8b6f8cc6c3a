"""How many connections a process may have: the system limits its open files."""

from __future__ import annotations

import contextlib
import sys

_MOST_FILES = 1 << 16
_MOST_CONNECTIONS = 4096
_KEPT_FILES = 64


def most_connections() -> int:
    """Allow as many descriptors as the system does; return the number of connections that leaves some for files."""
    if sys.platform == "win32":  # it has no such limit
        return _MOST_CONNECTIONS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    # Those that end take descriptors for a while
    return max(1, min(_MOST_CONNECTIONS, soft // 4 if soft < 4 * _KEPT_FILES else soft - 2 * _KEPT_FILES))
