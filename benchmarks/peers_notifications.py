"""The other ways to read and write change notifications, and the package as they are compared with it.

As in ``peers.py``: payloads are cut into ``bytes`` beforehand, and what a library would do slowly is done for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

import msmqwire
from benchmarks.notifications import BLOB, FORMS, GUID, TEXT, Update, message_columns
from benchmarks.ours import BLOCK
from benchmarks.peers import Decoder, Encoder, See
from benchmarks.workloads import I64, U8, Columns, Workload, ends_of, within
from msmqwire import mqcn

Message = tuple[int, list[Update]]
FIXED = {propid: struct.Struct("<" + form) for propid, form in FORMS.items() if len(form) == 1}
COUNT = struct.Struct("<I")


# The package


def gather(data: bytes, starts: I64, sizes: I64) -> U8:
    """Many pieces of the data, one behind the other."""
    gathered: U8 = np.frombuffer(data, np.uint8)[np.repeat(starts, sizes) + within(sizes)]
    return gathered


def batch_columns(batch: mqcn.NotificationBatch, work: Workload, first: int) -> Columns:
    """The columns the peers make as well; texts and blobs are gathered from the payloads."""
    messages = batch.messages.astype(np.int64)
    starts = np.repeat(work.offsets[first : first + len(messages) - 1].astype(np.int64), np.diff(messages))
    path, properties = batch["path_name"], batch["properties"]
    values, offsets = properties.values, properties.offsets.astype(np.int64)
    path_sizes = path.length.astype(np.int64)
    payloads = np.repeat(starts, np.diff(offsets))
    is_guid = np.isin(values["id"], [propid for propid, form in FORMS.items() if form == GUID])
    sizes = values["text"].length.astype(np.int64) + values["bytes"].length + 16 * is_guid
    ends = ends_of(sizes)
    contents = np.zeros(ends[-1], np.uint8)
    for name in ("text", "bytes"):
        column = values[name]
        lengths = column.length.astype(np.int64)
        at = np.repeat(ends[:-1], lengths) + within(lengths)
        contents[at] = gather(work.data, payloads + column.offset, lengths)
    contents[(ends[:-1][is_guid][:, None] + np.arange(16)).reshape(-1)] = values["guid"][is_guid].reshape(-1)
    return {
        "version": batch["version"][messages[:-1]],
        "update_ends": messages,
        "command": batch["operation"],
        "object_guid": np.ascontiguousarray(batch["object_guid"]).view("V16").reshape(-1),
        "master_guid": np.ascontiguousarray(batch["master_guid"]).view("V16").reshape(-1),
        "path_ends": ends_of(path_sizes),
        "path": gather(work.data, starts + path.offset, path_sizes),
        "property_ends": offsets,
        "property_id": values["id"],
        "number": values["int"],
        "content_ends": ends,
        "content": contents,
    }


def decoder(work: Workload) -> Decoder:
    """decode_batch over all payloads, the whole table, its output reused."""
    payloads = msmqwire.Payloads(work.data, work.offsets)
    batch = None

    def run(see: See | None = None) -> None:
        nonlocal batch
        for start in range(0, len(payloads), BLOCK):
            batch = mqcn.decode_batch(payloads[start : start + BLOCK], out=batch)
            if see:
                assert not len(batch.faults)
                assert not batch.violations.any()
                see(batch_columns(batch, work, start))

    return run


def encoder(work: Workload) -> Encoder:
    """encode_batch of all messages, decoded beforehand into as many batches as there are blocks."""
    payloads = msmqwire.Payloads(work.data, work.offsets)
    starts = range(0, len(payloads), BLOCK)
    batches = [mqcn.decode_batch(payloads[start : start + BLOCK]) for start in starts]
    encoded = None

    def run(see: Callable[[Any], None] | None = None) -> None:
        nonlocal encoded
        for batch in batches:
            encoded = mqcn.encode_batch(batch, out=encoded)
            if see:
                for payload in encoded:
                    see(payload)

    return run


# struct


def text_end(data: bytes, at: int) -> int:
    """Where the 0x0000 stands that ends the text at ``at``."""
    end = data.find(b"\0\0", at)
    while end >= 0 and (end - at) % 2:
        end = data.find(b"\0\0", end + 1)
    if end < 0:
        raise ValueError("unterminated text")
    return end


def struct_message(data: bytes) -> Message:
    """One message, checked as one writes it first."""
    version, count = data[0], data[1]
    if version != 1:
        raise ValueError("not version 1")
    at = 2
    updates = []
    for _ in range(count):
        command, use_guid = data[at], data[at + 1]
        if command > 2 or use_guid > 1:
            raise ValueError("not an update")
        path = guid = None
        if use_guid:
            guid = data[at + 2 : at + 18]
            at += 18
        else:
            end = text_end(data, at + 2)
            path = data[at + 2 : end].decode("utf-16-le", "surrogatepass")
            at = end + 2
        master = data[at : at + 16]
        properties = data[at + 40]
        at += 41
        ids = struct.unpack_from(f"<{properties}I", data, at)
        at += 4 * properties
        found: list[tuple[int, int | str | bytes]] = []
        for propid in ids:
            fixed = FIXED.get(propid)
            if fixed is not None:
                found.append((propid, fixed.unpack_from(data, at)[0]))
                at += fixed.size
                continue
            form = FORMS[propid]
            if form == TEXT:
                end = text_end(data, at)
                found.append((propid, data[at:end].decode("utf-16-le", "surrogatepass")))
                at = end + 2
                continue
            size = 16
            if form == BLOB:
                size = COUNT.unpack_from(data, at)[0]
                at += 4
            if at + size > len(data):
                raise ValueError("truncated")
            found.append((propid, data[at : at + size]))
            at += size
        updates.append(Update(command, path, guid, master, found))
    return version, updates


def struct_notifications(work: Workload) -> Decoder:
    """A loop over the payloads."""
    return shown(work, struct_message)


def shown(work: Workload, read: Callable[[bytes], Message]) -> Decoder:
    """A reader of one message over all payloads."""
    payloads = work.split()

    def run(see: See | None = None) -> None:
        messages = [read(payload) for payload in payloads]
        if see:
            see(message_columns(messages))

    return run


def struct_encode_notifications(work: Workload) -> Encoder:
    """Pieces joined at the end."""
    messages = [struct_message(payload) for payload in work.split()]

    def run(see: Callable[[Any], None] | None = None) -> None:
        pieces: list[bytes] = []
        for version, updates in messages:
            pieces.append(bytes((version, len(updates))))
            for update in updates:
                pieces.append(bytes((update.command, update.path is None)))
                pieces.append(update.guid or f"{update.path}\0".encode("utf-16-le"))
                ids = [propid for propid, _ in update.properties]
                pieces += (update.master, bytes(24), struct.pack(f"<B{len(ids)}I", len(ids), *ids))
                for propid, value in update.properties:
                    if isinstance(value, int):
                        pieces.append(FIXED[propid].pack(value))
                    elif isinstance(value, str):
                        pieces.append(f"{value}\0".encode("utf-16-le"))
                    else:
                        if FORMS[propid] == BLOB:
                            pieces.append(COUNT.pack(len(value)))
                        pieces.append(value)
        out = b"".join(pieces)
        if see:
            see(out)

    return run


# construct


def construct_format() -> Any:
    """A message, declared."""
    from construct import (
        Array,
        Bytes,
        CString,
        FormatField,
        GreedyBytes,
        IfThenElse,
        Int8ul,
        Int32ul,
        Prefixed,
        Struct,
        Switch,
        this,
    )

    kinds = {GUID: Bytes(16), TEXT: CString("utf_16_le"), BLOB: Prefixed(Int32ul, GreedyBytes)}
    cases = {propid: kinds.get(form) or FormatField("<", form) for propid, form in FORMS.items()}
    update = Struct(
        "command" / Int8ul,
        "use_guid" / Int8ul,
        "identifier" / IfThenElse(this.use_guid, Bytes(16), CString("utf_16_le")),
        "master" / Bytes(16),
        "reserved" / Bytes(24),
        "count" / Int8ul,
        "ids" / Array(this.count, Int32ul),
        "values" / Array(this.count, Switch(lambda context: context.ids[context._index], cases)),
    )
    return Struct("version" / Int8ul, "count" / Int8ul, "updates" / Array(this.count, update))


def construct_notifications(work: Workload) -> Decoder:
    """Struct.parse of each payload."""
    parse = construct_format().parse

    def read(payload: bytes) -> Message:
        message = parse(payload)
        updates = []
        for one in message.updates:
            path, guid = (None, one.identifier) if one.use_guid else (one.identifier, None)
            updates.append(Update(one.command, path, guid, one.master, list(zip(one.ids, one["values"], strict=True))))
        return message.version, updates

    return shown(work, read)


# Kaitai Struct


def kaitai_notifications(work: Workload) -> Decoder:
    """The generated reader on each payload."""
    from benchmarks.kaitai.msmq_notifications import MsmqNotifications

    parse = MsmqNotifications.from_bytes

    def read(payload: bytes) -> Message:
        message = parse(payload)
        updates = []
        for one in message.notification_update:
            path, guid = (None, one.object_guid) if one.use_guid else (one.path_name, None)
            properties = [
                (propid, value if isinstance(value, int) else value.value)
                for propid, value in zip(one.property_id, one.property_value, strict=True)
            ]
            updates.append(Update(one.command, path, guid, one.master_guid, properties))
        return message.version, updates

    return shown(work, read)
