"""Objects that are sent to executors: an executor without this version of the package refuses them with one line.

This module is pickled by value, since an executor without the package has to run it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import MethodType
from typing import Any, cast

from msmqwire import __version__

# A plain import would have no types
cloudpickle: Any = import_module("pyspark.cloudpickle")


class Sent:
    """Base of classes whose objects the driver sends to executors."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (__version__, cloudpickle.dumps((type(self), vars(self))))


def sent(method: Callable[..., Any]) -> Callable[..., Any]:
    """A function for executors that calls a method of a ``Sent`` object; a method itself is pickled with its class."""
    bound = cast("MethodType", method)
    one, name = bound.__self__, bound.__name__

    def call(batches: Any) -> Any:
        return getattr(one, name)(batches)

    return call


def _received(version: str, data: bytes) -> Any:
    """The object that was sent from a driver with this version of the package.

    Raises
    ------
    ImportError
        This process has no such package, or another version of it.
    """
    # Only what an executor without the package can import
    import pickle
    import socket
    import sys

    try:
        from msmqwire import __version__ as found
    except ModuleNotFoundError as error:
        if error.name != "msmqwire":
            raise
        found = ""
    if found != version:
        there = f"msmqwire {found}" if found else "no msmqwire"
        raise ImportError(
            f"the driver has msmqwire {version}, and {sys.executable} on {socket.gethostname()} has {there}: "
            "send executors an environment with the version of the driver (--archives; docs/spark.md says how)"
        )
    kind, state = pickle.loads(data)
    one = kind.__new__(kind)
    vars(one).update(state)
    from msmqwire.spark.executors import _freeze

    _freeze()
    return one


@cache
def _freeze() -> None:
    """Leave imported modules out of garbage collections: Spark's workers collect after each task, 40 ms with them.

    Once in a process, and without ``gc.get_freeze_count``, which walks all that is left out.
    """
    gc.freeze()


cloudpickle.register_pickle_by_value(sys.modules[__name__])
