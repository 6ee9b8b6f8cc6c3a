"""Parts of topology packets as values."""

from __future__ import annotations

from typing import Literal, NamedTuple

TransportName = Literal["unknown", "udp", "ipx"]


class DirectoryServiceServer(NamedTuple):
    """One entry of a DirectoryServiceServerArray: a NetBIOS name and the transports its server speaks."""

    name: str
    ip: bool = True
    ipx: bool = False
