"""The parts of a batch at once: a thread for each."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

__all__ = ["Part", "run_parts"]


class Part(Protocol):
    """Work that meets no other part's, and lets go of the GIL for most of it."""

    def run(self) -> None:
        """Do it."""


def run_parts(parts: Sequence[Part]) -> None:
    """Run all parts to their ends; one alone needs no thread."""
    if len(parts) == 1:
        parts[0].run()
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        for work in [pool.submit(part.run) for part in parts]:
            work.result()
