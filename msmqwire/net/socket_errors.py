"""Errors of sockets: which say that a socket is unusable, their names, and how long to wait before it is opened anew.

No error of a socket ends a role. Each is counted by name. Of the errors of Linux's send(2), recv(2), udp(7) and ip(7)
those in ``UNUSABLE`` say that this socket cannot work again: its descriptor is no open socket, or its state is not that
in which it was opened. All others are about one datagram, one address, the network or the memory of the moment.
"""

from __future__ import annotations

import errno

_NAMES = ("EBADF", "EBADFD", "ECONNABORTED", "EDESTADDRREQ", "EISCONN", "ENOTCONN", "ENOTSOCK", "EOPNOTSUPP", "EPIPE",
          "ESHUTDOWN")  # fmt: skip

#: The errors after which a socket is opened anew; not all systems have all of them.
UNUSABLE = frozenset(getattr(errno, name) for name in _NAMES if hasattr(errno, name))

_SECOND = 1_000_000_000
_FIRST_DELAY, _LONGEST_DELAY = _SECOND // 10, 60 * _SECOND


def is_unusable(error: OSError) -> bool:
    """Return True if an error says that its socket has to be opened anew."""
    return error.errno in UNUSABLE


def error_name(error: OSError) -> str:
    """Return the name that counts an error, such as ``"ENETUNREACH"``; the class of an error without a number.

    >>> error_name(OSError(errno.EPIPE, "Broken pipe")), error_name(TimeoutError())
    ('EPIPE', 'TimeoutError')
    """
    if error.errno == errno.EOPNOTSUPP:  # on Linux, also the number of ENOTSUP
        return "EOPNOTSUPP"
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


class Backoff:
    """The delays after which a socket is opened anew: none at first, then 0.1 s, doubled up to 60 s.

    A minute without a failure begins again with none. Times are nanoseconds of a monotonic clock.

    >>> backoff = Backoff()
    >>> [backoff.delay(now=0) for _ in range(4)]
    [0, 100000000, 200000000, 400000000]
    """

    def __init__(self) -> None:
        self._next = 0
        self._calm_at = 0

    def delay(self, now: int) -> int:
        """Return the delay in nanoseconds after a failure."""
        delay = self._next if now < self._calm_at else 0
        self._next = min(2 * delay, _LONGEST_DELAY) if delay else _FIRST_DELAY
        self._calm_at = now + delay + _LONGEST_DELAY
        return delay
