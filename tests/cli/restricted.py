"""Runs a program to which the system refuses something: netlink sockets, or threads.

Without netlink sockets interfaces cannot be listed, as in a unit of systemd with RestrictAddressFamilies=AF_INET; no
thread can be started where TasksMax or the limit of a container is reached.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

_CALLS: dict[tuple[str, str], tuple[int, ...]] = {
    ("Linux", "x86_64"): (41, 56, 435),
    ("Linux", "aarch64"): (198, 220, 435),
}
#: The numbers of the system calls ``socket``, ``clone`` and ``clone3``; empty where they are not known.
CALLS = _CALLS.get((platform.system(), platform.machine()), ())

_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_LOAD, _IF_EQUAL, _IF_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_AF_NETLINK, _CLONE_THREAD = 16, 0x10000
# The offsets in struct seccomp_data of the number of a call, and of its first argument
_NUMBER, _FIRST_ARGUMENT = 0, 16


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def _refuse(what: str) -> None:
    socket, clone, clone3 = CALLS
    # Code, instructions to skip if true and if false, operand
    instructions = {
        "netlink": (
            (_LOAD, 0, 0, _NUMBER),
            (_IF_EQUAL, 0, 3, socket),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_IF_EQUAL, 0, 1, _AF_NETLINK),
            (_RETURN, 0, 0, _FAIL | errno.EAFNOSUPPORT),
            (_RETURN, 0, 0, _ALLOW),
        ),
        "threads": (
            (_LOAD, 0, 0, _NUMBER),
            (_IF_EQUAL, 4, 0, clone3),
            (_IF_EQUAL, 0, 4, clone),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_IF_SET, 0, 2, _CLONE_THREAD),
            (_RETURN, 0, 0, _FAIL | errno.EAGAIN),
            (_RETURN, 0, 0, _FAIL | errno.ENOSYS),
            (_RETURN, 0, 0, _ALLOW),
        ),
    }[what]
    packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in instructions))
    program = _Program(len(instructions), ctypes.addressof(packed))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SECCOMP, _FILTER, ctypes.byref(program), 0, 0)):
        if libc.prctl(*call):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    _refuse(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])
