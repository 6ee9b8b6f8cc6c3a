"""Written by `make build` from the annotations in _packet.pyx; do not edit."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal
from uuid import UUID
import builtins

from typing_extensions import Buffer

from msmqwire.columns._packet import WirePacket
from msmqwire.mqcn.values import NotificationBody, Object, Operation, PropertyValue

class NotificationUpdate(WirePacket):
    """One change to one object: [MS-MQCN] 2.2.6.

    An update compares, hashes, prints and pickles as a value, without its Reserved bytes.

    Parameters
    ----------
    command : {"create", "change", "delete"}
    guid_master_id : uuid.UUID or its text
        The directory server that made the change.
    properties : mapping, or iterable of pairs
        PROPIDs or their names, with their values, at most 255.
    path_name : str, optional
        The queue, as a QueuePathName. Give either this or ``guid_identifier``.
    guid_identifier : uuid.UUID or its text, optional
        The object.

    Raises
    ------
    EncodeError
        A value that the field or the type of the PROPID cannot hold.

    Examples
    --------
    >>> update = NotificationUpdate(
    ...     command="change",
    ...     guid_identifier="00000000-0000-0000-0000-000000000001",
    ...     guid_master_id="00000000-0000-0000-0000-000000000002",
    ...     properties={"PROPID_Q_QMID": "00000000-0000-0000-0000-000000000003", "PROPID_Q_QUOTA": 1024},
    ... )
    >>> update.object, update.properties[1], update.violations
    ('queue', PropertyValue(id=105, value=1024), ())
    """

    def __init__(
        self,
        *,
        command: Operation,
        guid_master_id: UUID | str,
        properties: Mapping[Any, Any] | Iterable[PropertyValue | tuple[int | str, Any]] = (),
        path_name: str | None = None,
        guid_identifier: UUID | str | None = None,
    ) -> None: ...
    command: Final[Operation]
    """Command: ``"create"``, ``"change"`` or ``"delete"``."""
    use_guid: Final[bool]
    """UseGuid: whether ``guid_identifier`` and not ``path_name`` names the object."""
    path_name: Final[str | None]
    """PathName; lone surrogates stay lone surrogates."""
    guid_identifier: Final[UUID | None]
    """GuidIdentifier."""
    guid_master_id: Final[UUID]
    """GuidMasterId: the directory server that made the change."""
    reserved: Final[bytes]
    """Reserved: 24 bytes, which receivers ignore."""
    object: Final[Object | None]
    """What is changed, ``"queue"`` or ``"machine"``: [MS-MQCN] 3.2.5.1. None where a receiver disregards it."""
    violations: Final[tuple[str, ...]]
    """Names of the rules that the update breaks; empty for a conforming update."""
    properties: Final[tuple[PropertyValue, ...]]
    """PropertyId and PropertyValue; blobs and vectors are views of the message's bytes."""
    def __eq__(self, other: builtins.object) -> bool: ...
    def __hash__(self) -> int: ...

class ChangeNotificationMessage(WirePacket):
    """A Change Notification Message: [MS-MQCN] 2.2.4.

    A message compares, hashes, prints and pickles as a value. It keeps the bytes it was decoded from alive.

    Parameters
    ----------
    version : {1, 2}
        1 from a directory service, with ``updates``; 2 from a queue manager, with a ``body``.
    updates : iterable of NotificationUpdate
        1 to 255 updates.
    body : NotificationBody, optional

    Raises
    ------
    EncodeError
        A value that its field cannot hold.

    Examples
    --------
    >>> from uuid import UUID
    >>> message = ChangeNotificationMessage(2, body=NotificationBody(2, UUID(int=1), "dc1"))
    >>> decode(encode(message)).body.operation
    'change'
    """

    def __init__(
        self,
        version: Literal[1, 2],
        updates: Iterable[NotificationUpdate] = (),
        body: NotificationBody | None = None,
    ) -> None: ...
    version: Final[int]
    """Version: 1 or 2."""
    updates: Final[tuple[NotificationUpdate, ...]]
    """The changes of a message of version 1; empty for version 2."""
    body: Final[NotificationBody | None]
    """The change of a message of version 2; None for version 1."""
    violations: Final[tuple[str, ...]]
    """Names of the rules that the message or a part of it breaks; empty for a conforming message."""
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def to_dict(self) -> dict[str, Any]:
        """Return ``version``, ``violations`` and ``changes``, a row of JSON for each change; needs pyarrow.

        The rows are those that ``msmqwire decode`` writes, without the columns of captures.
        """

def decode(data: Buffer, *, strict: bool = False) -> ChangeNotificationMessage:
    """Decode one Change Notification Message, with or without the unused byte after it: [MS-MQCN] 2.2.4, 3.3.5.3.

    Parameters
    ----------
    data : bytes-like
        The body of an MSMQ message. Viewed where it is ``bytes``, else copied.
    strict : bool
        Raise for what a conforming receiver disregards, instead of noting a violation.

    Raises
    ------
    DecodeError
        With code, field and offset of the first fault.

    Examples
    --------
    >>> message = decode(bytes.fromhex(
    ...     "0101020133221100554477668899aabbccddeeff11ea26c6b6e6499795959150557358d1"
    ...     "000000000000000000000000000000000000000000000000027b0500007c0500000101"
    ... ))
    >>> message.updates[0].command, message.updates[0].object, message.updates[0].guid_identifier
    ('delete', 'queue', UUID('00112233-4455-6677-8899-aabbccddeeff'))
    >>> decode(b"\\1\\1\\3")
    Traceback (most recent call last):
    msmqwire.errors.DecodeError: bad_command: Command at byte 2: is 0x3
    """

def encode(message: ChangeNotificationMessage, *, closing_space: bool = True, enforce: bool = True) -> bytes:
    """Encode one message; ``decode(encode(message), strict=True) == message``.

    With ``enforce=False`` it also writes what a conforming receiver ignores or reads in part: other PROPIDs than those
    of the command (``property_set``), and a PROPID twice, of which the first counts (``duplicate_property``). Whether a
    receiver applies a change at all depends on its sender and on the objects that it knows ([MS-MQCN] 3.2.5).

    Parameters
    ----------
    closing_space : bool
        Close ObjectGuid of a body with a space, as its grammar says.
    enforce : bool
        Refuse updates without the PROPIDs of their command ([MS-MQCN] 3.3.5.2).

    Raises
    ------
    EncodeError
        The message has violations, so no conforming sender produces it.
    """

def encode_body(message: ChangeNotificationMessage, *, closing_space: bool = True, enforce: bool = True) -> bytes:
    """Encode one message as the body of an MSMQ message: followed by the unused byte of [MS-MQCN] 3.3.5.3."""
