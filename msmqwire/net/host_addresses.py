"""The addresses of a host name, looked up so that a slow name server delays nothing else, and sockets bound to them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from msmqwire.net.socket_errors import error_name

Address = tuple[str, int]

#: This computer has no such address, or none of that family: another address of the name may do.
_NOT_HERE = ("EADDRNOTAVAIL", "EAFNOSUPPORT")


async def addresses_of(host: str, port: int, kind: socket.SocketKind) -> list[Address]:
    """Return the addresses of a host in the order of the system; those of IPv6 with their zone. Empty is every address.

    Raises
    ------
    OSError
        The host has no address, or is no name of a host, or the process may have no more threads.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[Any]] = loop.create_future()

    def look_up() -> None:
        try:
            answer: Any = socket.getaddrinfo(host or None, port, type=kind, flags=socket.AI_PASSIVE if not host else 0)
        except OSError as error:
            answer = error
        except ValueError:  # such as a label that is empty or too long
            answer = socket.gaierror(socket.EAI_NONAME, "not the name of a host")
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(take, answer)

    def take(answer: Any) -> None:
        if not found.done():
            if isinstance(answer, OSError):
                found.set_exception(answer)
            else:
                found.set_result(answer)

    # The end of the loop, and of the process, waits for threads of the loop's executor
    start_thread(look_up)
    return list(dict.fromkeys(address_of(each[4]) for each in await found))


def start_thread(target: Callable[[], None]) -> threading.Thread:
    """Call a function in a thread that does not keep the process alive.

    Raises
    ------
    OSError
        The process may have no more threads.
    """
    thread = threading.Thread(target=target, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        raise OSError(errno.EAGAIN, "no thread can be started") from None
    return thread


def address_of(address: Any) -> Address:
    """Host and port of an address of the module socket; of IPv6 with its zone, the interface."""
    host, port, *rest = address
    if not rest or not rest[1] or "%" in host:
        return host, port
    zone = str(rest[1])
    with contextlib.suppress(OSError):  # the interface has gone
        zone = socket.if_indextoname(rest[1])
    return f"{host}%{zone}", port


def bind_all(addresses: list[Address], kind: socket.SocketKind) -> list[socket.socket]:
    """Sockets bound to the addresses of a host, except to those that this computer does not have; one at least.

    Raises
    ------
    OSError
        An address cannot be bound; with the address as its ``filename``.
    """
    bound: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for address in addresses:
            try:
                bound.append(open_socket(address, kind))
            except OSError as error:
                if error_name(error) not in _NOT_HERE:
                    raise
                missing = error
        if missing is not None and not bound:
            raise missing
    except OSError:
        for each in bound:
            each.close()
        raise
    return bound


def open_socket(address: Address, kind: socket.SocketKind) -> socket.socket:
    """Return a non-blocking socket bound to a numeric address. A socket of IPv6 does not take the port of IPv4 as well.

    Raises
    ------
    OSError
        As ``bind_all``.
    """
    family, _, _, _, place = socket.getaddrinfo(*address, type=kind, flags=socket.AI_NUMERICHOST)[0]
    opened: socket.socket | None = None
    try:
        opened = socket.socket(family, kind)
        opened.setblocking(False)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if kind == socket.SOCK_STREAM and sys.platform != "win32":  # where it would share the port
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(place)
    except OSError as error:
        error.filename = "{} port {}".format(*address)
        if opened is not None:
            opened.close()
        raise
    return opened


def network_of(address: str) -> str:
    """Return the network that counts as one address: of IPv6 the first 64 bits."""
    host, _, _ = address.partition("%")
    if ":" not in host:
        return address
    parsed = ipaddress.IPv6Address(host)
    return str(parsed.ipv4_mapped or ipaddress.IPv6Network((int(parsed) >> 64 << 64, 64)))
