"""The MSMQ packets of a TCP stream."""

PACKET_KINDS: dict[str, int]
