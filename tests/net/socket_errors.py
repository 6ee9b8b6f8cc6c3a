"""The errors that the manual pages of Linux name for sockets of datagrams."""

from __future__ import annotations

# send(2), udp(7) and ip(7)
ERRORS_OF_SEND = (
    "EACCES", "EAGAIN", "EALREADY", "EBADF", "ECONNRESET", "EDESTADDRREQ", "EFAULT", "EINTR", "EINVAL", "EISCONN",
    "EMSGSIZE", "ENOBUFS", "ENOMEM", "ENOTCONN", "ENOTSOCK", "EOPNOTSUPP", "EPIPE", "ECONNREFUSED", "EPERM",
    "EHOSTUNREACH", "ENETUNREACH", "ENETDOWN", "EADDRNOTAVAIL", "EADDRINUSE", "ENODEV", "ENOPROTOOPT", "EIO",
)  # fmt: skip
# recv(2), udp(7) and ip(7)
ERRORS_OF_RECV = (
    "EAGAIN", "EBADF", "ECONNREFUSED", "EFAULT", "EINTR", "EINVAL", "ENOMEM", "ENOTCONN", "ENOTSOCK", "ECONNRESET",
    "EHOSTUNREACH", "ENETDOWN", "ETIMEDOUT", "EIO",
)  # fmt: skip
#: Those that say that the socket is unusable.
OF_THE_SOCKET = ("EBADF", "EDESTADDRREQ", "EISCONN", "ENOTCONN", "ENOTSOCK", "EOPNOTSUPP", "EPIPE")
