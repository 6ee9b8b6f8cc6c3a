"""What bodies of messages are: their kinds, by BodyType and their first bytes, and their hashes."""

from __future__ import annotations

from msmqwire.errors import require

require("pyarrow", "msmqwire.insight.bodies")

import hashlib
import json
import re
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from msmqwire.columns.plain import guid_text, plain
from msmqwire.mqqb import read_body
from msmqwire.mqqb.message.readable import NRBF_HEADER, UTF16_TYPES, length_at

__all__ = [
    "COLUMNS_ON_REQUEST",
    "EXTENSIONS",
    "NEEDED",
    "Kind",
    "body_kind",
    "executable_kind",
    "message_identifiers",
    "with_bodies",
]

# pyarrow's stubs do not know it
_compute: Any = pyarrow.compute

#: The columns of messages that are made on request.
COLUMNS_ON_REQUEST = {
    "body_sha256": "SHA-256 of the body, compound_body where MessageBody is empty; null where both are",
    "body_kind": "what the body is: xml, json, utf8_text, utf16_text, ansi_text, value, hl7, edifact, net_msmq, "
    "nrbf and its class, ole, notification, encrypted, or the kind of a file, such as zip; null where there is no body",
    "message_identifier": "the message identifier as Windows prints it: SourceQueueManager, a backslash, MessageID",
}
#: The columns that they are made of.
NEEDED = (
    "body", "compound_body", "body_type", "body_format", "notification", "source_queue_manager", "message_id",
)  # fmt: skip

#: The extension of a file with a body of each kind; executables get none that starts them.
EXTENSIONS = {
    "xml": "xml", "json": "json", "utf8_text": "txt", "utf16_text": "txt", "value": "value", "nrbf": "nrbf",
    "ole": "ole", "notification": "notification", "encrypted": "encrypted", "gzip": "gz", "zip": "zip", "pdf": "pdf",
    "pe": "pe", "ansi_text": "txt", "hl7": "hl7", "edifact": "edi", "net_msmq": "bin", "binary": "bin",
}  # fmt: skip

# BodyType of objects that MSMQ's ActiveX formatter stores: VT_STREAM to VT_BLOB_OBJECT without VT_CF
_OLE_TYPES = frozenset(range(66, 71))
_OLE_FILE = bytes.fromhex("d0cf11e0a1b11ae1")
_LONGEST_CLASS = 256
_SCRIPT = re.compile(rb"#![ \t]*/(?:[\w.-]+/)*[\w.-]+[ \t\r\n]")
# A tenth for each byte of the signature: shorter ones begin other bodies by chance
_CONFIDENCE = 0.6


class Kind(NamedTuple):
    """What a body is.

    ``name`` is one of ``EXTENSIONS``, or what puremagic calls the kind of file; ``class_name`` is that of the object in
    an NRBF stream.
    """

    name: str
    class_name: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.class_name}" if self.class_name else self.name


