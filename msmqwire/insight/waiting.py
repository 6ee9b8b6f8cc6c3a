"""Record batches that wait until there are enough of them: a batch of one row costs as much as one of a thousand."""

from __future__ import annotations

import pyarrow as pa

# Groups stay in the cache while so many rows are added to them
_MOST_ROWS = 1 << 15
_MOST_BATCHES = 32
_MOST_BYTES = 16 << 20  # a row may have thousands of properties


class WaitingBatches:
    """Batches of a table that are handled together, in their order.

    Attributes
    ----------
    rows, nbytes : int
        Of the batches that wait; bytes of all buffers that they keep.
    """

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self.rows = self.nbytes = 0

    def __len__(self) -> int:
        return len(self._batches)

    def add(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Let a batch wait; what is to be handled now: batches in one, where there are enough or the schema changes."""
        ready = self.take() if self._batches and self._batches[0].schema != batch.schema else []
        self._batches.append(batch)
        self.rows += batch.num_rows
        self.nbytes += batch.get_total_buffer_size()
        if len(self) >= _MOST_BATCHES or self.rows >= _MOST_ROWS or self.nbytes >= _MOST_BYTES:
            ready += self.take()
        return ready

    def take(self) -> list[pa.RecordBatch]:
        """The batches that wait, in one; none if no row waits."""
        batches, rows = self._batches, self.rows
        self._batches, self.rows, self.nbytes = [], 0, 0
        if not rows:
            return []
        # pyarrow's stubs do not know the function
        return batches if len(batches) == 1 else [pa.concat_batches(batches)]  # type: ignore[attr-defined]
