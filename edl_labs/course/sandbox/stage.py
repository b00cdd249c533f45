"""From root to an ordinary user who can still read the interpreter.

A grader that runs as root must not fork students' kernels as root: /proc/sys would be writable inside, and the limit
on processes not enforced. But root's interpreter often lies where no one else may look (/root/.pyenv). So the zygote
first takes a mount namespace of its own, in which each closed folder on the way is replaced by an empty open one with
only the interpreter's folders mounted in it; nothing outside the zygote changes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from edl_labs.course.sandbox import syscalls

ORDINARY_ID = 59_797
"""User and group of students' kernels if grading runs as root: above people's ids, below systemd's ranges."""


def become_ordinary(paths: Iterable[str], *, uid: int = ORDINARY_ID) -> None:
    """Give up root for user and group `uid`, with `paths` still readable to it. Does nothing for an ordinary user."""
    if os.geteuid() == 0:
        open_way(paths)
        become_user(uid)


def open_way(paths: Iterable[str]) -> None:
    """Make `paths` readable to any user, for this process and its children alone.

    OSError when one is closed and this root may not mount (a container's root).
    """
    paths = sorted(set(paths), key=len)
    closed = sorted({folder for path in paths if (folder := closed_ancestor(path))}, key=len)
    if closed:
        _stand_in(closed, paths)


def become_user(uid: int) -> None:
    """Be user and group `uid`, of no other group, from here on."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def closed_ancestor(path: str) -> str | None:
    """The outermost folder on the way to `path` that others may not pass; None when the way is open."""
    for folder in reversed(Path(path).parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return str(folder)
    return None


def _stand_in(closed: list[str], paths: list[str]) -> None:
    syscalls.unshare(syscalls.NEWNS)
    syscalls.mount(None, "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    for folder in closed:
        wanted = {path: os.open(path, os.O_PATH) for path in paths if path.startswith(folder + "/")}
        syscalls.mount("tmpfs", folder, kind="tmpfs", flags=syscalls.MS_NOSUID | syscalls.MS_NODEV, data="mode=755")
        for path, fd in wanted.items():
            os.makedirs(path, mode=0o755, exist_ok=True)
            syscalls.mount(f"/proc/self/fd/{fd}", path, flags=syscalls.MS_BIND | syscalls.MS_REC)
            os.close(fd)
