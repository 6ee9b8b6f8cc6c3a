"""msmqwire reads Microsoft Message Queuing (MSMQ) on the wire at memory speed and speaks its directory protocols.

``msmqwire.mqsd`` decodes discovery packets, ``msmqwire.mqqb`` message packets, ``msmqwire.mqcn`` change notifications
with the property values of ``msmqwire.propvariant``; ``msmqwire.capture`` reads captures, ``msmqwire.spark`` does all
of it on Spark.
Importing this package imports numpy and nothing else from outside the standard library.
"""

from __future__ import annotations

from msmqwire import capture, mqcn, mqqb, mqsd, properties, propvariant
from msmqwire.columns import Batch, Payloads
from msmqwire.errors import (
    CaptureError,
    DecodeError,
    DirectoryError,
    EncodeError,
    FormatNameError,
    MsmqWireError,
    RoutingError,
)

__all__ = [
    "Batch",
    "CaptureError",
    "DecodeError",
    "DirectoryError",
    "EncodeError",
    "FormatNameError",
    "MsmqWireError",
    "Payloads",
    "RoutingError",
    "capture",
    "mqcn",
    "mqqb",
    "mqsd",
    "properties",
    "propvariant",
]
