"""Text of addresses: IPv4 in dotted form, IPv6 as RFC 5952 writes it."""

from __future__ import annotations

import io
import itertools
from ipaddress import IPv4Address, IPv6Address

from msmqwire import capture
from tests.capture import build


def shown(packets: list[bytes], kind: int) -> list[str]:
    """The sources of IP packets, as text."""
    file = io.BytesIO(build.pcap([build.ethernet(kind, packet) for packet in packets]))
    with capture.read_table(file, "sessions", ports=[build.PORT], columns=["src"], dictionaries=False) as reader:
        return [str(address) for batch in reader for address in batch["src"].to_pylist()]


def test_every_run_of_zero_groups() -> None:
    """The longest one is shortened, the first of equal ones, and no single group."""
    groups = itertools.product((0, 0xDB8), repeat=8)
    addresses = [str(IPv6Address(b"".join(group.to_bytes(2, "big") for group in one))) for one in groups]
    assert shown([build.ipv6(build.udp(b""), source=one) for one in addresses], build.IPV6) == addresses


def test_numbers_of_every_length() -> None:
    groups = (1, 0xF, 0x10, 0xFF, 0x100, 0xFFF, 0x1000, 0xFFFF)
    six = [str(IPv6Address(f"{group:x}:1:{group:x}:1:1:1:1:{group:x}")) for group in groups]
    assert shown([build.ipv6(build.udp(b""), source=one) for one in six], build.IPV6) == six
    four = [str(IPv4Address(bytes([number, 255 - number, number, 9]))) for number in range(256)]
    assert shown([build.ipv4(build.udp(b""), source=one) for one in four], build.IPV4) == four
