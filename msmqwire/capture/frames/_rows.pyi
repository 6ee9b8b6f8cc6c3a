"""The presence bits of the capture columns."""

ENCAPSULATED: int
STREAMED: int
TIMED: int
