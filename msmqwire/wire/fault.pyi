"""Faults: the codes of the errors of payloads."""

from enum import IntEnum

FAULT_NAMES: tuple[str, ...]
"""Text form of each code, by number; the empty string for no fault."""

FaultCode: type[IntEnum]
"""Codes of DecodeError and of the ``fault`` column; the text form is the name in lower case."""
