"""UDP sockets that drive a discovery server: [MS-MQSD] 3.2.3 and 3.2.5.

An event loop answers all datagrams that have arrived at a socket, then waits for more. Everything else (a new
configuration, counters, the end) happens between two datagrams.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import signal
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from msmqwire.discovery.server import DiscoveryServer, Refusal
from msmqwire.net.host_addresses import Address
from msmqwire.net.interfaces import local_networks
from msmqwire.net.socket_errors import Backoff, error_name, is_unusable

_LOG = logging.getLogger(__name__)

#: Bytes read of a datagram: more than a request has, whose further bytes are ignored.
_MOST_READ = 2048
#: Datagrams read from one socket before other sockets and calls have their turn.
_TURN = 1024
#: Size of the receive buffer, as the kernel counts it; the kernel may grant less.
_WAITING = 4 << 20
#: Nanoseconds after a logged event in which more of its kind are only counted, so that a flood does not fill the log.
_QUIET = 60_000_000_000
# <asm-generic/socket.h> and <linux/sock_diag.h>; neither number is in the module socket
_SO_MEMINFO = 55
_MEMINFO = struct.Struct("=9I")
#: The source is an address that cannot be sent to, such as a broadcast address.
_UNANSWERABLE = frozenset({errno.EACCES, errno.EINVAL})
#: Unanswerable sources remembered besides the broadcast addresses of the local networks.
_MOST_UNANSWERABLE = 1024


def open_socket(address: Address) -> socket.socket:
    """Return a UDP socket for requests to an IPv4 address and port.

    Raises
    ------
    OSError
        With the address as its ``filename``.
    """
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _WAITING)
        opened.bind(address)
    except BaseException as error:
        opened.close()
        if isinstance(error, OSError):
            error.filename = _text(address)
        raise
    return opened


def dropped_by_kernel(opened: socket.socket) -> int | None:
    """Datagrams that the kernel dropped: no buffer space, or a wrong checksum; None if it does not count them.

    The same counter as SO_RXQ_OVFL, without its cost for every datagram; needs Linux 4.12.
    """
    try:
        found = opened.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
    except OSError:
        return None
    return int(_MEMINFO.unpack(found)[-1]) if len(found) == _MEMINFO.size else None


_OPERATIONS = ("send", "receive", "open")


@dataclass(slots=True)
class _Losses:
    """Datagrams dropped at closed sockets, answers not sent, sockets reopened, and errors of sockets by name."""

    dropped: int = 0
    unsent: int = 0
    reopened: int = 0
    errors: dict[str, Counter[str]] = field(default_factory=lambda: {kind: Counter() for kind in _OPERATIONS})


class _Loop(asyncio.SelectorEventLoop):
    """An event loop with another clock."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        super().__init__()

    def time(self) -> float:
        return self._clock() / 1e9


