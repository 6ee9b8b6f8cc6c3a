r"""Carry messages of MSMQ to a Redis stream and back; each is acknowledged only when the other side has it.

    python examples/redis_bridge.py receive orders --port 1801
    python examples/redis_bridge.py send orders 'DIRECT=OS:server\private$\orders'

The first command is a queue manager: senders on Windows name this computer. It acknowledges a message when Redis has
confirmed its entry, so that a sender keeps what Redis does not take. The second one removes an entry from those that
are pending when the queue manager has acknowledged its message; entries that were pending when it was stopped are sent
first. A message can arrive twice after a crash: the field "token" of an entry is that of its message.

Redis keeps what it confirmed only with appendonly yes and appendfsync always.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from msmqwire import mqqb, net
from msmqwire.session import MessageReceived

GROUP = CONSUMER = "msmqwire"


async def receive(redis: Redis, stream: str, port: int) -> None:
    """Add each message to the stream; an error of Redis means that it is not received."""

    async def store(received: Sequence[MessageReceived]) -> None:
        async with redis.pipeline(transaction=True) as entries:  # all of them or none: senders send them again
            for each in received:
                entries.xadd(stream, entry_of(each.message))
            await entries.execute()

    async with net.serve(store, "127.0.0.1", port) as server:
        print(f"listening on port {server.port}", flush=True)
        await asyncio.Event().wait()


def entry_of(message: mqqb.UserMessage) -> dict[Any, Any]:
    """The fields of an entry that make the message again."""
    return {
        "token": f"{message.source_queue_manager}:{message.message_id}",
        "queue": str(message.destination_queue),
        "label": message.label,
        "body": bytes(message.body),
        "body_type": message.body_type,
    }


async def send(redis: Redis, stream: str, queue: str, host: str, port: int) -> None:
    """Send the entries of the stream as recoverable messages, one after the other."""
    try:
        await redis.xgroup_create(stream, GROUP, id="0", mkstream=True)
    except ResponseError as error:
        if "BUSYGROUP" not in str(error):
            raise
    async with net.connect(host, port, timeout=60.0) as client:
        last: bytes | str = "0"  # entries that are pending, then new ones
        while True:
            found: Any = await redis.xreadgroup(GROUP, CONSUMER, {stream: last}, count=32, block=1000)
            entries = [entry for _, each in found for entry in each]
            if not entries:
                last = ">"
                continue
            for _, fields in entries:
                await client.send(message_of(fields, queue))
            await client.acknowledged()
            await redis.xack(stream, GROUP, *(identifier for identifier, _ in entries))


def message_of(fields: dict[bytes, bytes], queue: str) -> mqqb.UserMessage:
    """The message of an entry, for another queue."""
    return mqqb.UserMessage(
        destination_queue=queue,
        label=fields[b"label"].decode(),
        body=fields[b"body"],
        body_type=int(fields[b"body_type"]),
        delivery_mode="recoverable",
    )


async def main() -> None:
    """Run one direction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("direction", choices=("receive", "send"))
    parser.add_argument("stream")
    parser.add_argument("queue", nargs="?", help="the format name of the queue, for send")
    parser.add_argument("--redis", default="redis://127.0.0.1:6379")
    parser.add_argument("--host", default="127.0.0.1", help="the computer of the queue, for send")
    parser.add_argument("--port", type=int, default=1801)
    options = parser.parse_args()
    if options.direction == "send" and not options.queue:
        parser.error("send needs a queue")
    async with Redis.from_url(options.redis) as redis:
        if options.direction == "receive":
            await receive(redis, options.stream, options.port)
        else:
            await send(redis, options.stream, options.queue, options.host, options.port)


if __name__ == "__main__":
    asyncio.run(main())
