"""The rules of the violations of message packets: field, section and requirement of each.

A violation with the same name in both tables breaks the same rule.
"""

from __future__ import annotations

from enum import IntFlag
from typing import NamedTuple

from msmqwire.errors import EncodeError

__all__ = ["RULES", "Rule", "refusal", "rules_of"]

_MQMQ = "[MS-MQMQ] "
_FLAGS = "bad_flag, UserHeader.Flags, 60"


class Rule(NamedTuple):
    """What the specification requires of a field; ``strict`` is the fault of strict decoding, if it is one."""

    field: str
    section: str
    requirement: str
    strict: str = ""


RULES = {
    "trailing_bytes": Rule(
        "PacketSize",
        _MQMQ + "2.2.19.1",
        "at most three bytes follow the last header, none the packet",
        "bad_size, PacketSize (of a ping Ping), first extra byte",
    ),
    "missing_properties": Rule("UserHeader.Flags", _MQMQ + "2.2.19.2", "MP is set", _FLAGS),
    "delivery_mode": Rule("UserHeader.Flags", _MQMQ + "2.2.19.2", "DM is 0 or 1", _FLAGS),
    "express_transaction": Rule("UserHeader.Flags", _MQMQ + "2.2.19.2", "DM is not 0 with a TransactionHeader", _FLAGS),
    "hop_count": Rule("UserHeader.Flags", _MQMQ + "2.2.19.2", "RC is at most 0x1D"),
    "transaction_priority": Rule("BaseHeader.Flags", _MQMQ + "2.2.19.1", "PR is 0 with a TransactionHeader"),
    "tx_sequence_number": Rule("TxSequenceNumber", _MQMQ + "2.2.20.5", "is at least 1"),
    "security_flags": Rule("SecurityHeader.Flags", _MQMQ + "2.2.20.6", "AU and AS are 0"),
    "sender_id": Rule("SecurityID", _MQMQ + "2.2.20.6", "is absent, a SID or a GUID, as ST is 0, 1 or 2"),
    "no_security_data": Rule("SecurityHeader", _MQMQ + "2.2.20.6", "one of the sizes is not 0"),
    "label_terminator": Rule("Label", _MQMQ + "2.2.19.3", "U+0000 is its last code unit and no other"),
    "allocation_body_size": Rule("AllocationBodySize", _MQMQ + "2.2.19.3", "is at least MessageSize"),
    "privacy_level": Rule("PrivacyLevel", _MQMQ + "2.2.19.3", "is 0, 1, 3 or 5, and not 0 with EB"),
    "unresolved_queue": Rule(
        "ResponseQueue",
        _MQMQ + "2.2.19.2",
        "RQ 4 stands beside an AdminQueue that names its host; written all the same",
    ),
    "reserved_flags": Rule(
        "Flags",
        _MQMQ + "2.2.19.1",
        "bits of Flags fields and OperatingSystem without a meaning are 0; those of a ping have any value",
    ),
    "srmp_envelope_terminator": Rule(
        "SRMPEnvelopeHeader.DataLength",
        "[MS-MQRR] 2.2.5.1.2.1",
        "U+0000 is the last code unit of the envelope and no other",
    ),
    "missing_debug_header": Rule("BaseHeader.Flags", _MQMQ + "2.2.19.1", "DH is set with TR"),
    "soap_terminator": Rule(
        "SoapHeader", _MQMQ + "2.2.20.7", "U+0000 is the last code unit of both texts and no other"
    ),
    "sent_over_http": Rule(
        "UserHeader.Flags", _MQMQ + "2.2.19.2", "AH is 0 without an SRMPEnvelopeHeader or CompoundMessageHeader"
    ),
    "queue_manager_address": Rule(
        "QueueManagerAddress",
        _MQMQ + "2.2.19.2",
        "is zeros for a direct DestinationQueue, and not zeros for another one",
    ),
    "admin_queue_flags": Rule(
        "AdminQueue", _MQMQ + "2.2.19.2", "is absent where PA, PR, NA and NR of MessagePropertiesHeader.Flags are 0"
    ),
    "message_class_value": Rule("MessageClass", _MQMQ + "2.2.18.1.6", "has no bits outside of 0xE1FF"),
    "hash_algorithm": Rule("HashAlgorithm", _MQMQ + "2.2.19.3", "is 0x8001, 0x8002, 0x8003, 0x8004, 0x800C or 0x800E"),
    "encryption_algorithm": Rule(
        "EncryptionAlgorithm",
        _MQMQ + "2.2.19.3",
        "is 0x6602, 0x660E, 0x660F, 0x6610 or 0x6801; RC2 or RC4 with PrivacyLevel 1 and 3, AES with 5",
    ),
    "window_size": Rule("SessionHeader.WindowSize", _MQMQ + "2.2.20.4", "is at least 1"),
    "previous_tx_sequence_number": Rule(
        "PreviousTxSequenceNumber", _MQMQ + "2.2.20.5", "is 0 or less than TxSequenceNumber"
    ),
    "crypto_provider": Rule(
        "ProviderInfo",
        _MQMQ + "2.2.20.6",
        "is absent with DE; without DE present beside a signature, with a ProviderName that U+0000 ends",
    ),
    "padding": Rule(
        "PacketSize", _MQMQ + "2.2.19.1", "headers and fields with padding end at a multiple of four bytes"
    ),
    "acknowledgment": Rule(
        "MessageBody",
        "[MS-MQQB] 2.2.4, 2.2.5",
        "the fields of an OrderAck or FinalAck packet have the values given there",
    ),
    "timeout_range": Rule(
        "ConnectionParametersHeader",
        "[MS-MQQB] 2.2.2.1",
        "RecoverableAckTimeout is 0x1F4 to 0x1D4C0, AckTimeout 0x4E20 to 0x1D4C0",
    ),
    "operating_system": Rule("OperatingSystem", "[MS-MQQB] 2.2.3.1", "RE is 0x10"),
    "time_to_reach_queue": Rule("TimeToReachQueue", _MQMQ + "2.2.19.1", "is 0xFFFFFFFF in packets of sessions"),
    "reserved_nonzero": Rule("Reserved", "[MS-MQQB] 2.2.1-2.2.3", "Reserved of headers of packets of sessions is 0"),
    "connection_refused": Rule("InternalHeader.Flags", "[MS-MQQB] 2.2.1", "CS is 0 in a SessionAck"),
    "message_flags": Rule(
        "BaseHeader.Flags", _MQMQ + "2.2.19.1", "DH and TR are 0 in packets of sessions, SH but in a SessionAck"
    ),
}


def rules_of(violations: type[IntFlag]) -> tuple[tuple[str, str], ...]:
    """The rules of a table: each of its violations and the sentence that it breaks, with its section."""
    names = [violation.name.lower() for violation in violations if violation.name]
    return tuple((name, f"{RULES[name].field}: {RULES[name].requirement} ({RULES[name].section})") for name in names)


def refusal(violation: str, row: int | None = None) -> EncodeError:
    """What an encoder raises for a packet with the violation."""
    rule = RULES[violation]
    return EncodeError(rule.field, f"{violation}: {rule.requirement} ({rule.section})", row)
