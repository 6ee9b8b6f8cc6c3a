"""Runs a program that may not open netlink sockets, as in a unit of systemd with RestrictAddressFamilies=AF_INET.

The system then cannot list its interfaces.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

#: The number of the system call ``socket``.
SOCKET = {"x86_64": 41, "aarch64": 198}.get(platform.machine(), 0) if sys.platform == "linux" else 0

_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_AF_NETLINK = 16
# The offsets in struct seccomp_data of the number of a call, and of its first argument
_NUMBER, _FIRST_ARGUMENT = 0, 16


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def _forbid_netlink() -> None:
    instructions = (
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_IF_EQUAL, 0, 3, SOCKET),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_IF_EQUAL, 0, 1, _AF_NETLINK),
        (_RETURN, 0, 0, _FAIL | errno.EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    )
    packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in instructions))
    program = _Program(len(instructions), ctypes.addressof(packed))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SECCOMP, _FILTER, ctypes.byref(program), 0, 0)):
        if libc.prctl(*call):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    _forbid_netlink()
    os.execvp(sys.argv[1], sys.argv[1:])
