"""The table of MS-MQSD: the fields of topology packets, their columns, and the rules that packets can break.

[MS-MQSD] 2.2. ``make build`` writes ``_generated.pxd`` from this table.
"""

from __future__ import annotations

from msmqwire.columns.fields import Field, Header, Violations, enumerated, fault_names, packet_table
from msmqwire.columns.schema import BOOL, BYTES, GUID, TEXT, UINT32, Enumeration, ListOf, StructOf

TRANSPORTS = ("unknown", "udp", "ipx")


class Violation(Violations):
    """Bits of the ``violations`` column of the topology table; with ``strict=True`` the last three are faults."""

    VERSION_NONZERO = "Version", "[MS-MQSD] 2.2.1", "Version is 0"
    RESERVED_NONZERO = "Reserved", "[MS-MQSD] 2.2.1", "Reserved is 0"
    IPX_FIELDS_ON_IP = "IPXNetworkCount", "[MS-MQSD] 2.2.2", "a request over IP has no IPX fields"
    MASK_NONZERO_ON_IP = (
        "ConnectedNetworkMask", "[MS-MQSD] 2.2.3", "ConnectedNetworkMask of a reply is 0 over IP", "bad_value",
    )  # fmt: skip
    MASK_COUNT_MISMATCH = (
        "ConnectedNetworkMask",
        "[MS-MQSD] 2.2.3",
        "over IPX ConnectedNetworkMask has one bit for each network",
        "bad_value",
    )
    TRAILING_BYTES = (
        "DirectoryServiceServerSize", "[MS-MQSD] 2.2.3", "nothing follows the last field of a reply", "bad_size",
    )  # fmt: skip


HEADERS = (
    Header(
        "HEADER",
        (
            Field(
                "Type", "u8", 1, "type", "Type of the TopologyPacketHeader",
                shown=Enumeration.of({1: "request", 2: "reply"}), store="codes.TYPE",
                names={1: "TopologyClientRequest", 2: "TopologyServerReply"},
                checks={"bad_type": "not (type == 1) and not (type == 2)"},
            ),
            Field(
                "Version", "u8", 0, "version", "Version of the TopologyPacketHeader; receivers ignore it",
                checks={"version_nonzero": "version > 0"},
            ),
            Field("Reserved", "u16", 2, id="reserved", checks={"reserved_nonzero": "reserved > 0"}),
        ),
    ),
    Header(
        "REQUEST_FIELDS",
        (
            Field("EnterpriseID", "guid", 4, "enterprise_id", "request: the enterprise of the client"),
            Field(
                "RequestID", "guid", 20, "request_id", "request: one for each discovery run, echoed by replies",
                values="distinct",
            ),
            Field(
                "SiteID", "guid", 36, "site_id", "request: the site of the client",
                checks={"ipx_fields_on_ip": "left >= 8"},
            ),
            Field(
                "IPX fields", "bytes", -1, "ipx_networks", "request in the IPX form: its network numbers",
                shown=ListOf(UINT32, smallest=4), presence="HAS_IPX", store="lists.IPX_NETWORKS",
                when="left > 0", size="left", faults=("IPXNetworkCount", "IPXNetworkNumberArray"),
            ),
        ),
        when="type == 1",
        presence="HAS_REQUEST",
    ),
    Header(
        "REPLY_FIELDS",
        (
            Field(
                "CorrelationID", "guid", 4, "correlation_id", "reply: the request_id that it answers", values="distinct"
            ),
            Field(
                "ConnectedNetworkCount", "u32", 20, id="count", checks={"bad_count": "count == 0 or count > 32"}
            ),
            Field(
                "ConnectedNetworkMask", "u32", 24, "connected_network_mask",
                "reply: a bit for each connected network over IPX, 0 over IP",
                checks={"mask_nonzero_on_ip": "connected_network_mask > 0"},
            ),
            Field(
                "DirectoryServiceServerSize", "u32", 28, id="size",
                checks={"bad_size": "bits(size, 0, 1) == 1 or (size > 0 and size < 8)"},
            ),
            Field(
                "ConnectedNetworkArray", "bytes", -1, "connected_networks",
                "reply: the connected networks of the server",
                shown=ListOf(GUID, smallest=16), store="lists.NETWORKS", size="count * 16",
            ),
        ),
        when="type == 2",
        presence="HAS_REPLY",
    ),
    Header(
        "RESPONDING_SITE",
        (
            Field(
                "RespondingSiteID", "guid", 0, "responding_site_id", "reply from another site: the site of the server"
            ),
            Field(
                "DirectoryServiceServerArray", "text", -1, "servers",
                "reply from another site: its directory servers and the transports they speak",
                shown=ListOf(StructOf((("name", TEXT), ("ip", BOOL), ("ipx", BOOL))), smallest=8),
                store="lists.SERVERS", size="size",
            ),
        ),
        when="type == 2 and size > 0",
        presence="HAS_REMOTE",
    ),
    Header(
        "",
        (
            Field(
                "", column="trailing", about="bytes after the last field; those of a request are ignored", shown=BYTES,
                store="parts.TRAILING",
            ),
        ),
        presence="HAS_TRAILING",
    ),
)  # fmt: skip

FIELDS = fault_names(HEADERS)
TOPOLOGY = packet_table("topology", "[MS-MQSD] 2.2", HEADERS, FIELDS, Violation)


def own_columns(kind: int) -> tuple[str, ...]:
    """The columns of packets of one Type that the packets of the other do not have."""
    headers = (header for header in HEADERS if header.when.startswith(f"type == {kind}"))
    return enumerated(row.column for header in headers for row in header.fields)


def _columns_of(kind: int) -> tuple[str, ...]:
    other = f"type == {3 - kind}"
    columns = [row.column for header in HEADERS if not header.when.startswith(other) for row in header.fields]
    return (*enumerated(columns), "fault", "violations")


REQUEST_COLUMNS = _columns_of(1)
REPLY_COLUMNS = _columns_of(2)
