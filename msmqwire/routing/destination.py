"""Get Destination Info: the host and the queue manager of a format name ([MS-MQQB] 3.1.7.4)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from uuid import UUID

from msmqwire.directory import Directory, Equal, Queue, QueueManager
from msmqwire.directory.base import comparable
from msmqwire.directory.elements import computer_of
from msmqwire.directory.ldap_connection import parent
from msmqwire.errors import DirectoryError, FormatNameError
from msmqwire.formatname import ConnectorName, DirectName, FormatName, PrivateName, PublicName, parse
from msmqwire.wire.guids import NIL

_QUEUE = ("identifier", "pathname", "qualified_pathname", "full_path")
_QUEUE_MANAGER = ("identifier", "computer_name")

#: //host:port/MSMQ, where the host may be an IPv6 address in brackets ([MS-MQMQ] 2.1.2).
_HTTP_ADDRESS = re.compile(r"//(?P<host>\[[^\]]*\]|[^:/]*)")


@dataclass(frozen=True, slots=True)
class DestinationInfo:
    """The result of Get Destination Info ([MS-MQQB] 3.1.7.4).

    Attributes
    ----------
    status : bool
        rStatus: whether there is a destination. If not, ``host_name`` and ``queue_manager_guid`` are None.
    host_name : str or None
        rHostName: the address in a direct name (see :func:`host_of`), the name of the computer of a public queue, empty
        for a private queue.
    queue_manager_guid : UUID or None
        rQueueManagerGuid: the Identifier of the destination, all zero for a direct name.
    reason : str
        Why there is no destination.
    failure : DirectoryError or None
        The failure to read the directory, so that it is not known whether there is a destination.
    """

    status: bool
    host_name: str | None = None
    queue_manager_guid: UUID | None = None
    reason: str = ""
    failure: DirectoryError | None = field(default=None, repr=False, compare=False)


def get_destination_info(
    format_name: str | FormatName, directory: Directory | None = None, *, literal: bool = False
) -> DestinationInfo:
    r"""Get Destination Info: the destination of messages to a queue ([MS-MQQB] 3.1.7.4).

    Suffixes such as ``;JOURNAL`` select a queue, not a host, and do not change the result. Machine, multicast and
    multiple-element names and distribution lists have no single destination.

    Parameters
    ----------
    format_name : str or FormatName
        A format name, as text or parsed by :func:`msmqwire.formatname.parse`. In text, ``/`` may stand for ``\`` after
        ``/MSMQ``, as names of queues over HTTP are often written, and a queue may have any letters.
    directory : Directory, optional
        Read for the queue of a public or connector name only.
    literal : bool
        Follow the exact words for public and connector names: the GUID is that of the queue instead of the queue
        manager, and the host is the QualifiedComputerName of the queue, an attribute that queues do not have
        ([MS-MQDMPR] 3.1.1.2), so it is None.

    Examples
    --------
    >>> get_destination_info("DIRECT=TCP:10.20.1.10\\orders").host_name
    '10.20.1.10'
    >>> get_destination_info("MULTICAST=234.1.1.1:8001")
    DestinationInfo(status=False, host_name=None, queue_manager_guid=None, reason='a multicast name has no single host')
    """
    if isinstance(format_name, str):
        try:
            format_name = parse(format_name, http_slashes=True, any_letters=True)
        except FormatNameError as error:
            return DestinationInfo(False, reason=str(error))
    match format_name:
        case DirectName(address=address):
            return DestinationInfo(True, address, NIL)
        case PrivateName(guid=guid):
            return DestinationInfo(True, "", guid)
        case PublicName(guid=guid) | ConnectorName(guid=guid):
            return _destination_of_queue(guid, directory, literal)
        case _:
            return DestinationInfo(False, reason=f"a {format_name.kind.replace('_', ' ')} name has no single host")


def host_of(address: str) -> str:
    """The host in an address: Host of an HTTP address, else the address itself ([MS-MQDMPR] 3.1.7.1.26).

    >>> host_of("//shop.example:8080/MSMQ"), host_of("10.20.1.10"), host_of("00000012:00a0c9123456")
    ('shop.example', '10.20.1.10', '00000012:00a0c9123456')
    """
    http = _HTTP_ADDRESS.match(address)
    return http["host"].strip("[]") if http else address


def _destination_of_queue(identifier: UUID, directory: Directory | None, literal: bool) -> DestinationInfo:
    if directory is None:
        return DestinationInfo(False, reason="no directory is given to find this queue")
    try:
        queue = directory.read_directory(Queue, [Equal("identifier", identifier)], _QUEUE)
        if queue is None:
            return DestinationInfo(False, reason=f"no Queue has the Identifier {identifier}")
        if literal:
            return DestinationInfo(True, None, queue.identifier)
        machine = _queue_manager_of(queue, directory)
    except DirectoryError as error:
        return DestinationInfo(False, reason=f"the directory cannot be read: {error}", failure=error)
    if machine is None:
        return DestinationInfo(False, reason=f"no QueueManager has the Queue {identifier}, {queue.pathname}")
    host = computer_of(queue.qualified_pathname) or computer_of(queue.pathname)
    return DestinationInfo(True, host, machine.identifier)


def _queue_manager_of(queue: Queue, directory: Directory) -> QueueManager | None:
    """The queue manager above a queue in the tree of the directory; without a tree, the one named by its path."""
    if path := parent(queue.full_path):
        return directory.read_directory(QueueManager, [Equal("full_path", path)], _QUEUE_MANAGER)
    computer = computer_of(queue.pathname)
    # A directory that cannot search by name may answer with other machines as well ([MS-MQDSSM] 3.1.6.4).
    machines = directory.read_all(QueueManager, [Equal("computer_name", computer)], _QUEUE_MANAGER)
    return next((each for each in machines if comparable(each.computer_name) == comparable(computer)), None)
