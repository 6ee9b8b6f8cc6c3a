"""What the oracle expects, in the shapes the package answers in: packets, numpy columns, Arrow arrays."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from msmqwire import Batch, Payloads, mqsd
from msmqwire.errors import DecodeError
from tests.reference import mqsd as reference

Outcome = reference.Packet | reference.Fault | None

NO_ITEM = 0xFFFFFFFF
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_all(
    payloads: Sequence[bytes | None], *, strict: bool = False, transport: reference.Transport = "unknown"
) -> list[Outcome]:
    """The oracle over many payloads; None for a null one."""
    options: dict[str, Any] = {"strict": strict, "transport": transport}
    return [None if data is None else reference.read(data, **options) for data in payloads]


def decode(data: Any, **options: Any) -> mqsd.TopologyClientRequest | mqsd.TopologyServerReply | reference.Fault:
    """The package over one payload, its exception turned into the oracle's fault."""
    try:
        return mqsd.decode(data, **options)
    except DecodeError as error:
        return reference.Fault(error.code, error.field, error.offset)


def request(data: Any, **options: Any) -> mqsd.TopologyClientRequest:
    """A payload that must be a request."""
    packet = mqsd.decode(data, **options)
    assert isinstance(packet, mqsd.TopologyClientRequest)
    return packet


def reply(data: Any, **options: Any) -> mqsd.TopologyServerReply:
    """A payload that must be a reply."""
    packet = mqsd.decode(data, **options)
    assert isinstance(packet, mqsd.TopologyServerReply)
    return packet


def contents(payloads: Payloads) -> list[bytes | None]:
    """The bytes of payloads, None for a null one."""
    return [None if item is None else bytes(item) for item in payloads]


def packet_row(packet: mqsd.TopologyClientRequest | mqsd.TopologyServerReply) -> dict[str, Any]:
    """A packet as ``reference.row`` gives it."""
    row: dict[str, Any] = dict.fromkeys((*reference.COLUMNS, "fault", "violations"))
    row.update(type=packet.type, version=packet.version, violations=list(packet.violations))
    row["trailing"] = None if packet.trailing is None else bytes(packet.trailing)
    if isinstance(packet, mqsd.TopologyClientRequest):
        row["enterprise_id"] = packet.enterprise_id
        row["request_id"] = packet.request_id
        row["site_id"] = packet.site_id
        row["ipx_networks"] = [int(network) for network in packet.ipx_networks] or None
        return row
    row["correlation_id"] = packet.correlation_id
    row["connected_network_mask"] = packet.connected_network_mask
    row["connected_networks"] = [uuid.UUID(bytes_le=bytes(network)) for network in packet.connected_networks]
    row["responding_site_id"] = packet.responding_site_id
    row["servers"] = [server._asdict() for server in packet.servers] or None
    return row


def build(packet: reference.Packet) -> mqsd.TopologyClientRequest | mqsd.TopologyServerReply:
    """The packet that a caller of the package would make from the same values."""
    if isinstance(packet, reference.Request):
        return mqsd.TopologyClientRequest(
            enterprise_id=uuid.UUID(bytes_le=packet.enterprise_id),
            request_id=uuid.UUID(bytes_le=packet.request_id),
            site_id=uuid.UUID(bytes_le=packet.site_id),
            ipx_networks=packet.ipx_networks or (),
        )
    site = packet.responding_site_id
    return mqsd.TopologyServerReply(
        correlation_id=uuid.UUID(bytes_le=packet.correlation_id),
        connected_networks=[uuid.UUID(bytes_le=network) for network in packet.connected_networks],
        connected_network_mask=packet.connected_network_mask,
        responding_site_id=None if site is None else uuid.UUID(bytes_le=site),
        servers=[mqsd.DirectoryServiceServer(item.name, item.ip, item.ipx) for item in packet.servers or ()],
    )


# --- numpy ---


def _values(outcomes: Sequence[Outcome], name: str) -> tuple[NDArray[np.bool_], list[Any]]:
    """In which rows a column stands, and its values there."""
    values = [getattr(outcome, name, None) for outcome in outcomes]
    return np.array([value is not None for value in values], bool), [v for v in values if v is not None]


def _offsets(lists: Sequence[Sequence[Any] | None]) -> NDArray[np.int64]:
    return np.cumsum([0, *(0 if items is None else len(items) for items in lists)])


def assert_columns(batch: Batch, outcomes: Sequence[Outcome]) -> None:
    """Every numpy column of a batch that was decoded with all its columns."""
    assert len(batch) == len(outcomes)
    _assert_scalars(batch, outcomes)
    _assert_lists(batch, outcomes)
    present, extra = _values(outcomes, "trailing")
    np.testing.assert_array_equal(batch.is_present("trailing"), present)
    assert [bytes(batch["trailing"][row]) for row in np.flatnonzero(present)] == extra
    _assert_faults(batch, outcomes)
    bits = {name: 1 << bit for bit, name in enumerate(reference.VIOLATIONS)}
    expected = [sum(bits[name] for name in getattr(outcome, "violations", ())) for outcome in outcomes]
    assert batch.violations.dtype == np.uint32
    np.testing.assert_array_equal(batch.violations, expected)


