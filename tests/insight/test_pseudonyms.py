"""Pseudonyms keep lengths, forms and networks; equal values have equal ones, others have others."""

from __future__ import annotations

import struct
from collections import Counter
from ipaddress import IPv4Address, IPv6Address, ip_address
from string import ascii_lowercase
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msmqwire.insight.pseudonyms import _KEYWORDS, Pseudonyms

PSEUDONYMS = Pseudonyms(b"a key of 16 byte")
OTHER = Pseudonyms(b"another 16 bytes")


@given(st.text())
def test_a_text_keeps_its_length_and_separators(text: str) -> None:
    found = PSEUDONYMS.text(text)
    assert len(found.encode("utf-16-le", "surrogatepass")) == len(text.encode("utf-16-le", "surrogatepass"))
    assert [at for at, letter in enumerate(text) if letter in "\\=:;,$\0 "] == [
        at for at, letter in enumerate(found) if letter in "\\=:;,$\0 "
    ]


@given(st.text("abcdefghij0123456789", min_size=1, max_size=3), st.text("abcdefghij0123456789", min_size=1, max_size=3))
def test_words_have_one_pseudonym_each(first: str, second: str) -> None:
    one, two = PSEUDONYMS.text(first), PSEUDONYMS.text(second)
    assert (one == two) == (first == second)
    assert PSEUDONYMS.text(first.upper()) == one.upper()


def test_a_word_has_the_same_pseudonym_everywhere() -> None:
    word = PSEUDONYMS.text("server")
    assert PSEUDONYMS.text("DIRECT=OS:server\\private$\\server") == f"DIRECT=OS:{word}\\private$\\{word}"
    assert OTHER.text("server") != word


def test_words_of_the_protocol_stay() -> None:
    for text in ("PRIVATE=", "DIRECT=OS:\\SYSTEM$;JOURNAL", "\\private$\\notify_queue$", "QM Ordering Ack\0"):
        assert PSEUDONYMS.text(text) == text


def test_guids_in_texts_are_those_in_fields() -> None:
    guid = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")
    found = PSEUDONYMS.guid(guid)
    assert found != guid
    assert PSEUDONYMS.text(f"PUBLIC={guid}") == f"PUBLIC={found}"
    assert PSEUDONYMS.text(str(guid).upper()) == str(found).upper()
    assert PSEUDONYMS.guid(UUID(int=0)) == UUID(int=0)


@given(st.ip_addresses(v=4))
def test_addresses_of_a_network_stay_in_one(address: object) -> None:
    found = PSEUDONYMS.address(str(address))
    assert len(found) == len(str(address))
    assert PSEUDONYMS.text(f"TCP:{address}") == f"TCP:{found}"
    network = str(address).rpartition(".")[0]
    for last in ("1", "77", "255"):
        other = PSEUDONYMS.address(f"{network}.{last}")
        if ip_address(str(address)).is_global and ip_address(f"{network}.{last}").is_global:
            assert other.rpartition(".")[0] == found.rpartition(".")[0]


def test_addresses_are_distinct() -> None:
    for network in ("10.20.1", "192.168.0", "8.8.4"):
        found = {PSEUDONYMS.address(f"{network}.{last}") for last in range(256)}
        assert len(found) == 256
    assert len({PSEUDONYMS.address(f"{first}.1.1.1") for first in range(1, 224) if first != 127}) == 222


@pytest.mark.parametrize("key", range(8))
def test_a_host_stays_one(key: int) -> None:
    """The first byte is that of a host's address; all other bytes of three digits become one another."""
    pseudonyms = Pseudonyms(key.to_bytes(16, "big"))
    firsts = {pseudonyms.address(f"{first}.1.1.1").partition(".")[0] for first in range(100, 224) if first != 127}
    assert firsts == {str(first) for first in range(100, 224) if first != 127}
    for place, text in enumerate(("10.{}.1.1", "10.1.{}.1", "10.1.1.{}"), 1):
        for numbers in (range(1), range(1, 10), range(10, 100), range(100, 255), range(255, 256)):
            found = {int(pseudonyms.address(text.format(number)).split(".")[place]) for number in numbers}
            assert found == set(numbers)


