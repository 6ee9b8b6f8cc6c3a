"""MS-MQCN: notifications of changes that directory servers send to queue managers ([MS-MQCN] 2.2)."""

from __future__ import annotations

from msmqwire.mqcn._batch import NotificationBatch, decode_batch
from msmqwire.mqcn._encode import encode_batch
from msmqwire.mqcn._packet import (
    ChangeNotificationMessage,
    NotificationUpdate,
    decode,
    encode,
    encode_body,
)
from msmqwire.mqcn.property_bytes import property_size, read_property
from msmqwire.mqcn.schema import NOTIFICATIONS, STRICT, Violation
from msmqwire.mqcn.values import NotificationBody, Object, Operation, PropertyColumn, PropertyValue

__all__ = [
    "NOTIFICATIONS",
    "STRICT",
    "ChangeNotificationMessage",
    "NotificationBatch",
    "NotificationBody",
    "NotificationUpdate",
    "Object",
    "Operation",
    "PropertyColumn",
    "PropertyValue",
    "Violation",
    "decode",
    "decode_batch",
    "encode",
    "encode_batch",
    "encode_body",
]

NOTIFICATIONS.codec.update(
    decode=decode, decode_batch=decode_batch, property=read_property, property_size=property_size
)


def __dir__() -> list[str]:
    return __all__
