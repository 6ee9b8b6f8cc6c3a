"""MS-MQCN: what directory servers tell queue managers of changes ([MS-MQCN] 2.2), one at a time or by the million."""

from __future__ import annotations

from msmqwire.mqcn.batch import NotificationBatch, decode_batch
from msmqwire.mqcn.codec import (
    ChangeNotificationMessage,
    NotificationBody,
    NotificationUpdate,
    PropertyValue,
    decode,
    encode,
    encode_body,
)
from msmqwire.mqcn.members import PropertyColumn
from msmqwire.mqcn.schema import NOTIFICATIONS, Violation
from msmqwire.mqcn.writer import encode_batch

__all__ = [
    "NOTIFICATIONS",
    "ChangeNotificationMessage",
    "NotificationBatch",
    "NotificationBody",
    "NotificationUpdate",
    "PropertyColumn",
    "PropertyValue",
    "Violation",
    "decode",
    "decode_batch",
    "encode",
    "encode_batch",
    "encode_body",
]
