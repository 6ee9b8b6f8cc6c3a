"""The presence bits of the capture columns."""

STREAMED: int
TIMED: int
