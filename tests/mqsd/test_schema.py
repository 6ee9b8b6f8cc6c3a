"""The table's schema, and the structured dtype of the request's IP form."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa

from msmqwire import mqsd
from msmqwire.columns.schema import ListOf
from tests.columns.rows import contents
from tests.vectors import load

V1, V2, V3 = (vector.data for vector in load("mqsd") if vector.section == "[MS-MQSD] 4")


def test_columns_in_order() -> None:
    assert set(mqsd.REQUEST_COLUMNS) | set(mqsd.REPLY_COLUMNS) == set(mqsd.TOPOLOGY.names)
    for columns in (mqsd.REQUEST_COLUMNS, mqsd.REPLY_COLUMNS):
        assert list(columns) == [name for name in mqsd.TOPOLOGY.names if name in columns]


def test_types_of_the_table() -> None:
    guid = pa.uuid()
    servers = pa.list_(pa.struct([("name", pa.string()), ("ip", pa.bool_()), ("ipx", pa.bool_())]))
    fault = pa.struct(
        [
            ("code", pa.string()),
            ("field", pa.string()),
            ("offset", pa.uint32()),
            ("value", pa.int64()),
            ("needed", pa.int64()),
        ]
    )
    expected: list[tuple[str, pa.DataType]] = [
        ("type", pa.string()),
        ("version", pa.uint8()),
        ("enterprise_id", guid),
        ("request_id", guid),
        ("site_id", guid),
        ("ipx_networks", pa.list_(pa.uint32())),
        ("correlation_id", guid),
        ("connected_network_mask", pa.uint32()),
        ("connected_networks", pa.list_(guid)),
        ("responding_site_id", guid),
        ("servers", servers),
        ("trailing", pa.binary()),
        ("fault", fault),
        ("violations", pa.list_(pa.string())),
    ]
    assert mqsd.TOPOLOGY.arrow_schema(guid="uuid", dictionaries=False).equals(pa.schema(expected))


def test_request_dtype_views_a_buffer_without_a_copy() -> None:
    data = (V1 + V1[:36] + bytes(range(16))) * 50
    view = np.frombuffer(data, mqsd.REQUEST_DTYPE)
    assert mqsd.REQUEST_DTYPE.itemsize == 52
    assert len(view) == 100
    assert np.shares_memory(view, np.frombuffer(data, np.uint8))
    batch = mqsd.decode_batch(data, offsets=np.arange(101) * 52)
    for name in ("enterprise_id", "request_id", "site_id"):
        assert view[name].shape == (100, 16)
        assert np.shares_memory(view[name], np.frombuffer(data, np.uint8))
        np.testing.assert_array_equal(view[name], batch[name])
    assert view["header"].tolist() == [(0, 1, 0)] * 100
    request_id = uuid.UUID("f291a103-e33c-ab4f-a930-be3a33e432dd")
    assert uuid.UUID(bytes_le=view[0]["request_id"].tobytes()) == request_id


def test_request_dtype_writes_requests() -> None:
    requests = np.zeros(3, mqsd.REQUEST_DTYPE)
    requests["header"]["type"] = 1
    for name in ("enterprise_id", "request_id", "site_id"):
        requests[name] = np.random.default_rng(4).integers(0, 256, (3, 16), np.uint8)
    batch = mqsd.decode_batch(requests.tobytes(), offsets=[0, 52, 104, 156], strict=True)
    assert len(batch.faults) == 0
    assert b"".join(filter(None, contents(mqsd.encode_batch(batch)))) == requests.tobytes()


def test_reply_dtype_views_the_fixed_part() -> None:
    view = np.frombuffer(V3, mqsd.REPLY_DTYPE, 1)[0]
    assert mqsd.REPLY_DTYPE.itemsize == 32
    assert view["header"].tolist() == (0, 2, 0)
    assert view["correlation_id"].tobytes() == V1[20:36]
    fixed = mqsd.REPLY_DTYPE.names[2:]  # type: ignore[index]
    assert [int(view[name]) for name in fixed] == [1, 0, 18]
    assert fixed == ("connected_network_count", "connected_network_mask", "directory_service_server_size")


def test_memory_for_servers_follows_from_the_smallest() -> None:
    correlation_id, network, site = (uuid.UUID(int=number) for number in range(3))
    sizes = [
        len(
            mqsd.encode(
                mqsd.TopologyServerReply(
                    correlation_id=correlation_id,
                    connected_networks=[network],
                    responding_site_id=site,
                    servers=[("a", True, False)] * count,
                )
            )
        )
        for count in (1, 2)
    ]
    (servers,) = (column.type for column in mqsd.TOPOLOGY.all_columns if column.name == "servers")
    assert isinstance(servers, ListOf)
    assert servers.smallest == sizes[1] - sizes[0]
