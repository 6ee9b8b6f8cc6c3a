"""Commits transactional messages to a store, and sends what is in it until it is acknowledged."""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msmqwire.cli.arguments import ping_port
from msmqwire.cli.console import CommandError, print_json, say
from msmqwire.cli.next_hops import find_destination
from msmqwire.errors import SessionError, counted

if TYPE_CHECKING:
    from msmqwire.cli.message_rows import Maker, OneMessage, RowMessages
    from msmqwire.cli.next_hops import Destination
    from msmqwire.directory import Directory
    from msmqwire.net import SessionClient
    from msmqwire.session import Event, Store
    from msmqwire.session.outbox import Outcome, OutgoingTransaction

_REJECTED, _LEFT = 3, 4  # exit status


class Committing:
    """One call of ``send`` with the messages of a store.

    Parameters
    ----------
    destination : Destination, optional
        Of the messages; None to send what is in the store.
    directory : Directory, optional
        Has the destinations of the queues in the store.
    """

    def __init__(
        self, options: argparse.Namespace, destination: Destination | None, directory: Directory | None
    ) -> None:
        self._options = options
        self._destination = destination
        self._directory = directory
        self._message_ids: set[int] | None = None if destination is None else set()
        self._rejected = 0
        self._clients: list[SessionClient] = []

    async def run(self, messages: OneMessage | RowMessages | None) -> int:
        """Commit messages, all together or each, and send until all are acknowledged; the exit status."""
        logging.getLogger("msmqwire.net").addHandler(logging.NullHandler())
        final = self._options.wait == "final"
        from msmqwire.session import Store

        with Store(self._options.store) as store:
            clients = self._clients
            try:
                if messages is None:
                    clients += self._opened(store, ())
                elif self._options.each:
                    clients.append(client := self._client(store, self._destination, self._queues_of(())))
                    async for make, key in messages.makers():
                        with store.outbox.transaction(final=final) as transaction:
                            _add(transaction, messages, make, key)
                        self._count(transaction.message_ids, transaction.skipped)
                        client.resume(transaction.queues)
                        await asyncio.sleep(0)  # the session sends meanwhile
                else:
                    with store.outbox.transaction(final=final) as transaction:
                        async for make, key in messages.makers():
                            _add(transaction, messages, make, key)
                    self._count(transaction.message_ids, transaction.skipped)
                    clients += self._opened(store, transaction.queues)
                async with asyncio.timeout(self._options.timeout):
                    await self._wait(final)
            except TimeoutError:
                return self._left(store)
            except SessionError as error:
                raise CommandError(f"{error}; {self._describe_left(store)}") from None
            finally:
                for each in clients:
                    await each.close()
            self._report(store.outbox.outcomes)
            if not self._options.quiet:
                say(f"all messages are acknowledged, {self._rejected:,} rejected or expired")
            return _REJECTED if self._rejected else 0

    async def _wait(self, final: bool) -> None:
        """Wait for all clients; the error of the first that has one."""
        waits = [asyncio.create_task(each.acknowledged(final=final)) for each in self._clients]
        try:
            await asyncio.gather(*waits)
        finally:
            for each in waits:
                each.cancel()

    def _count(self, message_ids: Iterable[int], skipped: Iterable[Outcome]) -> None:
        """Messages are of this call, those that it skips as well: one that was rejected before counts."""
        if self._message_ids is not None:
            self._message_ids.update(message_ids)
            self._message_ids.update(each.message_id for each in skipped if each.message_id)
            self._rejected += sum(each.is_negative for each in skipped)

    def _opened(self, store: Store, queues: Sequence[str]) -> list[SessionClient]:
        """Clients for the queues, or without a destination for all queues of the store, by where they connect."""
        if self._destination is not None:
            return [self._client(store, self._destination, self._queues_of(queues))]
        found: dict[tuple[object, ...], tuple[Destination, list[str]]] = {}
        for row in store.outbox.queues():
            options = self._options
            destination = find_destination(row.name, self._directory, source=options.source, host=options.host)
            found.setdefault(tuple(destination.hops), (destination, []))[1].append(row.queue)
        return [self._client(store, destination, each) for destination, each in found.values()]

    def _queues_of(self, queues: Sequence[str]) -> Sequence[str]:
        from msmqwire.session.incoming import name_in_key

        assert self._destination is not None
        # Of skipped messages there is no new one
        return queues or [name_in_key(str(self._destination.address["destination_queue"]))]

    def _client(self, store: Store, destination: Destination | None, queues: Sequence[str]) -> SessionClient:
        from msmqwire.net import connect

        assert destination is not None
        client = connect(
            destination.hops,
            self._options.port,
            store=store,
            ping_port=ping_port(self._options),
            watch=self._watch,
        )
        client.resume(queues)
        return client

    def _watch(self, event: Event) -> None:
        from msmqwire.session import MessageFinished
        from msmqwire.session.outbox import Outcome

        if isinstance(event, MessageFinished):
            self._report([Outcome(event.message_id, event.message_class, event.packet)])
            # A FinalAck comes on any session with its receiver
            for each in self._clients:
                asyncio.get_running_loop().call_soon(each.resume, ())

    def _report(self, outcomes: Iterable[Outcome]) -> None:
        """Print a row for each message that was rejected or has expired."""
        for each in outcomes:
            if each.is_negative and (self._message_ids is None or each.message_id in self._message_ids):
                self._rejected += 1
                print_json(described(each))

    def _left(self, store: Store) -> int:
        self._report(store.outbox.outcomes)
        failure = next((f": {each.failure}" for each in self._clients if each.failure), "")
        say(f"msmqwire: no acknowledgment within {self._options.timeout:g} s{failure}; {self._describe_left(store)}")
        return _LEFT

    def _describe_left(self, store: Store) -> str:
        unacknowledged, awaiting = store.outbox.counts()
        waiting = f", {counted(awaiting, 'message')} await a FinalAck" if awaiting else ""
        return (
            f"{counted(unacknowledged, 'message')} not acknowledged stay in the store{waiting}: "
            f"msmqwire send --store {self._options.store} goes on"
        )


def _add(transaction: OutgoingTransaction, messages: OneMessage | RowMessages, make: Maker, key: str | None) -> None:
    try:
        transaction.add(make, key)
    except ValueError as error:
        messages.leave_out(error)


def described(outcome: Outcome) -> dict[str, object]:
    """Return what became of a message, for a line of JSON."""
    from msmqwire import mqqb
    from msmqwire.mqqb.message.classes import MEANINGS, MESSAGE_CLASSES

    message = mqqb.decode(outcome.packet)
    assert isinstance(message, mqqb.UserMessage)
    assert message.transaction is not None
    name = MESSAGE_CLASSES.get(outcome.message_class, f"{outcome.message_class:#06x}")
    return {
        "message_class_name": name,
        "reason": MEANINGS.get(name, ""),
        "destination_queue": message.destination_queue,
        "message_id": message.message_id,
        "tx_sequence_id": message.transaction.tx_sequence_id,
        "tx_sequence_number": message.transaction.tx_sequence_number,
        "label": message.label,
    }
