"""Format names as message packets carry them: [MS-MQMQ] 2.2.18.1.4, 2.2.18.1.5 and 2.2.18.1.7.

Offsets count from the start of the header that holds a name, since alignment does. A name that has more to say than its
binary form has room for (a suffix, a domain) is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from msmqwire.errors import DecodeError, EncodeError, FormatNameError
from msmqwire.formatname.model import DirectName, DistributionListName, FormatName, PrivateName, PublicName, parse

__all__ = [
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


def _taken(data: bytes, at: int, size: int, field: str) -> bytes:
    if size > len(data) - at:
        raise DecodeError("truncated", field, at, f"needs {size} bytes, {max(len(data) - at, 0)} left")
    return data[at : at + size]


def _guid(data: bytes, at: int, field: str) -> UUID:
    return UUID(bytes_le=_taken(data, at, 16, field))


def _number(data: bytes, at: int, size: int, field: str) -> int:
    return int.from_bytes(_taken(data, at, size, field), "little")


def _without_suffix(name: PublicName | PrivateName) -> None:
    if name.suffix is not None:
        raise EncodeError("FormatName", f"{name}: this form has no room for a suffix")


# --- Forms of a fixed size ---


def encode_private_id(name: PrivateName) -> bytes:
    """PrivateQueueFormatNameId, 4 bytes: a private queue on a host that the packet names elsewhere.

    Raises
    ------
    EncodeError
        The name has a suffix.
    """
    _without_suffix(name)
    return name.private_id.to_bytes(4, "little")


def decode_private_id(data: bytes, queue_manager: UUID, at: int = 0) -> PrivateName:
    """The private queue of a PrivateQueueFormatNameId on the host that the packet names elsewhere.

    Raises
    ------
    DecodeError
        Fewer than 4 bytes are left.

    Examples
    --------
    >>> str(decode_private_id(bytes([3, 0, 0, 0]), UUID("2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10")))
    'PRIVATE=2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10\\\\3'
    """
    return PrivateName(queue_manager, _number(data, at, 4, "PrivateQueueIdentifier"))


def encode_public(name: PublicName) -> bytes:
    """PublicQueueFormatName, 16 bytes.

    Raises
    ------
    EncodeError
        The name has a suffix.
    """
    _without_suffix(name)
    return name.guid.bytes_le


def decode_public(data: bytes, at: int = 0) -> PublicName:
    """The name of a PublicQueueFormatName.

    Raises
    ------
    DecodeError
        Fewer than 16 bytes are left.
    """
    return PublicName(_guid(data, at, "PublicQueueIdentifier"))


def encode_private(name: PrivateName) -> bytes:
    """PrivateQueueFormatName, 20 bytes.

    Raises
    ------
    EncodeError
        The name has a suffix.
    """
    return name.guid.bytes_le + encode_private_id(name)


def decode_private(data: bytes, at: int = 0) -> PrivateName:
    """The name of a PrivateQueueFormatName.

    Raises
    ------
    DecodeError
        Fewer than 20 bytes are left.
    """
    return decode_private_id(data, _guid(data, at, "SourceQueueManager"), at + 16)


# --- Direct names ---


def direct_name(units: bytes, offset: int, *, http_slashes: bool = False) -> DirectName:
    """The direct name that UTF-16LE text without ``DIRECT=`` and U+0000 is; ``offset`` is where it stands.

    Raises
    ------
    DecodeError
        It is none.
    """
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

    Raises
    ------
    EncodeError
        The text is longer than Count can say.

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
    """The name of a DirectQueueFormatName at offset ``at`` of its header, and the offset behind its padding.

    Raises
    ------
    DecodeError
        The text is cut, is not closed by its one U+0000, or is no direct name.
    """
    size = _number(data, at, 2, "Count")
    if size == 0 or size % 2:
        raise DecodeError("bad_size", "Count", at, f"is {size}, must be a positive even number")
    units = _taken(data, at + 2, size, _DIRECT_FIELD)
    end = _terminator(units)
    if end != size - 2:
        place = at + 2 + (size - 2 if end is None else end)
        raise DecodeError("bad_terminator", _DIRECT_FIELD, place, "one U+0000 must stand at its end")
    return direct_name(units[:end], at + 2, http_slashes=http_slashes), _aligned(at + 2 + size, 4)


def _terminator(units: bytes) -> int | None:
    """The offset of the first U+0000."""
    return next((i for i in range(0, len(units) - 1, 2) if units[i] == units[i + 1] == 0), None)


# --- MQFFormatNameElement ---


def encode_elements(
    names: Iterable[FormatName], at: int = _MQF_ADDRESS_HEADER_SIZE, *, public_alignment: int = 4
) -> bytes:
    """MQFFormatNameElements behind each other, from offset ``at`` of an MQFAddressHeader, padded to a multiple of 4.

    Parameters
    ----------
    names : iterable of FormatName
        Public, private, direct and distribution list names; others have no such form.
    at : int
        The size of what stands in front of them.
    public_alignment : int
        Where the identifier of a public queue may begin. The specification does not say; 4, as for the other GUIDs.

    Raises
    ------
    EncodeError
        A name has no such form.
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
            raise EncodeError("DistributionListIdentifier", f"{name}: this form has no room for a domain")
        return _DISTRIBUTION_LIST, 4, name.guid.bytes_le
    raise EncodeError("FormatType", f"{name}: a packet has no form for this kind of name")


def decode_elements(
    data: bytes,
    count: int,
    at: int = _MQF_ADDRESS_HEADER_SIZE,
    *,
    public_alignment: int = 4,
    http_slashes: bool = False,
) -> tuple[tuple[FormatName, ...], int]:
    """The names of ``count`` MQFFormatNameElements from offset ``at`` of an MQFAddressHeader, and the offset behind.

    Raises
    ------
    DecodeError
        A name is cut, of an unknown FormatType, without its U+0000, or no direct name.

    Examples
    --------
    >>> data = bytes(12) + encode_elements([DirectName("os", "a", "q"), DirectName("os", "b", "q")])
    >>> names, end = decode_elements(data, 2)
    >>> [str(name) for name in names], end == len(data)
    (['DIRECT=OS:a\\\\q', 'DIRECT=OS:b\\\\q'], True)
    """
    names: list[FormatName] = []
    for _ in range(count):
        type_ = _number(data, at, 2, "FormatType")
        start = at
        at += 2
        if type_ == _PUBLIC:
            at = _aligned(at, public_alignment)
            names.append(decode_public(data, at))
            at += 16
        elif type_ == _PRIVATE:
            at = _aligned(at, 4)
            names.append(decode_private(data, at))
            at += 20
        elif type_ == _DIRECT:
            at = _aligned(at, 2)
            end = _terminator(data[at:])
            if end is None:
                raise DecodeError("bad_terminator", _DIRECT_FIELD, at, "no U+0000 in the rest of the header")
            names.append(direct_name(data[at : at + end], at, http_slashes=http_slashes))
            at += end + 2
        elif type_ == _DISTRIBUTION_LIST:
            at = _aligned(at, 4)
            names.append(DistributionListName(_guid(data, at, "DistributionListIdentifier")))
            at += 16
        else:
            raise DecodeError("bad_type", "FormatType", start, f"is {type_}, must be 1, 2, 3 or 6")
    return tuple(names), min(_aligned(at, 4), max(len(data), at))
