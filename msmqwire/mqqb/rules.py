"""The rules of message packets: the violations of both tables, each with its field, section and requirement."""

from __future__ import annotations

from collections.abc import Iterable

from msmqwire.columns.fields import Rule, Violations
from msmqwire.errors import EncodeError
from msmqwire.mqqb.numbers import (
    CIPHERS,
    CLASS_BITS_UNUSED,
    HASHES,
    LARGEST_ACK_TIMEOUT,
    LEAST_ACK_TIMEOUT,
    LEAST_RECOVERABLE_ACK_TIMEOUT,
    MOST_HOPS,
)

_MQMQ = "[MS-MQMQ] "


def _either(values: Iterable[int]) -> str:
    """The numbers in hexadecimal: ``0x1, 0x2 or 0x3``."""
    *others, last = (f"0x{value:X}" for value in values)
    return f"{', '.join(others)} or {last}"


_FLAGS = "bad_flag, UserHeader.Flags, 60"


class _MessageViolations(Violations):
    @property
    def sentence(self) -> str:
        return f"{self.rule.field}: {super().sentence}"


class Violation(_MessageViolations):
    """Bits of the ``violations`` column of the messages table; with ``strict=True`` the first four are faults."""

    TRAILING_BYTES = Rule(
        "PacketSize",
        _MQMQ + "2.2.19.1",
        "at most three bytes follow the last header, none the packet",
        "bad_size, PacketSize (of a ping Ping), first extra byte",
    )
    MISSING_PROPERTIES = Rule("UserHeader.Flags", _MQMQ + "2.2.19.2", "MP is set", _FLAGS)
    DELIVERY_MODE = Rule("UserHeader.Flags", _MQMQ + "2.2.19.2", "DM is 0 or 1", _FLAGS)
    EXPRESS_TRANSACTION = Rule("UserHeader.Flags", _MQMQ + "2.2.19.2", "DM is not 0 with a TransactionHeader", _FLAGS)
    HOP_COUNT = Rule("UserHeader.Flags", _MQMQ + "2.2.19.2", f"RC is at most 0x{MOST_HOPS:X}")
    TRANSACTION_PRIORITY = Rule("BaseHeader.Flags", _MQMQ + "2.2.19.1", "PR is 0 with a TransactionHeader")
    TX_SEQUENCE_NUMBER = Rule("TxSequenceNumber", _MQMQ + "2.2.20.5", "is at least 1")
    SECURITY_FLAGS = Rule("SecurityHeader.Flags", _MQMQ + "2.2.20.6", "AU and AS are 0")
    SENDER_ID = Rule("SecurityID", _MQMQ + "2.2.20.6", "is absent, a SID or a GUID, as ST is 0, 1 or 2")
    NO_SECURITY_DATA = Rule("SecurityHeader", _MQMQ + "2.2.20.6", "one of the sizes is not 0")
    LABEL_TERMINATOR = Rule("Label", _MQMQ + "2.2.19.3", "U+0000 is its last code unit and no other")
    ALLOCATION_BODY_SIZE = Rule("AllocationBodySize", _MQMQ + "2.2.19.3", "is at least MessageSize")
    PRIVACY_LEVEL = Rule("PrivacyLevel", _MQMQ + "2.2.19.3", "is 0, 1, 3 or 5, and not 0 with EB")
    UNRESOLVED_QUEUE = Rule(
        "ResponseQueue",
        _MQMQ + "2.2.19.2",
        "RQ 4 stands beside an AdminQueue that names its host; written all the same",
    )
    RESERVED_FLAGS = Rule(
        "Flags",
        _MQMQ + "2.2.19.1",
        "bits of Flags fields and OperatingSystem without a meaning are 0; those of a ping have any value",
    )
    SRMP_ENVELOPE_TERMINATOR = Rule(
        "SRMPEnvelopeHeader.DataLength",
        "[MS-MQRR] 2.2.5.1.2.1",
        "U+0000 is the last code unit of the envelope and no other",
    )
    MISSING_DEBUG_HEADER = Rule("BaseHeader.Flags", _MQMQ + "2.2.19.1", "DH is set with TR")
    SOAP_TERMINATOR = Rule("SoapHeader", _MQMQ + "2.2.20.7", "U+0000 is the last code unit of both texts and no other")
    SENT_OVER_HTTP = Rule(
        "UserHeader.Flags", _MQMQ + "2.2.19.2", "AH is 0 without an SRMPEnvelopeHeader or CompoundMessageHeader"
    )
    QUEUE_MANAGER_ADDRESS = Rule(
        "QueueManagerAddress",
        _MQMQ + "2.2.19.2",
        "is zeros for a direct DestinationQueue, and not zeros for another one",
    )
    ADMIN_QUEUE_FLAGS = Rule(
        "AdminQueue", _MQMQ + "2.2.19.2", "is absent where PA, PR, NA and NR of MessagePropertiesHeader.Flags are 0"
    )
    MESSAGE_CLASS_VALUE = Rule(
        "MessageClass", _MQMQ + "2.2.18.1.6", f"has no bits outside of 0x{0xFFFF ^ CLASS_BITS_UNUSED:X}"
    )
    HASH_ALGORITHM = Rule("HashAlgorithm", _MQMQ + "2.2.19.3", f"is {_either(HASHES)}")
    ENCRYPTION_ALGORITHM = Rule(
        "EncryptionAlgorithm",
        _MQMQ + "2.2.19.3",
        f"is {_either(CIPHERS)}; RC2 or RC4 with PrivacyLevel 1 and 3, AES with 5",
    )
    WINDOW_SIZE = Rule("SessionHeader.WindowSize", _MQMQ + "2.2.20.4", "is at least 1")
    PREVIOUS_TX_SEQUENCE_NUMBER = Rule(
        "PreviousTxSequenceNumber", _MQMQ + "2.2.20.5", "is 0 or less than TxSequenceNumber"
    )
    CRYPTO_PROVIDER = Rule(
        "ProviderInfo",
        _MQMQ + "2.2.20.6",
        "is absent with DE; without DE present beside a signature, with a ProviderName that U+0000 ends",
    )
    PADDING = Rule("PacketSize", _MQMQ + "2.2.19.1", "headers and fields with padding end at a multiple of four bytes")
    ACKNOWLEDGMENT = Rule(
        "MessageBody",
        "[MS-MQQB] 2.2.4, 2.2.5",
        "the fields of an OrderAck or FinalAck packet have the values given there",
    )


