"""The columns of the topology table, and the names that its faults and violations use: [MS-MQSD] 2.2."""

from __future__ import annotations

from msmqwire.columns.schema import (
    BOOL,
    BYTES,
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
from msmqwire.mqsd.kernel import Field, Presence, Violation
from msmqwire.wire.transport import Transport

__all__ = ["FIELDS", "REPLY_COLUMNS", "REQUEST_COLUMNS", "TOPOLOGY", "TRANSPORTS", "Violation"]

FIELDS = tuple([field.name for field in Field])
TRANSPORTS = {"unknown": Transport.UNKNOWN.value, "udp": Transport.UDP.value, "ipx": Transport.IPX.value}

TOPOLOGY = Table(
    name="topology",
    section="[MS-MQSD] 2.2",
    columns=(
        Column("type", Enumeration(("request", "reply")), "Type of the TopologyPacketHeader"),
        Column("version", UINT8, "Version of the TopologyPacketHeader; receivers ignore it"),
        Column("enterprise_id", GUID, "request: the enterprise of the client", Presence.HAS_REQUEST),
        Column(
            "request_id",
            GUID,
            "request: one for each discovery run, echoed by replies",
            Presence.HAS_REQUEST,
            values="distinct",
        ),
        Column("site_id", GUID, "request: the site of the client", Presence.HAS_REQUEST),
        Column(
            "ipx_networks", ListOf(UINT32, smallest=4), "request in the IPX form: its network numbers", Presence.HAS_IPX
        ),
        Column("correlation_id", GUID, "reply: the request_id that it answers", Presence.HAS_REPLY, values="distinct"),
        Column(
            "connected_network_mask",
            UINT32,
            "reply: a bit for each connected network over IPX, 0 over IP",
            Presence.HAS_REPLY,
        ),
        Column(
            "connected_networks",
            ListOf(GUID, smallest=16),
            "reply: the connected networks of the server",
            Presence.HAS_REPLY,
        ),
        Column("responding_site_id", GUID, "reply from another site: the site of the server", Presence.HAS_REMOTE),
        Column(
            "servers",
            ListOf(StructOf((("name", TEXT), ("ip", BOOL), ("ipx", BOOL))), smallest=8),
            "reply from another site: its directory servers and the transports they speak",
            Presence.HAS_REMOTE,
        ),
        Column("trailing", BYTES, "bytes after the last field; those of a request are ignored", Presence.HAS_TRAILING),
    ),
    fields=FIELDS,
    violations=Violation,
    rules=(
        ("version_nonzero", "Version is 0 ([MS-MQSD] 2.2.1)"),
        ("reserved_nonzero", "Reserved is 0 ([MS-MQSD] 2.2.1)"),
        ("ipx_fields_on_ip", "a request over IP has no IPX fields ([MS-MQSD] 2.2.2)"),
        ("mask_nonzero_on_ip", "ConnectedNetworkMask of a reply is 0 over IP ([MS-MQSD] 2.2.3)"),
        ("mask_count_mismatch", "over IPX ConnectedNetworkMask has one bit for each network ([MS-MQSD] 2.2.3)"),
        ("trailing_bytes", "nothing follows the last field of a reply ([MS-MQSD] 2.2.3)"),
    ),
)

REQUEST_COLUMNS = (
    "type",
    "version",
    "enterprise_id",
    "request_id",
    "site_id",
    "ipx_networks",
    "trailing",
    "fault",
    "violations",
)
REPLY_COLUMNS = (
    "type",
    "version",
    "correlation_id",
    "connected_network_mask",
    "connected_networks",
    "responding_site_id",
    "servers",
    "trailing",
    "fault",
    "violations",
)
