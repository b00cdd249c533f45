"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path

# What nbgrader's exchange keeps next to a notebook: when it was handed in, and what its student fetches feedback with.
OF_EXCHANGE = ("timestamp.txt", "submission_secret.txt")
_EXCHANGE_BYTES = 1000  # nbgrader's secret has 128 letters, a time 40


def copy_exchange_files(source: Path, folder: Path) -> None:
    """Copy what the exchange keeps next to a notebook; a link, or what is too long for it, is left out."""
    for name in OF_EXCHANGE:
        path = source / name
        if path.is_file() and not path.is_symlink() and path.stat().st_size < _EXCHANGE_BYTES:
            write_atomically(folder / name, path.read_bytes(), mode=0o444, durable=False)


def add_exchange_files(folder: Path) -> None:
    """Put into a folder of feedback what `nbgrader release_feedback` opens there and a learning system does not give.

    A secret made here belongs to no one: the page lies in the exchange under a name that no one can guess.
    """
    made = {"timestamp.txt": b"", "submission_secret.txt": secrets.token_hex(64).encode()}
    for name in OF_EXCHANGE:
        if not (folder / name).exists():
            write_atomically(folder / name, made[name], durable=False)


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644, durable: bool = True) -> None:
    """Put `data` at `path`: readers see the old file or the new one, also after a crash.

    What is a pipe or a device stays one, and is written to.
    """
    if path.is_char_device() or path.is_fifo():  # root would replace /dev/null by a file
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(fd)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def is_disk_full(error: BaseException) -> bool:
    """Whether it came of a full disk or quota: the system's own error, or SQLite's in SQLAlchemy's words."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    if type(error).__module__.startswith(("sqlite3", "sqlalchemy")) and "disk is full" in str(error):
        return True
    before = error.__cause__ or error.__context__
    return before is not None and is_disk_full(before)


def remove_parts(folder: Path) -> None:
    """Remove what writers that were killed left behind."""
    for part in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            part.unlink()
