r"""Carry messages of MSMQ to a Redis stream and back, each exactly once.

    python examples/redis_bridge.py receive orders --store incoming --port 1801
    python examples/redis_bridge.py send orders 'DIRECT=OS:server\private$\orders' --store outgoing

The first command is a queue manager: senders on Windows name this computer. A message is acknowledged when it is in the
store, and leaves the store when Redis has its entry. After a crash the store gives the messages of the last call again;
Redis has their tokens, written together with the entries. The second command commits entries as messages to a
transactional queue, with their identifiers as keys, of which the store takes each once. Each direction has a store of
its own.

Redis keeps what it confirmed only with appendonly yes and appendfsync always.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from msmqwire import mqqb, net
from msmqwire.session import MessageReceived, Store

GROUP = CONSUMER = "msmqwire"


async def receive(redis: Redis, stream: str, store: Store, port: int) -> None:
    """Add each message to the stream once; after an error of Redis the store gives the same messages again."""
    tokens = f"{stream}:tokens"

    async def handle(received: Sequence[MessageReceived]) -> None:
        known: Any = await redis.smembers(tokens)
        async with redis.pipeline(transaction=True) as entries:  # all of them with their tokens, or nothing
            for each in received:
                if each.token.encode() not in known:
                    entries.xadd(stream, entry_of(each))
            entries.delete(tokens)  # only the messages of the last call can come again
            entries.sadd(tokens, *(each.token for each in received))
            await entries.execute()

    async with net.serve(handle, "127.0.0.1", port, store=store) as server:
        print(f"listening on port {server.port}", flush=True)
        await asyncio.Event().wait()


def entry_of(received: MessageReceived) -> dict[Any, Any]:
    """The fields of an entry that make the message again."""
    message = received.message
    return {
        "token": received.token,
        "queue": str(message.destination_queue),
        "label": message.label,
        "body": bytes(message.body),
        "body_type": message.body_type,
    }


async def send(redis: Redis, stream: str, queue: str, store: Store, host: str, port: int) -> None:
    """Commit the entries of the stream to the store in their order, and send them."""
    try:
        await redis.xgroup_create(stream, GROUP, id="0", mkstream=True)
    except ResponseError as error:
        if "BUSYGROUP" not in str(error):
            raise
    waiting = [row.queue for row in store.outbox.queues()]
    async with net.connect(host, port, store=store, queues=waiting, timeout=60.0) as client:
        last: bytes | str = "0"  # entries that are pending, then new ones
        while True:
            found: Any = await redis.xreadgroup(GROUP, CONSUMER, {stream: last}, count=256, block=1000)
            entries = [entry for _, each in found for entry in each]
            if not entries:
                last = ">"
                continue
            messages = [partial(mqqb.UserMessage, **message_of(fields, queue)) for _, fields in entries]
            client.commit(messages, [identifier.decode() for identifier, _ in entries])
            await redis.xack(stream, GROUP, *(identifier for identifier, _ in entries))
            await client.acknowledged()


def message_of(fields: dict[bytes, bytes], queue: str) -> dict[str, Any]:
    """The fields of the message of an entry, for another queue; one that is rejected is a dead letter of the store."""
    return {
        "destination_queue": queue,
        "label": fields[b"label"].decode(),
        "body": fields[b"body"],
        "body_type": int(fields[b"body_type"]),
        "negative_source_journaling": True,
    }


async def main() -> None:
    """Run one direction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("direction", choices=("receive", "send"))
    parser.add_argument("stream")
    parser.add_argument("queue", nargs="?", help="the format name of the queue, for send")
    parser.add_argument("--store", required=True, help="the folder of the store of this direction")
    parser.add_argument("--redis", default="redis://127.0.0.1:6379")
    parser.add_argument("--host", default="127.0.0.1", help="the computer of the queue, for send")
    parser.add_argument("--port", type=int, default=1801)
    options = parser.parse_args()
    if options.direction == "send" and not options.queue:
        parser.error("send needs a queue")
    with Store(options.store) as store:
        async with Redis.from_url(options.redis) as redis:
            if options.direction == "receive":
                await receive(redis, options.stream, store, options.port)
            else:
                await send(redis, options.stream, options.queue, store, options.host, options.port)


if __name__ == "__main__":
    asyncio.run(main())
