"""Payloads for Spark, and the ways to decode them there: all give the same three columns, or the whole table."""

from __future__ import annotations

import shutil
import struct
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import bit_xor, col, count, udf, xxhash64
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import StructType

from benchmarks import workloads
from benchmarks.messages import user_messages
from benchmarks.streams import write_streams
from msmqwire import mqsd
from msmqwire.capture import read_table, read_tables
from msmqwire.capture.parquet import parquet_writer
from msmqwire.spark import functions
from msmqwire.spark.source.scan import Scan, ScanOptions

FILES = 4
ONE_IN = 1_000
CUT = 30
SMALL_ROWS = 2_500
SMALL_BYTES = 100_000
ROW_GROUP = 1 << 17
FRAME_HEADERS = np.dtype(workloads.FRAME.descr[:-1])
PACKETS = "type string, request_id string, fault string"
COLUMNS = ["type", "request_id", "fault"]


@dataclass(frozen=True)
class Payloads:
    """The same payloads several times: as a column of Parquet files beside what they say, and in captures.

    Half are requests and half replies, in no order; one in ``ONE_IN`` is a request cut short.

    Attributes
    ----------
    rows, size : int
        How many there are, and their bytes.
    parquet, captures : Path
        Folders of ``FILES`` files.
    small, large : Path
        Folders with the same frames in captures of ``SMALL_ROWS``, and in one.
    """

    rows: int
    size: int
    parquet: Path
    captures: Path
    small: Path
    large: Path

    @property
    def capture_size(self) -> int:
        """Bytes of the captures."""
        return sum(path.stat().st_size for path in self.captures.iterdir())


