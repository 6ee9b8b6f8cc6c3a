"""Packets inside of packets: the headers between the link layer and the IP packet of a payload."""

ENCAPSULATIONS: dict[int, str]
MAX_ENCAPSULATIONS: int

def encapsulation_names(path: int) -> str: ...