def _assert_scalars(batch: Batch, outcomes: Sequence[Outcome]) -> None:
    for name in ("enterprise_id", "request_id", "site_id", "correlation_id", "responding_site_id"):
        present, values = _values(outcomes, name)
        np.testing.assert_array_equal(batch.is_present(name), present, name)
        assert batch[name].shape == (len(outcomes), 16)
        assert batch[name].dtype == np.uint8
        assert batch[name][present].tobytes() == b"".join(values), name
        assert not batch[name][~present].any(), f"{name}: a null row shows what was there before"
    present, types = _values(outcomes, "type")
    np.testing.assert_array_equal(batch.is_present("type"), present)
    names = np.array(mqsd.TOPOLOGY.columns[0].type.names)  # type: ignore[union-attr]
    assert names[batch["type"][present]].tolist() == types
    for name, dtype in (("version", np.uint8), ("connected_network_mask", np.uint32)):
        present, values = _values(outcomes, name)
        np.testing.assert_array_equal(batch.is_present(name), present, name)
        assert batch[name].dtype == dtype
        assert batch[name][present].tolist() == values, name
        assert not batch[name][~present].any(), f"{name}: a null row shows what was there before"


def _assert_lists(batch: Batch, outcomes: Sequence[Outcome]) -> None:
    lists = {name: [getattr(outcome, name, None) for outcome in outcomes] for name in reference.COLUMNS}
    for name in ("ipx_networks", "connected_networks", "servers"):
        present = np.array([items is not None for items in lists[name]], bool)
        np.testing.assert_array_equal(batch.is_present(name), present, name)
        np.testing.assert_array_equal(batch[name].offsets, _offsets(lists[name]), name)
    networks = [network for items in lists["ipx_networks"] for network in items or ()]
    np.testing.assert_array_equal(batch["ipx_networks"].values, np.array(networks, np.uint32))
    assert batch["ipx_networks"].values.dtype == np.uint32
    guids = [network for items in lists["connected_networks"] for network in items or ()]
    assert batch["connected_networks"].values.shape == (len(guids), 16)
    assert batch["connected_networks"].values.tobytes() == b"".join(guids)
    servers = [server for items in lists["servers"] for server in items or ()]
    members = batch["servers"].values
    assert members["name"].offset.tolist() == [server.offset for server in servers]
    assert members["name"].length.tolist() == [2 * server.units for server in servers]
    for flag in ("ip", "ipx"):
        assert members[flag].dtype == bool
        assert members[flag].tolist() == [getattr(server, flag) for server in servers]


def fault_entries(batch: Batch) -> list[tuple[int, str, str, int]]:
    """The entries of ``batch.faults`` with their numbers named: row, code, field, offset."""
    from msmqwire.wire.codes import FAULT_NAMES

    entries = []
    for entry in batch.faults:
        field = batch.table.fields[int(entry["field"])]
        item = "" if entry["item"] == NO_ITEM else f"[{entry['item']}]"
        entries.append((int(entry["row"]), FAULT_NAMES[int(entry["code"])], field + item, int(entry["offset"])))
    return entries


def _assert_faults(batch: Batch, outcomes: Sequence[Outcome]) -> None:
    expected = [(row, *fault) for row, fault in enumerate(outcomes) if isinstance(fault, reference.Fault)]
    assert fault_entries(batch) == expected


# --- Arrow ---


def arrow_text(name: str) -> str:
    """A name as Arrow can hold it."""
    return _LONE_SURROGATE.sub("\ufffd", name)


def arrow_columns(outcomes: Sequence[Outcome]) -> dict[str, list[Any]]:
    """The columns of ``to_arrow(guid="binary")`` as Python values: GUIDs as 16 bytes in RFC 9562 order."""
    columns: dict[str, list[Any]] = {name: [] for name in (*reference.COLUMNS, "fault", "violations")}
    for outcome in outcomes:
        row = reference.row(outcome)
        for name, value in row.items():
            if isinstance(value, uuid.UUID):
                row[name] = value.bytes
            elif name == "connected_networks" and value is not None:
                row[name] = [network.bytes for network in value]
            elif name == "servers" and value is not None:
                row[name] = [{**server, "name": arrow_text(server["name"])} for server in value]
        for name, values in columns.items():
            values.append(row[name])
    return columns


def assert_arrow(batch: Batch, outcomes: Sequence[Outcome]) -> None:
    """The Arrow export of a batch, column by column, against the oracle."""
    table = batch.to_arrow(dictionaries=False)
    table.validate(full=True)
    assert table.num_rows == len(outcomes)
    assert tuple(table.schema.names) == mqsd.TOPOLOGY.names
    for name, values in arrow_columns(outcomes).items():
        column = table[name]
        expected = pa.array(values, column.type)
        if not column.equals(expected):
            wrong = next(i for i, value in enumerate(values) if column[i].as_py() != value)
            raise AssertionError(f"{name}, row {wrong}: {column[wrong]} instead of {values[wrong]}")