@pytest.mark.parametrize("text", ["999.1.1.1", "1.2.3.400"])
def test_four_numbers_that_are_no_address_are_words(text: str) -> None:
    found = PSEUDONYMS.text(text)
    assert [len(word) for word in found.split(".")] == [len(word) for word in text.split(".")]
    assert found != text
    assert found.split(".")[0] == PSEUDONYMS.text(text.split(".")[0])


def in_tables(address: IPv6Address) -> str:
    """The text that tables have: Python 3.13 writes the IPv4 address in one of IPv6 with dots."""
    mapped = address.ipv4_mapped
    return str(address) if mapped is None else of_version_4(mapped)


def of_version_4(address: IPv4Address) -> str:
    return "::ffff:{:x}:{:x}".format(*struct.unpack(">2H", address.packed))


@given(st.ip_addresses(v=6))
@example(ip_address("::ffff:0:0"))
@example(ip_address("::ffff:a01:203"))
def test_addresses_of_version_6(address: IPv6Address) -> None:
    text = in_tables(address)
    found = PSEUDONYMS.address(text)
    assert len(found) == len(text)
    assert ip_address(found).version == 6
    assert PSEUDONYMS.text(f"TCP:{text}") == f"TCP:{found}"


@pytest.mark.parametrize("kept", ["127.0.0.1", "224.0.0.1", "0.0.0.0", "255.255.255.255"])
def test_what_stays_also_stays_in_version_6(kept: str) -> None:
    text = of_version_4(IPv4Address(kept))
    assert (PSEUDONYMS.address(text), PSEUDONYMS.text(text)) == (text, text)


def test_a_pseudonym_with_an_address_of_version_4() -> None:
    """The group before it is FFFF by chance."""
    first = int(PSEUDONYMS.address("::1000:a01:203").split(":")[2], 16)
    found = PSEUDONYMS.address(f"::{0x1000 + (0xFFFF - first) % 0xF000:x}:a01:203")
    assert found.startswith("::ffff:")
    assert "." not in found


def test_groups_of_version_6_become_one_another() -> None:
    for text in ("2001:{:x}::1", "2001:db8::{:x}", "fe80::5:{:x}:1"):
        for digits in range(1, 3):
            numbers = range(16 ** (digits - 1), 16**digits)
            found = {PSEUDONYMS.address(text.format(number)) for number in numbers}
            assert len(found) == len(numbers)
            assert {len(each) for each in found} == {len(text.format(numbers[0]))}
    assert len({PSEUDONYMS.address(f"2001:{number:x}::") for number in range(0x1000, 0x1400)}) == 0x400
    first, second = (PSEUDONYMS.address(f"2001:db8:1::{number}") for number in (1, 2))
    assert first[:-1] == second[:-1]
    assert ip_address(first).packed[:2] == b"\x20\x01"
    assert PSEUDONYMS.address("2001:db8:2::1").rpartition(":")[0] != first.rpartition(":")[0]


@pytest.mark.parametrize(
    "text",
    ["2001:0db8::0001", "2001:db8:0:0::1", "fe80::1:2", "2001:db8:3:4:5:6:7:8", "2001:db8::", "64:ff9b::a01:203"],
)
def test_texts_of_version_6_keep_their_form(text: str) -> None:
    found = PSEUDONYMS.text(text)
    assert ip_address(found) == ip_address(PSEUDONYMS.address(str(ip_address(text))))
    assert [len(group) for group in found.split(":")] == [len(group) for group in text.split(":")]
    assert found != text


@pytest.mark.parametrize("text", ["1:2:3:4:5:6:7:8:9", "12::34::56"])
def test_what_is_no_address_of_version_6_is_words(text: str) -> None:
    found = PSEUDONYMS.text(text)
    assert found != text
    assert [len(group) for group in found.split(":")] == [len(group) for group in text.split(":")]


