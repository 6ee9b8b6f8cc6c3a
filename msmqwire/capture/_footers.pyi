"""Written by `make build` from the annotations in _footers.pyx; do not edit."""

class Footer:
    """The footer of a Parquet file.

    Parameters
    ----------
    data : bytes
        Without its size and the last magic number.
    """

    def __init__(self, data: bytes) -> None: ...
    def row_group(self, shift: int, ordinal: int) -> tuple[int, bytes]:
        """The rows of a file of one row group, and the entry of it, which has another number and begins later."""

    def with_row_groups(self, rows: int, entries: list[bytes]) -> bytes:
        """The footer with other row groups, which have so many rows."""
