"""Format names as message packets carry them: [MS-MQMQ] 2.2.18.1.4, 2.2.18.1.5 and 2.2.18.1.7.

Offsets and alignment count from the start of the header that holds a name. Decoders raise DecodeError for truncated
data, a direct name that is wrong or does not end with its only U+0000, and an unknown FormatType. Encoders raise
EncodeError for a name with a part that its binary format lacks (a suffix, a domain).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from msmqwire.errors import DecodeError, EncodeError, FormatNameError
from msmqwire.formatname.model import DirectName, DistributionListName, FormatName, PrivateName, PublicName, parse

__all__ = [
    "Reader",
    "decode_direct",
    "decode_elements",
    "decode_private",
    "decode_private_id",
    "decode_public",
    "direct_name",
    "encode_direct",
    "encode_elements",
    "encode_private",
    "encode_private_id",
    "encode_public",
]

_MQF_ADDRESS_HEADER_SIZE = 12
_PUBLIC, _PRIVATE, _DIRECT, _DISTRIBUTION_LIST = 1, 2, 3, 6
_DIRECT_FIELD = "DirectFormatName"


def _aligned(at: int, alignment: int) -> int:
    return -(-at // alignment) * alignment


@dataclass
class Reader:
    """A position in binary data."""

    data: bytes
    at: int

    def take(self, size: int, field: str) -> bytes:
        """The next ``size`` bytes.

        Raises
        ------
        DecodeError
            Fewer bytes are left.
        """
        left = len(self.data) - self.at
        if size > left:
            raise DecodeError("truncated", field, self.at, f"needs {size} bytes, {max(left, 0)} left")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int, field: str) -> int:
        """An unsigned integer."""
        return int.from_bytes(self.take(size, field), "little")

    def guid(self, field: str) -> UUID:
        """A GUID in packet order."""
        return UUID(bytes_le=self.take(16, field))

    def align(self, alignment: int) -> None:
        """Move to the next multiple of ``alignment``."""
        self.at = _aligned(self.at, alignment)


def _without_suffix(name: PublicName | PrivateName) -> None:
    if name.suffix is not None:
        raise EncodeError("FormatName", f"{name}: this format has no suffix")


# --- Formats of a fixed size ---


def encode_private_id(name: PrivateName) -> bytes:
    """PrivateQueueFormatNameId, 4 bytes: a private queue on the host of another field of the packet."""
    _without_suffix(name)
    return name.private_id.to_bytes(4, "little")


def decode_private_id(data: bytes, queue_manager: UUID, at: int = 0) -> PrivateName:
    """The private queue of a PrivateQueueFormatNameId on the host ``queue_manager``.

    Examples
    --------
    >>> str(decode_private_id(bytes([3, 0, 0, 0]), UUID("2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10")))
    'PRIVATE=2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10\\\\3'
    """
    return PrivateName(queue_manager, Reader(data, at).number(4, "PrivateQueueIdentifier"))


def encode_public(name: PublicName) -> bytes:
    """PublicQueueFormatName, 16 bytes."""
    _without_suffix(name)
    return name.guid.bytes_le


def decode_public(data: bytes, at: int = 0) -> PublicName:
    """The name of a PublicQueueFormatName."""
    return PublicName(Reader(data, at).guid("PublicQueueIdentifier"))


def encode_private(name: PrivateName) -> bytes:
    """PrivateQueueFormatName, 20 bytes."""
    return name.guid.bytes_le + encode_private_id(name)


def decode_private(data: bytes, at: int = 0) -> PrivateName:
    """The name of a PrivateQueueFormatName."""
    return decode_private_id(data, Reader(data, at).guid("SourceQueueManager"), at + 16)


# --- Direct names ---


def direct_name(units: bytes, offset: int, *, http_slashes: bool = False) -> DirectName:
    """The direct name of UTF-16LE text without ``DIRECT=`` and U+0000; ``offset`` is that of the text."""
    text = "DIRECT=" + units.decode("utf-16-le", "surrogatepass")
    try:
        name = parse(text, http_slashes=http_slashes, spx=True)
    except FormatNameError as error:
        place = offset + 2 * (error.offset - len("DIRECT="))
        raise DecodeError("bad_text", _DIRECT_FIELD, place, str(error)) from error
    if not isinstance(name, DirectName):
        place = offset + 2 * (text.index(",") - len("DIRECT="))
        raise DecodeError("bad_text", _DIRECT_FIELD, place, f"{text!r} names several queues")
    return name


def encode_direct(name: DirectName, at: int = 0) -> bytes:
    """DirectQueueFormatName at offset ``at`` of its header: Count, text, U+0000, padded to a multiple of 4 from there.

    Examples
    --------
    >>> encode_direct(DirectName("os", "a", "q"), at=2).hex(" ", -2)
    '0e00 4f00 5300 3a00 6100 5c00 7100 0000 0000'
    """
    text = name.path.encode("utf-16-le") + b"\0\0"
    if len(text) > 0xFFFF:
        raise EncodeError("Count", f"must be at most 65535, not {len(text)}")
    packed = len(text).to_bytes(2, "little") + text
    return packed + bytes(_aligned(at + len(packed), 4) - at - len(packed))


def decode_direct(data: bytes, at: int = 0, *, http_slashes: bool = False) -> tuple[DirectName, int]:
    """The name of a DirectQueueFormatName at offset ``at`` of its header, and the offset after its padding."""
    reader = Reader(data, at)
    size = reader.number(2, "Count")
    if size == 0 or size % 2:
        raise DecodeError("bad_size", "Count", at, f"is {size}, must be a positive even number")
    units = reader.take(size, _DIRECT_FIELD)
    end = _terminator(units)
    if end != size - 2:
        place = at + 2 + (size - 2 if end is None else end)
        raise DecodeError("bad_terminator", _DIRECT_FIELD, place, "must have one U+0000, at its end")
    return direct_name(units[:end], at + 2, http_slashes=http_slashes), _aligned(at + 2 + size, 4)


def _terminator(units: bytes) -> int | None:
    """The offset of the first U+0000."""
    return next((i for i in range(0, len(units) - 1, 2) if units[i] == units[i + 1] == 0), None)


# --- MQFFormatNameElement ---


def encode_elements(
    names: Iterable[FormatName], at: int = _MQF_ADDRESS_HEADER_SIZE, *, public_alignment: int = 4
) -> bytes:
    """Encode MQFFormatNameElements from offset ``at`` of an MQFAddressHeader, padded to a multiple of 4.

    Parameters
    ----------
    names : iterable of FormatName
        Public, private, direct and distribution list names.
    at : int
        The size of the preceding bytes of the header.
    public_alignment : int
        The alignment of the identifier of a public queue. The specification does not define it; other GUIDs have 4.
    """
    packed = bytearray()
    for name in names:
        type_, alignment, content = _element(name, public_alignment)
        packed += type_.to_bytes(2, "little")
        packed += bytes(_aligned(at + len(packed), alignment) - at - len(packed)) + content
    return bytes(packed) + bytes(_aligned(at + len(packed), 4) - at - len(packed))


def _element(name: FormatName, public_alignment: int) -> tuple[int, int, bytes]:
    """FormatType, alignment and FormatName."""
    if isinstance(name, PublicName):
        return _PUBLIC, public_alignment, encode_public(name)
    if isinstance(name, PrivateName):
        return _PRIVATE, 4, encode_private(name)
    if isinstance(name, DirectName):
        return _DIRECT, 2, name.path.encode("utf-16-le") + b"\0\0"
    if isinstance(name, DistributionListName):
        if name.domain is not None:
            raise EncodeError("DistributionListIdentifier", f"{name}: this format has no domain")
        return _DISTRIBUTION_LIST, 4, name.guid.bytes_le
    raise EncodeError("FormatType", f"{name}: packets have no format for this kind of name")


def decode_elements(
    data: bytes,
    count: int,
    at: int = _MQF_ADDRESS_HEADER_SIZE,
    *,
    public_alignment: int = 4,
    http_slashes: bool = False,
) -> tuple[tuple[FormatName, ...], int]:
    """The names of ``count`` MQFFormatNameElements from offset ``at`` of an MQFAddressHeader, and the next offset.

    Examples
    --------
    >>> data = bytes(12) + encode_elements([DirectName("os", "a", "q"), DirectName("os", "b", "q")])
    >>> names, end = decode_elements(data, 2)
    >>> [str(name) for name in names], end == len(data)
    (['DIRECT=OS:a\\\\q', 'DIRECT=OS:b\\\\q'], True)
    """
    names: list[FormatName] = []
    reader = Reader(data, at)
    for _ in range(count):
        start = reader.at
        type_ = reader.number(2, "FormatType")
        if type_ == _PUBLIC:
            reader.align(public_alignment)
            names.append(PublicName(reader.guid("PublicQueueIdentifier")))
        elif type_ == _PRIVATE:
            reader.align(4)
            names.append(PrivateName(reader.guid("SourceQueueManager"), reader.number(4, "PrivateQueueIdentifier")))
        elif type_ == _DIRECT:
            reader.align(2)
            end = _terminator(data[reader.at :])
            if end is None:
                raise DecodeError("bad_terminator", _DIRECT_FIELD, reader.at, "no U+0000 in the rest of the header")
            units = reader.take(end + 2, _DIRECT_FIELD)[:-2]
            names.append(direct_name(units, reader.at - end - 2, http_slashes=http_slashes))
        elif type_ == _DISTRIBUTION_LIST:
            reader.align(4)
            names.append(DistributionListName(reader.guid("DistributionListIdentifier")))
        else:
            raise DecodeError("bad_type", "FormatType", start, f"is {type_}, must be 1, 2, 3 or 6")
    return tuple(names), min(_aligned(reader.at, 4), max(len(data), reader.at))
