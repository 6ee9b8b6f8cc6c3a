"""The bytes of a payload as logs, honeypots and dumps write them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msmqwire import mqqb
from msmqwire.cli.console import CommandError
from msmqwire.cli.payload_text import payload_of
from tests.cli.support import msmqwire, refused

PING = "0000485504000000d1587355509195954997b6e611ea26c6"

DUMPED = bytes.fromhex(PING)
LINES = DUMPED[:16], DUMPED[16:]
ZEROS = bytes(96) + b"ab cd\xef"


@pytest.mark.parametrize(
    ("dump", "data"),
    [
        # hexdump -C, of which the last line is the offset of the end
        (
            f"00000000  {LINES[0][:8].hex(' ')}  {LINES[0][8:].hex(' ')}  |..HU.....XsUP...|\n"
            f"00000010  {LINES[1].hex(' ')}                           |I.....&.|\n00000018\n",
            DUMPED,
        ),
        (
            f"00000000  {'00 ' * 8} {'00 ' * 8} |................|\n*\n"
            "00000060  61 62 20 63 64 ef  |ab cd.|\n00000066\n",
            ZEROS,
        ),
        # xxd: characters that look like bytes
        (
            f"00000000: {LINES[0].hex(' ', 2)}  ab cd ef 00  1 2\n"
            f"00000010: {LINES[1].hex(' ', 2)}                      ab cd\n",
            DUMPED,
        ),
        ("00000000: 6162 2063 64                             ab cd\n", b"ab cd"),
        # od -A x -t x1, od -t x1, od -A d -t x1
        (f"000000 {LINES[0].hex(' ')}\n000010 {LINES[1].hex(' ')}\n000018\n", DUMPED),
        (f"0000000 {LINES[0].hex(' ')}\n0000020 {LINES[1].hex(' ')}\n0000030\n", DUMPED),
        (f"0000000 {LINES[0].hex(' ')}\n0000016 {LINES[1].hex(' ')}\n0000024\n", DUMPED),
        ("0000000" + " 00" * 16 + "\n*\n0000140 61 62 20 63 64 ef\n0000146\n", ZEROS),
        # Wireshark, one line
        (f"0000   {LINES[1].hex(' ')}   I.....&.\n", LINES[1]),
        (f"0000  {LINES[1].hex(' ')}", LINES[1]),
        # Digits in groups, which are no offsets
        (f"00000000 {LINES[1].hex(' ')}", bytes(4) + LINES[1]),
        ("0000 4855\n0400 0000", DUMPED[:8]),
        ("0x00, 0x48", b"\0H"),
    ],
)
def test_hexdumps_of_programs(dump: str, data: bytes) -> None:
    assert payload_of(dump) == data


@pytest.mark.parametrize("dump", ["0000020 00\n0000010 0\n", "00000000: 00\n*\n10000000: 00\n", "*\n", "0000 0\n"])
def test_hexdumps_with_wrong_offsets(dump: str) -> None:
    with pytest.raises(CommandError, match="is not hexadecimal"):
        payload_of(dump)


NOTATIONS: list[Callable[[bytes], str]] = [
    repr,  # Python: b'\\x10..LIOR', in the quotation marks that its bytes leave free
    lambda data: repr(data)[2:-1] + "LIOR",
    lambda data: "".join(f"\\x{byte:02x}" for byte in data) + r"\x4C\x49\x4F\x52",
    lambda data: " ".join(f"\\x{byte:02X}" for byte in data + b"LIOR"),
    lambda data: (data + b"LIOR").hex("-").upper(),  # BitConverter.ToString
    lambda data: f"|{data.hex(' ')}|LIOR",
    lambda data: base64.encodebytes(data + b"LIOR").decode(),
    lambda data: base64.urlsafe_b64encode(data + b"LIOR").decode().rstrip("="),
]


@pytest.mark.parametrize("notation", range(len(NOTATIONS)))
@given(st.binary(min_size=16, max_size=200))
@example(b"\x10\0\3\0LIOR" + bytes(16))
@example(b"'\"\\|\r\n\t" + bytes(16))
@example(b"no byte of it needs an escape")
def test_notations_of_logs(notation: int, data: bytes) -> None:
    # With a first byte that needs an escape, and digits that only base64 has
    data = b"\x10zzz" + data
    assert payload_of(NOTATIONS[notation](data)) == data + (b"LIOR" if notation else b"")


@pytest.mark.parametrize(
    "text",
    ["capture.pcap", "captures", "topology", "zz", r"b'\xzz'", r"b'\q'", "b'abc", r"\x1", r"\x10\ ", "|10 0|LIOR",
     "|10|LIOR|", "b'\u20ac'", "not!" * 8, "base"],
)  # fmt: skip
def test_text_that_is_no_payload(text: str) -> None:
    with pytest.raises(CommandError, match=r"is not hexadecimal, nor a hexdump, b'...', text with .x00"):
        payload_of(text)


QUEUE = r"DIRECT=OS:host\PRIVATE$\orders"
#: A message as a honeypot logs it
LOGGED = repr(mqqb.encode(mqqb.UserMessage(destination_queue=QUEUE, label="poc", body=b"#!/bin/sh\nid\n")))


def test_a_payload_of_a_log_is_decoded_and_judged() -> None:
    decoded = msmqwire("decode", "--hex", "-", "-T", "json", input=LOGGED.encode())
    assert json.loads(decoded.stdout)["label"] == "poc"
    found = msmqwire("detect", "--hex", "-", "-T", "json", input=LOGGED.encode())
    finding = json.loads(found.stdout)
    assert found.returncode == 2
    # What a payload alone does not show (hosts, answers, times) is not claimed
    assert (finding["rule"], finding["frames"], finding["file"]) == ("executable-body", [1], None)
    assert finding["evidence"] == {
        "queue": QUEUE, "kind": "script", "packets": 1, "first_seen": None, "last_seen": None,
    }  # fmt: skip
    assert found.stderr.decode() == "1 finding\n"


def test_payloads_without_findings() -> None:
    message = mqqb.UserMessage(destination_queue=QUEUE, label="Order")
    for payload in (bytes.fromhex(PING), mqqb.encode(message), bytes.fromhex("0001") + bytes(50)):
        done = msmqwire("detect", "--hex", payload.hex(), "-T", "json")
        assert (done.stdout, done.stderr) == (b"", b"0 findings\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--hex reads one payload: give it as one argument, or - for standard input"),
        ((PING, PING), "--hex reads one payload: give it as one argument, or - for standard input"),
        ((PING, "--expect", "10.20.1.10"), "--expect is not for --hex"),
        ((PING, "-j", "2"), "--jobs is not for --hex"),
        (("0102",), "the payload is the body of a change notification; detect needs the packet that carries it"),
    ],
)
def test_wrong_usage_of_detect(arguments: tuple[str, ...], message: str) -> None:
    assert refused("detect", "--hex", *arguments) == f"msmqwire: {message}\n"
