"""Windows as far as Linux can be it: `sitecustomize` of a Python that lacks what only Linux, or only POSIX, has.

No fork (workers are spawned, and import what they run), no affinity, no fadvise, no `resource`, no SIGALRM, no /proc,
no C library to ask for more, and no Triton. What libraries of others need to run at all (fcntl, selectors) stays.
"""

import builtins
import ctypes
import io
import multiprocessing
import os
import pathlib
import signal
import sys
import types

_OF_OS = (
    *("fork", "forkpty", "sched_getaffinity", "sched_setaffinity", "posix_fadvise", "posix_fallocate", "preadv"),
    *("O_DIRECT", "getloadavg", "nice", "mkfifo", "memfd_create"),
)
_FOR_OTHERS = ("getuid", "geteuid", "killpg", "pread", "pwrite", "uname")
_open, _listdir, _exists, _stat, _library = io.open, os.listdir, os.path.exists, os.stat, ctypes.CDLL


def _hidden(path):
    """Whether the labs or the package ask for a file of Linux's kernel: other libraries know on what they run."""
    try:
        if not os.fspath(path).startswith(("/proc", "/sys")):
            return False
    except TypeError:
        return False
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in ("pathlib", "io", "sitecustomize", "posixpath"):
        frame = frame.f_back
    return frame is not None and _is_ours(frame)


def _open_here(file, *args, **keywords):
    if not isinstance(file, int) and _hidden(file):
        raise FileNotFoundError(2, "No such file or directory", str(file))
    return _open(file, *args, **keywords)


def _listdir_here(path=".", *rest):
    if _hidden(path):
        raise FileNotFoundError(2, "No such file or directory", str(path))
    return _listdir(path, *rest)


class _NoLibrary(_library):
    """A C library that is not called so here: the process's own, or libc's names."""

    def __init__(self, name, *args, **keywords):
        if name is None or "libc." in str(name) or "libpthread" in str(name):
            raise OSError(f"{name}: not on this system")
        super().__init__(name, *args, **keywords)


def _stat_here(path, *args, **keywords):
    if not isinstance(path, int) and _hidden(path):
        raise FileNotFoundError(2, "No such file or directory", str(path))
    return _stat(path, *args, **keywords)


class _OsElsewhere(types.ModuleType):
    """`os`, in which the labs and the package do not find what other libraries here cannot do without."""

    def __getattribute__(self, name):
        if name in _FOR_OTHERS and _is_ours(sys._getframe(1)):
            raise AttributeError(f"module 'os' has no attribute {name!r}")
        return super().__getattribute__(name)


def _is_ours(frame):
    return str(frame.f_globals.get("__name__")).startswith(("edl_labs", "__main__"))


def _leave_out() -> None:
    """Takes all of it away from this process; what only imports this file keeps it."""
    for name in _OF_OS:
        if hasattr(os, name):
            delattr(os, name)
    for name in ("SIGALRM", "SIGVTALRM", "SIGPROF", "setitimer", "getitimer", "alarm", "pthread_kill", "sigwait"):
        if hasattr(signal, name):
            delattr(signal, name)
    for name in ("resource", "triton"):
        sys.modules[name] = None
    multiprocessing.set_start_method("spawn")
    for method in ("fork", "forkserver"):
        multiprocessing.context._concrete_contexts.pop(method, None)
    multiprocessing.get_all_start_methods = lambda: ["spawn"]
    os.__class__ = _OsElsewhere
    os.stat = _stat_here
    builtins.open = io.open = _open_here
    pathlib.io.open = _open_here
    os.listdir = _listdir_here
    os.path.exists = lambda path: not _hidden(path) and _exists(path)
    ctypes.CDLL = _NoLibrary


if __name__ == "sitecustomize":
    _leave_out()
