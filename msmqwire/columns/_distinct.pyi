"""Written by `make build` from the annotations in _distinct.pyx; do not edit."""

def address_probes(addresses: bytes) -> int:
    """The slots that are looked at to find addresses of 18 bytes each: what a collision costs."""
