"""The columns of the notifications table that the bodies of messages do not have: the sender, and the judgement."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from msmqwire.columns._batch import take
from msmqwire.columns.arrow_arrays import integers, strings
from msmqwire.mqqb.message.schema import SENDER_ID_TYPES
from msmqwire.notification import judgement
from msmqwire.notification.envelope import names_queue_manager
from msmqwire.notification.judgement import Senders, judge_batch
from msmqwire.notification.schema import JUDGEMENT, SENDER

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from msmqwire.mqcn import NotificationBatch
    from msmqwire.mqqb import MessageBatch

JUDGED = frozenset(column.name for column in JUDGEMENT)
OF_SENDERS = frozenset(column.name for column in SENDER)
#: The columns of messages that identify notifications.
OF_MESSAGES = frozenset({"body", "notification"})


def judged_columns(
    wanted: frozenset[str],
    schema: pa.Schema,
    messages: MessageBatch,
    rows: NDArray[np.uint32],
    batch: NotificationBatch,
) -> dict[str, pa.Array[Any]]:
    """The columns ``wanted``, of ``JUDGED`` and ``OF_SENDERS``, for the changes of notifications.

    Parameters
    ----------
    wanted : frozenset of str
    schema : pyarrow.Schema
        The types of the columns.
    messages : MessageBatch
        With ``OF_SENDERS``.
    rows : ndarray of uint32
        The message that each notification is the body of.
    batch : NotificationBatch
        The notifications, with ``judgement.COLUMNS`` if they are judged.
    """
    import pyarrow as pa

    if not wanted:
        return {}
    type_, has_type = messages["sender_id_type"][rows], messages.is_valid("sender_id_type")[rows]
    ends, data = take(messages["security_id"], rows)
    has_id = messages.is_valid("security_id")[rows]
    of_message = np.repeat(np.arange(len(rows)), np.diff(batch.messages))
    columns: dict[str, Any] = {}
    if "security_id" in wanted:
        # pyarrow's stubs do not know the buffers of arrays
        buffers: Any = (ends, data)
        known: Any = pa.Array.from_buffers(pa.binary(), len(rows), [None, *map(pa.py_buffer, buffers)])
        columns["security_id"] = known.take(integers(of_message.astype(np.int64), has_id[of_message]))
    if "sender_id_type" in wanted:
        codes = np.where(has_type, type_, 0xFF)[of_message]
        columns["sender_id_type"] = _named(codes, SENDER_ID_TYPES, schema.field("sender_id_type").type)
    if wanted & JUDGED:
        claims = has_type & has_id & names_queue_manager(type_, np.diff(ends))
        judged = judge_batch(batch, Senders(queue_manager=claims))
        for name, names in (
            ("outcome", judgement.OUTCOMES),
            ("rule", judgement.RULES),
            ("unverified", judgement.UNVERIFIED),
        ):
            if name in wanted:
                columns[name] = _named(getattr(judged, name), tuple(map(str, names)), schema.field(name).type)
    return columns


def _named(codes: NDArray[Any], names: tuple[str, ...], type_: pa.DataType) -> Any:
    """Names by their places; 255 is null."""
    import pyarrow as pa

    indices = integers(codes.astype(np.int8), codes != 0xFF)
    column: Any = pa.DictionaryArray.from_arrays(indices, _dictionary(names))
    return column if pa.types.is_dictionary(type_) else column.dictionary_decode()


@cache
def _dictionary(names: tuple[str, ...]) -> Any:
    return strings(names)


def with_columns(rows: pa.RecordBatch, columns: dict[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    """Rows with further columns, in the order of a schema."""
    # The columns of rows stay in Arrow: each as an object of Python would cost as much as decoding a few rows
    for index, name in enumerate(schema.names):
        if name in columns:
            rows = rows.add_column(index, schema.field(name), columns[name])
    return rows
