"""Streams in compiled code (`streams.c`), built at need by the system's compiler and kept in the user's cache folder.

A cache is faster than any call of numpy or torch: only a loop that goes over it many times within one call shows its
rate. Where there is no compiler there is no such loop, and the caches nearest to a core are not measured.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from edl_labs.device import cpu_model

COMPILERS = ("cc", "gcc", "clang", "g++", "c++")
# The second line is for compilers that do not know the machine they run on.
_FLAGS = (("-march=native",), ())
_COMMON = ("-x", "c", "-O3", "-shared", "-fPIC")
_TIMEOUT_S = 60  # sixty lines of C take a second; a busy machine may need far longer
UNROLLED = 8  # vectors a step, as in streams.c
_ALIGNED = 64  # bytes: a line of the cache, and the widest vector
_APART = 5 * _ALIGNED  # measured: streams a multiple of 4 KiB apart look like one address to a store buffer
# What a thread goes over in one call, by what it holds: milliseconds at each cache's rate, so that the call is lost.
_PASSED = ((96 << 10, 512 << 20), (4 << 20, 128 << 20))
_PASSED_BEYOND = 24 << 20  # about a millisecond of main memory's traffic


def cache_folder() -> Path:
    """Where measured machines and built kernels are kept: EDL_LABS_CACHE, or the user's cache folder."""
    named = os.environ.get("EDL_LABS_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "edl_labs"


class CompiledStreams:
    """The loops of `streams.c`, loaded; calls release Python's lock, so that threads run side by side."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        pointer, count = ctypes.c_void_p, ctypes.c_long
        for name, streams in (("read", 1), ("copy", 2), ("triad", 3)):
            function = getattr(self._library, f"edl_{name}")
            function.argtypes = [*[pointer] * streams, count, count]
            function.restype = ctypes.c_float if name == "read" else None
        self.width_bytes = int(self._library.edl_width())

    def job(self, pattern: str, streams: int, stream_bytes: int) -> tuple[Callable[[], Any], int]:
        """A call that goes over `streams` of about `stream_bytes` each many times, and the bytes that it moves."""
        import numpy as np

        step = UNROLLED * self.width_bytes
        steps = max(1, stream_bytes // step)
        held = steps * step
        passes = max(1, _passed_bytes(streams * held) // (streams * held))
        # Ones, written: pages that were only read may all be the same page of zeros.
        memory = np.ones((streams * (held + _APART) + _ALIGNED) // 4, dtype=np.float32)
        first = -memory.ctypes.data % _ALIGNED + memory.ctypes.data
        places = [first + place * (held + _APART) for place in range(streams)]
        function = getattr(self._library, f"edl_{pattern}")

        def run(kept: Any = memory) -> None:
            function(*places, steps * UNROLLED, passes)

        return run, streams * held * passes


def _passed_bytes(held_bytes: int) -> int:
    return next((passed for limit, passed in _PASSED if held_bytes <= limit), _PASSED_BEYOND)


def compiled_streams() -> CompiledStreams | None:
    """The compiled loops, built on first use; None where there is no compiler that can."""
    return next((found for compiler in COMPILERS if (found := _loaded(compiler, cache_folder())) is not None), None)


@cache
def _loaded(compiler: str, folder: Path) -> CompiledStreams | None:
    path = shutil.which(compiler)
    if path is None:
        return None
    for flags in _FLAGS:
        try:
            return _built(path, (*_COMMON, *flags), folder)
        except (OSError, subprocess.SubprocessError, AttributeError):
            continue
    return None


def _built(compiler: str, flags: tuple[str, ...], folder: Path) -> CompiledStreams:
    source = resources.files("edl_labs.roofline.microbenchmarks").joinpath("streams.c").read_text(encoding="utf-8")
    version = subprocess.run([compiler, "--version"], capture_output=True, timeout=_TIMEOUT_S, check=True).stdout
    # A home folder may be shared by unlike machines: what was built for one may not run on another.
    facts = (source, version, flags, platform.machine(), cpu_model(), _abilities())
    kept = folder / f"streams-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}.so"
    if _is_ours(kept):
        return CompiledStreams(kept)
    with _workshop(folder) as (place, can_be_kept):
        made = place / "streams.so"
        command = [compiler, *flags, "-o", str(made), "-"]
        subprocess.run(command, input=source.encode(), capture_output=True, timeout=_TIMEOUT_S, check=True)
        os.chmod(made, stat.S_IRWXU)
        found = CompiledStreams(made)  # once it is loaded, its file may go
        if can_be_kept:
            os.replace(made, kept)
        return found


@contextmanager
def _workshop(folder: Path) -> Iterator[tuple[Path, bool]]:
    """A folder to build in, gone afterwards, and whether what is built can be kept in `folder`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place, can_be_kept = tempfile.mkdtemp(prefix="streams-", dir=folder), _is_safe(folder.stat())
    except OSError:
        place, can_be_kept = tempfile.mkdtemp(prefix="streams-"), False
    try:
        yield Path(place), can_be_kept
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _is_ours(path: Path) -> bool:
    """Whether a library can be loaded without asking who wrote it: one's own file, which nobody else may change."""
    try:
        found, folder = path.stat(), path.parent.stat()
    except OSError:
        return False
    others = stat.S_IWGRP | stat.S_IWOTH
    return found.st_uid == _user() and not found.st_mode & others and _is_safe(folder)


def _is_safe(folder: os.stat_result) -> bool:
    """Whether only its files' owners may put other files in their places: one's own folder, or the system's."""
    shared = folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX
    return folder.st_uid in (_user(), 0) and not shared


def _user() -> int:
    """The number of who runs this; Windows has none, and gives every file to 0."""
    return os.getuid() if hasattr(os, "getuid") else 0


def _abilities() -> str:
    """The processor's instruction sets, where the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
