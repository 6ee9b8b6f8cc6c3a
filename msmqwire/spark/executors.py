"""Objects that are sent to executors: an executor without this version of the package refuses them with one line.

This module is pickled by value, since an executor without the package has to run it.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from types import MethodType
from typing import TYPE_CHECKING, Any, cast

from msmqwire import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

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


@contextlib.contextmanager
def without_pandas_warning() -> Iterator[None]:
    """Leave out Spark's warning of pandas 3, which it gives for functions over Arrow as well.

    Ours run with pandas 3; that warning would be the first line that ``msmqwire pipeline`` prints.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


def map_in_arrow(frame: DataFrame, method: Callable[..., Any], schema: StructType | str) -> DataFrame:
    """``DataFrame.mapInArrow`` with a method of a ``Sent`` object."""
    with without_pandas_warning():
        return frame.mapInArrow(sent(method), schema)


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
