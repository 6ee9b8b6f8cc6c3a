"""Written by `make build` from the annotations in _frame.pyx; do not edit."""

MAX_PROBLEMS: int
MAX_LINK_TYPE: int
REASONS: dict[int, str]
UNSUPPORTED_ENCAPSULATIONS: dict[int, str]
LINK_NAMES: dict[int, str]
