"""The fields of pings and of the packets of sessions, by the headers that they stand in: [MS-MQQB] 2.2.

``make build`` writes ``mqqb/_generated.pxd`` from these rows.
"""

from __future__ import annotations

from msmqwire.columns.fields import Header, WireField, flag
from msmqwire.columns.schema import BOOL, BYTES, GUID, REQUIRED, UINT16, UINT32, Column, Enumeration
from msmqwire.mqqb.framing import LARGEST_PACKET
from msmqwire.mqqb.message.schema import BASE_START, WINDOW_SIZE, session_fields
from msmqwire.mqqb.numbers import (
    FOR_EVER,
    LARGEST_ACK_TIMEOUT,
    LEAST_ACK_TIMEOUT,
    LEAST_RECOVERABLE_ACK_TIMEOUT,
    PING_SIGNATURE,
    RESERVED_BASE,
    RESERVED_INTERNAL,
    RESERVED_SYSTEM,
    RESIDENT_SYSTEM,
)
from msmqwire.wire.guids import NIL

SESSION_KINDS = ("ping", "establish_connection", "connection_parameters", "session_ack")

SESSION_HEADERS = (
    Header(
        "",
        (
            Column("kind", Enumeration(SESSION_KINDS), "which packet", store="codes.KIND"),
        ),
        presence="HAS_KIND",
    ),
    Header(
        "BASE",
        (
            *BASE_START,
            WireField(
                "PacketSize", "u32", 8, column=Column("packet_size", UINT32, "PacketSize; null for a ping"),
                checks={"too_large": f"packet_size > {LARGEST_PACKET:#x}"},
            ),
            WireField(
                "BaseHeader.Flags", "u16", 2, column=Column("base_flags", UINT16, "BaseHeader.Flags as received"),
                checks={
                    "bad_type": "not has(base_flags, 8)",
                    "reserved_flags": f"has(base_flags, {RESERVED_BASE:#x})",
                    "message_flags": "has(base_flags, 0x20) or has(base_flags, 0x100)",
                },
            ),
            WireField(
                "TimeToReachQueue", "u32", 12, id="time_to_reach_queue", time="s",
                checks={"time_to_reach_queue": f"time_to_reach_queue < {FOR_EVER:#x}"},
            ),
            WireField("PR", "bits", 2, bits=(0, 3)),
            flag("IN", 2, 3),
            flag("SH", 2, 4),
            flag("DH", 2, 5),
            flag("TR", 2, 8),
        ),
        presence="IS_PACKET",
        faults=("BaseHeader",),
    ),
    Header(
        "INTERNAL",
        (
            WireField(
                "InternalHeader.Reserved", "u16", 0, id="internal_reserved",
                checks={"reserved_nonzero": "internal_reserved > 0"},
            ),
            WireField(
                "InternalHeader.Flags", "u16", 2,
                column=Column("internal_flags", UINT16, "InternalHeader.Flags as received"),
                checks={
                    "bad_type": "bits(internal_flags, 0, 4) == 0 or bits(internal_flags, 0, 4) > 3",
                    "reserved_flags": f"has(internal_flags, {RESERVED_INTERNAL:#x})",
                    "message_flags": "has(base_flags, 0x10) and not (bits(internal_flags, 0, 4) == 1)",
                    "connection_refused": "bits(internal_flags, 0, 4) == 1 and has(internal_flags, 16)",
                },
            ),
            WireField(
                "PT", "bits", 2, bits=(0, 4),
                names={1: "SessionAck", 2: "EstablishConnection", 3: "ConnectionParameters"},
            ),
            flag("CS", 2, 4),
        ),
        presence="IS_PACKET",
        faults=("InternalHeader",),
    ),
    Header(
        "PINGED",
        (
            WireField("Ping.Cookie", "u32", 4, column=Column(
                "cookie", UINT32, "ping: Cookie, which the answer repeats", default=REQUIRED,
            )),
            WireField("Ping.QMGuid", "guid", 8, column=Column("queue_manager", GUID, "ping: QMGuid", default=REQUIRED)),
            flag("RC", 0, 0, Column(
                "initiator_is_client", BOOL, "ping: Flags.RC, the initiator is not a server", default=False,
            )),
            WireField("Ping.Flags", "u16", 0, id="flags"),
            WireField(
                "Ping.Signature", "u16", 2, id="signature",
                checks={"bad_signature": f"not (signature == {PING_SIGNATURE:#x})"},
            ),
            flag("RF", 0, 1),
        ),
        presence="IS_PING",
        layout="ping",
        faults=("Ping",),
    ),
    Header(
        "",
        (
            Column(
                "refused", BOOL, "ping: Flags.RF; else InternalHeader.Flags.CS", store="codes.REFUSED", default=False,
            ),
        ),
        presence="HAS_KIND",
    ),
    Header(
        "ESTABLISH",
        (
            WireField("ClientGuid", "guid", 0, column=Column(
                "client_guid", GUID, "connection: ClientGuid", default=REQUIRED,
            )),
            WireField("ServerGuid", "guid", 16, column=Column(
                "server_guid", GUID, "connection: ServerGuid, zeros for a direct name", default=NIL,
            )),
            WireField("TimeStamp", "u32", 32, time="ms", column=Column(
                "time_stamp", UINT32, "connection: TimeStamp in milliseconds", default=0,
            )),
            WireField(
                "OperatingSystem", "u16", 36,
                column=Column("operating_system", UINT16, "connection: OperatingSystem", default=0x0310),
                checks={
                    "operating_system": f"not (bits(operating_system, 0, 8) == {RESIDENT_SYSTEM:#x})",
                    "reserved_flags": f"has(operating_system, {RESERVED_SYSTEM:#x})",
                },
            ),
            WireField(
                "EstablishConnection.Reserved", "u16", 38, id="establish_reserved",
                checks={"reserved_nonzero": "establish_reserved > 0"},
            ),
            WireField("Padding", "bytes", size="512"),
            WireField("RE", "bits", 36, bits=(0, 8)),
            flag("SE", 36, 8),
            flag("OS", 36, 9),
            flag("QS", 36, 10),
        ),
        when="bits(internal_flags, 0, 4) == 2",
        presence="IS_ESTABLISH",
        faults=("EstablishConnectionHeader",),
    ),
    Header(
        "PARAMETERS",
        (
            WireField("RecoverableAckTimeout", "u32", 0, time="ms", column=Column(
                "recoverable_ack_timeout", UINT32, "parameters: RecoverableAckTimeout in milliseconds",
                default=REQUIRED,
            )),
            WireField(
                "AckTimeout", "u32", 4, time="ms",
                checks={
                    "timeout_range": (
                        f"recoverable_ack_timeout < {LEAST_RECOVERABLE_ACK_TIMEOUT:#x} "
                        f"or recoverable_ack_timeout > {LARGEST_ACK_TIMEOUT:#x} "
                        f"or ack_timeout < {LEAST_ACK_TIMEOUT:#x} or ack_timeout > {LARGEST_ACK_TIMEOUT:#x}"
                    ),
                },
                column=Column("ack_timeout", UINT32, "parameters: AckTimeout in milliseconds", default=REQUIRED),
            ),
            WireField(
                "ConnectionParameters.Reserved", "u16", 8, id="parameters_reserved",
                checks={"reserved_nonzero": "parameters_reserved > 0"},
            ),
            WireField("WindowSize", "u16", 10, fills="window_size"),
        ),
        when="bits(internal_flags, 0, 4) == 3",
        presence="IS_PARAMETERS",
        faults=("ConnectionParametersHeader",),
    ),
    Header(
        "WINDOW",
        (
            WireField("WindowSize", "u16", 0, column=Column(
                "window_size", UINT16, "parameters and acknowledgment: WindowSize in messages", default=REQUIRED,
            )),
        ),
        presence="HAS_WINDOW",
        layout=None,
    ),
    Header(
        "SESSION",
        (
            *session_fields("acknowledgment: ", default=0),
            WINDOW_SIZE,
            WireField("SessionHeader.Reserved", "u16", 14),
        ),
        when="bits(internal_flags, 0, 4) == 1",
        presence="IS_SESSION_ACK",
        faults=("SessionHeader",),
    ),
    Header(
        "",
        (
            Column("trailing", BYTES, "bytes that belong to no known field", store="parts.TRAILING"),
        ),
        presence="HAS_TRAILING_BYTES",
    ),
)  # fmt: skip
