"""The protocols that other programs than MSMQ speak on its ports, by the first bytes of a stream."""

from __future__ import annotations

import re

UNKNOWN = "unknown"

#: The first bytes of requests and answers of each protocol.
PROTOCOLS = {
    # A request line, a status line, or the preface of HTTP/2: RFC 9112 3 and 4, RFC 9113 3.4
    "http": re.compile(rb"(?:GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH|PROPFIND|PRI) [!-~]+ HTTP/|HTTP/\d"),
    # A record with the hello of a client or server, or with an alert: RFC 8446 5.1
    "tls": re.compile(rb"(?s:\x16\x03[\x00-\x04]..[\x01\x02]\x00|\x15\x03[\x00-\x04]\x00\x02[\x01\x02])"),
    # The identification string: RFC 4253 4.2
    "ssh": re.compile(rb"SSH-[12]\."),
    # In the Direct TCP transport: [MS-SMB2] 2.1
    "smb": re.compile(rb"(?s:\x00...[\xfc-\xff]SMB)"),
    # A connection request or confirm of X.224 in TPKT: [MS-RDPBCGR] 2.2.1.1, 2.2.1.2
    "rdp": re.compile(rb"(?s:\x03\x00\x00.[\x06-\xff][\xd0\xe0]\x00\x00)"),
}


def protocol_of(data: bytes) -> str:
    """The protocol whose bytes these are, or ``UNKNOWN``.

    Parameters
    ----------
    data : bytes
        The first bytes of a stream, or of a part of it.

    Examples
    --------
    >>> protocol_of(b"GET / HTTP/1.0\\r\\n\\r\\n"), protocol_of(b"SSH-2.0-scanner"), protocol_of(bytes(40))
    ('http', 'ssh', 'unknown')
    """
    return next((name for name, begins in PROTOCOLS.items() if begins.match(data)), UNKNOWN)
