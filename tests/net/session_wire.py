"""The other end of a session on a real socket: packets of the reference one by one, or a complete peer."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import uuid4

from tests.reference.mqqb_session import QueueManager, Session
from tests.reference.mqqb_session_packets import (
    GUID_NULL,
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    SessionHeader,
    UserMessage,
    first_packet,
    read,
)

Kind = TypeVar("Kind", EstablishConnection, ConnectionParameters, SessionAck, UserMessage)

#: Seconds in which what must come has come.
DEADLINE = 30.0


class Wire:
    """One connection, of which every packet is written and read by hand."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.socket.settimeout(DEADLINE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.identifier = uuid4().bytes
        self.remote = GUID_NULL
        self._data = b""

    @classmethod
    def connect(cls, host: str, port: int) -> Wire:
        """A connection, as soon as somebody listens."""
        until = time.monotonic() + DEADLINE
        while True:
            try:
                return cls(socket.create_connection((host, port), DEADLINE))
            except ConnectionRefusedError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def write(self, *packets: Packet | bytes) -> None:
        self.socket.sendall(b"".join(each if isinstance(each, bytes) else each.pack() for each in packets))

    def read_any(self) -> Packet | None:
        """The next packet; None at the end of the connection, regular or not."""
        packet = self.read_packet()
        return read(packet) if packet else None

    def read_packet(self) -> bytes:
        """The bytes of the next packet; none at the end of the connection."""
        while True:
            packet, self._data = first_packet(self._data)
            if packet:
                return packet
            try:
                received = self.socket.recv(1 << 16)
            except ConnectionError:
                received = b""
            if not received:
                assert not self._data, f"the connection ended inside a packet: {self._data.hex()}"
                return b""
            self._data += received

    def read(self, kind: type[Kind]) -> Kind:
        """The next packet, which must be of this kind."""
        packet = self.read_any()
        assert isinstance(packet, kind), packet
        return packet

    def waits(self, seconds: float = 0.3) -> bool:
        """Whether no packet comes for a while; one that does is not lost."""
        if self._data:
            return False
        self.socket.settimeout(seconds)
        try:
            received = self.socket.recv(1 << 16)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(DEADLINE)
        self._data += received
        return False

    def is_closed(self) -> bool:
        """Whether the other end closes now, without another packet."""
        return self.read_any() is None

    def read_to_end(self) -> list[Packet]:
        """All packets up to the end of the connection."""
        packets = []
        while (packet := self.read_any()) is not None:
            packets.append(packet)
        return packets

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """End the connection with RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # --- whole handshakes ---

    def accept_session(self, parameters: ConnectionParameters | None = None) -> ConnectionParameters:
        """The acceptor's part of 3.1.5.3 and 3.1.5.4; gives the initiator's parameters."""
        request = self.read(EstablishConnection)
        self.remote = request.client_guid
        self.write(replace(request, server_guid=self.identifier, padding=b"\x5a" * 512))
        asked = self.read(ConnectionParameters)
        self.write(parameters or replace(asked, window_size=64))
        return asked

    def open_session(self, parameters: ConnectionParameters | None = None) -> ConnectionParameters:
        """The initiator's part; gives the acceptor's parameters."""
        self.write(EstablishConnection(self.identifier, GUID_NULL, 1))
        response = self.read(EstablishConnection)
        assert not response.refused
        self.remote = response.server_guid
        self.write(parameters or ConnectionParameters())
        return self.read(ConnectionParameters)

    def message(self, number: int, body: bytes = b"", **fields: Any) -> UserMessage:
        """A message from here; a short body is its label too."""
        label = body.decode() if len(body) < 20 else ""
        return replace(UserMessage(self.identifier, number, body, label=label), **fields)

    def ack(self, count: int, recoverable: int = 0, flags: int = 0, window: int = 64) -> None:
        """Acknowledge with a SessionAck of an end that has sent no messages."""
        self.write(SessionAck(SessionHeader(count, recoverable, flags, 0, 0, window)))


def listener(host: str = "127.0.0.1") -> socket.socket:
    """A listening socket of any port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family)
    made.bind((host, 0))
    made.listen(64)
    made.settimeout(DEADLINE)
    return made


def free_port(host: str = "127.0.0.1") -> int:
    """A port on which nobody listens now."""
    with listener(host) as made:
        port: int = made.getsockname()[1]
        return port


@contextlib.contextmanager
def in_thread(run: Callable[[], None]) -> Iterator[None]:
    """Something that runs beside the block; what it raises fails the test when both have ended."""
    raised: list[BaseException] = []

    def catch() -> None:
        try:
            run()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=catch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(2 * DEADLINE)
        if raised:
            raise raised[0]
    assert not thread.is_alive(), "the peer still waits"


@dataclass
class Peer:
    """The reference peer on sockets: one thread accepts or opens connections and drives their sessions."""

    manager: QueueManager
    sessions: list[Session] = field(default_factory=list)

    def drive(self, connections: list[tuple[socket.socket, Session]], done: Callable[[], bool]) -> None:
        """Move bytes and time until ``done`` or all connections have ended."""
        with selectors.DefaultSelector() as selector:
            for connection, session in connections:
                connection.setblocking(False)
                selector.register(connection, selectors.EVENT_READ, session)
            while selector.get_map() and not done():
                for key, _ in selector.select(0.01):
                    session = key.data
                    assert isinstance(key.fileobj, socket.socket)
                    try:
                        data = key.fileobj.recv(1 << 16)
                    except BlockingIOError:
                        continue
                    except ConnectionError:
                        data = b""
                    session.receive(data, time.monotonic())
                    if not data:
                        session.close("end of the connection")
                for key in list(selector.get_map().values()):
                    session = key.data
                    assert isinstance(key.fileobj, socket.socket)
                    session.advance(time.monotonic())
                    key.fileobj.setblocking(True)
                    with contextlib.suppress(ConnectionError):
                        key.fileobj.sendall(session.take_output())
                    key.fileobj.setblocking(False)
                    if session.closed:
                        selector.unregister(key.fileobj)
                        key.fileobj.close()

    def session(self, *, initiator: bool) -> Session:
        made = Session(self.manager, time.monotonic(), initiator=initiator)
        self.sessions.append(made)
        return made

    def send_to(self, host: str, port: int) -> None:
        """Send all messages, over as many connections as it takes."""
        while self.manager.OutgoingMessageTable:
            wire = Wire.connect(host, port)
            session = self.session(initiator=True)
            self.drive([(wire.socket, session)], lambda: not self.manager.OutgoingMessageTable)
            wire.close()

    def serve(self, listening: socket.socket, done: Callable[[], bool]) -> None:
        """Accept one connection after the other until ``done``."""
        listening.settimeout(0.05)
        while not done():
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            session = self.session(initiator=False)
            self.drive([(connection, session)], done)
            connection.close()
