"""Payloads for Spark, and the ways to decode them there: all give the same three columns, or the whole table."""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import bit_xor, col, count, udf, xxhash64
from pyspark.sql.types import StructType

from benchmarks import workloads
from msmqwire.capture import read_table
from msmqwire.spark import functions
from msmqwire.spark.reading import ReadingOptions, Scan

FILES = 4
ONE_IN = 1_000
CUT = 30
ROW_GROUP = 1 << 17
PACKETS = "type string, request_id string, fault string"
COLUMNS = ["type", "request_id", "fault"]


@dataclass(frozen=True)
class Payloads:
    """The same payloads twice: in captures, and as a column of Parquet files beside what they say.

    Half are requests and half replies, in no order; one in ``ONE_IN`` is a request cut short.
    """

    rows: int
    size: int
    parquet: Path
    captures: Path

    @property
    def capture_size(self) -> int:
        """Bytes of the captures."""
        return sum(path.stat().st_size for path in self.captures.iterdir())


def write_payloads(folder: Path, rows: int) -> Payloads:
    """Write the files, ``FILES`` of each kind."""
    made = Payloads(rows, 0, folder / "parquet", folder / "captures")
    for kind in (made.parquet, made.captures):
        kind.mkdir(parents=True)
    size = 0
    for number in range(FILES):
        rng = np.random.default_rng(workloads.SEED + number)
        table = packets(rng, rows // FILES)
        payloads = table.column("payload").combine_chunks()
        size += payloads.nbytes - 4 * (len(payloads) + 1)
        pq.write_table(table, made.parquet / f"{number}.parquet")
        (made.captures / f"{number}.pcap").write_bytes(workloads.PCAP_HEADER + records(rng, payloads))
    return Payloads(FILES * (rows // FILES), size, made.parquet, made.captures)


def packets(rng: np.random.Generator, rows: int) -> pa.Table:
    """Payloads, and the truth in the columns of ``PACKETS``."""
    requests, replies = (make(rows // 2, int(rng.integers(1 << 32))) for make in (workloads.requests, workloads.replies))
    asked = binary(requests)
    whole = np.arange(len(asked)) % (ONE_IN // 2) > 0
    asked = pc.if_else(whole, asked, pc.binary_slice(asked, 0, CUT))
    ids = [str(uuid.UUID(bytes_le=bytes(one))) for one in requests.truth["request_id"]]
    nothing = pa.nulls(len(replies), pa.string())
    table = pa.table(
        {
            "payload": pa.chunked_array([asked, binary(replies)]),
            "type": pa.chunked_array([np.where(whole, "request", None), np.full(len(replies), "reply")], pa.string()),
            "request_id": pa.chunked_array([pc.if_else(whole, pa.array(ids), None), nothing]),
            "fault": pa.chunked_array([np.where(whole, None, "truncated"), nothing], pa.string()),
        }
    )
    return table.take(rng.permutation(len(table)))


def binary(work: workloads.Workload) -> pa.Array:
    """The payloads in Arrow."""
    return pa.Array.from_buffers(pa.binary(), len(work), [None, pa.py_buffer(work.offsets), pa.py_buffer(work.data)])


def records(rng: np.random.Generator, payloads: pa.Array) -> bytes:
    """The records of a capture: each payload in a UDP datagram without a checksum."""
    frames = np.zeros(len(payloads), np.dtype(workloads.FRAME.descr[:-1]))
    workloads.fill_headers(rng, frames, 0, pc.binary_length(payloads).to_numpy())
    headers = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(frames.itemsize), len(frames), [None, pa.py_buffer(frames.tobytes())]
    )
    joined = pc.binary_join_element_wise(headers.cast(pa.binary()), payloads, pa.scalar(b"", pa.binary()))
    return joined.buffers()[2].to_pybytes()


def truth(spark: SparkSession, payloads: Payloads) -> DataFrame:
    """What the columns of ``PACKETS`` must be."""
    return spark.read.parquet(str(payloads.parquet)).select(*COLUMNS)


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


def function(payloads: DataFrame, form: functions.Form) -> DataFrame:
    """The package's function."""
    packet = functions.msmq_decode_topology("payload", columns=COLUMNS, form=form)
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
    for path in captures.iterdir():
        batches = [batch for _, batch in Scan(ReadingOptions(("topology",))).batches(str(path))]
        pq.write_table(pa.Table.from_batches(batches), folder / f"{path.stem}.parquet", row_group_size=ROW_GROUP)
