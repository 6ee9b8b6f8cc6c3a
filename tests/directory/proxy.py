"""A server that misbehaves: it passes on what another one says, and then it does not."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit


class Proxy:
    """Passes bytes between a client and a server.

    Attributes
    ----------
    url : str
        Where it listens.
    connections : int
        How many clients it has had.
    patience : list of int
        For each connection in turn, how many bytes of the server's it passes on before it misbehaves; without an entry
        it behaves.
    hangs_up : bool
        Misbehaving is closing the connection; otherwise it is silence.
    """

    def __init__(self, url: str) -> None:
        self._target = (urlsplit(url).hostname, urlsplit(url).port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.url = f"ldap://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self.patience: list[int] = []
        self.hangs_up = True
        self._start(self._accept)

    def _start(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                server = socket.create_connection(self._target)
                self._open += client, server
                patience = self.patience.pop(0) if self.patience else 1 << 40
                self._start(self._pass, client, server, 1 << 40)
                self._start(self._pass, server, client, patience)

    def _pass(self, source: socket.socket, target: socket.socket, patience: int) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data[:patience])
                patience -= len(data[:patience])
                if not patience:
                    break
            if not patience and not self.hangs_up:
                return
        self._shut(source, target)

    def drop(self) -> None:
        """Close every connection, as a server does with idle ones."""
        self._shut(*self._open)

    def close(self) -> None:
        """Stop."""
        self._shut(self._listener, *self._open)
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *self._open):
            each.close()

    @staticmethod
    def _shut(*sockets: socket.socket) -> None:
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def in_front_of(url: str) -> Iterator[Proxy]:
    """A proxy for a server."""
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
