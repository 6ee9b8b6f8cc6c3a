"""The discovery server on real sockets: who is answered, from where, and what happens when sending fails."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from msmqwire.discovery.rates import Rate
from msmqwire.discovery.server import Refusal
from msmqwire.net.discovery_server import DiscoveryService, Event, dropped_by_kernel, open_socket
from msmqwire.net.host_addresses import Address
from tests.contract.checklist import row
from tests.discovery.sites import V1, V2, V3, request, server, unlimited
from tests.net.discovery_services import LOOPBACK, SECONDS, between_datagrams, client, running
from tests.net.socket_errors import ERRORS_OF_RECV, ERRORS_OF_SEND, OF_THE_SOCKET

SO_RXQ_OVFL = 40


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so, and fail if it does not come to that."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def events(caplog: pytest.LogCaptureFixture, name: str) -> list[dict[str, object]]:
    found = (cast(object, record.msg) for record in caplog.records)
    return [event.fields for event in found if isinstance(event, Event) and event.name == name]


@row("SDS-07")
def test_the_reply_goes_to_its_sender() -> None:
    with running(DiscoveryService(server(), [LOOPBACK])) as service, client() as one, client("127.0.0.2") as two:
        (address,) = service.addresses
        for number, asking in enumerate((one, two)):
            asking.sendto(request(request_id=UUID(int=number)), address)
        for number, asking in ((1, two), (0, one)):
            reply, source = asking.recvfrom(2048)
            assert (reply[4:20], source) == (UUID(int=number).bytes_le, address)


def test_listens_where_it_is_told_and_answers_from_there() -> None:
    with running(DiscoveryService(server(), [LOOPBACK, ("127.0.0.3", 0)])) as service, client() as asking:
        assert [host for host, _ in service.addresses] == ["127.0.0.1", "127.0.0.3"]
        for address in service.addresses:
            asking.sendto(V1, address)
            assert asking.recvfrom(2048) == (V3, address)


def test_what_is_refused_has_no_answer() -> None:
    with running(DiscoveryService(server(), [LOOPBACK])) as service, client() as asking:
        (address,) = service.addresses
        for data in (b"", V1[:51], V2, V3, b"\xff" * 1472, V1):
            asking.sendto(data, address)
        assert asking.recvfrom(2048)[0] == V3  # which is the answer to the last
        asking.setblocking(False)
        with pytest.raises(BlockingIOError):
            asking.recvfrom(2048)
        counters = service.counters()
        assert (counters["received"], counters["answered"], counters["other_sites"]) == (6, 1, 1)


def test_a_datagram_of_any_size_is_one_datagram() -> None:
    with running(DiscoveryService(server(), [LOOPBACK])) as service, client() as asking:
        for size in (2047, 2048, 2049, 65507):
            asking.sendto(V1 + bytes(size - len(V1)), service.addresses[0])
            assert asking.recvfrom(2048)[0] == V3
        assert service.counters()["received"] == 4


def test_a_service_can_listen_elsewhere_and_keeps_what_stays() -> None:
    with running(DiscoveryService(server(), [LOOPBACK, ("127.0.0.3", 0)])) as service, client() as asking:
        stays, goes = service.addresses
        between_datagrams(service, lambda: service.listen([("127.0.0.4", 0), LOOPBACK]))
        assert service.addresses[0] == stays
        assert [host for host, _ in service.addresses] == ["127.0.0.1", "127.0.0.4"]
        for address in service.addresses:
            asking.sendto(V1, address)
            assert asking.recvfrom(2048) == (V3, address)
        with client() as other:
            other.connect(goes)
            other.send(V1)
            with pytest.raises(ConnectionRefusedError):
                other.recv(1)


def test_a_datagram_for_an_address_that_is_just_given_up_is_not_read() -> None:
    with DiscoveryService(server(), [LOOPBACK, ("127.0.0.3", 0)]) as service, client() as asking:
        service.call(lambda: service.listen([LOOPBACK]))
        for address in service.addresses:
            asking.sendto(V1, address)
        service.call(service.stop)
        service.run()
        assert service.counters()["received"] == 1


def test_all_addresses_in_place_of_one_of_them() -> None:
    """A socket for 127.0.0.1 stands in the way of one for 0.0.0.0."""
    with DiscoveryService(server(), [LOOPBACK]) as service:
        port = service.addresses[0][1]
        service.listen([("0.0.0.0", port)])
        assert service.addresses == [("0.0.0.0", port)]


def test_an_address_that_cannot_be_had_leaves_those_of_before() -> None:
    with running(DiscoveryService(server(), [LOOPBACK])) as service, client() as taken, client() as asking:
        (before,) = service.addresses
        for wanted in ([taken.getsockname()], [("127.0.0.4", 0), taken.getsockname()], [("192.0.2.1", 1801)]):
            failures: list[OSError] = []

            def listen(wanted: list[Address] = wanted, failures: list[OSError] = failures) -> None:
                try:
                    service.listen(wanted)
                except OSError as error:
                    failures.append(error)

            between_datagrams(service, listen)
            assert failures[0].filename == "{}:{}".format(*wanted[-1])
            assert service.addresses == [before]
        asking.sendto(V1, before)
        assert asking.recvfrom(2048) == (V3, before)


def test_a_service_that_cannot_listen_closes_what_it_opened() -> None:
    opened: list[socket.socket] = []

    def opener(address: Address) -> socket.socket:
        opened.append(open_socket(address))
        return opened[-1]

    with pytest.raises(OSError, match="Cannot assign"):
        DiscoveryService(server(), [LOOPBACK, ("192.0.2.1", 1801)], opener=opener)
    assert [one.fileno() for one in opened] == [-1]


@pytest.mark.parametrize("wanted", [("127.0.0.1", 65536), ("127.0.0.1", -1), ("\udc80", 0)])
def test_an_address_that_no_socket_can_have_leaves_those_of_before(wanted: Address) -> None:
    opened: list[socket.socket] = []

    def opener(address: Address) -> socket.socket:
        opened.append(open_socket(address))
        return opened[-1]

    with pytest.raises((ValueError, TypeError), match=r"port is .*: not from 0 to 65535|encoding of hostname failed"):
        DiscoveryService(server(), [LOOPBACK, wanted], opener=opener)
    assert [one.fileno() for one in opened if one.fileno() != -1] == []
    with DiscoveryService(server(), [LOOPBACK]) as service:
        before = service.addresses
        with pytest.raises((ValueError, TypeError)):
            service.listen([wanted])
        assert service.addresses == before


# --- sending fails ---


class FailingSocket(socket.socket):
    """A socket that cannot send, for a reason."""

    reason = errno.ENETDOWN

    def sendto(self, *_: Any) -> int:
        raise OSError(self.reason, "it is said")


class PipeSocket(FailingSocket):
    """A socket that was shut down."""

    reason = errno.EPIPE


class BusySocket(FailingSocket):
    """A socket that has no room for what it should send."""

    reason = errno.ENOBUFS


class Opener:
    """Opens sockets of these kinds in turn, and then fails."""

    def __init__(self, *kinds: type[socket.socket]) -> None:
        self.kinds = list(kinds)
        self.opened: list[Address] = []

    def __call__(self, address: Address) -> socket.socket:
        if not self.kinds:
            raise OSError(errno.ENETDOWN, "no socket any more")
        made = self.kinds.pop(0)(socket.AF_INET, socket.SOCK_DGRAM)
        made.setblocking(False)
        made.bind(address)
        self.opened.append(made.getsockname())
        return made


class BroadcastSocket(FailingSocket):
    """A socket that may not send to a source."""

    reason = errno.EACCES


class UnreachableSocket(FailingSocket):
    """A socket with no route to a source."""

    reason = errno.ENETUNREACH


@pytest.mark.parametrize(("kind", "unsent", "refused"), [(BroadcastSocket, 1, 2), (UnreachableSocket, 3, 0)])
def test_a_source_that_cannot_be_answered_does_not_reopen_the_socket(
    kind: type[socket.socket], unsent: int, refused: int
) -> None:
    with running(DiscoveryService(server(), [LOOPBACK], opener=Opener(kind))) as service, client() as asking:
        for _ in range(3):
            asking.sendto(V1, service.addresses[0])
        until(lambda: service.server.counts.received == 3)
        between_datagrams(service)
        counters = service.counters()
    assert (counters["unsent"], counters["reopened"]) == (unsent, 0)
    assert service.server.counts.refused[Refusal.SOURCE] == refused


def test_broadcast_addresses_are_refused_from_the_start() -> None:
    with contextlib.closing(DiscoveryService(server(), [LOOPBACK])) as service:
        assert "127.255.255.255" in service.server.unanswerable
        assert service.server.receive(V1, ("127.255.255.255", 1801), 0) is Refusal.SOURCE


def test_broadcast_addresses_are_learned_without_psutil(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)  # as if it were not installed
    with running(DiscoveryService(server(), [LOOPBACK])) as service, client() as asking:
        asking.sendto(V1, service.addresses[0])
        assert asking.recvfrom(2048)[0] == V3
        assert service.server.unanswerable == frozenset()


def failing(operation: str, name: str) -> type[socket.socket]:
    """Sockets of which each fails once, with this error."""

    class Failing(socket.socket):
        failed = False

        def fail(self) -> None:
            if not self.failed:
                self.failed = True
                raise OSError(getattr(errno, name), "it is said")

        def sendto(self, *arguments: Any) -> int:
            if operation == "send":
                self.fail()
            return super().sendto(*arguments)

        def recvfrom(self, *arguments: Any) -> Any:
            if operation == "receive":
                self.fail()
            return super().recvfrom(*arguments)

    return Failing


@row("SDS-08")
@pytest.mark.parametrize("name", ERRORS_OF_SEND)
def test_every_error_of_send_is_counted_and_only_one_of_the_socket_opens_it_anew(name: str) -> None:
    opener = Opener(failing("send", name), socket.socket)
    with running(DiscoveryService(server(), [LOOPBACK], opener=opener)) as service, client() as asking:
        (address,) = service.addresses
        asking.sendto(V1, address)
        until(lambda: service.counters()["unsent"] == 1)
        between_datagrams(service)
        between_datagrams(service)
        assert service.counters()["send_errors"] == {name: 1}
        assert service.counters()["reopened"] == len(opener.opened) - 1 == (name in OF_THE_SOCKET)
        if name not in ("EACCES", "EINVAL"):  # sources that cannot be answered are refused from then on
            asking.sendto(V1, address)
            assert asking.recvfrom(2048) == (V3, address)


@pytest.mark.parametrize("name", ERRORS_OF_RECV)
def test_every_error_of_recv_is_counted_and_only_one_of_the_socket_opens_it_anew(name: str) -> None:
    opener = Opener(failing("receive", name), socket.socket)
    with running(DiscoveryService(server(), [LOOPBACK], opener=opener)) as service, client() as asking:
        (address,) = service.addresses
        asking.sendto(V1, address)
        if name in OF_THE_SOCKET:
            until(lambda: service.counters()["reopened"] == 1)
            asking.sendto(V1, address)
        assert asking.recvfrom(2048) == (V3, address)
        assert service.counters()["receive_errors"] == ({} if name == "EAGAIN" else {name: 1})
        assert service.counters()["reopened"] == (name in OF_THE_SOCKET)


def test_what_a_call_raises_ends_run_once() -> None:
    def fail() -> None:
        raise ZeroDivisionError("it is said")

    with DiscoveryService(server(), [LOOPBACK]) as service:
        service.call(fail)
        with pytest.raises(ZeroDivisionError, match="it is said"):
            service.run()
        service.stop()
        service.run()


def test_a_socket_that_was_closed_by_somebody_else() -> None:
    with running(DiscoveryService(server(), [LOOPBACK])) as service, client() as asking:
        (address,) = service.addresses
        (opened,) = service._sockets.values()

        def close_and_receive() -> None:
            opened.close()
            service._drain(LOOPBACK)

        between_datagrams(service, close_and_receive)
        between_datagrams(service)
        assert service.addresses == [address]
        asking.sendto(V1, address)
        assert asking.recvfrom(2048) == (V3, address)
        assert service.counters()["receive_errors"] == {"EBADF": 1}


def test_a_socket_that_cannot_be_opened_is_tried_again_after_growing_delays() -> None:
    now = [0]
    opener = Opener(failing("send", "EPIPE"))
    service = DiscoveryService(server(), [LOOPBACK], opener=opener, clock=lambda: now[0])
    with running(service), client() as asking:
        (address,) = service.addresses
        asking.sendto(V1, address)
        until(lambda: bool(service.counters()["open_errors"]))
        for tries, seconds in enumerate((0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60, 60), 1):
            for step in (round(seconds * 10**9) - 1_000, 1_000):
                assert service.counters()["open_errors"] == {"ENETDOWN": tries}
                now[0] += step
                between_datagrams(service)
                between_datagrams(service)
        assert service.addresses == [address]
        opener.kinds.append(socket.socket)
        now[0] += 60_000_000_000
        between_datagrams(service)  # it waits by the clock of the system otherwise
        until(lambda: service.counters()["reopened"] == 1)
        asking.sendto(V1, address)
        assert asking.recvfrom(2048) == (V3, address)


def test_errors_are_counted_and_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    opener = Opener(PipeSocket, PipeSocket, socket.socket)
    with running(DiscoveryService(server(), [LOOPBACK], opener=opener)) as service, client() as asking:
        (address,) = service.addresses
        for reopened in (1, 2):
            asking.sendto(V1, address)
            until(lambda: service.counters()["reopened"] == reopened)  # noqa: B023
        asking.sendto(V1, address)
        assert asking.recvfrom(2048) == (V3, address)
        counters = service.counters()
    assert opener.opened == [address] * 3
    assert (counters["answered"], counters["unsent"], counters["reopened"]) == (1, 2, 2)
    (told,) = events(caplog, "send_error")  # the second in a minute is not logged
    assert told | {"source": ""} == {
        "source": "", "address": "{}:{}".format(*address), "error": "EPIPE", "reason": "it is said", "unusable": True,
        "so_far": 1,
    }  # fmt: skip


def test_no_room_for_an_answer_is_no_failure() -> None:
    opener = Opener(BusySocket)
    with running(DiscoveryService(server(), [LOOPBACK], opener=opener)) as service, client() as asking:
        asking.sendto(V1, service.addresses[0])
        until(lambda: service.counters()["unsent"] == 1)
        assert service.counters() | {"refused": None} == {
            "received": 1, "answered": 0, "own_site": 0, "other_sites": 1, "refused": None, "unsent": 1,
            "dropped_by_kernel": 0, "reopened": 0,
            "send_errors": {"ENOBUFS": 1}, "receive_errors": {}, "open_errors": {},
        }  # fmt: skip


# --- what is logged ---


def test_refusals_are_logged_once_a_minute_and_rule(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = [0]
    policy = unlimited(network_rate=Rate(1, burst=1))
    service = DiscoveryService(server(policy), [LOOPBACK], clock=lambda: now[0])
    with running(service), client() as asking:

        def send(*many: bytes) -> None:
            before = service.server.counts.received
            for data in many:
                asking.sendto(data, service.addresses[0])
            while service.server.counts.received < before + len(many):
                between_datagrams(service)

        send(V2, V2, b"", V1, V1, V1)
        now[0] = 59_999_999_999
        send(V2)
        now[0] = 60_000_000_000
        send(V2, V2)
        source = "{}:{}".format(*asking.getsockname())
    assert events(caplog, "refused") == [
        {"rule": "reply", "source": source, "so_far": 1},
        {"rule": "malformed", "source": source, "so_far": 1},
        {"rule": "network_rate", "source": source, "so_far": 1},
        {"rule": "reply", "source": source, "so_far": 4},
    ]


# --- what the kernel drops ---


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_receive_buffer_is_larger_than_that_of_other_sockets() -> None:
    most = int(Path("/proc/sys/net/core/rmem_max").read_text())
    with open_socket(LOOPBACK) as opened:
        # Linux doubles it, for what it stores beside the datagrams
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 * min(4 << 20, most)


def overflowed() -> tuple[socket.socket, int]:
    """A socket that was sent more than it has room for, and how many it was sent."""
    full = open_socket(LOOPBACK)
    full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with client() as sender:
        for _ in range(200):
            sender.sendto(V1, full.getsockname())
    return full, 200


def test_kernel_drops_are_those_of_SO_RXQ_OVFL() -> None:  # noqa: N802
    full, sent = overflowed()
    with full, client() as sender:
        full.setsockopt(socket.SOL_SOCKET, SO_RXQ_OVFL, 1)
        dropped = dropped_by_kernel(full)
        read = 0
        while True:
            try:
                full.recv(1)
            except BlockingIOError:
                break
            read += 1
        assert dropped == sent - read
        assert dropped > 0
        sender.sendto(V1, full.getsockname())
        full.setblocking(True)
        _, ((level, kind, counter),), _, _ = full.recvmsg(1, 64)
        assert (level, kind) == (socket.SOL_SOCKET, SO_RXQ_OVFL)
        assert int.from_bytes(counter, sys.byteorder) == dropped


def test_drops_of_a_socket_that_is_closed_are_not_forgotten() -> None:
    full, sent = overflowed()
    service = DiscoveryService(server(), [LOOPBACK], opener=lambda address: full)
    dropped = service.counters()["dropped_by_kernel"]
    assert isinstance(dropped, int)
    assert 0 < dropped < sent
    service.close()
    assert service.counters()["dropped_by_kernel"] == dropped


def test_a_kernel_that_does_not_tell() -> None:
    """As that of a sandbox which takes the place of Linux."""

    class Reticent(socket.socket):
        def getsockopt(self, *_: Any) -> Any:
            raise OSError(errno.ENOPROTOOPT, "Protocol not available")

    with DiscoveryService(server(), [LOOPBACK], opener=Opener(Reticent)) as service:
        assert service.counters()["dropped_by_kernel"] is None


# --- stopping ---


def test_stop_ends_a_service_that_waits_and_one_that_was_not_begun() -> None:
    with running(DiscoveryService(server(), [LOOPBACK])):
        pass
    service = DiscoveryService(server(), [LOOPBACK])
    service.stop()
    service.run()
    service.close()
    service.stop()


def test_a_service_that_was_stopped_can_be_run_again() -> None:
    with DiscoveryService(server(), [LOOPBACK]) as service, client() as asking:
        for _ in range(2):
            asking.sendto(V1, service.addresses[0])
            service.call(service.stop)
            service.run()
            assert asking.recvfrom(2048)[0] == V3


def test_calls_that_make_calls_do_not_keep_datagrams_waiting() -> None:
    with DiscoveryService(server(), [LOOPBACK]) as service, client() as asking:

        def again() -> None:
            service.call(service.stop if service.server.counts.received == 100 else again)

        for _ in range(100):
            asking.sendto(V1[:8], service.addresses[0])
        again()
        service.run()
    assert service.counters()["received"] == 100


def test_calls_are_made_in_their_order_and_however_many() -> None:
    made: list[int] = []
    with running(DiscoveryService(server(), [LOOPBACK])) as service:
        for number in range(10_000):
            service.call(partial(made.append, number))
        between_datagrams(service)
        assert made == list(range(10_000))
