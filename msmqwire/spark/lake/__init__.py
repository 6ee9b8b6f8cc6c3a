"""A lake: Delta tables of captures, by day, at any URI that deltalake knows; ``pipeline.run`` writes it.

::

    topology/ messages/ notifications/ sessions/    rows, with the fingerprint of their capture, partitioned by day
    faults/                                         likewise, a row for each row above that has a fault
    accounting/                                     a row for each capture: the log of the lake
    accounting/_scratch/<name>/                     what a run under way keeps for its tasks

The modules are the steps of a run, and what comes after it::

    planning                                        which captures a lake has, so which files are to be read
    decoding, writing                               captures to Parquet files, in tasks
    accounting                                      what became of each frame of a capture
    committing                                      the transactions of a run
    scanning, reading                               rows without Spark, and with it
    deleting, repairing, restoring, checking, maintenance, rewriting

They use ``storage`` (files), ``tables`` (a Delta table), ``schemas``, ``places`` (of rows in captures) and ``others``
(other writers).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from msmqwire.errors import LakeError as LakeError
from msmqwire.errors import require

if TYPE_CHECKING:
    from msmqwire.spark.lake.deleting import delete
    from msmqwire.spark.lake.maintenance import Run, check, history, optimize, vacuum
    from msmqwire.spark.lake.others import acts
    from msmqwire.spark.lake.reading import read
    from msmqwire.spark.lake.repairing import repair
    from msmqwire.spark.lake.restoring import restore
    from msmqwire.spark.lake.scanning import batches
    from msmqwire.spark.lake.storage import LakeOptions

__all__ = [
    "LakeOptions",
    "Run",
    "acts",
    "batches",
    "check",
    "delete",
    "history",
    "optimize",
    "read",
    "repair",
    "restore",
    "vacuum",
]

# Imported on first use: an executor that decodes captures into a folder needs no deltalake, and only read needs pyspark
_MODULES = {
    "LakeOptions": "storage",
    "Run": "maintenance",
    "acts": "others",
    "batches": "scanning",
    "delete": "deleting",
    "read": "reading",
    "repair": "repairing",
    "restore": "restoring",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for needed in ("pyarrow", "deltalake", *(["pyspark"] if name == "read" else [])):
        require(needed, f"{__name__}.{name}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'maintenance')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
