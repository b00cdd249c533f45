"""Where a kernel lives: folders of its sandbox, or a folder of the host's made for it, and a user."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from edl_labs.course.sandbox.view import HOME

_NUMBERS = count()
_KERNELS_AT_ONCE = 256  # far above the workers of one machine
_ALL_IDS = 1 << 31  # half of all numbers: who maps as many has the machine's own
# Above people and the ranges of systemd; the others lie within the 65,536 of a container.
_WIDE_BASE, _NARROW_BASE, _NARROW_IDS = 1_000_000_000, 20_000, 40_000


@dataclass(frozen=True)
class Place:
    """A kernel's folders; `folder` holds them where they lie on the host, and `uid` is a user of the kernel's own."""

    home: str
    tmp: str
    folder: str = ""
    uid: int | None = None

    @staticmethod
    def in_sandbox() -> Place:
        """The sandbox's own folders."""
        return Place(HOME, "/tmp")

    @staticmethod
    def on_host(scratch: str, *, own_user: bool) -> Place:
        """New folders below `scratch`, for this process's user or for one that no other process has."""
        folder = tempfile.mkdtemp(dir=scratch)
        place = Place(f"{folder}/home", f"{folder}/tmp", folder, _unused_uid() if own_user else None)
        for path in (place.home, place.tmp):
            os.mkdir(path, 0o700)
        if place.uid is not None:
            for path in (folder, place.home, place.tmp):
                os.chown(path, place.uid, place.uid)
        return place

    def remove(self) -> None:
        """Delete the folders, and what the kernel's user left in shared memory."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self.uid is not None:
            for path in Path("/dev/shm").iterdir():
                with contextlib.suppress(OSError):
                    if path.lstat().st_uid == self.uid:
                        path.unlink()


def _unused_uid() -> int:
    """A number that no account and no other kernel has: from this process's own number where ids are plenty."""
    number = os.getpid() * _KERNELS_AT_ONCE + next(_NUMBERS) % _KERNELS_AT_ONCE
    mapped = sum(int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text().splitlines())
    return _WIDE_BASE + number if mapped > _ALL_IDS else _NARROW_BASE + number % _NARROW_IDS
