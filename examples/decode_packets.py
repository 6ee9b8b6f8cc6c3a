"""Single packets: decode, look, build, encode; and what a packet that is cut says of itself."""

from __future__ import annotations

from uuid import uuid4

from msmqwire import DecodeError, mqsd

# The request printed in [MS-MQSD] 4.
data = bytes.fromhex(
    "0001000061baeae6c6d1db11baac0003ff4e2d2203a191f23ce34faba930be3a33e432ddf61bc5dcadd44345873971568e8f9128"
)
request = mqsd.decode(data)
assert isinstance(request, mqsd.TopologyClientRequest)
print(request)

# Answer it as a server of another site would.
reply = mqsd.TopologyServerReply(
    correlation_id=request.request_id,
    connected_networks=[uuid4()],
    responding_site_id=uuid4(),
    servers=[mqsd.DirectoryServiceServer("MQ-DC1"), mqsd.DirectoryServiceServer("MQ-DC2", ip=True, ipx=True)],
)
packet = mqsd.encode(reply)
assert mqsd.decode(packet, strict=True) == reply
print(f"{len(packet)} bytes, servers {', '.join(server.name for server in reply.servers)}")

# What cannot be decoded says what, where and at which byte.
try:
    mqsd.decode(packet[:70])
except DecodeError as error:
    print(f"{error.code} in {error.field} at byte {error.offset}: {error.detail}")
