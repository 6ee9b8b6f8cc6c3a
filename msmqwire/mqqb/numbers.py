"""The numbers in the rules of message packets: limits, and sets of values and bits.

``make build`` writes them for the kernels, which check them by hand. The rules, the expressions of fields, the settings
of sessions and the names of values take them from here. A set of small numbers is a mask with a bit for each.
"""

from __future__ import annotations

from collections.abc import Iterable


def mask(values: Iterable[int], first: int = 0) -> int:
    """The bits of some numbers, counted from ``first``."""
    return sum(1 << value - first for value in values)


def numbers(bits: int, first: int = 0) -> list[int]:
    """The numbers of a mask."""
    return [first + place for place in range(bits.bit_length()) if bits >> place & 1]


#: Seconds of a timer that does not expire.
FOR_EVER = 0xFFFFFFFF

# --- Messages: [MS-MQMQ] 2.2.18.1.6, 2.2.19, 2.2.20 ---

#: RC of UserHeader.Flags.
MOST_HOPS = 0x1D
#: The values of DQ and AQ in UserHeader.Flags.
DESTINATION_CODES = mask((0, 3, 5, 7))
ADMIN_CODES = mask((0, 2, 3, 5, 6, 7))
#: Code units of Label with its U+0000, and bytes of SenderCert.
LARGEST_LABEL = 250
LARGEST_SENDER_CERT = 0xFFFF
#: AU and AS of SecurityHeader.Flags, and EB.
AU_OR_AS = 0x0F10
BODY_ENCRYPTED = 0x20
#: PA, PR, NA and NR of MessagePropertiesHeader.Flags.
ACKNOWLEDGMENTS = 0xF
#: Bits of MessageClass.
CLASS_BITS_UNUSED = 0x1E00

HASHES = {0x8001: "MD2", 0x8002: "MD4", 0x8003: "MD5", 0x8004: "SHA-1", 0x800C: "SHA-256", 0x800E: "SHA-512"}
SHA_1 = 0x8004
FIRST_HASH_ALGORITHM = 0x8001
HASH_ALGORITHMS = mask(HASHES, FIRST_HASH_ALGORITHM)

CIPHERS = {0x6602: "RC2", 0x660E: "AES-128", 0x660F: "AES-192", 0x6610: "AES-256", 0x6801: "RC4"}
RC2 = 0x6602
RC4 = 0x6801
FIRST_AES = 0x660E
LAST_AES = 0x6610

PRIVACY_NAMES = {0: "none", 1: "40-bit", 3: "128-bit", 5: "AES"}
PRIVACY_LEVELS = mask(PRIVACY_NAMES)
LARGEST_PRIVACY_LEVEL = max(PRIVACY_NAMES)

# --- Sessions: [MS-MQQB] 2.2 ---

PING_SIGNATURE = 0x5548
#: RE of OperatingSystem.
RESIDENT_SYSTEM = 0x10
#: Timeouts of ConnectionParametersHeader in milliseconds.
LEAST_RECOVERABLE_ACK_TIMEOUT = 0x1F4
LEAST_ACK_TIMEOUT = 0x4E20
LARGEST_ACK_TIMEOUT = 0x1D4C0

# --- The bits of Flags fields that have no meaning ---

RESERVED_BASE = 0xFEC0
RESERVED_USER = 0xED000080
RESERVED_TRANSACTION = 0xFF000000
RESERVED_SECURITY = 0xF000
RESERVED_PROPERTIES = 0xF0
RESERVED_DEBUG = 0xFFFC
RESERVED_INTERNAL = 0xFFE0
RESERVED_SYSTEM = 0xF800
