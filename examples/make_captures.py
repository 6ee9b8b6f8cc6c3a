"""Write the three sample captures beside this file, byte for byte the same on every run.

``local-site.pcap`` is ordinary traffic: machines look for a directory server and find one in their own
site, between DNS and ARP. ``other-site.pcapng`` is the other half of life: replies from another site, IPv6,
fields that do not belong on IP, and packets that are broken. ``message-session.pcap`` is one session in which messages
travel, change notifications among them. Everything is packed with ``struct`` here and
nothing is taken from msmqwire, so that the captures are evidence and not an echo of the decoder.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

HERE = Path(__file__).parent

MSMQ, PING, DNS = 1801, 3527, 53
IPV4, ARP, VLAN, IPV6 = 0x0800, 0x0806, 0x8100, 0x86DD
TCP, UDP = 6, 17
FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10

# The enterprise, sites and network of the examples in [MS-MQSD] 4, and the three packets printed there.
ENTERPRISE = UUID("e6eaba61-d1c6-11db-baac-0003ff4e2d22")
SERVER_SITE = UUID("e6eaba60-d1c6-11db-baac-0003ff4e2d22")
CLIENT_SITE = UUID("dcc51bf6-d4ad-4543-8739-71568e8f9128")
NETWORK = UUID("e6eaba62-d1c6-11db-baac-0003ff4e2d22")
SECOND_NETWORK = UUID("e6eaba63-d1c6-11db-baac-0003ff4e2d22")
PRINTED_ID = UUID("f291a103-e33c-ab4f-a930-be3a33e432dd")
PRINTED_REQUEST = bytes.fromhex(
    "0001000061baeae6c6d1db11baac0003ff4e2d2203a191f23ce34faba930be3a33e432ddf61bc5dcadd44345873971568e8f9128"
)
PRINTED_LOCAL_REPLY = bytes.fromhex(
    "0002000003a191f23ce34faba930be3a33e432dd01000000000000000000000062baeae6c6d1db11baac0003ff4e2d22"
)
PRINTED_REMOTE_REPLY = bytes.fromhex(
    "0002000003a191f23ce34faba930be3a33e432dd01000000000000001200000062baeae6c6d1db11baac0003ff4e2d22"
    "60baeae6c6d1db11baac0003ff4e2d22310030006e00740034007000650063000000"
)


# A directory server and a queue manager of its site that holds a queue
SERVER_QM = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")
CLIENT_QM = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
QUEUE = UUID("5f1c2a34-77d0-4b6e-9a51-0c8d7e2f4b19")
NOTIFY_QUEUE, ORDER_QUEUE = 3, 4


class Frame(NamedTuple):
    """One captured frame and when it was seen, in nanoseconds since 1970."""

    time: int
    data: bytes


# Packets


def request(request_id: UUID, site: UUID, ipx_networks: Iterable[int] = ()) -> bytes:
    """A TopologyClientRequest ([MS-MQSD] 2.2.2); with networks, in its IPX form."""
    networks = list(ipx_networks)
    packet = struct.pack("<BBH", 0, 1, 0) + ENTERPRISE.bytes_le + request_id.bytes_le + site.bytes_le
    if networks:
        packet += struct.pack(f"<I{len(networks)}I", len(networks), *networks)
    return packet


def reply(correlation_id: UUID, networks: list[UUID], site: UUID | None = None, servers: str = "") -> bytes:
    """A TopologyServerReply ([MS-MQSD] 2.2.3); ``servers`` is the text of the array, unterminated."""
    array = (servers + "\0").encode("utf-16-le") if servers else b""
    packet = struct.pack("<BBH", 0, 2, 0) + correlation_id.bytes_le
    packet += struct.pack("<III", len(networks), 0, len(array))
    packet += b"".join(network.bytes_le for network in networks)
    return packet + (site.bytes_le if site else b"") + array


def packet(flags: int, content: bytes, seconds: int = 0xFFFFFFFF, behind: bytes = b"") -> bytes:
    """A packet of a session: BaseHeader ([MS-MQMQ] 2.2.19.1) and what follows; PacketSize leaves out ``behind``."""
    return struct.pack("<BxH4sII", 0x10, flags, b"LIOR", 16 + len(content), seconds) + content + behind


def ping(cookie: int, manager: UUID, *, refused: bool = False) -> bytes:
    """A Ping packet ([MS-MQQB] 2.2.7)."""
    return struct.pack("<HHI", 2 * refused, 0x5548, cookie) + manager.bytes_le


def establish_connection(client: UUID, server: UUID, milliseconds: int) -> bytes:
    """An EstablishConnection packet ([MS-MQQB] 2.2.3); a ping went before it."""
    fields = client.bytes_le + server.bytes_le + struct.pack("<IHH", milliseconds, 0x0210, 0)
    return packet(0x000B, struct.pack("<HH", 0, 2) + fields + b"\x5a" * 512)


def connection_parameters(recoverable_ack: int, ack: int, window: int) -> bytes:
    """A ConnectionParameters packet ([MS-MQQB] 2.2.2), times in milliseconds."""
    return packet(0x000B, struct.pack("<HHIIHH", 0, 3, recoverable_ack, ack, 0, window))


def session_header(received: int, sent: int, *, stored: int = 0, recoverable: int = 0) -> bytes:
    """A SessionHeader ([MS-MQMQ] 2.2.20.4): how many messages were received and sent on the session."""
    return struct.pack("<HHIHHHH", received, stored, bool(stored), sent, recoverable, 64, 0)


def session_ack(header: bytes) -> bytes:
    """A SessionAck packet ([MS-MQQB] 2.2.6)."""
    return packet(0x001B, struct.pack("<HH", 0, 1) + header)


def padded(data: bytes) -> bytes:
    """The data up to a multiple of four bytes."""
    return data + b"\0" * (-len(data) % 4)


def user_message(
    source: UUID,
    target: UUID,
    queue: int | str,
    number: int,
    sent: int,
    body: bytes,
    *,
    label: str = "",
    message_class: int = 0,
    recoverable: bool = False,
    priority: int = 3,
    sequence: tuple[int, int] | None = None,
    session: bytes = b"",
    seconds: int = 300,
) -> bytes:
    """A UserMessage packet ([MS-MQMQ] 2.2.20) to a private queue of the target, or to a direct name.

    ``sequence`` makes it transactional: its TxSequenceID and TxSequenceNumber. A change notification is signed by
    nobody here, and names its sender in a SecurityHeader.
    """
    if isinstance(queue, int):
        flags, address, destination = 3 << 10, target.bytes_le, struct.pack("<I", queue)
    else:
        name = f"{queue}\0".encode("utf-16-le")
        flags, address, destination = 7 << 10, bytes(16), padded(struct.pack("<H", len(name)) + name)
    is_notification = queue == NOTIFY_QUEUE
    flags |= 1 << 21 | recoverable << 5 | is_notification << 19 | (sequence is not None) << 20
    content = source.bytes_le + address + struct.pack("<IIII", 0xFFFFFFFF, sent, number, flags) + destination
    if sequence is not None:
        content += struct.pack("<IQII", number << 4 | 0xE, *sequence, sequence[1] - 1)
    if is_notification:
        content += struct.pack("<HHHHII", 0x82, 16, 0, 0, 0, 0) + source.bytes_le
    text = f"{label}\0".encode("utf-16-le") if label else b""
    properties = struct.pack("<BBH20xII", 0, len(text) // 2, message_class, 0, 0)
    properties += struct.pack("<6I", len(body), len(body), 0, 0x8004, 0x6610, 0)
    content += padded(properties + text + body)
    base = 0 if message_class else priority
    return packet(base | bool(session) << 4, content, seconds, session)


def notification_update(command: int, properties: bytes, values: bytes) -> bytes:
    """A Notification Update ([MS-MQCN] 2.2.6) of the queue."""
    head = struct.pack("<BB", command, 1) + QUEUE.bytes_le + SERVER_QM.bytes_le + bytes(24)
    return head + struct.pack("<B", len(properties) // 4) + properties + values


def dns_query(name: str, number: int) -> bytes:
    """A DNS query for the address of ``name``."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)


