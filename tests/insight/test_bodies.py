"""The kinds of bodies, on bodies that programs write."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import struct
import zipfile

import pytest

from msmqwire import mqqb
from msmqwire.insight.bodies import EXTENSIONS, NEEDED, body_kind, with_bodies

HEADER = b"\0\1\0\0\0\xff\xff\xff\xff\1\0\0\0\0\0\0\0"


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("order.txt", "1")
    return file.getvalue()


def text(value: str) -> bytes:
    return bytes([len(value)]) + value.encode()


LIBRARY = HEADER + b"\x0c\2\0\0\0" + text("Orders, Version=1")


@pytest.mark.parametrize(
    ("body", "body_type", "kind"),
    [
        (b"<?xml version='1.0'?><a/>", 0, "xml"),
        ("<a/>".encode("utf-16-le"), 0, "xml"),
        (b'{"order": [1, 2]}', 0, "json"),
        ('["x"]'.encode("utf-16-le"), 31, "json"),
        (b"{no json", 0, "utf8_text"),
        ("Größe".encode(), 30, "utf8_text"),
        ("Größe".encode("utf-16-le"), 8, "utf16_text"),
        (struct.pack("<i", 17), 3, "value"),
        (LIBRARY + b"\5\1\0\0\0" + text("Orders.Order"), 768, "nrbf Orders.Order"),
        (HEADER + b"\4\1\0\0\0" + text("System.Data.DataSet"), 768, "nrbf System.Data.DataSet"),
        (HEADER + b"\6\1\0\0\0" + text("hello"), 768, "nrbf System.String"),
        (HEADER + b"\5\1\0\0\0" + text("Orders.Order") + b"x\0\0\0", 768, "nrbf Orders.Order"),
        (HEADER, 768, "nrbf"),
        (HEADER + b"\5\1\0\0\0\xff\xff\xff\xff\xff\xff", 768, "nrbf"),
        (HEADER + b"\5\1\0\0\0\xff\xff\xff\xff\xff\1Name", 768, "nrbf"),  # a length has five bytes at most
        (bytes(16) + b"\1\2\3", 68, "ole"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(504), 0, "ole"),
        (gzip.compress(b"x", mtime=0), 0, "gzip"),
        (zipped(), 0, "zip"),
        (b"%PDF-1.7\n\x80", 0, "pdf"),
        (b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0\x64\x86", 0, "pe"),
        (b"MZPE\0\0" + bytes(54) + struct.pack("<I", 2), 0, "pe"),  # of 64 bytes, the least that name an offset
        (b"MZ\x90\0", 0, "binary"),
        (b"MZ" + bytes(58) + b"\xff\xff\xff\xff", 0, "binary"),
        (b"\x89PNG\r\n\x1a\n" + bytes(30), 0, "png"),
        (b"7z\xbc\xaf\x27\x1c", 0, "7z"),  # six bytes are just enough
        (b"\1\0\0\0\0\x7c\xe5\x65\1\0\0\0", 0, "binary"),
    ],
)  # fmt: skip
def test_kinds(body: bytes, body_type: int, kind: str) -> None:
    if kind in ("png", "7z"):
        pytest.importorskip("puremagic")
    assert str(body_kind(body, body_type)) == kind


@pytest.mark.parametrize("size", [256, 257])
def test_names_of_classes_have_at_most_256_bytes(size: int) -> None:
    length = bytes([size & 0x7F | 0x80, size >> 7])
    body = HEADER + b"\4\1\0\0\0" + length + b"a" * size
    assert str(body_kind(body, 768)) == f"nrbf {'a' * 256}"


def test_columns_of_bodies() -> None:
    compound = mqqb.CompoundMessageHeader(http_body=b"POST\r\n\r\n<a/>", message_body_size=4, message_body_offset=8)
    packets = [
        mqqb.UserMessage(body=b"%PDF-1.7\n\x80"),
        mqqb.UserMessage(body=b""),
        mqqb.UserMessage(body=b"", compound=compound),
        mqqb.UserMessage(body=b"secret", privacy_level=1),
    ]
    batch = mqqb.decode_batch([mqqb.encode(each) for each in packets], columns=NEEDED).to_arrow(dictionaries=False)
    assert with_bodies(batch, ()).equals(batch)
    rows = with_bodies(batch, ("body_kind", "body_sha256"))
    assert rows.schema.names == [*batch.schema.names, "body_kind", "body_sha256"]
    assert rows["body_kind"].to_pylist() == ["pdf", None, "xml", "encrypted"]
    bodies = (b"%PDF-1.7\n\x80", b"", b"<a/>", b"secret")
    assert rows["body_sha256"].to_pylist() == [hashlib.sha256(body).hexdigest() if body else None for body in bodies]


def test_what_is_known_of_a_message() -> None:
    assert body_kind(b"") is None
    assert str(body_kind(b"<a/>", encrypted=True)) == "encrypted"
    assert str(body_kind(b"\1\1\2", notification=True)) == "notification"


@pytest.mark.long
def test_bytes_of_chance_are_binary_or_text() -> None:
    rng = random.Random(40)
    kinds = [str(body_kind(rng.randbytes(40))) for _ in range(2000)]
    assert set(kinds) <= {"binary", "utf8_text"}


def test_each_truncation_has_a_kind() -> None:
    body = LIBRARY + b"\5\1\0\0\0" + text("Orders.Order")
    for size in range(1, len(body)):
        kind = body_kind(body[:size], 768)
        assert kind is not None
        assert kind.name in EXTENSIONS
