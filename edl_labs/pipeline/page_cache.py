"""Whether a file is in the page cache, and making it cold or warm without root: mincore and posix_fadvise."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.units import byte_count, percent
from edl_labs.values import Value

_COLD, _WARM = 0.05, 0.95  # some pages of a file in use always stay, or are not yet there


@dataclass(frozen=True, repr=False)
class CacheState(Value):
    """How much of some files is in memory. `known` is False if the system cannot tell."""

    DERIVED = ("word",)

    nbytes: int
    resident_bytes: int
    known: bool = True

    @property
    def fraction(self) -> float:
        """The share of the bytes that is in memory; NaN where it is not known."""
        return float("nan") if not self.known else self.resident_bytes / self.nbytes if self.nbytes else 1.0

    @property
    def word(self) -> str:
        """'cold' (at most 5 % in memory), 'warm' (at least 95 %), 'mixed' or 'unknown'."""
        if not self.known:
            return "unknown"
        return "cold" if self.fraction <= _COLD else "warm" if self.fraction >= _WARM else "mixed"

    def __str__(self) -> str:
        if not self.known:
            return "page cache: unknown on this system"
        return f"page cache: {self.word}, {percent(self.fraction)} of {byte_count(self.nbytes)} in memory"


@checked_arguments()
def cache_state(paths: Path | str | Iterable[Path | str]) -> CacheState:
    """The `CacheState` of a file, of several, or of all files in a folder, from mincore."""
    nbytes = resident = 0
    for path in _files(paths):
        size = path.stat().st_size
        here = _resident(path, size)
        if here is None:
            return CacheState(nbytes, 0, known=False)
        nbytes, resident = nbytes + size, resident + here
    return CacheState(nbytes, resident)


@checked_arguments()
def make_cold(paths: Path | str | Iterable[Path | str]) -> CacheState:
    """Write files back and ask the kernel to drop their pages (posix_fadvise DONTNEED, no root); the state after it.

    The kernel may refuse: pages that another process maps stay, and a file system without a disk (tmpfs) keeps all.
    Look at the state that comes back before calling a figure cold, or use `require_cold`.
    """
    if not hasattr(os, "posix_fadvise"):
        return CacheState(0, 0, known=False)
    found = _files(paths)
    for path in found:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            # Pages that still have to be written cannot be dropped.
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    return cache_state(found)


@checked_arguments()
def require_cold(paths: Path | str | Iterable[Path | str]) -> CacheState:
    """`make_cold`, or UsageError where the files are not cold after it: a cold figure is never a warm one."""
    state = make_cold(paths)
    if state.word == "cold":
        return state
    raise UsageError(
        "these files cannot be made cold here",
        why=str(state)
        + "; pages stay in memory on tmpfs and some network file systems, and while a process maps the files",
        next="put the files on a disk, stop the process that maps them, or report the measurement as warm",
    )


@checked_arguments()
def make_warm(paths: Path | str | Iterable[Path | str]) -> CacheState:
    """Read files once, so that they are in the page cache; the state after it."""
    found = _files(paths)
    for path in found:
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
    return cache_state(found)


def _files(paths: Path | str | Iterable[Path | str]) -> list[Path]:
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    found: list[Path] = []
    for path in map(Path, given):
        if path.is_dir():
            found += sorted(item for item in path.rglob("*") if item.is_file())
        elif path.is_file():
            found.append(path)
        else:
            raise UsageError(f"{path} does not exist", why="its pages cannot be counted", next="check the path")
    return found


def _resident(path: Path, size: int) -> int | None:
    """Bytes of a file in the page cache; None where mincore is not there or does not answer."""
    if size == 0:
        return 0
    try:
        library = ctypes.CDLL(None, use_errno=True)
    except (OSError, TypeError):  # Windows has no library of the process itself
        return None
    if not hasattr(library, "mincore"):
        return None
    pages = -(-size // mmap.PAGESIZE)
    flags = (ctypes.c_ubyte * pages)()
    with open(path, "rb") as file:
        # A private writable map gives ctypes an address; nothing is touched, so no page is brought in by it.
        mapped = mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        try:
            start = ctypes.c_char.from_buffer(mapped)
            failed = library.mincore(
                ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size), ctypes.byref(flags)
            )
            del start
        finally:
            mapped.close()
    if failed:
        return None
    inside = sum(flag & 1 for flag in flags)
    return min(inside * mmap.PAGESIZE, size)
