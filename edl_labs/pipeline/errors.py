"""What goes wrong with samples, files and disks: each error names the sample, and says what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from edl_labs.errors import EdlError, UsageError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Libraries that keep no error number: HDF5 and Arrow in words, numpy for a write that stopped half-way, LMDB.
_FULL_WORDS = ("No space left", "File too large", "requested and", "MDB_MAP_FULL", "mdb_txn_commit: Input/output")


class BrokenSample(EdlError):
    """A sample that cannot be read or decoded; `sample` says which one, as text."""

    def __init__(
        self, sample: str, problem: str, *, next: str = "remove it from the data set, or write it again"
    ) -> None:
        super().__init__(
            f"{sample} cannot be used: {problem}", why="its bytes differ from those that were written", next=next
        )
        self.sample, self.problem = sample, problem

    def __reduce__(self) -> tuple[type[BrokenSample], tuple[str, str]]:
        # Workers send their errors to the main process.
        return BrokenSample, (self.sample, self.problem)


class DiskFull(EdlError):
    """There is not enough free space to write something; partly written files have been removed."""


def needed(package: str, *, module: str | None = None, extra: str = "data") -> ModuleType:
    """The module of an optional package; UsageError saying how to install it where it is missing."""
    try:
        return import_module(module or package)
    except (ImportError, OSError) as error:
        raise UsageError(
            f"{package} cannot be imported here",
            why=str(error),
            next=f"run pip install 'edl-labs[{extra}]', or choose something that does not need this package",
        ) from error


def is_full(error: BaseException) -> bool:
    """Whether an error says that a disk, a quota or a file's size limit was reached."""
    seen: BaseException | None = error
    while seen is not None:
        if getattr(seen, "errno", None) in _FULL or any(word in str(seen) for word in _FULL_WORDS):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


@contextmanager
def disk_errors(where: str) -> Iterator[None]:
    """A block in which running out of room becomes DiskFull, whichever library says it."""
    try:
        yield
    except EdlError:
        raise
    except Exception as error:
        if is_full(error):
            raise DiskFull(
                f"there is not enough free space to write {where}",
                why=str(error),
                next="free some space or choose another folder; partly written files have been removed",
            ) from error
        raise


def refuse_full(folder: object, nbytes: int, *, where: str) -> None:
    """DiskFull before writing starts, where a folder's disk has less room than `nbytes`."""
    import shutil

    free = shutil.disk_usage(str(folder)).free
    if free < nbytes:
        raise DiskFull(
            f"there is not enough free space to write {where}",
            why=f"this needs {nbytes:,} bytes, but only {free:,} are free",
            next="free some space or choose another folder; nothing was written",
        )
