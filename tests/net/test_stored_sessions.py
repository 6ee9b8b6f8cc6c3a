"""``net.serve`` with a store: messages are acknowledged when they are stored, and delivered from there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from msmqwire import mqqb, net
from msmqwire.errors import StoreError
from msmqwire.net import inbox
from msmqwire.session import (
    CloseReason,
    Event,
    MessageIDHistory,
    MessageLimit,
    MessageReceived,
    SessionClosed,
    Settings,
    Store,
)
from tests.net.session_wire import DEADLINE
from tests.net.test_session_server import until

QUEUE = r"DIRECT=TCP:127.0.0.1\private$\orders"


def message(body: bytes) -> mqqb.UserMessage:
    return mqqb.UserMessage(destination_queue=QUEUE, body=body, delivery_mode="recoverable")


class Handler:
    """Keeps bodies and tokens; fails as often as it is told."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.bodies: list[bytes] = []
        self.tokens: list[str] = []

    async def __call__(self, received: Sequence[MessageReceived]) -> None:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("it fails")
        self.bodies += [bytes(each.message.body or b"") for each in received]
        self.tokens += [each.token for each in received]


def test_messages_are_acknowledged_before_the_handler_has_them(tmp_path: Path) -> None:
    """It fails, and the next process delivers them: each once, with its token."""

    async def main() -> None:
        with Store(tmp_path) as store:
            failing = Handler(failures=9)
            async with net.serve(failing, port=0, store=store) as server:
                assert server.identifier == store.identifier
                async with net.connect("127.0.0.1", server.port) as client:
                    for number in range(3):
                        await client.send(message(b"%d" % number))
                    source = client.identifier
            assert (store.waiting, failing.bodies) == (3, [])
        with Store(tmp_path) as store:
            handler = Handler()
            async with net.serve(handler, port=0, store=store):
                pass
            assert store.waiting == 0
        assert handler.bodies == [b"0", b"1", b"2"]
        assert handler.tokens == [f"{source}:{number}" for number in (1, 2, 3)]

    asyncio.run(main())


def test_a_handler_that_fails_gets_the_messages_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "_RETRY", 0.01)

    async def main() -> None:
        with Store(tmp_path) as store:
            handler = Handler(failures=2)
            async with net.serve(handler, port=0, store=store) as server:
                async with net.connect("127.0.0.1", server.port) as client:
                    await client.send(message(b"a"))
                await until(lambda: handler.bodies)
            assert handler.bodies == [b"a"]

    asyncio.run(main())


def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    """S34: the session closes without an acknowledgment; the server goes on, and the sender tries again."""

    async def main() -> None:
        with Store(tmp_path) as store:
            events: list[Event] = []
            handler = Handler()
            commit = store.commit
            failures = iter([True, True])

            def failing(changes: object, queue_manager: UUID) -> None:
                if next(failures, False):
                    raise StoreError("the disk is full")
                commit(changes, queue_manager)  # type: ignore[arg-type]

            store.commit = failing  # type: ignore[method-assign]
            async with (
                asyncio.timeout(DEADLINE),
                net.serve(handler, port=0, store=store, watch=lambda event, _: events.append(event)) as server,
                net.connect("127.0.0.1", server.port) as client,
            ):
                await client.send(message(b"a"))
            assert handler.bodies == [b"a"]
            closed = [event for event in events if isinstance(event, SessionClosed)]
            assert closed[:2] == [SessionClosed(CloseReason.NOT_STORED, "the disk is full")] * 2

    asyncio.run(main())


def test_a_limit_counts_what_waits(tmp_path: Path) -> None:
    async def main() -> None:
        with Store(tmp_path) as store:
            async with (
                net.serve(Handler(failures=9), port=0, store=store) as server,
                net.connect("127.0.0.1", server.port) as client,
            ):
                for number in range(3):
                    await client.send(message(b"%d" % number))
        for limit, bodies, waiting in ((2, [b"0", b"1"], 1), (5, [b"2"], 0)):
            with Store(tmp_path) as store:
                handler, messages = Handler(), MessageLimit(limit)
                async with net.serve(handler, port=0, store=store, limit=messages):
                    pass
                assert (handler.bodies, store.waiting) == (bodies, waiting)
                assert messages.remaining == max(0, limit - len(bodies) - waiting)

    asyncio.run(main())


def test_options_that_a_store_has(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        with pytest.raises(ValueError, match="the store is that of"):
            net.serve(Handler(), port=0, store=store, identifier=UUID(int=1))
        with pytest.raises(ValueError, match="history"):
            net.serve(Handler(), port=0, store=store, history=MessageIDHistory())


def test_a_transaction_that_is_committed_after_the_session_was_closed_opens_another(tmp_path: Path) -> None:
    async def main() -> None:
        handler = Handler()
        with Store(tmp_path / "receiver") as received, Store(tmp_path / "sender") as sent:
            async with (
                asyncio.timeout(DEADLINE),
                net.serve(handler, port=0, store=received) as server,
                net.connect("127.0.0.1", server.port, store=sent, settings=Settings(cleanup_timeout=0.05)) as client,
            ):
                for body in (b"a", b"b"):
                    client.commit([partial(mqqb.UserMessage, destination_queue=QUEUE, body=body)])
                    await client.acknowledged()
                    await until(lambda: not client.is_open)
                    await asyncio.sleep(0.05)  # until the client waits for messages
        assert handler.bodies == [b"a", b"b"]

    asyncio.run(main())