def dns_answer(name: str, number: int, address: str) -> bytes:
    """The DNS answer to ``dns_query``."""
    query = dns_query(name, number)
    record = struct.pack(">HHHIH", 0xC00C, 1, 1, 3600, 4) + ip_address(address).packed
    return struct.pack(">6H", number, 0x8580, 1, 1, 0, 0) + query[12:] + record


# Layers


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip(src: str, dst: str, protocol: int, segment: bytes) -> bytes:
    """An IPv4 or IPv6 packet around a transport segment."""
    source, target = ip_address(src), ip_address(dst)
    if source.version == 6:
        return struct.pack(">IHBB", 6 << 28, len(segment), protocol, 64) + source.packed + target.packed + segment
    fixed = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0, 128, protocol, 0)
    header = fixed + source.packed + target.packed
    return header[:10] + struct.pack(">H", checksum(header)) + header[12:] + segment


def udp(src: str, src_port: int, dst: str, dst_port: int, payload: bytes) -> bytes:
    """An IP packet with one UDP datagram."""
    length = 8 + len(payload)
    pseudo = ip_address(src).packed + ip_address(dst).packed + struct.pack(">II", length, UDP)
    total = checksum(pseudo + struct.pack(">4H", src_port, dst_port, length, 0) + payload) or 0xFFFF
    return ip(src, dst, UDP, struct.pack(">4H", src_port, dst_port, length, total) + payload)


