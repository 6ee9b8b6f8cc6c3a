from msmqwire.properties.table import Property

KINDS: tuple[int, ...]
NUMBERED: tuple[Property, ...]

def type_of(propid: int) -> int | None: ...