def test_words_of_a_form_become_one_another() -> None:
    """And each letter depends on all others."""
    words = {f"{first}{second}" for first in ascii_lowercase for second in ascii_lowercase} - _KEYWORDS
    found = {PSEUDONYMS.text(word) for word in words}
    assert len(found) == len(words)
    assert all(len(word) == 2 and word.isascii() and word.islower() for word in found)
    for changed in (0, 1):
        texts = [PSEUDONYMS.text("aa"[:changed] + letter + "aa"[changed + 1 :]) for letter in ascii_lowercase]
        assert all(len({text[place] for text in texts}) > 10 for place in (0, 1))
    numbers = [f"{number:02}" for number in range(100)]
    assert {PSEUDONYMS.text(number) for number in numbers} == set(numbers)


def test_letters_of_other_scripts_become_ideographs() -> None:
    words = [chr(number) * 2 for number in range(0x3B1, 0x3C9)] + ["\u0130x", "\U00010428\U00010429"]
    found = [PSEUDONYMS.text(word) for word in words]
    assert len(set(found)) == len(words)
    assert all(0x4E00 <= ord(letter) < 0x4E00 + 0x51A0 for word in found[:-2] for letter in word)
    assert all(0x20000 <= ord(letter) < 0x20000 + 0xA6D0 for letter in found[-1])
    assert found[0][0] != found[0][1]
    assert 0x4E00 <= ord(PSEUDONYMS.text("\uffdc")) < 0x4E00 + 0x51A0
    assert ord(PSEUDONYMS.text("\U00010000")) >= 0x20000


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "255.255.255.255", "224.0.0.1", "::", "::1", "ff02::1"])
def test_addresses_of_no_host_stay(address: str) -> None:
    assert PSEUDONYMS.address(address) == address


def test_addresses_of_ipx() -> None:
    first, second = (PSEUDONYMS.address(f"0000000a:0200c0a8000{node}") for node in (1, 2))
    assert len(first) == 21
    assert first[:9] == second[:9] != "0000000a:"
    assert first[9:] != second[9:]
    assert PSEUDONYMS.text("DIRECT=SPX:0000000A:0200C0A80001\\q")[:32] == f"DIRECT=SPX:{first.upper()}"
    assert PSEUDONYMS.address("0000000a:ffffffffffff")[9:] == "ffffffffffff"


def test_sids() -> None:
    def sid(*numbers: int, authority: int = 5) -> bytes:
        return (
            bytes([1, len(numbers)]) + authority.to_bytes(6, "big") + b"".join(n.to_bytes(4, "little") for n in numbers)
        )

    first, second = PSEUDONYMS.sid(sid(21, 1, 2, 3, 1104)), PSEUDONYMS.sid(sid(21, 1, 2, 3, 1105))
    assert first[:24] == second[:24] != sid(21, 1, 2, 3)[:24]
    assert first[24:] != second[24:]
    assert PSEUDONYMS.sid(sid(21, 1, 2, 3, 500))[24:] == (500).to_bytes(4, "little")
    assert PSEUDONYMS.sid(sid(21, 1, 2, 3, 999))[24:] == (999).to_bytes(4, "little")
    assert PSEUDONYMS.sid(sid(21, 1, 2, 3, 1000))[24:] != (1000).to_bytes(4, "little")
    # Each part depends on those before it
    other = PSEUDONYMS.sid(sid(21, 7, 2, 3, 1104))
    assert all(other[at : at + 4] != first[at : at + 4] for at in range(12, 28, 4))
    assert first[:12] == other[:12] == sid(21, 1, 2, 3, 1104)[:12]
    assert PSEUDONYMS.sid(sid(21)) == sid(21)
    for wrong in (b"\2" + sid(21)[1:], sid(*range(16)), sid(21)[:-1]):
        assert PSEUDONYMS.sid(wrong) == bytes(len(wrong))
    assert PSEUDONYMS.sid(sid(21, 5)[:-1]) == bytes(15)
    assert PSEUDONYMS.sid(sid(18)) == sid(18)
    assert PSEUDONYMS.sid(sid(0, authority=1)) == sid(0, authority=1)
    assert PSEUDONYMS.sid(b"no sid") == bytes(6)
    assert PSEUDONYMS.sid(sid(32, 544)) == sid(32, 544)
    # Of a service, of a pool of applications, and of an account of Entra ID, whose numbers are its GUID
    for first_number, authority in ((80, 5), (82, 5), (1, 12)):
        given = sid(first_number, 0xA1B2C3D4, 600, 0xC1D2E3F4, 0xD1E2F3A4, authority=authority)
        found = PSEUDONYMS.sid(given)
        assert found[:12] == given[:12]
        assert all(found[at : at + 4] != given[at : at + 4] for at in range(12, len(given), 4))


