"""Landlock: a process takes rights to files and signals from itself and its descendants, without being root.

The fallback where namespaces are not available and the grader is root, as in many containers: each kernel gets a user
of its own, which keeps it from other processes, and from sockets and files that are not everybody's. IP sockets, which
Landlock closes for TCP only, are closed by the seccomp filter. Weaker than namespaces: process names are the machine's,
and the working folder lies on its disk.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edl_labs.course.sandbox import syscalls
from edl_labs.course.sandbox.view import ETC, TOPOLOGY, View

NEEDED_VERSION = 6
"""The first version that blocks signals and abstract sockets to the outside."""

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  # numbers of system calls, one for every architecture
_RULE_PATH_BENEATH = 1  # this and the rights below, as bits: linux/landlock.h
_FS_ALL = (1 << 16) - 1  # rights 0 to 15, all that version 6 knows
_FS_READ = 0b1101  # execute, read a file, list a folder
_FS_LIST = 0b1000  # list a folder
# Those that a file can have: execute, write, read, truncate, device ioctl.
_FS_FILE = 1 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
_NET_ALL = 0b11  # bind and connect TCP
_SCOPE_ALL = 0b11  # abstract sockets and signals
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", *ETC, *TOPOLOGY)
# A process's own folder in /proc, and what C libraries and torch look at; not the list of processes.
_PROC = (
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/filesystems",
    "/proc/sys/vm", "/proc/sys/kernel",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm")


@dataclass(frozen=True)
class Fence:
    """Folders that may be listed, what may be read and run, and what may be written."""

    listed: tuple[str, ...]
    read: tuple[str, ...]
    write: tuple[str, ...]


def fence(view: View) -> Fence:
    """The fence of a kernel that sees `view`, without its own folder."""
    read: list[str] = [*_SYSTEM, *_PROC]
    listed: list[str] = []
    for path in view.shown:
        _around(Path(path), tuple(map(Path, view.covered)), read=read, listed=listed)
    return Fence(tuple(listed), tuple(read), (*_DEVICES, *view.devices))


def _around(path: Path, covered: tuple[Path, ...], *, read: list[str], listed: list[str]) -> None:
    """Rights below a folder cannot be taken back further down, so what lies beside a covered folder is named singly."""
    if path in covered:
        return
    if not any(inner.is_relative_to(path) for inner in covered):
        read.append(str(path))
        return
    listed.append(str(path))
    for inner in path.iterdir():
        _around(inner, covered, read=read, listed=listed)


def version() -> int:
    """The kernel's Landlock version; 0 where it has none or it is off."""
    try:
        return syscalls.numbered(_CREATE, None, 0, 1, call="landlock_create_ruleset")
    except OSError:
        return 0


def restrict(allowed: Fence, *, folder: str) -> None:
    """From here on only what `allowed` names and all in `folder`, no TCP, no signal or abstract socket to others.

    The caller has set no_new_privs.
    """
    # Device ioctls (bit 15) came with version 5, scopes with 6, which version() was checked for.
    attributes = struct.pack("=QQQ", _FS_ALL, _NET_ALL, _SCOPE_ALL)
    ruleset = syscalls.numbered(_CREATE, attributes, len(attributes), 0, call="landlock_create_ruleset")
    try:
        for paths, access in (
            (allowed.listed, _FS_LIST),
            (allowed.read, _FS_READ),
            ((*allowed.write, folder), _FS_ALL),
        ):
            _allow(ruleset, paths, access=access)
        syscalls.numbered(_RESTRICT, ruleset, 0, call="landlock_restrict_self")
    finally:
        os.close(ruleset)


def _allow(ruleset: int, paths: Iterable[str], *, access: int) -> None:
    for path in paths:
        if os.path.exists(path):
            _allow_one(ruleset, path, access=access)


def _allow_one(ruleset: int, path: str, *, access: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = access if os.path.isdir(path) else access & _FS_FILE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, fd))
        pointer = ctypes.c_void_p(ctypes.addressof(rule))
        syscalls.numbered(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, pointer, 0, call="landlock_add_rule")
    finally:
        os.close(fd)
