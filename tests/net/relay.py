"""A relay between two ends of TCP connections that cuts them at random places."""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterator

from tests.net.session_wire import listener


class Relay:
    """Forwards connections to a port; each is cut, by FIN or RST, after a random number of bytes.

    ``watch`` gets the bytes of each connection as they are forwarded, and whether they are of the sender.
    """

    def __init__(
        self, port: int, seed: int, longest: int, watch: Callable[[socket.socket, bytes, bool], None] | None = None
    ) -> None:
        self.cuts = 0
        self._watch = watch
        self.bytes = 0
        self._target = port
        self._chance = random.Random(seed)
        self._longest = longest
        self._listening = listener()
        self._stop = threading.Event()
        self.port: int = self._listening.getsockname()[1]

    def run(self) -> None:
        """Forward one connection after the other: a sender opens the next one after the last was cut."""
        self._listening.settimeout(0.05)
        while not self._stop.is_set():
            try:
                near, _ = self._listening.accept()
            except TimeoutError:
                continue
            with (
                near,
                contextlib.suppress(ConnectionRefusedError),
                socket.create_connection(("127.0.0.1", self._target)) as far,
            ):
                self._forward(near, far, self._chance.randrange(self._longest))

    def _forward(self, near: socket.socket, far: socket.socket, budget: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(near, selectors.EVENT_READ, far)
            selector.register(far, selectors.EVENT_READ, near)
            while not self._stop.is_set():
                for key, _ in selector.select(0.05):
                    assert isinstance(key.fileobj, socket.socket)
                    try:
                        data = key.fileobj.recv(self._chance.randrange(1, 1 << 16))[:budget]
                        if self._watch is not None:
                            self._watch(near, data, key.fileobj is near)
                        key.data.sendall(data)
                    except ConnectionError:
                        return
                    self.bytes += len(data)
                    budget -= len(data)
                    if not data or not budget:
                        self.cuts += not budget
                        if self._chance.random() < 0.5:
                            for end in (near, far):
                                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        return

    @contextlib.contextmanager
    def running(self) -> Iterator[Relay]:
        """The relay in a thread of its own."""
        thread = threading.Thread(target=self.run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join()
            self._listening.close()
