"""QUEUE_FORMAT: a format name as an argument of remote procedure calls ([MS-MQMQ] 2.2.6-2.2.11).

The bytes are NDR, the transfer syntax of DCE 1.1 RPC (C706, chapter 14): little-endian, members aligned from the start
of the data, a copy of the discriminant before the union, and strings after the structure that points to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address

from msmqwire.errors import DecodeError, EncodeError, FormatNameError
from msmqwire.formatname.binary import Reader, direct_name
from msmqwire.formatname.model import (
    ConnectorName,
    DirectName,
    DistributionListName,
    FormatName,
    MachineName,
    MulticastName,
    PrivateName,
    PublicName,
)
from msmqwire.formatname.schema import SUFFIXES, SuffixName

__all__ = ["QueueFormatType", "QueueSuffixType", "decode_queue_format", "encode_queue_format"]


class QueueFormatType(IntEnum):
    """QUEUE_FORMAT_TYPE: [MS-MQMQ] 2.2.6."""

    UNKNOWN = 0
    PUBLIC = 1
    PRIVATE = 2
    DIRECT = 3
    MACHINE = 4
    CONNECTOR = 5
    DL = 6
    MULTICAST = 7
    SUBQUEUE = 8


class QueueSuffixType(IntEnum):
    """QUEUE_SUFFIX_TYPE: [MS-MQMQ] 2.2.11."""

    NONE = 0
    JOURNAL = 1
    DEADLETTER = 2
    DEADXACT = 3
    XACTONLY = 4
    SUBQUEUE = 5


_SYSTEM = 0x80  # QUEUE_FORMAT_FLAG_SYSTEM
_TYPES = frozenset(QueueFormatType)


@dataclass(frozen=True)
class _Rule:
    """The rule of 2.2.7 for a suffix: its Flags, and the types of format name that can have it."""

    flags: frozenset[int]
    types: frozenset[QueueFormatType]


_RULES = {
    QueueSuffixType.NONE: _Rule(frozenset({0}), _TYPES - {QueueFormatType.MACHINE}),
    QueueSuffixType.JOURNAL: _Rule(
        frozenset({_SYSTEM}), _TYPES - {QueueFormatType.CONNECTOR, QueueFormatType.DL, QueueFormatType.MULTICAST}
    ),
    QueueSuffixType.DEADLETTER: _Rule(
        frozenset({_SYSTEM}),
        frozenset({QueueFormatType.UNKNOWN, QueueFormatType.DIRECT, QueueFormatType.MACHINE, QueueFormatType.SUBQUEUE}),
    ),
    QueueSuffixType.DEADXACT: _Rule(frozenset({_SYSTEM}), frozenset({QueueFormatType.DIRECT, QueueFormatType.MACHINE})),
    QueueSuffixType.XACTONLY: _Rule(frozenset({0, _SYSTEM}), frozenset({QueueFormatType.CONNECTOR})),
    QueueSuffixType.SUBQUEUE: _Rule(frozenset({0}), frozenset({QueueFormatType.SUBQUEUE})),
}


# --- Encoding ---


def encode_queue_format(name: FormatName) -> bytes:
    """The NDR form of a name as QUEUE_FORMAT, its pointer (where it has one) with the referent 0x00020000.

    Raises
    ------
    EncodeError
        QUEUE_FORMAT cannot express the name: a machine name without a suffix, a multiple-element name.

    Examples
    --------
    >>> encode_queue_format(MulticastName("234.1.1.1", 8001)).hex(" ", -4)
    '07000000 07000000 ea010101 411f0000'
    """
    type_, content = _union(name)
    suffix = _suffix_of(name, type_)
    if type_ not in _RULES[suffix].types:
        raise EncodeError("m_SuffixAndFlags", f"{name}: a {type_.name} name cannot have the suffix {suffix.name}")
    flags = min(_RULES[suffix].flags)
    return bytes([type_, suffix | flags, 0, 0, type_, 0, 0, 0]) + content


def _suffix_of(name: FormatName, type_: QueueFormatType) -> QueueSuffixType:
    suffix: SuffixName | None = getattr(name, "suffix", None)
    if suffix is not None:
        return QueueSuffixType(SUFFIXES.index(suffix))
    return QueueSuffixType.SUBQUEUE if type_ == QueueFormatType.SUBQUEUE else QueueSuffixType.NONE


def _union(name: FormatName) -> tuple[QueueFormatType, bytes]:
    """The type of a name, and the arm of the union with the data it points to."""
    if isinstance(name, PublicName):
        return QueueFormatType.PUBLIC, name.guid.bytes_le
    if isinstance(name, PrivateName):
        return QueueFormatType.PRIVATE, name.guid.bytes_le + name.private_id.to_bytes(4, "little")
    if isinstance(name, DirectName):
        type_ = QueueFormatType.DIRECT if name.subqueue is None else QueueFormatType.SUBQUEUE
        return type_, _REFERENT + _string(name.path)
    if isinstance(name, MachineName):
        return QueueFormatType.MACHINE, name.guid.bytes_le
    if isinstance(name, ConnectorName):
        return QueueFormatType.CONNECTOR, name.guid.bytes_le
    if isinstance(name, DistributionListName):
        pointer = bytes(4) if name.domain is None else _REFERENT + _string(name.domain)
        return QueueFormatType.DL, name.guid.bytes_le + pointer
    if isinstance(name, MulticastName):
        return QueueFormatType.MULTICAST, IPv4Address(name.address).packed + name.port.to_bytes(4, "little")
    raise EncodeError("m_qft", f"{name}: QUEUE_FORMAT cannot express a {name.kind} name")


_REFERENT = (0x00020000).to_bytes(4, "little")


def _string(text: str) -> bytes:
    """A conformant varying string: maximum size, offset and size in code units, then the text."""
    units = text.encode("utf-16-le") + b"\0\0"
    count = (len(units) // 2).to_bytes(4, "little")
    return count + bytes(4) + count + units


# --- Decoding ---


@dataclass
class _Reader(Reader):
    """A position in NDR data."""

    http_slashes: bool

    def string(self, field: str) -> bytes | None:
        """The code units of a string after its pointer, without its U+0000; None for a null pointer."""
        if self.number(4, field) == 0:
            return None
        start = self.at
        greatest, offset, count = (self.number(4, field) for _ in range(3))
        if offset != 0 or not 1 <= count <= greatest:
            raise DecodeError("bad_size", field, start, f"{count} code units at {offset}, of at most {greatest}")
        units = self.take(2 * count, field)
        text = units.decode("utf-16-le", "surrogatepass")
        if text.find("\0") != len(text) - 1:
            raise DecodeError("bad_terminator", field, self.at - 2, "must have one U+0000, at its end")
        return units[:-2]

    def direct(self, field: str) -> DirectName:
        place = self.at
        units = self.string(field)
        if units is None:
            raise DecodeError("bad_value", field, place, "is a null pointer")
        return direct_name(units, self.at - 2 - len(units), http_slashes=self.http_slashes)


def decode_queue_format(data: bytes, at: int = 0, *, http_slashes: bool = False) -> tuple[FormatName | None, int]:
    """The name of a QUEUE_FORMAT in NDR data at offset ``at``, a multiple of 4, and the offset after it.

    The name is None where m_qft is QUEUE_FORMAT_TYPE_UNKNOWN. The suffix of a direct name is in m_SuffixAndFlags and in
    its text: they must agree.

    Raises
    ------
    DecodeError
        The data are truncated, suffix, flags and type do not agree, or a string is malformed.
    """
    start = at
    reader = _Reader(data, at, http_slashes)
    fixed = reader.take(5, "m_qft")
    if fixed[0] not in _TYPES:
        raise DecodeError("bad_type", "m_qft", start, f"is {fixed[0]}, can be at most {max(_TYPES)}")
    if fixed[4] != fixed[0]:
        raise DecodeError("bad_type", "m_qft", start + 4, f"the union is of type {fixed[4]}, m_qft is {fixed[0]}")
    type_ = QueueFormatType(fixed[0])
    suffix = _checked_suffix(fixed[1], type_, start + 1)
    name = _name(reader, type_, SUFFIXES[suffix] if suffix != QueueSuffixType.SUBQUEUE else "")
    if isinstance(name, DirectName):
        _check_direct(name, type_, suffix, start + 1)
    return name, reader.at


def _checked_suffix(suffix_and_flags: int, type_: QueueFormatType, at: int) -> QueueSuffixType:
    suffix, flags = suffix_and_flags & 0x0F, suffix_and_flags & 0xF0
    rule = _RULES.get(suffix)  # type: ignore[call-overload]
    if rule is None:
        raise DecodeError("bad_value", "m_SuffixAndFlags", at, f"suffix {suffix} does not exist")
    if flags not in rule.flags:
        raise DecodeError("bad_flag", "m_SuffixAndFlags", at, f"flags 0x{flags:02x} with suffix {suffix}")
    if type_ not in rule.types:
        raise DecodeError("bad_value", "m_SuffixAndFlags", at, f"a {type_.name} name with suffix {suffix}")
    return QueueSuffixType(suffix)


def _name(reader: _Reader, type_: QueueFormatType, suffix: str) -> FormatName | None:
    if type_ == QueueFormatType.UNKNOWN:
        return None
    reader.take(3, "m_qft")  # the arms of the union begin at a multiple of 4
    given: SuffixName | None = suffix or None  # type: ignore[assignment]
    if type_ == QueueFormatType.PUBLIC:
        return PublicName(reader.guid("m_gPublicID"), given)
    if type_ == QueueFormatType.PRIVATE:
        return PrivateName(reader.guid("m_oPrivateID"), reader.number(4, "m_oPrivateID"), given)
    if type_ == QueueFormatType.DIRECT:
        return reader.direct("m_pDirectID")
    if type_ == QueueFormatType.MACHINE:
        return MachineName(reader.guid("m_gMachineID"), given)
    if type_ == QueueFormatType.CONNECTOR:
        return ConnectorName(reader.guid("m_GConnectorID"), given)
    if type_ == QueueFormatType.DL:
        return _distribution_list(reader)
    if type_ == QueueFormatType.MULTICAST:
        return _multicast(reader)
    return reader.direct("m_pDirectSubqueueID")


def _distribution_list(reader: _Reader) -> DistributionListName:
    guid = reader.guid("m_DlID")
    place = reader.at
    units = reader.string("m_DlID")
    try:
        return DistributionListName(guid, None if units is None else units.decode("utf-16-le", "surrogatepass"))
    except (FormatNameError, ValueError) as error:
        raise DecodeError("bad_text", "m_DlID", place, str(error)) from error


def _multicast(reader: _Reader) -> MulticastName:
    place = reader.at
    address = IPv4Address(reader.take(4, "m_MulticastID"))
    port = reader.number(4, "m_MulticastID")
    if not 224 <= address.packed[0] <= 239 or port > 0xFFFF:
        raise DecodeError("bad_value", "m_MulticastID", place, f"{address}:{port} is not a multicast address and port")
    return MulticastName(str(address), port)


def _check_direct(name: DirectName, type_: QueueFormatType, suffix: QueueSuffixType, at: int) -> None:
    """Check that type and m_SuffixAndFlags agree with the text of a direct name."""
    if (name.subqueue is not None) != (type_ == QueueFormatType.SUBQUEUE):
        raise DecodeError("bad_value", "m_qft", at - 1, f"{name} is not of type {type_.name}")
    allowed = {_suffix_of(name, type_)}
    if type_ == QueueFormatType.SUBQUEUE and name.suffix is None:
        allowed.add(QueueSuffixType.NONE)
    if suffix not in allowed:
        raise DecodeError("bad_value", "m_SuffixAndFlags", at, f"{name} does not have the suffix {suffix.name}")
