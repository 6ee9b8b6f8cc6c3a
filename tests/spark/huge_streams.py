"""The memory of a task of ``read_streams``, however long streams are; run by test_stream_memory.py.

Each case is read in a process of its own, forked as Spark's daemon forks workers, out of frames that are made as they
are taken. It prints the rows, what the log was told, and the most memory that the process had.
"""

from __future__ import annotations

import json
import logging.handlers
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from msmqwire import mqqb
from msmqwire.spark import streams
from msmqwire.spark.source.options import SourceOptions
from msmqwire.spark.source.scan import ScanOptions
from tests.capture import build

SEGMENT = 1400  # bytes of a stream in a frame
BATCH = 1005  # frames: messages of 10 go on in the next
NEAR = 200  # frames among which a late one is found
# Where frames have them
SENDER, SEQUENCE = slice(26, 30), slice(38, 42)


def encoded(body: bytes) -> bytes:
    return mqqb.encode(mqqb.UserMessage(destination_queue=f"PRIVATE={UUID(int=5)}\\4", message_id=1, body=body))


def big_endian(numbers: NDArray[Any]) -> NDArray[np.uint8]:
    """Four bytes for each."""
    return numbers.astype(">u4").view(np.uint8).reshape(-1, 4)


@dataclass(frozen=True)
class Case:
    """Messages one after the other, in one stream or several.

    Attributes
    ----------
    size : int
        In bytes; what is left over is no message.
    segments : int
        Of a message.
    messages : int
        Of a stream, behind which the next one begins; 0 for all.
    hole : int
        Segments that are missing behind the first of each stream.
    lost : int
        Of each so many messages one segment is missing; 0 for none.
    shuffled : bool
        Segments come in any order, but ``NEAR`` their place.
    rotated : bool
        Each batch of frames is of another capture.
    """

    size: int
    segments: int = 10
    messages: int = 0
    hole: int = 0
    lost: int = 0
    shuffled: bool = False
    rotated: bool = False

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The frames as Spark gives them to a task."""
        packet = encoded(bytes(self.segments * SEGMENT - len(encoded(b""))))
        parts = [build.segment(packet[at : at + SEGMENT]) for at in range(0, len(packet), SEGMENT)]
        templates = np.frombuffer(b"".join(parts), np.uint8).reshape(self.segments, -1)
        count = self.size // len(packet) * self.segments
        length = self.messages * self.segments or count
        for number, start in enumerate(range(0, count, BATCH)):
            places = self.arranged(np.arange(start, min(start + BATCH, count)), length)
            frames = templates[places % self.segments]
            frames[:, SENDER] = big_endian(places // length)
            frames[:, SEQUENCE] = big_endian(1 + places % length * SEGMENT)
            yield self.batch(number, frames)

    def arranged(self, places: NDArray[Any], length: int) -> NDArray[Any]:
        """Segments, but for those that are missing, as they come."""
        places = places[(places - 1) % length >= self.hole]
        if self.lost:
            places = places[places % (self.lost * self.segments) != self.segments // 2]
        if self.shuffled:
            rng = np.random.default_rng(len(places))
            near = np.split(places, range(1, len(places), NEAR))  # a stream begins with its first segment
            places = np.concatenate([rng.permutation(part) for part in near])
        return places

    def batch(self, number: int, frames: NDArray[np.uint8]) -> pa.RecordBatch:
        """Frames of one size, a row each."""
        count, size = frames.shape
        numbers = 1 + number * BATCH + np.arange(count)
        starts = np.arange(0, (count + 1) * size, size, dtype=np.int32)
        columns = {
            "capture": np.full(count, number if self.rotated else 0, np.int32),
            "frame": numbers,
            "time_ns": build.START + numbers,
            "link": np.full(count, build.ETHERNET, np.int32),
            "offset": numbers * size,
            "data": pa.Array.from_buffers(
                pa.binary(), count, [None, pa.py_buffer(starts.data), pa.py_buffer(frames.data)]
            ),
        }
        return pa.record_batch(columns)

    def read(self) -> dict[str, Any]:
        """How many rows a task has of it, how many of them without a fault, and what it told the log."""
        handler = logging.handlers.BufferingHandler(10)
        streams.log.addHandler(handler)
        options = SourceOptions((), ScanOptions(("messages",)))
        captures = tuple(f"{number}.pcap" for number in range(1 + self.size // (BATCH * SEGMENT)))
        job = streams._Job((), captures, options, options.scan.columns("messages"))
        rows = decoded = 0
        for batch in job.read(self.batches()):
            rows += len(batch)
            decoded += batch.column("fault").null_count
        return {"rows": rows, "decoded": decoded, "said": [record.getMessage() for record in handler.buffer]}


def main() -> None:
    """Read the cases that the arguments describe."""
    for argument in sys.argv[1:]:
        ours, theirs = os.pipe()
        process = os.fork()
        if not process:
            with open(theirs, "w") as answer:
                json.dump(Case(**json.loads(argument)).read(), answer)
            os._exit(0)
        os.close(theirs)
        with open(ours) as answer:
            given = answer.read()
        _, status, usage = os.wait4(process, 0)
        if status:
            sys.exit(f"{argument}: ended with {os.waitstatus_to_exitcode(status)}")
        print(json.dumps({**json.loads(given), "peak": 1024 * usage.ru_maxrss}))


if __name__ == "__main__":
    main()
