"""Captures that grow: what a lake keeps of a capture so that only the bytes written since are read.

A run reads a capture up to the size that it had when the run began, in two steps: up to a checkpoint after its last
complete record, and its end, the rows and counts that it has only because it ends there. When the capture has grown,
the next run replaces the rows of the end by those that reading from the checkpoint gives.
"""

from __future__ import annotations

import hashlib

from msmqwire.capture.files.listing import open_source
from msmqwire.capture.files.remote import StorageOptions
from msmqwire.spark.lake.captures import HEAD
from msmqwire.spark.lake.storage import RUNS

#: A smaller capture is read again, which costs no more than to identify it.
SMALLEST = HEAD
# The bytes before a checkpoint that tell whether a file was written on, and not replaced
_BEFORE = 4096


def seam_name(capture: int, length: int) -> str:
    """The file with the seam of a capture that has this number of bytes; vacuum deletes it when it is old."""
    return f"{RUNS}/{capture}-{length}.seam"


def digest_before(name: str, storage_options: StorageOptions, offset: int) -> str:
    """The digest of up to 4096 bytes of a file before an offset.

    Raises
    ------
    OSError
        It cannot be read.
    """
    with open_source(name, storage_options) as file:
        size = min(offset, _BEFORE)
        file.seek(offset - size)
        found = b""
        while more := file.read(size - len(found)):
            found += more
    return hashlib.sha256(found).hexdigest()
