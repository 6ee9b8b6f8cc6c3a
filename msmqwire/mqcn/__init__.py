"""MS-MQCN: what directory servers tell queue managers of changes ([MS-MQCN] 2.2), one at a time."""

from __future__ import annotations

from msmqwire.mqcn.codec import (
    ChangeNotificationMessage,
    NotificationBody,
    NotificationUpdate,
    PropertyValue,
    decode,
    encode,
    encode_body,
)
from msmqwire.mqcn.schema import NOTIFICATIONS, Violation

__all__ = [
    "NOTIFICATIONS",
    "ChangeNotificationMessage",
    "NotificationBody",
    "NotificationUpdate",
    "PropertyValue",
    "Violation",
    "decode",
    "encode",
    "encode_body",
]
