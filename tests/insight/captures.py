"""Captures that tests of summaries, findings and reports read, packed by examples/make_captures.py."""

from __future__ import annotations

import runpy
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.vectors import get

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted(ROOT.glob("examples/*.pcap*"))
WRITER: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "make_captures.py"))
START = 1_709_539_200_000_000_000
FIRST, SECOND, THIRD = (UUID(f"{digit * 8}-1111-4222-8333-444444444444") for digit in "abc")


def stream(
    packets: Sequence[bytes], client: str = "192.0.2.7", server: str = "10.20.1.25", port: int = 40001
) -> list[bytes]:
    """The frames of a TCP connection in which the client sends packets."""
    talk = WRITER["Conversation"](client, port, server, 1801)
    for packet in packets:
        talk.send(0, *(packet[at : at + 1460] for at in range(0, len(packet), 1460)))
    talk.close()
    frames: list[bytes] = talk.frames
    return frames


def datagram(
    payload: bytes, src: str = "192.0.2.7", dst: str = "10.20.1.25", port: int = 49712, to: int = 1801
) -> bytes:
    """The frame of a UDP datagram."""
    frame: bytes = WRITER["ethernet"](0x0800, WRITER["udp"](src, port, dst, to, payload))
    return frame


def write(path: Path, frames: Sequence[bytes], step: int = 1_000_000) -> Path:
    """Write frames as a capture."""
    path.write_bytes(WRITER["pcap"]([WRITER["Frame"](START + step * at, frame) for at, frame in enumerate(frames)]))
    return path


def message(
    source: UUID = FIRST, queue: int | str = "OS:server\\private$\\orders", number: int = 1, **changes: Any
) -> bytes:
    """A message to a queue."""
    body = changes.pop("body", b"<a/>")
    packet: bytes = WRITER["user_message"](
        source, changes.pop("target", SECOND), queue, number, 1_709_539_200, body, **changes
    )
    return packet


def hopped(packet: bytes, hops: int) -> bytes:
    """A message with another number of hops: UserHeader.Flags.RC."""
    (flags,) = struct.unpack_from("<I", packet, 60)
    return packet[:60] + struct.pack("<I", flags & ~31 | hops) + packet[64:]


def vector(name: str) -> bytes:
    """The payload of a vector of messages or sessions."""
    data: bytes = get("mqqb", name).data
    return data