def tcp(
    src: str, src_port: int, dst: str, dst_port: int, flags: int, seq: int, ack: int = 0, data: bytes = b""
) -> bytes:
    """An IP packet with one TCP segment."""
    fixed = struct.pack(">HHIIBBHHH", src_port, dst_port, seq, ack, 5 << 4, flags, 64240, 0, 0)
    pseudo = ip_address(src).packed + ip_address(dst).packed + struct.pack(">HH", TCP, len(fixed) + len(data))
    total = checksum(pseudo + fixed + data)
    return ip(src, dst, TCP, fixed[:16] + struct.pack(">H", total) + fixed[18:] + data)


class Conversation:
    """The frames of a TCP connection between two hosts, each of which acknowledges what it has seen."""

    def __init__(self, client: str, client_port: int, server: str, server_port: int) -> None:
        self.ends = (client, client_port), (server, server_port)
        self.sent = [0x1D0C0DE5, 0x7A3B19C0]
        self.frames = [self._segment(0, SYN), self._segment(1, SYN | ACK), self._segment(0, ACK)]

    def _segment(self, end: int, flags: int, data: bytes = b"") -> bytes:
        (src, src_port), (dst, dst_port) = self.ends[end], self.ends[1 - end]
        ack = self.sent[1 - end] if flags & ACK else 0
        packet = tcp(src, src_port, dst, dst_port, flags, self.sent[end], ack, data)
        self.sent[end] += len(data) + bool(flags & (SYN | FIN))
        return ethernet(IPV4, packet)

    def send(self, end: int, *segments: bytes) -> None:
        """Data from one end (0 is the client), in the segments given."""
        self.frames += [self._segment(end, ACK | PSH, data) for data in segments]

    def close(self) -> None:
        """The client closes, then the server."""
        self.frames += [self._segment(0, ACK | FIN), self._segment(1, ACK | FIN), self._segment(0, ACK)]


def ethernet(kind: int, data: bytes, *, broadcast: bool = False, vlan: int | None = None) -> bytes:
    """An Ethernet frame; with ``vlan``, tagged (IEEE 802.1Q)."""
    addresses = (b"\xff" * 6 if broadcast else b"\x02\x00\x5e\x00\x00\x01") + b"\x02\x00\x5e\x00\x00\x02"
    tag = struct.pack(">HH", VLAN, vlan) if vlan is not None else b""
    return addresses + tag + struct.pack(">H", kind) + data


# Files


def pcap(frames: list[Frame]) -> bytes:
    """A classic capture: little-endian, microseconds, Ethernet."""
    out = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for time, data in frames:
        seconds, nanoseconds = divmod(time, 1_000_000_000)
        out += struct.pack("<4I", seconds, nanoseconds // 1000, len(data), len(data)) + data
    return bytes(out)


def pcapng_block(kind: int, body: bytes) -> bytes:
    """One pcapng block: its length stands at both ends and is a multiple of four."""
    body += b"\0" * (-len(body) % 4)
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))


