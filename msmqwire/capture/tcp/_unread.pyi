"""Written by `make build` from the annotations in _unread.pyx; do not edit."""

UNREAD_PROTOCOLS: dict[int, str]