@pytest.mark.parametrize(
    ("text", "pseudonym"),
    [
        ("Orders 2024", "Odwkce 9842"),
        ("Größe", "La烎腹c"),
        ("\U00010428x", "\U00027b7ar"),
        ("DIRECT=TCP:10.20.1.25\\private$\\Orders", "DIRECT=TCP:55.13.7.81\\private$\\Odwkce"),
        ("version 10.300.1.2", "kujgbkl 92.396.0.8"),
        ("TCP:2001:db8:0:a::1", "TCP:2001:aa4:0:a::6"),
        ("0000000a:0200c0a80001", "8f4e3ab2:b33d033d4382"),
    ],
)
def test_a_pseudonym_is_the_same_in_every_version(text: str, pseudonym: str) -> None:
    """Captures that were written with the same key belong together."""
    assert PSEUDONYMS.text(text) == pseudonym
    assert PSEUDONYMS.guid(UUID(int=7)) == UUID("54220392-6329-59e8-ab8b-283e178eef16")
    sid = bytes.fromhex("010500000000000515000000 01000000 02000000 03000000 50040000")
    assert PSEUDONYMS.sid(sid).hex() == "0105000000000005150000005921335f9192a0321bbf8f74fe118427"


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16 bytes, not 15"):
        Pseudonyms(bytes(15))


def test_the_work_for_a_word_grows_with_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each letter depends on all before it; to digest these for each letter took hours for a text of one word."""
    digest, work = Pseudonyms._digest, []

    def counted(self: Pseudonyms, *parts: str | bytes) -> bytes:
        work.append(sum(map(len, parts)))
        return digest(self, *parts)

    monkeypatch.setattr(Pseudonyms, "_digest", counted)
    sums = []
    for size in (500, 1000, 2000):
        work.clear()
        assert len(Pseudonyms(bytes(16)).text("x" * size)) == size
        sums.append(sum(work))
    assert sums[2] - sums[1] <= 2.1 * (sums[1] - sums[0])


@pytest.mark.parametrize(("text", "most"), [("orders7x", 16), ("10.20.100.25", 4 * 5)])
def test_a_permutation_takes_few_digests(monkeypatch: pytest.MonkeyPatch, text: str, most: int) -> None:
    """One for each item of an alphabet took ten minutes for 4 MiB of words, and each byte of an address 155."""
    digest, count = Pseudonyms._digest, Counter[str]()

    def counted(self: Pseudonyms, *parts: str | bytes) -> bytes:
        count[text] += 1
        return digest(self, *parts)

    monkeypatch.setattr(Pseudonyms, "_digest", counted)
    assert Pseudonyms(bytes(16)).text(text) != text
    assert count[text] <= most


@pytest.mark.parametrize("place", [0, 127, 128, 129, 299])
def test_a_long_word_depends_on_each_letter(place: int) -> None:
    word = "x" * 300
    found = {PSEUDONYMS.text(word[:place] + letter + word[place + 1 :]) for letter in ascii_lowercase}
    assert len(found) == len(ascii_lowercase)
    assert all(len({text[at] for text in found}) > 5 for at in (0, 150, 299))
