"""A number of messages after which sessions take no more."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class MessageLimit:
    """How many messages the sessions that share it still deliver; packets after the last one are not read.

    Attributes
    ----------
    remaining : int
    """

    remaining: int
