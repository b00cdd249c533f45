"""The seccomp filter of a sandboxed kernel: a list of system calls that no lab needs, denied.

Memory that no limit counts (memfd, System V, message queues, inotify, pages kept in a pipe), new namespaces, other
processes' memory, kernel attack surface, and sockets that leave the network namespace (AF_VSOCK) are refused with
EPERM, so that code which probes for them carries on. clone3 says "not implemented": its flags lie behind a pointer
that a filter cannot read, and every C library then falls back to clone, whose flags it can.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import Any

from edl_labs.course.sandbox import syscalls

DENIED = (
    "memfd_create", "memfd_secret", "shmget", "shmat", "shmctl", "shmdt", "msgget", "semget", "mq_open",
    "mq_unlink", "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
    "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "keyctl", "add_key", "request_key", "bpf",
    "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "init_module",
    "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct",
    "quotactl", "quotactl_fd", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "syslog",
    "nfsservctl", "open_by_handle_at", "name_to_handle_at", "lookup_dcookie", "vhangup", "iopl", "ioperm",
    "personality", "fanotify_init", "fanotify_mark", "move_pages", "migrate_pages", "setdomainname",
    "sethostname", "_sysctl", "uselib", "ustat", "sysfs", "vm86", "vm86old", "modify_ldt",
    "vmsplice", "splice", "tee", "inotify_init", "inotify_init1",
)  # fmt: skip

# Buffers stay as large as the system makes them, so that the number of sockets bounds their memory.
_SOL_SOCKET, _SO_ZEROCOPY = 1, 60  # asm-generic/socket.h
_SO_SNDBUF, _SO_RCVBUF, _SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 7, 8, 32, 33  # asm-generic/socket.h
# Linux/fcntl.h. Locks of an open file description have no owner whose locks could be counted.
_F_OFD_SETLK, _F_OFD_SETLKW, _F_SETPIPE_SZ = 37, 38, 1031
MOST_BACKLOG = 128
"""Connections that may wait at one listening socket where no network namespace bounds them. Python asks for 128."""

# Newer than some distributions' libseccomp: known by number there, the same one on every architecture.
_NUMBERS = {
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "clone3": 435, "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443,
    "memfd_secret": 447,
}  # fmt: skip

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16  # linux/socket.h
ALLOWED_FAMILIES = (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK)
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # asm-generic/ioctls.h: put characters into a terminal

# What reading bytes that are in memory already never calls: other programs, processes, changes to files, sockets.
_CLOSED = (
    "execve", "execveat", "fork", "vfork", "clone", "clone3", "kill", "tkill", "tgkill", "pidfd_send_signal", "openat2",
    "creat", "unlink", "unlinkat", "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "mkdir",
    "mkdirat", "mknod", "mknodat", "rmdir", "truncate", "ftruncate", "chmod", "fchmod", "fchmodat", "chown", "lchown",
    "fchown", "fchownat", "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4",
)  # fmt: skip
# Flags of a file that is opened to change it. To read is left: modules are imported late, in numpy too.
_CHANGES = (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC)
_OPENS = {"open": 1, "openat": 2}  # the argument that has the flags


def build_filter(*, network: bool = True) -> Any:
    """A pyseccomp.SyscallFilter; `load()` applies it to the calling process for good.

    `network`: leave IP sockets, where a network namespace keeps them from leading anywhere.
    """
    import pyseccomp as seccomp

    made = seccomp.SyscallFilter(seccomp.ALLOW)
    refuse = seccomp.ERRNO(errno.EPERM)
    for name in DENIED:
        _deny(made, seccomp, name=name, action=refuse)
    _deny(made, seccomp, name="clone3", action=seccomp.ERRNO(errno.ENOSYS))
    for flag in _namespace_flags():
        made.add_rule(refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))
    # libzmq asks for the machine's addresses by netlink, and ends the process where it may not.
    allowed = ALLOWED_FAMILIES if network else (_AF_UNIX, _AF_NETLINK)
    for family in range(_AF_NETLINK + 1):
        if family not in allowed:
            made.add_rule(_no_family(seccomp), "socket", seccomp.Arg(0, seccomp.EQ, family))
    made.add_rule(_no_family(seccomp), "socket", seccomp.Arg(0, seccomp.GT, _AF_NETLINK))
    for request in (_TIOCSTI, _TIOCLINUX):
        made.add_rule(refuse, "ioctl", _is(seccomp, 1, request))
    _bound_buffers(made, seccomp, network=network)
    return made


def _bound_buffers(made: Any, seccomp: Any, *, network: bool) -> None:
    """Larger buffers: for sockets the request succeeds and changes nothing, as where the system's limit is lower."""
    for option in (_SO_SNDBUF, _SO_RCVBUF, _SO_SNDBUFFORCE, _SO_RCVBUFFORCE):
        made.add_rule(seccomp.ERRNO(0), "setsockopt", _is(seccomp, 1, _SOL_SOCKET), _is(seccomp, 2, option))
    refuse = seccomp.ERRNO(errno.EPERM)
    made.add_rule(refuse, "setsockopt", _is(seccomp, 1, _SOL_SOCKET), _is(seccomp, 2, _SO_ZEROCOPY))
    for command in (_F_OFD_SETLK, _F_OFD_SETLKW, _F_SETPIPE_SZ):
        made.add_rule(refuse, "fcntl", _is(seccomp, 1, command))
    if not network:
        made.add_rule(refuse, "listen", seccomp.Arg(1, seccomp.GT, MOST_BACKLOG))


def _is(seccomp: Any, number: int, value: int) -> Any:
    """Argument `number` is the int `value`; the upper half of a register may hold anything."""
    return seccomp.Arg(number, seccomp.MASKED_EQ, 0xFFFF_FFFF, value)


def _namespace_flags() -> list[int]:
    return [1 << bit for bit in range(32) if syscalls.SANDBOX_NAMESPACES >> bit & 1]


def _no_family(seccomp: Any) -> int:
    return int(seccomp.ERRNO(errno.EAFNOSUPPORT))


def _deny(made: Any, seccomp: Any, *, name: str, action: int) -> None:
    try:
        made.add_rule(action, name)
    except (OSError, ValueError):
        # A call that this architecture or this libseccomp does not have.
        if name in _NUMBERS:
            made.add_rule(action, _NUMBERS[name])


def close_doors() -> None:
    """From here on this process changes no file, opens no socket, and starts and signals nothing.

    By limits everywhere, and by a seccomp filter too where the system has one.
    """
    import resource  # no Windows has it

    for which in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(which, (0, 0))
    if sys.platform == "linux":
        _close_by_filter()


def _close_by_filter() -> None:
    try:
        import pyseccomp as seccomp

        made = build_filter(network=False)
    except (ImportError, RuntimeError, OSError):
        return
    for name in _CLOSED:
        _close(made, seccomp, name)
    for name, place in _OPENS.items():
        for flag in _CHANGES:
            _close(made, seccomp, name, seccomp.Arg(place, seccomp.MASKED_EQ, flag, flag))
    syscalls.no_new_privileges()
    made.load()


def _close(made: Any, seccomp: Any, name: str, *arguments: Any) -> None:
    with suppress(ValueError, OSError, RuntimeError):  # what this architecture or library does not know
        made.add_rule(seccomp.ERRNO(errno.EPERM), name, *arguments)