def pcapng_option(code: int, value: bytes) -> bytes:
    """One pcapng option, padded to a multiple of four."""
    return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def pcapng(frames: list[Frame]) -> bytes:
    """A pcapng capture: one section, one Ethernet interface that counts nanoseconds (if_tsresol 9)."""
    end = struct.pack("<HH", 0, 0)
    out = bytearray(pcapng_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    interface = struct.pack("<HHI", 1, 0, 65535) + pcapng_option(2, b"eth0") + pcapng_option(9, b"\x09") + end
    out += pcapng_block(1, interface)
    for time, data in frames:
        header = struct.pack("<5I", 0, time >> 32, time & 0xFFFFFFFF, len(data), len(data))
        out += pcapng_block(6, header + data + b"\0" * (-len(data) % 4))
    return bytes(out)


# Stories


def local_site() -> list[Frame]:
    """A machine finds a server of its own site, and so does one on a VLAN."""
    client, server, resolver, tagged = "10.20.1.25", "10.20.1.10", "10.20.1.1", "10.20.7.31"
    second = UUID("5b0f7a1e-52c5-4f0e-9c41-6f2a0a4f7d10")
    who_has = struct.pack(">HHBBH", 1, IPV4, 6, 4, 1) + b"\x02\x00\x5e\x00\x00\x02" + ip_address(client).packed
    who_has += b"\0" * 6 + ip_address(server).packed
    name = "mq-dc1.corp.example"
    start = 1_709_539_200_000_000_000  # 2024-03-04 08:00:00 UTC
    frames = [
        ethernet(ARP, who_has, broadcast=True),
        ethernet(IPV4, udp(client, 53124, resolver, DNS, dns_query(name, 0x2A01))),
        ethernet(IPV4, udp(resolver, DNS, client, 53124, dns_answer(name, 0x2A01, server))),
        ethernet(IPV4, udp(client, 49712, "10.20.1.255", MSMQ, PRINTED_REQUEST), broadcast=True),
        ethernet(IPV4, udp(server, MSMQ, client, 49712, PRINTED_LOCAL_REPLY)),
        ethernet(IPV4, tcp(client, 49713, server, MSMQ, SYN, 0x1D0C0DE5)),
        ethernet(
            IPV4,
            udp(tagged, 49901, "10.20.7.255", MSMQ, request(second, CLIENT_SITE)),
            broadcast=True,
            vlan=7,
        ),
        ethernet(IPV4, udp("10.20.7.10", MSMQ, tagged, 49901, reply(second, [NETWORK, SECOND_NETWORK])), vlan=7),
    ]
    return [Frame(start + 1_250_000 * index, data) for index, data in enumerate(frames)]


def other_site() -> list[Frame]:
    """Replies from another site, IPv6, fields that do not belong on IP, and payloads that cannot be decoded."""
    client, server, resolver = "10.30.4.18", "10.20.1.10", "10.30.4.1"
    client6, server6 = "2001:db8:30::18", "2001:db8:20::10"
    second, third, fourth = (UUID(f"7d1c2e90-0b{n:02x}-4a55-8e11-3c9f5d20a4b{n}") for n in (2, 3, 4))
    answered = reply(second, [NETWORK, SECOND_NETWORK], SERVER_SITE, "10MQ-DC1,11MQ-DC2,10BÜRO-東京")
    cut = reply(third, [NETWORK], SERVER_SITE, "10MQ-DC1,11MQ-DC2")[:-12]
    bad_flag = reply(third, [NETWORK], SERVER_SITE, "10MQ-DC1,1xMQ-DC2")
    no_networks = reply(third, [])
    trailing = reply(fourth, [NETWORK]) + b"\xde\xad\xbe\xef"
    start = 1_709_539_260_000_000_000  # 2024-03-04 08:01:00 UTC
    name = "mq-dc2.corp.example"
    frames = [
        ethernet(IPV4, udp(client, 53200, resolver, DNS, dns_query(name, 0x2B01))),
        ethernet(IPV4, udp(client, 49800, "10.30.4.255", MSMQ, PRINTED_REQUEST), broadcast=True),
        ethernet(IPV4, udp(server, MSMQ, client, 49800, PRINTED_REMOTE_REPLY)),
        ethernet(IPV4, udp(client, 49801, "10.30.4.255", MSMQ, request(second, CLIENT_SITE)), broadcast=True),
        ethernet(IPV4, udp(server, MSMQ, client, 49801, answered)),
        ethernet(IPV6, udp(client6, 49802, server6, MSMQ, request(fourth, CLIENT_SITE))),
        ethernet(IPV6, udp(server6, MSMQ, client6, 49802, trailing)),
        # IPX fields MUST NOT be present on IP (2.2.2), yet a server answers: a violation, not a fault
        ethernet(
            IPV4,
            udp(client, 49803, "10.30.4.255", MSMQ, request(third, CLIENT_SITE, [0x0A1E0400, 0x0A140100])),
        ),
        ethernet(IPV4, udp(server, MSMQ, client, 49803, cut)),
        ethernet(IPV4, udp(server, MSMQ, client, 49803, bad_flag)),
        ethernet(IPV4, udp(server, MSMQ, client, 49803, no_networks)),
        ethernet(IPV4, udp(client, 53201, resolver, DNS, dns_query("time.corp.example", 0x2B02))),
    ]
    return [Frame(start + 2_000_417 * index, data) for index, data in enumerate(frames)]


def message_session() -> list[Frame]:
    """A directory server tells a queue manager of changes and sends it an order, which is acknowledged."""
    server, manager = "10.20.1.10", "10.20.1.25"
    start = 1_709_539_320_000_000_000  # 2024-03-04 08:02:00 UTC
    now = start // 1_000_000_000
    quota = notification_update(1, struct.pack("<2I", 115, 105), CLIENT_QM.bytes_le + struct.pack("<I", 65536))
    journal = notification_update(1, struct.pack("<2I", 115, 104), CLIENT_QM.bytes_le + b"\1")
    delete = notification_update(2, struct.pack("<2I", 1403, 1404), b"\1\1")
    text = (
        f"<Notification><Event>2</Event><ObjectGuid>{str(QUEUE).upper()}</ObjectGuid >"
        "<DomainController>mq-dc1.corp.example</DomainController></Notification>"
    )
    order = "<order><city>Graz</city>" + "<item>4711</item>" * 100 + "</order>"
    first = user_message(SERVER_QM, CLIENT_QM, NOTIFY_QUEUE, 101, now, b"\1\2" + quota + journal)
    second = user_message(SERVER_QM, CLIENT_QM, NOTIFY_QUEUE, 102, now, b"\1\1" + delete)
    third = user_message(
        SERVER_QM, CLIENT_QM, f"TCP:{manager}\\private$\\orders", 103, now, order.encode("utf-16-le"),
        label="Order 4711", recoverable=True, priority=0, sequence=(0x65E57C0000000001, 1), seconds=345600,
    )  # fmt: skip
    news = user_message(
        CLIENT_QM, SERVER_QM, NOTIFY_QUEUE, 7, now, b"\2\1" + text.encode("utf-16-le"),
        session=session_header(3, 1, stored=1),
    )  # fmt: skip
    order_ack = user_message(
        CLIENT_QM, SERVER_QM, ORDER_QUEUE, 8, now, struct.pack("<QII20x", 0x65E57C0000000001, 1, 0),
        label="QM Ordering Ack", message_class=0xFF, seconds=0xFFFFFFFF,
    )  # fmt: skip
    talk = Conversation(server, 50211, manager, MSMQ)
    for end in (0, 1):
        talk.send(end, establish_connection(SERVER_QM, CLIENT_QM, 501140046))
    for end in (0, 1):
        talk.send(end, connection_parameters(1496, 120000, 64))
    # Two packets in one segment, then one in three: packets know nothing of segments
    talk.send(0, first + second)
    talk.send(0, third[:1460], third[1460:2920], third[2920:])
    talk.send(1, news, order_ack)
    talk.send(0, session_ack(session_header(2, 3, recoverable=1)))
    talk.close()
    pings = [
        ethernet(IPV4, udp(server, 50210, manager, PING, ping(4, SERVER_QM))),
        ethernet(IPV4, udp(manager, PING, server, 50210, ping(4, CLIENT_QM))),
    ]
    return [Frame(start + 3_100_000 * index, data) for index, data in enumerate([*pings, *talk.frames])]


def captures() -> dict[str, bytes]:
    """The files, by name."""
    return {
        "local-site.pcap": pcap(local_site()),
        "other-site.pcapng": pcapng(other_site()),
        "message-session.pcap": pcap(message_session()),
    }


def main() -> None:
    """Write the files and say how large they are."""
    for name, data in captures().items():
        (HERE / name).write_bytes(data)
        print(f"{name}: {len(data)} bytes")


if __name__ == "__main__":
    main()
