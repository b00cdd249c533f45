"""Landlock: a process takes rights to files and signals from itself and its descendants, without being root.

The fallback where namespaces are not to be had. What Landlock leaves open is closed by the seccomp filter (UDP, raw
and VSOCK sockets) and by limits on the process.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from edl_labs.grading.sandbox import syscalls

NEEDED_VERSION = 6
"""The first version that keeps signals and abstract sockets inside."""

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_RULE_PATH_BENEATH = 1
_FS_ALL = (1 << 16) - 1
_FS_READ = 0b1101
_FS_READ_FILE = 0b101
_FS_FILE = 1 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
_NET_ALL = 0b11
_SCOPE_ALL = 0b11


def version() -> int:
    """The kernel's Landlock version; 0 where it has none or it is off."""
    try:
        return syscalls.numbered(_CREATE, None, 0, 1, call="landlock_create_ruleset")
    except OSError:
        return 0


def restrict(*, read: Iterable[str], write: Iterable[str]) -> None:
    """From here on: read and run below `read`, everything below `write`, nothing else; no TCP, no signals out.

    The caller has set no_new_privs.
    """
    # Device ioctls (bit 15) came with version 5, scopes with 6, which version() was checked for.
    attributes = struct.pack("=QQQ", _FS_ALL, _NET_ALL, _SCOPE_ALL)
    ruleset = syscalls.numbered(_CREATE, attributes, len(attributes), 0, call="landlock_create_ruleset")
    try:
        for path in read:
            _allow(ruleset, path, access=_FS_READ)
        for path in write:
            _allow(ruleset, path, access=_FS_ALL)
        syscalls.numbered(_RESTRICT, ruleset, 0, call="landlock_restrict_self")
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, *, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rights = access if os.path.isdir(path) else access & _FS_FILE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, fd))
        pointer = ctypes.c_void_p(ctypes.addressof(rule))
        syscalls.numbered(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, pointer, 0, call="landlock_add_rule")
    finally:
        os.close(fd)