def write_payloads(folder: Path, rows: int) -> Payloads:
    """Write the files into folders below this one."""
    folders = [folder / name for name in ("parquet", "captures", "small", "large")]
    for one in folders:
        one.mkdir()
    parquet, captures, small, large = folders
    size = 0
    everything: list[bytes] = []
    for number in range(FILES):
        rng = np.random.default_rng(workloads.SEED + number)
        table = packets(rng, rows // FILES)
        pq.write_table(table, parquet / f"{number}.parquet")
        payloads = table.column("payload")
        size += pc.sum(pc.binary_length(payloads)).as_py()
        frames = records(rng, payloads)
        write_capture(captures / f"{number}.pcap", frames)
        everything += frames
    for start in range(0, len(everything), SMALL_ROWS):
        write_capture(small / f"{start:09}.pcap", everything[start : start + SMALL_ROWS])
    write_capture(large / "all.pcap", everything)
    return Payloads(len(everything), size, *folders)


def write_capture(path: Path, frames: Sequence[bytes]) -> None:
    """Write records as a pcap file."""
    path.write_bytes(workloads.PCAP_HEADER + b"".join(frames))


def packets(rng: np.random.Generator, rows: int) -> pa.Table:
    """Payloads, and the truth in the columns of ``PACKETS``."""
    requests, replies = (
        make(rows // 2, int(rng.integers(1 << 32))) for make in (workloads.requests, workloads.replies)
    )
    asked = binary(requests)
    whole = np.arange(len(asked)) % (ONE_IN // 2) > 0
    asked = pc.if_else(whole, asked, pc.binary_slice(asked, 0, CUT))
    ids = [str(uuid.UUID(bytes_le=bytes(one))) for one in requests.truth["request_id"]]
    nothing = pa.nulls(len(replies), pa.string())
    table = pa.Table.from_pydict(
        {
            "payload": pa.chunked_array([asked, binary(replies)]),
            "type": pa.chunked_array([pc.if_else(whole, "request", None), np.full(len(replies), "reply")], pa.string()),
            "request_id": pa.chunked_array([pc.if_else(whole, pa.array(ids), None), nothing]),
            "fault": pa.chunked_array([pc.if_else(whole, None, "truncated"), nothing], pa.string()),
        }
    )
    return table.take(rng.permutation(len(table)))


def binary(work: workloads.Workload) -> pa.Array[Any]:
    """The payloads in Arrow."""
    buffers = [None, pa.py_buffer(work.offsets.data), pa.py_buffer(work.data)]
    return pa.Array.from_buffers(pa.binary(), len(work), buffers)


def records(rng: np.random.Generator, payloads: pa.ChunkedArray[pa.BinaryScalar]) -> list[bytes]:
    """Each payload in a record of a capture: a UDP datagram without a checksum."""
    frames = np.zeros(len(payloads), FRAME_HEADERS)
    workloads.fill_headers(rng, frames, 0, pc.binary_length(payloads).to_numpy())
    headers = np.ascontiguousarray(frames).view(f"V{frames.itemsize}").tolist()
    return [header + payload for header, payload in zip(headers, payloads.to_pylist(), strict=True)]


def write_others(path: Path, rows: int) -> None:
    """Write a capture of frames of another protocol: TCP segments to port 443, of 54 bytes to 1,514."""
    write_capture(path, other_records(rows))


def other_records(rows: int) -> list[bytes]:
    """The records of these frames."""
    rng = np.random.default_rng(workloads.SEED)
    # What a header of TCP has behind the eight bytes that one of UDP has
    rest = struct.pack(">IBBHHH", 1, 0x50, 0x10, 0xFFFF, 0, 0)
    sizes = rng.integers(0, 1461, rows)
    frames = np.zeros(rows, FRAME_HEADERS)
    workloads.fill_headers(rng, frames, 0, len(rest) + sizes)
    frames["protocol"], frames["dst_port"] = 6, 443
    headers = frames.view(f"V{frames.itemsize}").tolist()
    content = rng.bytes(1460)
    return [header + rest + content[:size] for header, size in zip(headers, sizes.tolist(), strict=True)]


def write_mixed(folder: Path, frames: int) -> int:
    """Write captures of mixed traffic; the number of rows in them, of all tables.

    Of the frames, 3 in 10 are discovery packets, about 15 in 100 are segments of messages and their acknowledgments,
    the others are of other protocols.
    """
    folder.mkdir()
    for number in range(FILES):
        rng = np.random.default_rng(workloads.SEED + number)
        count = frames // FILES
        streams = folder / "streams.pcap"
        write_streams(streams, user_messages(count // 20, workloads.SEED + number).split())
        messages = split_records(streams.read_bytes())
        streams.unlink()
        discovery = records(rng, packets(rng, 3 * count // 10)["payload"])
        kinds = [messages, discovery, other_records(count - len(messages) - len(discovery))]
        order = rng.permutation(np.repeat(range(len(kinds)), [len(kind) for kind in kinds]))
        nexts = [iter(kind) for kind in kinds]
        write_capture(folder / f"{number}.pcap", [next(nexts[kind]) for kind in order])
    return write_tables(folder, None)


def write_small(folder: Path, captures: int) -> int:
    """Write captures of 100 kB of mixed traffic; their number."""
    mixed = folder.with_name("whole")
    write_mixed(mixed, 180 * captures)
    found = [record for path in sorted(mixed.iterdir()) for record in split_records(path.read_bytes())]
    shutil.rmtree(mixed)
    folder.mkdir()
    number, size, waiting = 0, 0, []
    for record in found:
        waiting.append(record)
        size += len(record)
        if size >= SMALL_BYTES:
            write_capture(folder / f"{number:05}.pcap", waiting)
            number, size, waiting = number + 1, 0, []
        if number == captures:
            break
    return number


def split_records(capture: bytes) -> list[bytes]:
    """The records of a pcap file."""
    found, start = [], len(workloads.PCAP_HEADER)
    while start < len(capture):
        (size,) = struct.unpack_from("<I", capture, start + 8)
        found.append(capture[start : start + 16 + size])
        start += 16 + size
    return found


def write_tables(captures: Path, folder: Path | None) -> int:
    """Decode all tables in this process, into a Parquet file for each table of each capture; the number of rows.

    Without a folder nothing is written.
    """
    rows = 0
    for path in captures.iterdir():
        batches: dict[str, list[pa.RecordBatch]] = {}
        with read_tables(path, guid="text", dictionaries=False) as reader:
            for table, batch in reader:
                rows += len(batch)
                if folder is not None:
                    batches.setdefault(table, []).append(batch)
        if folder is None:
            continue
        for table, read in batches.items():
            target = folder / f"{path.stem}.{table}.parquet"
            with target.open("wb") as file, parquet_writer(file, read[0].schema, "snappy") as writer:
                writer.write_table(pa.Table.from_batches(read), row_group_size=ROW_GROUP)
    return rows


def digest(packets: DataFrame) -> set[tuple[object, ...]]:
    """What is the same for the same rows in any order."""
    grouped = packets.groupBy("type", "fault").agg(count("*"), bit_xor(xxhash64("request_id")))
    return {tuple(row) for row in grouped.collect()}


def unpack(payload: bytes) -> tuple[str | None, str | None, str | None]:
    """What one writes by hand: ``struct``, and the checks without which it would raise on the first bad packet."""
    size = len(payload)
    if size < 2:
        return None, None, "truncated"
    if payload[1] == 1:
        if size < 52:
            return None, None, "truncated"
        _, request_id, _ = struct.unpack_from("<16s16s16s", payload, 4)
        return "request", str(uuid.UUID(bytes_le=request_id)), None
    if payload[1] == 2:
        if size < 32:
            return None, None, "truncated"
        networks, _, names = struct.unpack_from("<III", payload, 20)
        if size < 32 + 16 * networks + 16 + names:
            return None, None, "truncated"
        return "reply", None, None
    return None, None, "bad_type"


def python_udf(payloads: DataFrame, *, arrow: bool) -> DataFrame:
    """``unpack`` as a plain UDF, its rows pickled or in Arrow."""
    decode = udf(unpack, PACKETS, useArrow=arrow)
    return payloads.select(decode("payload").alias("packet")).select("packet.*")


def pandas_udf_by_hand(payloads: DataFrame) -> DataFrame:
    """A pandas UDF around the package's ``decode_batch``, as one writes it first: with columns of Python objects."""

    @pandas_udf(PACKETS)  # type: ignore[call-overload, untyped-decorator]  # the stub asks for a type of function
    def decode(payloads: pd.Series) -> pd.DataFrame:
        packets = mqsd.decode_batch(payloads.tolist(), columns=COLUMNS).to_arrow(guid="text")
        code = pc.struct_field(packets.column("fault"), "code")
        return packets.set_column(packets.schema.get_field_index("fault"), "fault", code).to_pandas()

    return payloads.select(decode("payload").alias("packet")).select("packet.*")


def function(payloads: DataFrame, form: functions.Form) -> DataFrame:
    """The package's function."""
    packet = functions.decoder_udf("topology", columns=COLUMNS, form=form)("payload")
    return flat(payloads.select(packet.alias("packet")).select("packet.*"))


def frame(payloads: DataFrame) -> DataFrame:
    """The package's ``decode_frame``."""
    return flat(functions.decode_frame(payloads, "payload", "topology", columns=COLUMNS))


def data_source(spark: SparkSession, captures: Path, **options: str) -> DataFrame:
    """The package's data source, its schema narrowed."""
    source = spark.read.format("msmq").options(**options)
    whole = source.load(str(captures)).schema
    return flat(source.schema(StructType([whole[name] for name in COLUMNS])).load(str(captures)))


def flat(packets: DataFrame) -> DataFrame:
    """Rows of the table as rows of ``PACKETS``."""
    return packets.select("type", "request_id", col("fault.code").alias("fault"))


def decode_alone(captures: Path) -> int:
    """The rows in this process, as record batches that are made and dropped; how many there were."""
    rows = 0
    for path in captures.iterdir():
        with read_table(path, "topology", columns=COLUMNS) as reader:
            rows += sum(len(batch) for batch in reader)
    return rows


def write_alone(captures: Path, folder: Path) -> None:
    """The whole table in this process, a Parquet file for each capture, with Spark's types and nothing else."""
    (folder / "topology").mkdir()
    for path in captures.iterdir():
        batches = [batch for _, batch in Scan(ScanOptions(("topology",))).batches(str(path))]
        pq.write_table(
            pa.Table.from_batches(batches), folder / "topology" / f"{path.stem}.parquet", row_group_size=ROW_GROUP
        )
