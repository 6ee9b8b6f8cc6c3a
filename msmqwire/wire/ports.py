"""The ports at which queue managers and directory servers listen."""

from __future__ import annotations

SESSION_PORT = 1801
"""The TCP port of queue managers: [MS-MQQB] 2.1.1."""

PING_PORT = 3527
"""The UDP port of pings: [MS-MQQB] 2.1.2."""

DISCOVERY_PORT = 1801
"""The UDP port of directory servers: [MS-MQSD] 1.9."""

DISCOVERY_SOCKET = 876
"""The IPX socket of directory servers: [MS-MQSD] 2.1."""
