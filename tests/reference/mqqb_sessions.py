"""The oracle of pings and of the packets of sessions, [MS-MQQB] 2.2."""

from __future__ import annotations

from tests.reference.mqqb_walk import NOT_RESERVED, PING_SIZE, SESSION_HEADER, Framed, Walk
from tests.reference.reader import MalformedError, Reader


class Ping(Walk):
    """Ping packet, [MS-MQQB] 2.2.7."""

    def __init__(self, data: bytes) -> None:
        super().__init__("sessions", Reader(data))
        self.payload = data
        flags, signature, cookie, guid = self.unpack("HHI16s", "Ping")
        if signature != 0x5548:
            raise MalformedError("bad_signature", "Ping.Signature", 2)
        self.values.update(
            kind="ping", cookie=cookie, queue_manager=guid, initiator_is_client=bool(flags & 1), refused=bool(flags & 2)
        )
        self.finish(PING_SIZE, PING_SIZE, len(data), "Ping")

    packet = Walk.outcome


class Internal(Framed):
    """EstablishConnection, ConnectionParameters and SessionAck packets, [MS-MQQB] 2.2.2, 2.2.3 and 2.2.6."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, "sessions")
        reserved, flags = self.unpack("HH", "InternalHeader")
        kind = flags & 0xF
        if kind not in (1, 2, 3):
            raise MalformedError("bad_type", "InternalHeader.Flags", 18)
        if kind == 1 and not self.has_session:
            raise MalformedError("bad_flag", "BaseHeader.Flags", 2)
        self.values["refused"] = bool(flags & 0x10)
        self.values["internal_flags"] = flags
        self.note("reserved_flags", (self.flags & ~NOT_RESERVED) | (flags & 0xFFE0))
        self.note("time_to_reach_queue", self.time_to_reach_queue != 0xFFFFFFFF)
        self.note("reserved_nonzero", reserved)
        self.note("connection_refused", kind == 1 and flags & 0x10)
        self.note("message_flags", self.flags & 0x120 or (kind != 1 and self.has_session))
        if kind == 1:
            self.values["kind"] = "session_ack"
            self.session_header(self.unpack(SESSION_HEADER, "SessionHeader"))
        elif kind == 2:
            self.establish_connection()
        else:
            self.connection_parameters()
        self.finish(self.size, self.end, len(data), "PacketSize")

    packet = Walk.outcome

    def establish_connection(self) -> None:
        """2.2.3.1."""
        client, server, time_stamp, system, reserved = self.unpack("16s16sIHH512x", "EstablishConnectionHeader")
        self.note("operating_system", system & 0xFF != 0x10)
        self.note("reserved_flags", "reserved_flags" in self.found or system >> 11)
        self.note("reserved_nonzero", "reserved_nonzero" in self.found or reserved)
        self.values.update(
            kind="establish_connection",
            client_guid=client,
            server_guid=server,
            time_stamp=time_stamp,
            operating_system=system,
        )

    def connection_parameters(self) -> None:
        """2.2.2.1."""
        recoverable, timeout, reserved, window = self.unpack("IIHH", "ConnectionParametersHeader")
        self.note("reserved_nonzero", "reserved_nonzero" in self.found or reserved)
        self.note("timeout_range", not (0x1F4 <= recoverable <= 0x1D4C0) or not (0x4E20 <= timeout <= 0x1D4C0))
        self.values.update(
            kind="connection_parameters",
            recoverable_ack_timeout=recoverable,
            ack_timeout=timeout,
            window_size=window,
        )
