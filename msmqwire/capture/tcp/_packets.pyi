"""Written by `make build` from the annotations in _packets.pyx; do not edit."""

PACKET_KINDS: dict[str, int]
