"""Written by `make build` from the annotations in _rows.pyx; do not edit."""

TIMED: int
STREAMED: int
ENCAPSULATED: int
JOINED: int
