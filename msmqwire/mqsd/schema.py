"""The columns of the topology table, and the names that its faults and violations use: [MS-MQSD] 2.2."""

from __future__ import annotations

from enum import IntFlag

from msmqwire.columns.schema import (
    BOOL,
    GUID,
    TEXT,
    UINT8,
    UINT32,
    Column,
    Enumeration,
    ListOf,
    StructOf,
    Table,
)

__all__ = ["FIELDS", "REPLY_COLUMNS", "REQUEST_COLUMNS", "TOPOLOGY", "Violation"]

# In the order of the enumeration Field in codec.pxd
FIELDS = (
    "Version",
    "Type",
    "Reserved",
    "EnterpriseID",
    "RequestID",
    "SiteID",
    "IPXNetworkCount",
    "IPXNetworkNumberArray",
    "CorrelationID",
    "ConnectedNetworkCount",
    "ConnectedNetworkMask",
    "DirectoryServiceServerSize",
    "ConnectedNetworkArray",
    "RespondingSiteID",
    "DirectoryServiceServerArray",
)

# The bits of a presence byte above DECODED, as codec.pxd has them
REQUEST, REPLY, IPX, REMOTE = 2, 4, 8, 16


class Violation(IntFlag):
    """Bits of the ``violations`` column of the topology table; with ``strict=True`` the last three are faults."""

    VERSION_NONZERO = 1
    RESERVED_NONZERO = 2
    IPX_FIELDS_ON_IP = 4
    MASK_NONZERO_ON_IP = 8
    MASK_COUNT_MISMATCH = 16
    TRAILING_BYTES = 32


TOPOLOGY = Table(
    name="topology",
    section="[MS-MQSD] 2.2",
    columns=(
        Column("type", Enumeration(("request", "reply")), "Type of the TopologyPacketHeader"),
        Column("version", UINT8, "Version of the TopologyPacketHeader; receivers ignore it"),
        Column("enterprise_id", GUID, "request: the enterprise of the client", REQUEST),
        Column("request_id", GUID, "request: one for each discovery run, echoed by replies", REQUEST),
        Column("site_id", GUID, "request: the site of the client", REQUEST),
        Column("ipx_networks", ListOf(UINT32), "request in the IPX form: its network numbers", IPX),
        Column("correlation_id", GUID, "reply: the request_id that it answers", REPLY),
        Column("connected_network_mask", UINT32, "reply: a bit for each connected network over IPX, 0 over IP", REPLY),
        Column("connected_networks", ListOf(GUID), "reply: the connected networks of the server", REPLY),
        Column("responding_site_id", GUID, "reply from another site: the site of the server", REMOTE),
        Column(
            "servers",
            ListOf(StructOf((("name", TEXT), ("ip", BOOL), ("ipx", BOOL)))),
            "reply from another site: its directory servers and the transports they speak",
            REMOTE,
        ),
    ),
    fields=FIELDS,
    violations=Violation,
)

REQUEST_COLUMNS = ("type", "version", "enterprise_id", "request_id", "site_id", "ipx_networks", "fault", "violations")
REPLY_COLUMNS = (
    "type",
    "version",
    "correlation_id",
    "connected_network_mask",
    "connected_networks",
    "responding_site_id",
    "servers",
    "fault",
    "violations",
)
