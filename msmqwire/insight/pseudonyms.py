"""Pseudonyms of names, GUIDs, addresses and SIDs: the same value has the same pseudonym wherever it stands.

A pseudonym has the length and the form of its value, so that a packet keeps its sizes. Without the key, trying all
values does not find the value of a pseudonym.
"""

from __future__ import annotations

import hmac
import re
import struct
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from math import factorial
from string import ascii_lowercase, digits
from uuid import UUID

from msmqwire.wire import guids
from msmqwire.wire._sid import sid_text

__all__ = ["Pseudonyms"]

#: Words that stand in names of queues everywhere: [MS-MQMQ] 2.1, and the system queues of [MS-MQMQ] 2.1.5.
_KEYWORDS = frozenset(
    {
        "public", "private", "direct", "os", "tcp", "spx", "http", "https", "multicast", "machine", "dl", "msmq",
        "system", "localhost", "journal", "deadletter", "deadxact", "xactonly", "connector", "notify", "queue",
        "order", "admin", "mqis",
    }
)  # fmt: skip
#: The labels that the protocol itself gives to acknowledgments: [MS-MQQB] 2.2.4, 2.2.5.
_LABELS = frozenset({"QM Ordering Ack", "QM Order Ack"})
_IPV4 = r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])"
_IPV6 = r"(?:(?<=TCP:)|(?<![\w:]))(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])"
# Network and node, as SPX names it
_IPX = r"(?<![\w.])[0-9A-Fa-f]{8}[:.][0-9A-Fa-f]{12}(?![\w:])"
# A letter or digit; of other scripts also their marks, symbols and characters without a meaning, but no punctuation
_LETTER = r"(?:[^\W_]|[^\x00-\xbf\u2000-\u206f\u3000-\u303f])"
_PARTS = re.compile(
    rf"(?P<guid>{guids.PATTERN})|(?P<ipx>{_IPX})|(?P<ipv4>{_IPV4})|(?P<ipv6>{_IPV6})|(?P<word>{_LETTER}+)"
)
_WORD = re.compile(rf"{_LETTER}+")
# Letters of other scripts become ideographs: of the basic plane one code unit, of the others two
_IDEOGRAPHS, _IDEOGRAPH_COUNT = 0x4E00, 0x51A0
_FURTHER_IDEOGRAPHS, _FURTHER_COUNT = 0x20000, 0xA6D0
# Bytes of IPv4 addresses by their digits; 127, and 224 and above, begin no address of a host
_BYTES = tuple(tuple(map(str, numbers)) for numbers in (range(1, 10), range(10, 100), range(100, 255)))
_FIRST_BYTES = (*_BYTES[:2], tuple(text for text in _BYTES[2] if int(text) < 224 and text != "127"))
#: Letters of a word on which the next one depends as they are: more are digested, for a text may be one word of 2 MiB.
_MOST_SEEN = 128
_NT_AUTHORITY, _DOMAIN, _FIRST_ACCOUNT = 5, 21, 1000
_WELL_KNOWN = 2


