"""Written by `make build` from the annotations in _encapsulations.pyx; do not edit."""

ENCAPSULATIONS: dict[int, str]
MAX_ENCAPSULATIONS: int
