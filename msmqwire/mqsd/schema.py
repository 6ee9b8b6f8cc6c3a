"""The table of MS-MQSD: the fields of topology packets, their columns, and the rules that packets can break.

[MS-MQSD] 2.2. ``make build`` writes ``_generated.pxd`` from this table.
"""

from __future__ import annotations

from msmqwire.columns.fields import Header, Violations, WireField, fault_names, packet_table
from msmqwire.columns.schema import (
    BOOL,
    BYTES,
    GUID,
    TEXT,
    UINT8,
    UINT32,
    Column,
    Enumeration,
    FaultRule,
    ListOf,
    StructOf,
)

TRANSPORTS = ("unknown", "udp", "ipx")

#: Of either array of networks.
MAX_NETWORKS = 32
#: Bytes of a server with an empty name, and of the array of it.
SMALLEST_SERVER_ARRAY = 8

_TYPES = Enumeration.of({1: "request", 2: "reply"})
#: Enumerations of kernels.
NUMBERS = {"PacketType": {**{name.upper(): number for name, number in _TYPES.by_name.items()}, "NO_TYPE": _TYPES.null}}


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
            WireField(
                "Type", "u8", 1, names={1: "TopologyClientRequest", 2: "TopologyServerReply"},
                checks={"bad_type": "not (type == 1) and not (type == 2)"},
                column=Column(
                    "type", _TYPES, "Type of the TopologyPacketHeader",
                    store="codes.TYPE",
                ),
            ),
            WireField("Version", "u8", 0, checks={"version_nonzero": "version > 0"}, column=Column(
                "version", UINT8, "Version of the TopologyPacketHeader; receivers ignore it",
            )),
            WireField("Reserved", "u16", 2, id="reserved", checks={"reserved_nonzero": "reserved > 0"}),
        ),
    ),
    Header(
        "REQUEST_FIELDS",
        (
            WireField("EnterpriseID", "guid", 4, column=Column(
                "enterprise_id", GUID, "request: the enterprise of the client",
            )),
            WireField("RequestID", "guid", 20, column=Column(
                "request_id", GUID, "request: one for each discovery run, echoed by replies", values="distinct",
            )),
            WireField("SiteID", "guid", 36, checks={"ipx_fields_on_ip": "left >= 8"}, column=Column(
                "site_id", GUID, "request: the site of the client",
            )),
            WireField(
                "IPX fields", "bytes",
                column=Column(
                    "ipx_networks", ListOf(UINT32, smallest=4), "request in the IPX form: its network numbers",
                    bit="HAS_IPX", store="lists.IPX_NETWORKS",
                ),
                when="left > 0", size="left", faults=("IPXNetworkCount", "IPXNetworkNumberArray"),
            ),
        ),
        when="type == 1",
        presence="HAS_REQUEST",
    ),
    Header(
        "REPLY_FIELDS",
        (
            WireField("CorrelationID", "guid", 4, column=Column(
                "correlation_id", GUID, "reply: the request_id that it answers", values="distinct",
            )),
            WireField(
                "ConnectedNetworkCount", "u32", 20, id="count",
                checks={"bad_count": f"count == 0 or count > {MAX_NETWORKS}"},
            ),
            WireField(
                "ConnectedNetworkMask", "u32", 24, checks={"mask_nonzero_on_ip": "connected_network_mask > 0"},
                column=Column(
                    "connected_network_mask", UINT32, "reply: a bit for each connected network over IPX, 0 over IP",
                ),
            ),
            WireField(
                "DirectoryServiceServerSize", "u32", 28, id="size",
                checks={"bad_size": f"bits(size, 0, 1) == 1 or (size > 0 and size < {SMALLEST_SERVER_ARRAY})"},
            ),
            WireField("ConnectedNetworkArray", "bytes", size="count * 16", column=Column(
                "connected_networks", ListOf(GUID, smallest=16), "reply: the connected networks of the server",
                store="lists.NETWORKS",
            )),
        ),
        when="type == 2",
        presence="HAS_REPLY",
    ),
    Header(
        "RESPONDING_SITE",
        (
            WireField("RespondingSiteID", "guid", 0, column=Column(
                "responding_site_id", GUID, "reply from another site: the site of the server",
            )),
            WireField("DirectoryServiceServerArray", "text", size="size", column=Column(
                "servers", ListOf(StructOf((("name", TEXT), ("ip", BOOL), ("ipx", BOOL))), SMALLEST_SERVER_ARRAY),
                "reply from another site: its directory servers and the transports they speak", store="lists.SERVERS",
            )),
        ),
        when="type == 2 and size > 0",
        presence="HAS_REMOTE",
    ),
    Header(
        "",
        (
            Column(
                "trailing", BYTES, "bytes after the last field; those of a request are ignored", store="parts.TRAILING",
            ),
        ),
        presence="HAS_TRAILING",
    ),
)  # fmt: skip

FIELDS = fault_names(HEADERS)
FAULT_RULES = (
    FaultRule("truncated", "", "the payload ends inside the field"),
    FaultRule("bad_type", "Type", "neither 1 (request) nor 2 (reply)"),
    FaultRule(
        "bad_count",
        "IPXNetworkCount",
        f"not 1 to {MAX_NETWORKS}, in a request of 60 bytes or more that is not known to be from UDP",
    ),
    FaultRule("bad_count", "ConnectedNetworkCount", f"not 1 to {MAX_NETWORKS}"),
    FaultRule(
        "bad_size",
        "DirectoryServiceServerSize",
        f"odd, or 2, 4 or 6: the smallest array takes {SMALLEST_SERVER_ARRAY} bytes",
    ),
    FaultRule("bad_flag", "DirectoryServiceServerArray", "a flag of an entry is neither `0` nor `1`; at the flag"),
    FaultRule("bad_name", "DirectoryServiceServerArray", "the name of an entry is empty; at the name"),
    FaultRule(
        "bad_terminator",
        "DirectoryServiceServerArray",
        "a U+0000 before the end, or none at the end; at that code unit, or the end of the array",
    ),
)
TOPOLOGY = packet_table("topology", "[MS-MQSD] 2.2", HEADERS, FIELDS, Violation, FAULT_RULES)


_HEADER, _REQUEST, _REPLY, _SITE, _TRAILING = HEADERS
#: Bytes of the fixed parts, each with those before it; a request has no other in the IP form.
HEADER_SIZE, REQUEST_SIZE, REPLY_FIXED_SIZE = _HEADER.size, _REQUEST.size, _REPLY.size


def _columns(*headers: Header) -> tuple[str, ...]:
    return tuple([column.name for header in headers for column, _ in header.columns])


#: The columns of packets of one Type that the packets of the other do not have.
OWN_OF_REQUESTS, OWN_OF_REPLIES = _columns(_REQUEST), _columns(_REPLY, _SITE)
REQUEST_COLUMNS = (*_columns(_HEADER, _REQUEST, _TRAILING), "fault", "violations")
REPLY_COLUMNS = (*_columns(_HEADER, _REPLY, _SITE, _TRAILING), "fault", "violations")
