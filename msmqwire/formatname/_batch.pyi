"""Written by `make build` from the annotations in _batch.pyx; do not edit."""

from collections.abc import Sequence
from typing import Any

from msmqwire.columns._batch import Batch

def parse_batch(
    texts: Any,
    *,
    extended: bool = False,
    http_slashes: bool = False,
    spx: bool = False,
    path_names: bool = False,
    columns: Sequence[str] | None = None,
    out: Batch | None = None,
) -> Batch:
    """Parse a column of format names into the columns of the format_names table: [MS-MQMQ] 2.1.

    Every text gives one row: a text that is not a format name a row with a fault, a null text a null row. Text in the
    columns is a view of the texts.

    Parameters
    ----------
    texts
        As for ``Payloads.of_texts``, less than 2 GiB.
    extended, http_slashes, spx : bool
        As for ``parse``.
    path_names : bool
        The texts are path names ([MS-MQMQ] 2.1.1), not format names.
    columns : sequence of str, optional
        Build only these columns.
    out : Batch, optional
        A batch to overwrite, with everything that its views show.

    Raises
    ------
    ValueError
        A column that does not exist, or an ``out`` with other columns.
    BufferError
        An Arrow consumer still holds ``out``.

    Examples
    --------
    >>> batch = parse_batch(["DIRECT=OS:server\\\\private$\\\\orders", "PUBLIC=?", "MULTICAST=234.1.1.1:8001"])
    >>> batch["queue"].text(0)
    'orders'
    >>> batch.fault(1)
    FaultEntry(code='bad_text', field='QueueGuid', offset=7, value=None, needed=None)
    >>> batch["port"]
    array([   0,    0, 8001], dtype=uint16)
    """
