"""Written by `make build` from the annotations in _batch.pyx; do not edit."""

from collections.abc import Sequence
from typing import NamedTuple

from numpy.typing import ArrayLike, NDArray
import numpy as np

from msmqwire.columns._batch import Batch
from msmqwire.columns._payloads import Payloads
from msmqwire.mqqb.groups import TransportName

class Notifications(NamedTuple):
    """The change notifications among the messages of a batch.

    Attributes
    ----------
    payloads : Payloads
        The bodies that can be read, not copied, for ``msmqwire.mqcn.decode_batch``.
    rows : ndarray of uint32
        The message that each body belongs to.
    encrypted : ndarray of uint32
        The messages whose bodies cannot be read because they are encrypted.
    """

    payloads: Payloads
    rows: NDArray[np.uint32]
    encrypted: NDArray[np.uint32]

class MessageBatch(Batch):
    """The columns of many messages, a row for each.

    Examples
    --------
    >>> from msmqwire import mqcn, mqqb
    >>> from uuid import UUID
    >>> body = bytes.fromhex("0100")
    >>> queue = "PRIVATE=557358d1-9150-9595-4997-b6e611ea26c6\\\\3"
    >>> batch = mqqb.decode_batch([
    ...     mqqb.encode(mqqb.UserMessage(destination_queue="DIRECT=OS:server\\\\orders")),
    ...     mqqb.encode(mqqb.UserMessage(destination_queue=queue, body=body)),
    ... ])
    >>> found = batch.notifications()
    >>> mqcn.decode_batch(found.payloads).violation_names(0), found.rows.tolist()
    (('no_updates',), [1])
    """

    def notifications(self) -> Notifications:
        """The bodies of messages to the notify queue, not copied: [MS-MQCN] 1.9, 3.2.1.2.1.

        Their senders are not authenticated: a sender can forge all that a packet says of authentication.

        Raises
        ------
        KeyError
            ``notification`` and ``body`` are not among the requested columns.
        """

def decode_batch(
    payloads: object,
    *,
    offsets: ArrayLike | None = None,
    strict: bool = False,
    columns: Sequence[str] | None = None,
    out: Batch | None = None,
) -> MessageBatch:
    """Decode UserMessage packets into the columns of the messages table: [MS-MQMQ] 2.2.20.

    Every payload gives one row; one that cannot be decoded gives a row with a fault.

    Parameters
    ----------
    payloads
        As for ``Payloads.of``, less than 2 GiB: packets, each with the SessionHeader that follows it.
    offsets : array of integers, optional
        The start of each payload in one bytes-like object, and the end of the last.
    strict : bool
        Fault for what a conforming receiver refuses, instead of noting a violation.
    columns : sequence of str, optional
        Build only these columns.
    out : Batch, optional
        A batch to overwrite, with everything that its views show.

    Raises
    ------
    ValueError
        A column that does not exist, offsets outside the data, or an ``out`` with other columns.
    BufferError
        An Arrow consumer still holds ``out``.
    """

def decode_session_batch(
    payloads: object,
    *,
    offsets: ArrayLike | None = None,
    strict: bool = False,
    transport: TransportName | NDArray[np.uint8] = "unknown",
    columns: Sequence[str] | None = None,
    out: Batch | None = None,
) -> Batch:
    """Decode pings and the packets of sessions into the columns of the sessions table: [MS-MQQB] 2.2.

    Parameters
    ----------
    payloads, offsets, strict, columns, out
        As for ``decode_batch``.
    transport : {"unknown", "udp", "tcp"} or array of uint8, shape (n,)
        The transport of the packets (0 unknown, 1 UDP, 2 TCP in an array): pings come over UDP, all others over TCP.

    Raises
    ------
    ValueError, BufferError
        As for ``decode_batch``.
    """
