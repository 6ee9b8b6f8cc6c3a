"""The presence bits of the capture columns."""

__all__ = ["ENCAPSULATED", "STREAMED", "TIMED"]