class SessionViolation(_MessageViolations):
    """Bits of the ``violations`` column of the sessions table; with ``strict=True`` the first is a fault."""

    TRAILING_BYTES = Violation.TRAILING_BYTES.rule
    TIMEOUT_RANGE = Rule(
        "ConnectionParametersHeader",
        "[MS-MQQB] 2.2.2.1",
        f"RecoverableAckTimeout is 0x{LEAST_RECOVERABLE_ACK_TIMEOUT:X} to 0x{LARGEST_ACK_TIMEOUT:X}, AckTimeout "
        f"0x{LEAST_ACK_TIMEOUT:X} to 0x{LARGEST_ACK_TIMEOUT:X}",
    )
    OPERATING_SYSTEM = Rule("OperatingSystem", "[MS-MQQB] 2.2.3.1", "RE is 0x10")
    TIME_TO_REACH_QUEUE = Rule("TimeToReachQueue", _MQMQ + "2.2.19.1", "is 0xFFFFFFFF in packets of sessions")
    RESERVED_FLAGS = Violation.RESERVED_FLAGS.rule
    RESERVED_NONZERO = Rule("Reserved", "[MS-MQQB] 2.2.1-2.2.3", "Reserved of headers of packets of sessions is 0")
    CONNECTION_REFUSED = Rule("InternalHeader.Flags", "[MS-MQQB] 2.2.1", "CS is 0 in a SessionAck")
    MESSAGE_FLAGS = Rule(
        "BaseHeader.Flags", _MQMQ + "2.2.19.1", "DH and TR are 0 in packets of sessions, SH but in a SessionAck"
    )
    WINDOW_SIZE = Violation.WINDOW_SIZE.rule


#: The rules by the names of the violations; both tables have some of them.
RULES = {(each.name or "").lower(): each.rule for each in (*Violation, *SessionViolation)}


def refusal(violation: str, row: int | None = None) -> EncodeError:
    """What an encoder raises for a packet with the violation."""
    rule = RULES[violation]
    return EncodeError(rule.field, f"{violation}: {rule.requirement} ({rule.section})", row)
