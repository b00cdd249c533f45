"""How well a student's code is fenced in on this machine. Results carry the level they were graded at."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from enum import Enum
from functools import cache
from typing import Any

from edl_labs.course.sandbox.stage import ORDINARY_ID
from edl_labs.errors import UsageError

# Far above what a start takes where every core is in use: giving up sooner would choose another level, by chance, and
# what was graded at this one would be graded again.
PROGRAM_S = 300.0


class Level(Enum):
    """How a student's code is kept in, best first.

    >>> Level("namespaces") is Level.NAMESPACES
    True
    """

    NAMESPACES = "namespaces"
    """bubblewrap's namespaces with seccomp: no network, and only its own files and processes."""
    LANDLOCK = "landlock"
    """Landlock with seccomp and a user of its own, if grading runs as root: no network, files or signals."""
    UNSAFE = "unsafe"
    """Only resource limits. Marks can be trusted only as far as the students."""

    @property
    def trusted(self) -> bool:
        """Whether marks earned at this level need no further word."""
        return self is not Level.UNSAFE


def best_level() -> Level:
    """The best level that works here, found by trying; never UNSAFE, which only a person may choose.

    UsageError when none works, with the reason for each.
    """
    problems = {level: level_problem(level) for level in (Level.NAMESPACES, Level.LANDLOCK)}
    for level, problem in problems.items():
        if not problem:
            return level
    raise UsageError(
        "this machine cannot isolate students' code",
        why="; ".join(f"{level.value}: {problem}" for level, problem in problems.items()),
        next="install bubblewrap and libseccomp (Debian: apt-get install bubblewrap libseccomp2), "
        "or grade with --unsafe, which marks every result as untrusted",
    )


@cache
def level_problem(level: Level) -> str:
    """Why `level` does not work on this machine; an empty text when it does."""
    if level is Level.UNSAFE:
        return ""
    if not sys.platform.startswith("linux"):
        return f"it needs Linux, but this is {sys.platform}"
    return _seccomp_problem() or (_bubblewrap_problem() if level is Level.NAMESPACES else _landlock_problem())


def _seccomp_problem() -> str:
    try:
        from edl_labs.course.sandbox.syscall_filter import build_filter

        build_filter()
    except (ImportError, RuntimeError, OSError) as error:
        return f"pyseccomp with libseccomp does not work ({error})"
    return ""


def _bubblewrap_problem() -> str:
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    command = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/usr", "/usr"]
    command += ["--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"]
    command += ["--proc", "/proc", "--dev", "/dev", "true"]
    ordinary: dict[str, Any] = (
        {"user": ORDINARY_ID, "group": ORDINARY_ID, "extra_groups": []} if os.geteuid() == 0 else {}
    )
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PROGRAM_S, cwd="/", check=False, **ordinary
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"bubblewrap does not start ({error})"
    return "" if done.returncode == 0 else f"bubblewrap cannot make namespaces ({done.stderr.strip()})"


def _landlock_problem() -> str:
    from edl_labs.course.sandbox import landlock

    found = landlock.version()
    if found < landlock.NEEDED_VERSION:
        return f"it needs Landlock {landlock.NEEDED_VERSION} (Linux 6.12), but this kernel has {found or 'none'}"
    return "" if os.geteuid() == 0 else "it needs to run as root, so that each kernel gets a user of its own"