class DiscoveryService:
    """A discovery server on UDP sockets.

    Parameters
    ----------
    server : DiscoveryServer
        Judges the datagrams.
    addresses : iterable of (str, int)
        IPv4 addresses and ports to listen on; port 0 for any free port.
    clock : callable
        Nanoseconds of a monotonic clock.
    opener : callable
        Makes a non-blocking socket for an address.

    Raises
    ------
    OSError
        An address cannot be listened on.
    ValueError
        A port is not from 0 to 65535.
    """

    def __init__(
        self,
        server: DiscoveryServer,
        addresses: Iterable[Address],
        *,
        clock: Callable[[], int] = time.monotonic_ns,
        opener: Callable[[Address], socket.socket] = open_socket,
    ) -> None:
        self.server = server
        self._clock, self._opener = clock, opener
        self._losses = _Losses()
        self._quiet_until: dict[str, int] = dict.fromkeys(Refusal, clock())
        self._sockets: dict[Address, socket.socket] = {}
        self._descriptors: dict[Address, int] = {}  # the loop cannot find a socket that something else has closed
        self._bound: dict[Address, Address] = {}
        self._backoffs: dict[Address, Backoff] = {}
        self._due: dict[Address, asyncio.Handle] = {}  # sockets to open again that were closed as unusable
        self._loop = _Loop(clock)
        self._loop.set_exception_handler(self._end_by_error)
        self._error: BaseException | None = None
        try:
            self.listen(addresses)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def addresses(self) -> list[Address]:
        """The addresses it listens on, with the actual ports; those of sockets that are being reopened included."""
        return list(self._bound.values())

    def listen(self, addresses: Iterable[Address]) -> None:
        """Listen on these addresses; keep the sockets of those in use already, and close all others.

        Raises
        ------
        OSError
            An address cannot be used. The previous addresses are restored; one that cannot be is tried again and again.
        ValueError
            A port is not from 0 to 65535. The previous addresses stay.
        """
        wanted = list(dict.fromkeys(addresses))
        for _, port in wanted:
            if not 0 <= port < 65536:
                raise ValueError(f"port is {port}: not from 0 to 65535")
        self.server.unanswerable = _broadcast_addresses()
        # Closed first: an old address may conflict with a new one, as 127.0.0.1 does with 0.0.0.0
        left = {address: bound for address, bound in self._bound.items() if address not in wanted}
        fresh = [address for address in wanted if address not in self._bound]
        for address in left:
            self._close(address)
        try:
            for address in fresh:
                self._open(address, address)
        except BaseException:
            for address in fresh:
                self._close(address)
            for address, bound in left.items():
                self._bound[address] = bound
                self._reopen(address)
            raise

    def run(self) -> None:
        """Answer until ``stop`` is called; may be called again afterwards.

        No error of a socket ends it. (Decision: by [MS-MQSD] 3.2.5 a server ends when it cannot reopen its socket.)
        """
        self._loop.run_forever()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def stop(self) -> None:
        """End ``run`` soon; may be called from another thread or a signal handler, and after ``close``."""
        self.call(self._loop.stop)

    def call(self, function: Callable[[], object]) -> None:
        """Have ``run`` call a function between two datagrams; may be called from another thread or a signal handler."""
        with contextlib.suppress(RuntimeError):  # after close
            self._loop.call_soon_threadsafe(function)

    def on_signal(self, number: int, function: Callable[[], object]) -> None:
        """Have ``run``, in the main thread, call a function between two datagrams when a signal comes."""
        try:
            self._loop.add_signal_handler(number, function)
        except NotImplementedError:  # on Windows
            signal.signal(number, lambda *_: self.call(function))

    def counters(self) -> dict[str, object]:
        """Return the counts of all datagrams.

        ``received`` is the sum of ``answered``, ``unsent`` and ``refused``. Datagrams sent to this service are those,
        the ones in ``dropped_by_kernel``, and those still waiting, which are lost when their socket is closed.
        """
        counts, losses = self.server.counts, self._losses
        return {
            "received": counts.received,
            "answered": counts.own_site + counts.other_sites - losses.unsent,
            "own_site": counts.own_site,
            "other_sites": counts.other_sites,
            "refused": {str(rule): number for rule, number in counts.refused.items()},
            "unsent": losses.unsent,
            "dropped_by_kernel": self._dropped(),
            "reopened": losses.reopened,
            **{f"{operation}_errors": dict(found) for operation, found in losses.errors.items()},
        }

    def close(self) -> None:
        """Close every socket."""
        for address in list(self._bound):
            self._close(address)
        self._loop.close()

    def _end_by_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End ``run`` by what a call has raised."""
        self._error = context.get("exception")
        self._loop.stop()

    def _drain(self, address: Address) -> None:
        """Answer the datagrams waiting at one socket, up to a turn."""
        opened, receive, clock = self._sockets[address], self.server.receive, self._clock
        for _ in range(_TURN):
            try:
                datagram, source = opened.recvfrom(_MOST_READ)
            except BlockingIOError:
                return
            except OSError as error:
                self._failed(address, "receive", error)
                return
            answer = receive(datagram, source, clock())
            if isinstance(answer, Refusal):
                if clock() >= self._quiet_until[answer]:
                    so_far = self.server.counts.refused[answer]
                    self._log(answer, Event("refused", rule=answer, source=_text(source), so_far=so_far))
                continue
            try:
                opened.sendto(answer, source)
            except OSError as error:
                self._losses.unsent += 1
                if error.errno in _UNANSWERABLE:
                    self._refuse_source(source[0])
                if self._failed(address, "send", error, source=_text(source)):
                    return

    def _refuse_source(self, host: str) -> None:
        """Refuse this source from now on, before an answer to it takes from the rates."""
        known = self.server.unanswerable
        if len(known) < _MOST_UNANSWERABLE:
            self.server.unanswerable = known | {host}

    def _failed(self, address: Address, operation: str, error: OSError, **about: str) -> bool:
        """Count an error and log it; close the socket if it is unusable, and say so.

        It is opened anew at the time that the delays of its address allow.
        """
        name = error_name(error)
        counts = self._losses.errors[operation]
        counts[name] += 1
        unusable = operation == "open" or is_unusable(error)
        now = self._clock()
        if unusable:
            bound = self._bound[address]
            self._close(address)
            self._bound[address] = bound
            delay = self._backoffs.setdefault(address, Backoff()).delay(now)
            # A timer without a delay would come after calls that are made until then
            self._due[address] = (
                self._loop.call_later(delay / 1e9, self._reopen, address)
                if delay
                else self._loop.call_soon(self._reopen, address)
            )
        kind = f"{operation} {name}"
        if now >= self._quiet_until.get(kind, now):
            about |= {"address": _text(self._bound[address]), "error": name, "reason": error.strerror or str(error)}
            level = logging.WARNING if unusable else logging.INFO
            self._log(kind, Event(f"{operation}_error", **about, unusable=unusable, so_far=counts[name]), level)
        return unusable

    def _reopen(self, address: Address) -> None:
        """Open a socket whose delay is over."""
        self._due.pop(address, None)
        try:
            self._open(address, self._bound[address])
        except OSError as error:
            self._failed(address, "open", error)
        else:
            self._losses.reopened += 1

    def _log(self, kind: str, event: Event, level: int = logging.INFO) -> None:
        """Log an event, and then no more of its kind for a while."""
        self._quiet_until[kind] = self._clock() + _QUIET
        _LOG.log(level, event)

    def _open(self, address: Address, bound: Address) -> None:
        opened = self._opener(bound)
        self._sockets[address] = opened
        self._bound[address] = opened.getsockname()
        self._descriptors[address] = opened.fileno()
        self._loop.add_reader(opened, self._drain, address)

    def _close(self, address: Address) -> None:
        if due := self._due.pop(address, None):
            due.cancel()
        self._bound.pop(address, None)
        opened = self._sockets.pop(address, None)
        if opened is not None:
            self._losses.dropped += dropped_by_kernel(opened) or 0
            self._loop.remove_reader(self._descriptors.pop(address))
            with contextlib.suppress(OSError):
                opened.close()

    def _dropped(self) -> int | None:
        found = [dropped_by_kernel(opened) for opened in self._sockets.values()]
        if None in found:
            return None
        return self._losses.dropped + sum(number for number in found if number is not None)


def _broadcast_addresses() -> frozenset[str]:
    """Return the broadcast addresses of the local networks; none if psutil is not installed, or may not list them."""
    with contextlib.suppress(ModuleNotFoundError, OSError):
        return frozenset(str(each.broadcast) for each in local_networks(loopback=True) if not each.remote_access)
    return frozenset()


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"


class Event:
    """The message of a log record: a name, and fields that a program can read.

    Examples
    --------
    >>> print(Event("refused", rule="reply", source="192.0.2.7:1801"))
    refused rule=reply source=192.0.2.7:1801
    """

    __slots__ = ("fields", "name")

    def __init__(self, name: str, **fields: object) -> None:
        self.name = name
        self.fields = fields

    def __str__(self) -> str:
        return " ".join((self.name, *(f"{key}={value}" for key, value in self.fields.items())))


class JsonLines(logging.Formatter):
    """Formats a record as a line of JSON: ``time`` (UTC), ``level``, ``event`` and the fields of the event.

    For messages other than ``Event``, ``event`` is their text. Only ASCII is written, so no line controls a terminal.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {"time": time.removesuffix("+00:00") + "Z", "level": record.levelname.lower()}
        if isinstance(record.msg, Event):
            line |= {"event": record.msg.name, **record.msg.fields}
        else:
            line["event"] = record.getMessage()
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
