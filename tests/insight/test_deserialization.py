"""Which bodies create objects of their sender's choice in a .NET program."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msmqwire import mqqb
from msmqwire.insight._suspects import suspects
from msmqwire.insight.deserialization import GADGETS, KINDS, WORDS, deserialized_kind
from tests.insight.captures import message, stream, write
from tests.insight.test_detect import findings

HEADER = bytes.fromhex("0001000000ffffffff0100000000000000")
END = b"\x0b"
LIBRARY = HEADER + b"\x0c\x02\0\0\0\x06System"
INTEGER = b"\x04\x01\0\0\0\x0cSystem.Int32\x01\0\0\0\x07m_value\x00\x08" + struct.pack("<i", 42)
LOS = b"\xff\x01\x32\xc4\x11" + LIBRARY
GADGET = '"System.Windows.Data.ObjectDataProvider, PresentationFramework, Version=4.0.0.0"'


def text(value: str) -> bytes:
    return bytes((len(value),)) + value.encode()


VALUES = {
    "string": b"\x06\x01\0\0\0" + text("hello world"),
    "bytes": b"\x0f\x01\0\0\0\x03\0\0\0\x02abc",
    "integer": INTEGER,
    "date": b"\x04\x01\0\0\0" + text("System.DateTime") + b"\x02\0\0\0" + text("ticks") + text("dateData")
    + b"\0\0\x09\x10" + bytes(16),
    "strings": b"\x11\x01\0\0\0\x03\0\0\0\x06\x02\0\0\0" + text("a") + b"\x09\x02\0\0\0\x0a",
    "objects": b"\x10\x01\0\0\0\x04\0\0\0\x08\x08\x01\0\0\0\x08\x01\x01\x0d\x02",
    "texts": b"\x0f\x01\0\0\0\x02\0\0\0\x05" + text("1.5") + text("2"),
    "characters": b"\x0f\x01\0\0\0\x03\0\0\0\x03" + "aé€".encode(),
    "nulls": b"\x11\x01\0\0\0\x05\0\0\0\x0e\x05\0\0\0",
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_are_harmless_and_each_truncation_is_not(name: str) -> None:
    data = HEADER + VALUES[name] + END
    assert deserialized_kind(data) is None
    assert deserialized_kind(base64.b64encode(data)) is None
    for size in range(len(HEADER), len(data)):
        assert deserialized_kind(data[:size]) == "binary_formatter"


@pytest.mark.parametrize(
    "records",
    [
        b"\x0c\x02\0\0\0\x06System",
        INTEGER.replace(b"\x0cSystem.Int32", b"\x0cSystem.Other"),
        INTEGER.replace(b"m_value\x00\x08", b"m_value\x02\x08"),
        b"\x01\x01\0\0\0\x02\0\0\0",
        b"\x05\x01\0\0\0" + text("Shop.Order") + bytes(8),
        b"\x10\x01\0\0\0\x01\0\0\0\x0c\x02\0\0\0\x01A",
        b"\x0f\x01\0\0\0\x01\0\0\0\x04",
        b"\x0f\x01\0\0\0\xff\xff\xff\xff\x08",
        b"\x06\x01\0\0\0\xff\xff\xff\xff\xff\xff",
        b"\x07",
    ],
)
def test_other_objects_are_not(records: bytes) -> None:
    assert deserialized_kind(HEADER + records + END) == "binary_formatter"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (base64.b64encode(LIBRARY), "binary_formatter"),
        (b"<string>" + base64.b64encode(LIBRARY) + b"</string>", "binary_formatter"),
        (base64.b64encode(LIBRARY).decode().encode("utf-16-le"), "binary_formatter"),
        (base64.b64encode(LOS), "los_formatter"),
        (base64.b64encode(b"\xff\x01\x05\x05hello" + bytes(9)), None),
        (b'{"$type": %b}' % GADGET.encode(), "json_type"),
        (b'{"\\u0024type":%b}' % GADGET.encode(), "json_type"),
        (f'{{"a": [{{"$type": {GADGET}}}]}}'.encode("utf-16"), "json_type"),
        (b'{"$type": "Shop.Orders.PlaceOrder, Shop.Messages"}', None),
        (b'{"$type": "System.Collections.Generic.List`1[[Shop.Order, Shop]], mscorlib"}', None),
        (b'{"text": "System.Windows.Data.ObjectDataProvider"}', None),
        (b'<e:Envelope xmlns:a="http://schemas.microsoft.com/clr/nsassem/A/B"/>', "soap_formatter"),
        (b'<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"/>', None),
        (b'<?xml version="1.0"?>\n<!-- a --><!DOCTYPE a [<!ENTITY x SYSTEM "file:///c:/x">]><a>&x;</a>', "doctype"),
        (b'\xef\xbb\xbf<!DOCTYPE a SYSTEM "http://203.0.113.9/a.dtd"><a/>', "doctype"),
        ("<!DOCTYPE a []><a/>".encode("utf-16-le"), "doctype"),
        (b'<?xml version="1.0"?>' + b"<!-- -->\n" * 5000 + b"<!DOCTYPE a []><a/>", "doctype"),
        (b'<?xml version="1.0"?>' + b"<!-- -->\n" * 5000 + b"<a/><!DOCTYPE a []>", None),
        (b"<!DOCTYPE html><html/>", None),
        (b"<a>&lt;!DOCTYPE a&gt;</a>", None),
        (b"<a><![CDATA[<!DOCTYPE a []>]]></a>", None),
        (b"", None),
        (b"/wE", None),
    ],
)
def test_texts(body: bytes, kind: str | None, tmp_path: Path) -> None:
    assert deserialized_kind(body) == kind
    assert kind is None or kind in KINDS
    if kind is None or len(body) > 1:
        found = findings(write(tmp_path / "x.pcap", stream([message(body=body)])))
        rules = {"binary_formatter": "dotnet-binary-body", None: ""}
        assert [each.rule for each in found] == list(filter(None, [rules.get(kind, "dotnet-text-body")]))
        assert [each.evidence.get("kind", kind) for each in found] == ([] if kind is None else [kind])


def test_extension_data_is_looked_at(tmp_path: Path) -> None:
    for data, rule in ((LIBRARY, "dotnet-binary-body"), (base64.b64encode(LOS), "dotnet-text-body")):
        packet = mqqb.encode(mqqb.UserMessage(body=b"x", extension_data=data))
        (found,) = findings(write(tmp_path / "x.pcap", stream([packet])))
        assert found.rule == rule


def test_gadgets_are_names_of_classes() -> None:
    assert all(name.split(".")[0] in ("Microsoft", "System") for name in GADGETS)


# Nothing is serialised in the beginning of a LosFormatter's text alone
@pytest.mark.parametrize("word", ["/wEA" if word == "/wE" else word for word in WORDS])
@given(before=st.binary(max_size=40), after=st.binary(max_size=40))
@example(before=b"", after=b"")
def test_no_word_is_missed_by_the_fast_test(word: str, before: bytes, after: bytes) -> None:
    found = [before + word.encode(form) + after for form in ("ascii", "utf-16-le")]
    assert suspects(found).tolist() == [True, True]


def test_most_texts_need_no_further_look() -> None:
    bodies = [HEADER, b"<order><id>4711</id></order>", "<order/>".encode("utf-16"), None, b"", b"\0", b"w", b"wE"]
    assert suspects(bodies).tolist() == [True] + 7 * [False]
