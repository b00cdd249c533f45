"""The arguments with which bubblewrap makes a sandbox's namespaces and file system."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from edl_labs.course.sandbox.limits import Limits
from edl_labs.course.sandbox.view import ETC, HOME, TOPOLOGY, View

INSIDE_ID = 1000  # the first person's number on most systems; it means nothing outside the sandbox
HOST_NAME = "lab"
NEVER_SHOWN = ("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
MADE_ETC = {
    "passwd": f"student:x:{INSIDE_ID}:{INSIDE_ID}:student:{HOME}:/bin/sh\n",
    "group": f"student:x:{INSIDE_ID}:\n",
    "hosts": f"127.0.0.1 localhost {HOST_NAME}\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


def arguments(view: View, limits: Limits, *, etc: str) -> list[str]:
    """bubblewrap's arguments for one kernel that sees `view`; `etc` is a folder that `write_etc` filled.

    The order matters: later mounts lie over earlier ones, and the last two close what bubblewrap made writable.
    """
    made = [*NEVER_SHOWN, "--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"]
    made += ["--cap-drop", "ALL", "--uid", str(INSIDE_ID), "--gid", str(INSIDE_ID), "--hostname", HOST_NAME]
    if "--disable-userns" in help_text():
        made += ["--disable-userns"]
    made += _system(etc)
    for path, size in _writable(limits).items():
        made += ["--size", str(size), "--tmpfs", path]
    for path in view.shown:  # after /tmp and the home: the interpreter may lie below either
        made += ["--ro-bind", path, path]
    for path in view.covered:
        made += ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
    for node in view.devices:
        made += ["--dev-bind", node, node]
    return [*made, "--chmod", "1777", "/tmp", "--chdir", HOME, "--remount-ro", "/dev", "--remount-ro", "/"]


def _system(etc: str) -> list[str]:
    made = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        root = Path("/", name)
        if root.is_symlink():
            made += ["--symlink", f"usr/{name}", str(root)]
        elif root.is_dir():
            made += ["--ro-bind", str(root), str(root)]
    for path in (*ETC, *TOPOLOGY):
        made += ["--ro-bind-try", path, path]
    for name in MADE_ETC:
        made += ["--ro-bind", f"{etc}/{name}", f"/etc/{name}"]
    return [*made, "--proc", "/proc", "--dev", "/dev"]


def _writable(limits: Limits) -> dict[str, int]:
    return {"/dev/shm": limits.shm_bytes, "/tmp": limits.tmp_bytes, HOME: limits.home_bytes}


def write_etc(folder: str) -> None:
    """Fill `folder` with the few files of /etc that a sandbox needs: one user, one host."""
    for name, text in MADE_ETC.items():
        Path(folder, name).write_text(text)


@cache
def help_text() -> str:
    """bubblewrap's own list of options: older ones lack some."""
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True, timeout=20, check=False).stdout