def body_kind(body: bytes, body_type: int = 0, *, encrypted: bool = False, notification: bool = False) -> Kind | None:
    """The kind of a body; None for an empty one.

    Examples
    --------
    >>> str(body_kind(b"<order/>")), str(body_kind(b'{"a": 1}')), str(body_kind(b"PK\\x03\\x04" + bytes(30)))
    ('xml', 'json', 'zip')
    >>> str(body_kind("Order".encode("utf-16-le"), 8))
    'utf16_text'
    """
    if not body:
        return None
    if encrypted:
        return Kind("encrypted")
    if notification:
        return Kind("notification")
    form, text = read_body(body, body_type, False)
    if form == "dotnet_binary":
        return Kind("nrbf", _nrbf_class(body))
    if body_type in _OLE_TYPES or body.startswith(_OLE_FILE):
        return Kind("ole")
    if form in ("xml", "value", "ansi_text", "hl7", "edifact", "net_msmq"):
        return Kind(form)
    if text is not None:
        if _is_json(text):
            return Kind("json")
        wide = body_type in UTF16_TYPES or body[:2] in (b"\xff\xfe", b"\xfe\xff")
        return Kind("utf16_text" if wide else "utf8_text")
    return Kind(_file_kind(body))


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _file_kind(body: bytes) -> str:
    if body[:2] == b"MZ":
        (at,) = struct.unpack_from("<I", body, 60) if len(body) >= 64 else (0,)
        return "pe" if body[at : at + 4] == b"PE\0\0" else "binary"
    for start, kind in ((b"\x1f\x8b\x08", "gzip"), (b"PK\x03\x04", "zip"), (b"%PDF-", "pdf")):
        if body.startswith(start):
            return kind
    try:
        import puremagic
    except ImportError:
        return "binary"
    try:
        likely = max(puremagic.magic_string(body), key=lambda each: each.confidence)
    except (puremagic.PureError, ValueError):
        return "binary"
    return likely.extension.lstrip(".").lower() if likely.confidence >= _CONFIDENCE else "binary"


def executable_kind(body: bytes) -> str | None:
    """``pe``, ``elf`` or ``script`` if a body is a program, or a script that names its interpreter.

    Examples
    --------
    >>> executable_kind(b"#!/bin/sh\\nid\\n"), executable_kind(b"MZ")
    ('script', None)
    """
    if body.startswith(b"MZ") and _file_kind(body) == "pe":
        return "pe"
    # Class, data encoding and version of an ELF header
    if (
        body.startswith(b"\x7fELF")
        and body[4:5] in (b"\1", b"\2")
        and body[5:6] in (b"\1", b"\2")
        and body[6:7] == b"\1"
    ):
        return "elf"
    return "script" if _SCRIPT.match(body) else None


def _nrbf_class(body: bytes) -> str:
    """The class of the root object of an NRBF stream ([MS-NRBF] 2.7): the name in its first record of a class."""
    at = NRBF_HEADER
    try:
        if body[at] == 12:  # BinaryLibrary
            at += 5
            size, at = length_at(body, at)
            at += size
        match body[at]:
            case 5 | 4 | 3 | 2:  # records of classes: an object identifier and the name
                size, at = length_at(body, at + 5)
                return body[at : at + min(size, _LONGEST_CLASS)].decode("utf-8", "replace")
            case 6:
                return "System.String"
            case 7 | 15 | 16 | 17:
                return "System.Array"
    except IndexError:
        pass
    return ""


def with_bodies(batch: pa.RecordBatch, wanted: Iterable[str]) -> pa.RecordBatch:
    """A batch of messages, which has the columns ``NEEDED``, with some of ``COLUMNS_ON_REQUEST``."""
    rows: Any = batch.select(list(NEEDED)).to_pylist()
    bodies = [row["body"] or row["compound_body"] for row in rows]
    for name in wanted:
        if name == "message_identifier":
            batch = batch.append_column(name, message_identifiers(batch))
            continue
        if name == "body_sha256":
            values = [hashlib.sha256(body).hexdigest() if body else None for body in bodies]
        else:
            kinds = [kind_of(row, body) for row, body in zip(rows, bodies, strict=True)]
            values = [None if kind is None else str(kind) for kind in kinds]
        batch = batch.append_column(name, pa.array(values, pa.string()))
    return batch


def message_identifiers(batch: Any) -> Any:
    """Return the column ``message_identifier`` of a batch of messages, null where no message begins."""
    manager = guid_text(plain(batch.column("source_queue_manager")))
    return _compute.binary_join_element_wise(manager, batch.column("message_id").cast(pa.string()), "\\")


def kind_of(row: dict[str, Any], body: bytes | None) -> Kind | None:
    """The kind of the body of a row, which has the columns ``NEEDED``."""
    return body_kind(
        body or b"",
        row["body_type"] or 0,
        encrypted=row["body_format"] == "encrypted",
        notification=row["notification"] is not None,
    )