class Pseudonyms:
    """Pseudonyms by a key.

    Parameters
    ----------
    key : bytes
        At least 16 bytes. With the same key, pseudonyms of several captures are the same.

    Examples
    --------
    >>> pseudonyms = Pseudonyms(bytes(16))
    >>> pseudonyms.text("DIRECT=TCP:10.20.1.25\\\\private$\\\\Orders")
    'DIRECT=TCP:54.97.9.90\\\\private$\\\\Qafxgc'
    >>> pseudonyms.address("10.20.1.25"), pseudonyms.address("10.20.1.10")
    ('54.97.9.90', '54.97.9.71')
    """

    def __init__(self, key: bytes) -> None:
        if len(key) < 16:
            raise ValueError(f"a key has at least 16 bytes, not {len(key)}")
        self._key = key
        self._order = lru_cache(maxsize=1 << 16)(self._shuffled)
        self.guid = lru_cache(maxsize=1 << 16)(self._guid)
        self._short_word = lru_cache(maxsize=1 << 16)(self._pseudonym)

    def _digest(self, *parts: str | bytes) -> bytes:
        message = b"".join(
            struct.pack("<I", len(data)) + data
            for data in (part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass") for part in parts)
        )
        return hmac.digest(self._key, message, "sha256")

    def _guid(self, guid: UUID) -> UUID:
        return guid if guid == guids.NIL else UUID(bytes=self._digest("guid", guid.bytes)[:16])

    def _shuffled(self, alphabet: tuple[str, ...], *context: str) -> dict[str, str]:
        """A permutation of an alphabet, another one in each context."""
        count = len(alphabet)
        # A number for each permutation; with 128 bits more than those have, all are as likely
        digests = -(-(factorial(count).bit_length() + 128) // 256)
        data = b"".join(self._digest("order", str(count), str(part), *context) for part in range(digests))
        number = int.from_bytes(data, "big")
        left, order = list(alphabet), []
        while left:
            number, place = divmod(number, len(left))
            order.append(left.pop(place))
        return dict(zip(alphabet, order, strict=True))

    def address(self, text: str) -> str:
        """An address whose first bytes are those of all addresses that had the same first bytes.

        Multicast, broadcast, loopback and unspecified addresses stay, those of IPv4 in an address of IPv6 as well.
        """
        try:
            address = ip_address(text)
        except ValueError:
            return self._ipx(text) if re.fullmatch(_IPX, text) else text
        # Versions of Python differ in what they ask of the IPv4 address in one of IPv6
        host = (isinstance(address, IPv6Address) and address.ipv4_mapped) or address
        if host.is_multicast or host.is_loopback or host.is_unspecified or int(host) == 0xFFFFFFFF:
            return text
        if isinstance(address, IPv4Address):
            return self._ipv4(address)
        return _hexadecimal(IPv6Address(self._ipv6(address)))

    def _ipv4(self, address: IPv4Address) -> str:
        """Each byte becomes one with as many digits; 0 and 255, of networks and broadcasts, stay."""
        found: list[str] = []
        texts = str(address).split(".")
        for place, text in enumerate(texts):
            classes = _BYTES if place else _FIRST_BYTES
            alphabet = next((each for each in classes if text in each), (text,))
            found.append(self._order(alphabet, "ipv4", *texts[:place])[text])
        return ".".join(found)

    def _ipv6(self, address: IPv6Address) -> bytes:
        """Each group becomes one with as many digits; the kind of the address, its first group, stays."""
        groups = struct.unpack(">8H", address.packed)
        found = [groups[0]]
        for place, number in enumerate(groups[1:], 1):
            width = (number.bit_length() + 3) // 4
            first = 1 << 4 * (width - 1) if width else 0
            count = (1 << 4 * width) - first if width else 1
            step = self._digest("ipv6", *map(str, groups[:place]), str(width))
            # A keyed rotation: a permutation of thousands of numbers for each prefix would be slow
            found.append(first + (number - first + int.from_bytes(step[:4], "big")) % count)
        return struct.pack(">8H", *found)

    def _ipx(self, text: str) -> str:
        """A network and a node; nodes of a network stay in one, and the node of broadcasts stays."""
        network, node = text[:8].lower(), text[9:].lower()
        found = f"{self.network(int(network, 16)):08x}"
        node = node if node == "f" * 12 else self._digest("ipx", network, node).hex()[:12]
        return (found.upper() if text.isupper() else found) + text[8] + (node.upper() if text.isupper() else node)

    def network(self, number: int) -> int:
        """The number of a network of IPX; 0, the network where it is said, stays."""
        return int.from_bytes(self._digest("ipx", f"{number:08x}")[:4], "big") if number else 0

    def text(self, text: str) -> str:
        """A text with pseudonyms for its words, GUIDs and addresses, of the same length in UTF-16 code units."""
        if text.rstrip("\0") in _LABELS:
            return text
        return _PARTS.sub(self._part, text)

    def _part(self, match: re.Match[str]) -> str:
        text = match[0]
        if match["guid"]:
            pseudonym = str(self.guid(UUID(text)))
            return pseudonym.upper() if text == text.upper() else pseudonym
        if match["ipx"]:
            return self._ipx(text)
        if match["ipv4"]:
            mapped = self.address(text)
            # Four numbers that are no address, such as a version
            return mapped if mapped != text or _is_address(text) else _WORD.sub(lambda word: self._word(word[0]), text)
        if match["ipv6"]:
            return self._ipv6_text(text)
        if text.lower() in _KEYWORDS:
            return text
        return "".join(
            new.upper() if old.isupper() and new.isascii() else new
            for old, new in zip(text, self._word(text.lower() if len(text.lower()) == len(text) else text), strict=True)
        )

    def _ipv6_text(self, text: str) -> str:
        """The address with as many digits in each group, compressed where it was."""
        try:
            address = ip_address(text)
        except ValueError:
            return _WORD.sub(lambda match: self._word(match[0].lower()), text)
        if not isinstance(address, IPv6Address) or self.address(text) == text:
            return text
        mapped = struct.unpack(">8H", self._ipv6(address))
        head, _, tail = text.partition("::")
        first, last = (part.split(":") if part else [] for part in (head, tail))
        texts = [f"{number:0{len(old)}x}" for old, number in zip(first, mapped, strict=False)]
        ends = [f"{number:0{len(old)}x}" for old, number in zip(last[::-1], mapped[::-1], strict=False)][::-1]
        return ":".join(texts) + ("::" if "::" in text else "") + ":".join(ends)

    def _word(self, word: str) -> str:
        return self._short_word(word) if len(word) <= _MOST_SEEN else self._pseudonym(word)

    def _pseudonym(self, word: str) -> str:
        """The pseudonym of a word in small letters.

        Each letter depends on all others: it is replaced by the letters before it, and then by the letters after it.
        Either step can be undone, so that two words of a form never have the same pseudonym; only letters beyond ASCII
        are too many for that.
        """
        letters = list(word)
        for places in (range(len(letters)), range(len(letters) - 1, -1, -1)):
            seen = ""
            for place in places:
                letter = letters[place]
                if letter in digits or letter in ascii_lowercase:
                    alphabet = tuple(digits if letter in digits else ascii_lowercase)
                    letters[place] = self._order(alphabet, "word", str(places.step), seen)[letter]
                else:
                    number = int.from_bytes(self._digest("letter", str(places.step), seen, letter)[:4], "big")
                    further = ord(letter) > 0xFFFF
                    letters[place] = chr(
                        _FURTHER_IDEOGRAPHS + number % _FURTHER_COUNT
                        if further
                        else _IDEOGRAPHS + number % _IDEOGRAPH_COUNT
                    )
                if len(seen) == _MOST_SEEN:
                    seen = self._digest("seen", seen).hex()
                seen += letters[place]
        return "".join(letters)

    def sid(self, sid: bytes) -> bytes:
        """A SID ([MS-DTYP] 2.4.2.2) with pseudonyms for its domain and its account; well-known SIDs stay.

        The numbers after the first one become pseudonyms also where they are those of a service, of a pool of
        applications, or of an account of Entra ID.
        """
        if sid_text(sid) is None:
            return bytes(len(sid))
        head, numbers = sid[:8], list(struct.unpack(f"<{sid[1]}I", sid[8:]))
        is_of_domain = int.from_bytes(sid[2:8], "big") == _NT_AUTHORITY and numbers[:1] == [_DOMAIN]
        # Well-known SIDs are of a domain, or this short; the numbers of others are hashes of names, or a GUID
        if not is_of_domain and len(numbers) <= _WELL_KNOWN:
            return sid
        for place in range(1, len(numbers)):
            is_account = is_of_domain and place == 4
            if is_account and numbers[place] < _FIRST_ACCOUNT:
                continue
            (number,) = struct.unpack(
                "<I", self._digest("sid", struct.pack(f"<{place + 1}I", *numbers[: place + 1]))[:4]
            )
            numbers[place] = max(number, _FIRST_ACCOUNT)
        return head + struct.pack(f"<{len(numbers)}I", *numbers)


def _hexadecimal(address: IPv6Address) -> str:
    """The text that tables have. Python 3.13 writes the IPv4 address in one of IPv6 with dots."""
    mapped = address.ipv4_mapped
    return str(address) if mapped is None else f"::ffff:{int(mapped) >> 16:x}:{int(mapped) & 0xFFFF:x}"


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
