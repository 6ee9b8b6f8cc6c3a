"""msmqwire reads Microsoft Message Queuing (MSMQ) on the wire at memory speed and speaks its directory protocols.

``msmqwire.mqsd`` decodes discovery packets, ``msmqwire.capture`` reads captures, ``msmqwire.spark`` does both on Spark.
Importing this package imports numpy and nothing else from outside the standard library.
"""

from __future__ import annotations

from msmqwire import capture, mqsd
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
    "mqsd",
]
