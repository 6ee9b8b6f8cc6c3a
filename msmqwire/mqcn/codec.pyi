"""MS-MQCN messages one at a time: [MS-MQCN] 2.2.4-2.2.6."""

import builtins
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple
from uuid import UUID

from typing_extensions import Buffer

Operation = Literal["create", "change", "delete"]
Object = Literal["queue", "machine"]

class PropertyValue(NamedTuple):
    """A PROPID and its value, as ``propvariant.decode`` gives it for the PROPID's type."""

    id: int
    value: Any

class NotificationUpdate:
    """One change to one object: [MS-MQCN] 2.2.6.

    An update compares, hashes, prints and pickles as a value; its Reserved bytes are no part of it.

    Parameters
    ----------
    command : {"create", "change", "delete"}
    path_name : str, optional
        The queue, as a QueuePathName; or else
    guid_identifier : uuid.UUID, optional
        the object.
    guid_master_id : uuid.UUID
        The directory server that the change comes from.
    properties : iterable of (int, value)
        PROPIDs with their values, at most 255.

    Raises
    ------
    EncodeError
        A value that the field or the type of the PROPID cannot hold.

    Examples
    --------
    >>> from uuid import UUID
    >>> from msmqwire.properties import PROPID_Q_QMID, PROPID_Q_QUOTA
    >>> update = NotificationUpdate(
    ...     command="change",
    ...     guid_identifier=UUID(int=1),
    ...     guid_master_id=UUID(int=2),
    ...     properties=[(PROPID_Q_QMID, UUID(int=3)), (PROPID_Q_QUOTA, 1024)],
    ... )
    >>> update.object, update.properties[1], update.violations
    ('queue', PropertyValue(id=105, value=1024), ())
    """

    def __init__(
        self,
        *,
        command: Operation,
        guid_master_id: UUID,
        properties: Iterable[PropertyValue | tuple[int, Any]] = (),
        path_name: str | None = None,
        guid_identifier: UUID | None = None,
    ) -> None: ...
    @property
    def command(self) -> Operation:
        """Command: what happened to the object."""
    @property
    def use_guid(self) -> bool:
        """UseGuid: whether the object is named by ``guid_identifier`` and not by ``path_name``."""
    @property
    def path_name(self) -> str | None:
        """PathName; lone surrogates stay lone surrogates."""
    @property
    def guid_identifier(self) -> UUID | None:
        """GuidIdentifier."""
    @property
    def guid_master_id(self) -> UUID:
        """GuidMasterId, the directory server that the change comes from."""
    @property
    def properties(self) -> tuple[PropertyValue, ...]:
        """PropertyId and PropertyValue; blobs and vectors are views of the message's bytes."""
    @property
    def object(self) -> Object | None:
        """What is changed: [MS-MQCN] 3.2.5.1; None for what a receiver disregards."""
    @property
    def violations(self) -> tuple[str, ...]:
        """Names of the rules that the update breaks; empty for a conforming one."""
    def __eq__(self, other: builtins.object) -> bool: ...
    def __hash__(self) -> int: ...

class NotificationBody(NamedTuple):
    """What a message of version 2 says: [MS-MQCN] 2.2.5."""

    event: int
    """1 a queue was created, 2 changed, 3 deleted, 4 a machine was changed."""
    object_guid: UUID
    domain_controller: str

    @property
    def operation(self) -> Operation:
        """What Event stands for: ``"create"``, ``"change"`` or ``"delete"``."""
    @property
    def object(self) -> Object:
        """What is changed: ``"queue"``, or ``"machine"`` for Event 4."""

class ChangeNotificationMessage:
    """A Change Notification Message: [MS-MQCN] 2.2.4.

    A message compares, hashes, prints and pickles as a value. It keeps the bytes it was decoded from alive.

    Parameters
    ----------
    version : {1, 2}
        1 from a directory service, with ``updates``; 2 from a queue manager, with a ``body``.
    updates : iterable of NotificationUpdate
        1 to 255 of them.
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
    @property
    def version(self) -> int:
        """Version."""
    @property
    def updates(self) -> tuple[NotificationUpdate, ...]:
        """The changes of a message of version 1; empty for version 2."""
    @property
    def body(self) -> NotificationBody | None:
        """The change of a message of version 2; None for version 1."""
    @property
    def violations(self) -> tuple[str, ...]:
        """Names of the rules that the message or a part of it breaks; empty for a conforming one."""
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

def decode(data: Buffer, *, strict: bool = False) -> ChangeNotificationMessage:
    """Decode one Change Notification Message, with or without the unused byte behind it: [MS-MQCN] 2.2.4, 3.3.5.3.

    Parameters
    ----------
    data : bytes-like
        The body of an MSMQ message. It is viewed, not copied, unless it is writable.
    strict : bool
        Fault what a conforming receiver disregards, instead of noting it as a violation.

    Raises
    ------
    DecodeError
        With code, field and offset of the first thing wrong.

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
    """Write one message; ``decode(encode(message), strict=True) == message``.

    Parameters
    ----------
    closing_space : bool
        Close ObjectGuid of a body as its grammar says, with a space.
    enforce : bool
        Refuse updates that do not have the PROPIDs of their command ([MS-MQCN] 3.3.5.2).

    Raises
    ------
    EncodeError
        The message has violations, which no conforming sender produces.
    """

def encode_body(message: ChangeNotificationMessage, *, closing_space: bool = True, enforce: bool = True) -> bytes:
    """Write one message as the body of an MSMQ message: with the unused byte of [MS-MQCN] 3.3.5.3 behind it."""
