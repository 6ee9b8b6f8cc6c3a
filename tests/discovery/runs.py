"""What client tests are made of: networks, replies packed by hand, and runs brought to where a rule holds."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence
from ipaddress import IPv4Interface

from msmqwire import mqsd
from msmqwire.discovery import Deliver, Discovery, DiscoveryClient, NetworkAddress, Send, WaitUntil
from msmqwire.discovery.client import Action

ENTERPRISE, SITE, RUN = uuid.UUID(int=0xE1), uuid.UUID(int=0x51), uuid.UUID(int=0xF1)
OTHER_SITE, OTHER_RUN = uuid.UUID(int=0x52), uuid.UUID(int=0xF2)
NEAR, FAR, FARTHER = uuid.UUID(int=0xC1), uuid.UUID(int=0xC2), uuid.UUID(int=0xC3)


def network(number: int, *, remote_access: bool = False) -> NetworkAddress:
    own = IPv4Interface(f"10.20.{number}.25/24")
    return NetworkAddress(own, own.network.broadcast_address, f"eth{number}", remote_access)


A, B, C = (network(number) for number in (1, 2, 3))
DIAL_UP = network(9, remote_access=True)


def local(*networks: uuid.UUID, run: uuid.UUID = RUN) -> bytes:
    """The reply of a server in the client's site: DirectoryServiceServerSize is 0."""
    ids = networks or (NEAR,)
    return struct.pack("<BBH16sIII", 0, 2, 0, run.bytes_le, len(ids), 0, 0) + b"".join(i.bytes_le for i in ids)


def remote(*entries: str, networks: Sequence[uuid.UUID] = (FAR,), run: uuid.UUID = RUN) -> bytes:
    """The reply of a server of another site: ``entries`` are flags and names, as in ``10nt4pec``."""
    array = (",".join(entries or ("10far",)) + "\0").encode("utf-16-le", "surrogatepass")
    head = struct.pack("<BBH16sIII", 0, 2, 0, run.bytes_le, len(networks), 0, len(array))
    return head + b"".join(i.bytes_le for i in networks) + OTHER_SITE.bytes_le + array


def request(run: uuid.UUID = RUN) -> bytes:
    """The request that a client of ENTERPRISE and SITE sends."""
    return struct.pack("<BBH16s16s16s", 0, 1, 0, ENTERPRISE.bytes_le, run.bytes_le, SITE.bytes_le)


def client(*, literal: bool = False) -> DiscoveryClient:
    return DiscoveryClient(enterprise_id=ENTERPRISE, site_id=SITE, literal=literal)


def started(*networks: NetworkAddress, literal: bool = False, at: float = 0.0) -> DiscoveryClient:
    """A client that has asked on the first network at time ``at``."""
    machine = client(literal=literal)
    assert sent(machine.get_directory_server_list(networks, request_id=RUN, now=at), networks[0], at)
    return machine


def sent(actions: list[Action], to: NetworkAddress, at: float) -> bool:
    """Whether the actions are those of 3.1.5.1 and nothing else: start the timer, broadcast."""
    return actions == [WaitUntil(at + 15.0), Send(to, request())]


def delivered(actions: list[Action]) -> Discovery:
    """The result, which must be all there is."""
    (action,) = actions
    assert isinstance(action, Deliver)
    return action.result


def variables(machine: DiscoveryClient) -> dict[str, object]:
    """All that a client knows but its counters."""
    names = vars(machine)
    return {name: value for name, value in names.items() if not name.startswith("_")} | {
        "kept": (machine._kept, machine._kept_remote)
    }


def server_names(machine: DiscoveryClient) -> list[str]:
    return list(machine.directory_server_list)


def decoded(data: bytes) -> mqsd.TopologyServerReply:
    packet = mqsd.decode(data)
    assert isinstance(packet, mqsd.TopologyServerReply)
    return packet
