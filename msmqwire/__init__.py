"""Read Microsoft Message Queuing (MSMQ) on the wire at memory speed, and speak its directory protocols.

``mqsd`` decodes discovery packets, ``mqqb`` message packets, ``mqcn`` change notifications with the property values of
``propvariant``; ``capture`` reads captures, ``insight`` answers questions about them, ``spark`` does all of it on
Spark. ``import msmqwire`` imports only the standard library; a package or a name is imported when it is first used.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msmqwire import (
        capture,
        columns,
        directory,
        discovery,
        errors,
        formatname,
        mqcn,
        mqqb,
        mqsd,
        net,
        notification,
        properties,
        propvariant,
        routing,
        session,
    )
    from msmqwire import (
        insight as insight,
    )
    from msmqwire import (
        spark as spark,
    )
    from msmqwire.columns import Batch, Payloads
    from msmqwire.errors import (
        CaptureError,
        CaptureFormatError,
        CaptureReadError,
        DecodeError,
        DirectoryError,
        EncodeError,
        FormatNameError,
        LakeError,
        MsmqWireError,
        RoutingError,
    )

__version__ = "0.4.0.dev0"

__all__ = [
    "Batch",
    "CaptureError",
    "CaptureFormatError",
    "CaptureReadError",
    "DecodeError",
    "DirectoryError",
    "EncodeError",
    "FormatNameError",
    "LakeError",
    "MsmqWireError",
    "Payloads",
    "RoutingError",
    "capture",
    "columns",
    "directory",
    "discovery",
    "errors",
    "formatname",
    "mqcn",
    "mqqb",
    "mqsd",
    "net",
    "notification",
    "properties",
    "propvariant",
    "routing",
    "session",
]

# Not for ``from msmqwire import *``, which imports each name: they need extras
_WITH_EXTRAS = ("insight", "spark")


def _check_build(folder: str) -> None:
    """Refuse sources without compiled modules, a checkout that shadows an installed package, or for another Python."""
    names = [name for name in os.listdir(os.path.join(folder, "wire")) if name.endswith((".so", ".pyd"))]
    if not names:
        raise ImportError(
            f"{folder} holds the sources of msmqwire without its compiled modules: run `make build` in "
            f"{os.path.dirname(folder)}, or start Python in another folder to use an installed msmqwire",
            name=__name__,
        )
    suffixes = {name[name.index(".") :] for name in names}
    if suffixes.isdisjoint(EXTENSION_SUFFIXES):
        raise ImportError(
            f"the compiled modules in {folder} are for another Python: they end in {', '.join(sorted(suffixes))}, and "
            f"{sys.executable} needs {EXTENSION_SUFFIXES[0]}; install msmqwire with this Python",
            name=__name__,
        )


def __getattr__(name: str) -> Any:
    if name not in __all__ and name not in _WITH_EXTRAS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.endswith("Error"):
        value = getattr(import_module("msmqwire.errors"), name)
    elif name[0].isupper():
        value = getattr(import_module("msmqwire.columns"), name)
    else:
        value = import_module(f"msmqwire.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_WITH_EXTRAS, "__version__"])


_check_build(os.path.dirname(os.path.abspath(__file__)))
