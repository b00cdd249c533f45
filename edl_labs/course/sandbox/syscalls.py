"""System calls for which Python 3.11 has no function: namespaces, mounts, capabilities.

Each raises OSError naming the call. Used by the zygote and its children, which hold one thread and no secrets.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from functools import cache

NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000  # linux/sched.h
NEWUSER, NEWPID, NEWNET = 0x1000_0000, 0x2000_0000, 0x4000_0000  # linux/sched.h
SANDBOX_NAMESPACES = NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET
NS_GET_USERNS = 0xB701  # linux/nsfs.h

MS_BIND, MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV = 0x1000, 0x4000, 0x4_0000, 0x2, 0x4  # linux/mount.h
# Linux/prctl.h.
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 4, 24, 36, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4  # linux/prctl.h
_MADV_HUGEPAGE, _MADV_COLLAPSE = 14, 25  # asm-generic/mman-common.h
_HUGE_BYTES = 2 << 20  # of x86-64, and of arm64 with pages of 4 KiB
_CAPABILITY_VERSION_3 = 0x2008_0522  # linux/capability.h


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def checked(result: int, *, call: str) -> int:
    """`result`, or OSError with the errno that `call` left."""
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{call}: {os.strerror(code)}")
    return result


def numbered(number: int, *args: int | ctypes.c_void_p | bytes | None, call: str) -> int:
    """The result of the system call `number`."""
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in args]
    return checked(_libc().syscall(ctypes.c_long(number), *values), call=call)


def setns(fd: int, flags: int) -> None:
    """Enter the namespaces of the process that the pidfd `fd` refers to."""
    checked(_libc().setns(fd, flags), call="setns")


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` for new ones."""
    checked(_libc().unshare(flags), call="unshare")


def mount(source: str | None, target: str, *, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    """mount(2)."""
    source_b, kind_b, data_b = (os.fsencode(text) if text is not None else None for text in (source, kind, data))
    result = _libc().mount(source_b, os.fsencode(target), kind_b, ctypes.c_ulong(flags), data_b)
    checked(result, call=f"mount {target}")


def become_subreaper() -> None:
    """Orphans below this process become its children, not those of the system's first process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def no_new_privileges() -> None:
    """No program run from here on gains rights, set-user-id bits or not."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def become_dumpable() -> None:
    """/proc/self belongs to this process's user again after its credentials changed."""
    _prctl(_PR_SET_DUMPABLE, 1)


def drop_capabilities() -> None:
    """Give up every capability, held, inheritable or attainable."""
    drop_bounding()
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    checked(_libc().capset(header, struct.pack("=6I", *[0] * 6)), call="capset")


def drop_bounding() -> None:
    """Let no program gain a capability; needs the right to say so, and does nothing without."""
    for capability in range(64):
        if _libc().prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == -1:
            break


def _prctl(option: int, value: int) -> None:
    arguments = [ctypes.c_ulong(argument) for argument in (value, 0, 0, 0)]
    checked(_libc().prctl(option, *arguments), call=f"prctl {option}")


def make_huge(ranges: Iterable[tuple[int, int]]) -> int:
    """Put the memory from each start to its stop into huge pages, as far as whole ones lie in it; how many were made.

    A fork copies one entry for each instead of 512. None are made where the system has none, or Linux is before 6.1.
    """
    madvise, made = _libc().madvise, 0
    for start, stop in ranges:
        first, last = -(-start // _HUGE_BYTES) * _HUGE_BYTES, stop // _HUGE_BYTES * _HUGE_BYTES
        for address in range(first, last, _HUGE_BYTES):
            page = ctypes.c_void_p(address), ctypes.c_size_t(_HUGE_BYTES)
            madvise(*page, _MADV_HUGEPAGE)
            made += madvise(*page, _MADV_COLLAPSE) == 0  # refused where nothing of it is in use
    return made
