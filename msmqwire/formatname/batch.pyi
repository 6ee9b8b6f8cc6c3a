"""Format names by the million."""

from collections.abc import Sequence
from typing import Any

from msmqwire.columns.batch import Batch

def parse_batch(
    texts: Any,
    *,
    extended: bool = False,
    http_slashes: bool = False,
    spx: bool = False,
    path_names: bool = False,
    columns: Sequence[str] | None = None,
    out: Batch | None = None,
    threads: int = 1,
) -> Batch:
    """Parse a column of format names into the columns of the format_names table: [MS-MQMQ] 2.1.

    Every text gives one row; one that is no format name gives a row with a fault, a null text a null row. What is text
    in the columns stays in the texts.

    Parameters
    ----------
    texts
        What ``Payloads.of_texts`` takes, less than 2 GiB of it.
    extended, http_slashes, spx : bool
        As for ``parse``.
    path_names : bool
        The texts are path names ([MS-MQMQ] 2.1.1) and no format names.
    columns : sequence of str, optional
        Build these only.
    out : Batch, optional
        Write here again; what its views show is overwritten.
    threads : int
        Parse in so many chunks at once.

    Raises
    ------
    ValueError
        A column that does not exist, or an ``out`` of other columns.
    BufferError
        An Arrow consumer still holds ``out``.

    Examples
    --------
    >>> batch = parse_batch(["DIRECT=OS:server\\\\private$\\\\orders", "PUBLIC=?", "MULTICAST=234.1.1.1:8001"])
    >>> batch["queue"].text(0)
    'orders'
    >>> batch.fault(1)
    FaultEntry(code='bad_text', field='QueueGuid', offset=7)
    >>> batch["port"]
    array([   0,    0, 8001], dtype=uint16)
    """
