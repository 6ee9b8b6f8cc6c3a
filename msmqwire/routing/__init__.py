"""Routing: the next hops of a message by the algorithm of [MS-MQBR], from the data of a directory."""

from __future__ import annotations

from msmqwire.routing.destination import DestinationInfo, get_destination_info, host_of
from msmqwire.routing.graph import SiteGraph
from msmqwire.routing.route import Hop, Route, find_route
from msmqwire.routing.router import QUERY_INTERVAL, NextHops, Router, Rule
from msmqwire.routing.table import RoutingTable, RoutingTableRow

__all__ = [
    "QUERY_INTERVAL",
    "DestinationInfo",
    "Hop",
    "NextHops",
    "Route",
    "Router",
    "RoutingTable",
    "RoutingTableRow",
    "Rule",
    "SiteGraph",
    "find_route",
    "get_destination_info",
    "host_of",
]


def __dir__() -> list[str]:
    return __all__
