"""The fields of pings and of the packets of sessions, by the headers that they stand in: [MS-MQQB] 2.2.

``make build`` writes ``mqqb/_generated.pxd`` from these rows.
"""

from __future__ import annotations

from msmqwire.columns.fields import Field, Header
from msmqwire.columns.schema import BOOL, BYTES, Enumeration
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
            Field("", column="kind", about="which packet", shown=Enumeration(SESSION_KINDS), store="codes.KIND"),
        ),
        presence="HAS_KIND",
    ),
    Header(
        "BASE",
        (
            *BASE_START,
            Field(
                "PacketSize", "u32", 8, "packet_size", "PacketSize; null for a ping",
                checks={"too_large": f"packet_size > {LARGEST_PACKET:#x}"},
            ),
            Field(
                "BaseHeader.Flags", "u16", 2, "base_flags", "BaseHeader.Flags as received",
                checks={
                    "bad_type": "not has(base_flags, 8)",
                    "reserved_flags": f"has(base_flags, {RESERVED_BASE:#x})",
                    "message_flags": "has(base_flags, 0x20) or has(base_flags, 0x100)",
                },
            ),
            Field(
                "TimeToReachQueue", "u32", 12, id="time_to_reach_queue", time="s",
                checks={"time_to_reach_queue": f"time_to_reach_queue < {FOR_EVER:#x}"},
            ),
            Field("PR", "bits", 2, bits=(0, 3)),
            Field("IN", "bits", 2, bits=(3, 1)),
            Field("SH", "bits", 2, bits=(4, 1)),
            Field("DH", "bits", 2, bits=(5, 1)),
            Field("TR", "bits", 2, bits=(8, 1)),
        ),
        presence="IS_PACKET",
        faults=("BaseHeader",),
    ),
    Header(
        "INTERNAL",
        (
            Field(
                "InternalHeader.Reserved", "u16", 0, id="internal_reserved",
                checks={"reserved_nonzero": "internal_reserved > 0"},
            ),
            Field(
                "InternalHeader.Flags", "u16", 2, "internal_flags", "InternalHeader.Flags as received",
                checks={
                    "bad_type": "bits(internal_flags, 0, 4) == 0 or bits(internal_flags, 0, 4) > 3",
                    "reserved_flags": f"has(internal_flags, {RESERVED_INTERNAL:#x})",
                    "message_flags": "has(base_flags, 0x10) and not (bits(internal_flags, 0, 4) == 1)",
                    "connection_refused": "bits(internal_flags, 0, 4) == 1 and has(internal_flags, 16)",
                },
            ),
            Field(
                "PT", "bits", 2, bits=(0, 4),
                names={1: "SessionAck", 2: "EstablishConnection", 3: "ConnectionParameters"},
            ),
            Field("CS", "bits", 2, bits=(4, 1)),
        ),
        presence="IS_PACKET",
        faults=("InternalHeader",),
    ),
    Header(
        "PINGED",
        (
            Field("Ping.Cookie", "u32", 4, "cookie", "ping: Cookie, which the answer repeats"),
            Field("Ping.QMGuid", "guid", 8, "queue_manager", "ping: QMGuid"),
            Field(
                "RC", "bits", 0, "initiator_is_client", "ping: Flags.RC, the initiator is not a server", bits=(0, 1),
                default=False,
            ),
            Field("Ping.Flags", "u16", 0, id="flags"),
            Field(
                "Ping.Signature", "u16", 2, id="signature",
                checks={"bad_signature": f"not (signature == {PING_SIGNATURE:#x})"},
            ),
            Field("RF", "bits", 0, bits=(1, 1)),
        ),
        presence="IS_PING",
        layout="ping",
        faults=("Ping",),
    ),
    Header(
        "",
        (
            Field(
                "", column="refused", about="ping: Flags.RF; else InternalHeader.Flags.CS", shown=BOOL,
                store="codes.REFUSED", default=False,
            ),
        ),
        presence="HAS_KIND",
    ),
    Header(
        "ESTABLISH",
        (
            Field("ClientGuid", "guid", 0, "client_guid", "connection: ClientGuid"),
            Field(
                "ServerGuid", "guid", 16, "server_guid", "connection: ServerGuid, zeros for a direct name", default=NIL,
            ),
            Field("TimeStamp", "u32", 32, "time_stamp", "connection: TimeStamp in milliseconds", time="ms", default=0),
            Field(
                "OperatingSystem", "u16", 36, "operating_system", "connection: OperatingSystem",
                checks={
                    "operating_system": f"not (bits(operating_system, 0, 8) == {RESIDENT_SYSTEM:#x})",
                    "reserved_flags": f"has(operating_system, {RESERVED_SYSTEM:#x})",
                },
                default=0x0310,
            ),
            Field(
                "EstablishConnection.Reserved", "u16", 38, id="establish_reserved",
                checks={"reserved_nonzero": "establish_reserved > 0"},
            ),
            Field("Padding", "bytes", size="512"),
            Field("RE", "bits", 36, bits=(0, 8)),
            Field("SE", "bits", 36, bits=(8, 1)),
            Field("OS", "bits", 36, bits=(9, 1)),
            Field("QS", "bits", 36, bits=(10, 1)),
        ),
        when="bits(internal_flags, 0, 4) == 2",
        presence="IS_ESTABLISH",
        faults=("EstablishConnectionHeader",),
    ),
    Header(
        "PARAMETERS",
        (
            Field(
                "RecoverableAckTimeout", "u32", 0, "recoverable_ack_timeout",
                "parameters: RecoverableAckTimeout in milliseconds", time="ms",
            ),
            Field(
                "AckTimeout", "u32", 4, "ack_timeout", "parameters: AckTimeout in milliseconds", time="ms",
                checks={
                    "timeout_range": (
                        f"recoverable_ack_timeout < {LEAST_RECOVERABLE_ACK_TIMEOUT:#x} "
                        f"or recoverable_ack_timeout > {LARGEST_ACK_TIMEOUT:#x} "
                        f"or ack_timeout < {LEAST_ACK_TIMEOUT:#x} or ack_timeout > {LARGEST_ACK_TIMEOUT:#x}"
                    ),
                },
            ),
            Field(
                "ConnectionParameters.Reserved", "u16", 8, id="parameters_reserved",
                checks={"reserved_nonzero": "parameters_reserved > 0"},
            ),
            Field("WindowSize", "u16", 10, "window_size"),
        ),
        when="bits(internal_flags, 0, 4) == 3",
        presence="IS_PARAMETERS",
        faults=("ConnectionParametersHeader",),
    ),
    Header(
        "WINDOW",
        (
            Field("", "u16", 0, "window_size", "parameters and acknowledgment: WindowSize in messages"),
        ),
        presence="HAS_WINDOW",
    ),
    Header(
        "SESSION",
        (
            *session_fields("acknowledgment: ", default=0),
            WINDOW_SIZE,
            Field("SessionHeader.Reserved", "u16", 14),
        ),
        when="bits(internal_flags, 0, 4) == 1",
        presence="IS_SESSION_ACK",
        faults=("SessionHeader",),
    ),
    Header(
        "",
        (
            Field(
                "", column="trailing", about="bytes that belong to no known field", shown=BYTES, store="parts.TRAILING",
            ),
        ),
        presence="HAS_TRAILING_BYTES",
    ),
)  # fmt: skip
