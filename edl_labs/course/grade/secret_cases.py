"""A class's draws, each with its secrets: the cases of each exercise, and the solution's evidence for them."""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from edl_labs.course.grade.files import write_atomically

_RECORD = "seed.json"


@dataclass(frozen=True)
class SecretCases:
    """The cases of one exercise and the reference's evidence for them, encoded."""

    cases: bytes
    wants: bytes


@dataclass(frozen=True)
class Draws:
    """A class's draws of secret cases: those of `seed` for everybody, or of a pool of `count` one for each submission.

    >>> Draws(7).seed_of(Draws(7).number("ana", "digest"))
    7
    >>> pool = Draws(7, 8)
    >>> pool.number("ana", "digest"), len({pool.seed_of(number) for number in range(8)})
    (6, 8)
    """

    seed: int
    count: int = 1

    def number(self, student: str, digest: str) -> int:
        """The draw that counts for a student's submission: a keyed hash, the same wherever and however often."""
        if self.count == 1:
            return 0
        told = hmac.digest(str(self.seed).encode(), json.dumps([student, digest]).encode(), "sha256")
        return int.from_bytes(told, "big") % self.count

    def seed_of(self, number: int) -> int:
        """The seed from which draw `number` is made."""
        if self.count == 1:
            return self.seed
        return int.from_bytes(hmac.digest(str(self.seed).encode(), f"draw {number}".encode(), "sha256")[:6], "big")


def has_seed(folder: Path) -> bool:
    """Whether the seed of a class is recorded there."""
    return (folder / _RECORD).is_file()


def class_draws(folder: Path, *, seed: int | None = None, count: int = 1) -> Draws:
    """The class's draws: those of the given seed, else the recorded ones, else `count` new ones. They are recorded.

    A record without a count is of a class that has one draw for everybody; a given seed draws once, too, unless it
    comes with the count of its class.
    """
    path = folder / _RECORD
    if seed is None and path.is_file():
        known = json.loads(path.read_text(encoding="utf-8"))
        return Draws(int(known["seed"]), int(known.get("draws", 1)))
    draws = Draws(secrets.randbelow(1 << 48) if seed is None else seed, count)
    record = {"seed": draws.seed} | ({"draws": count} if count > 1 else {})
    write_atomically(path, json.dumps(record).encode(), mode=0o600)
    return draws


class ClassSecrets(Mapping[str, SecretCases]):
    """What `compute` returns, computed in a thread of its own; looking a name up waits for it.

    Looking up raises what `compute` raised.
    """

    def __init__(self, compute: Callable[[], Mapping[str, SecretCases]]) -> None:
        self._future: Future[Mapping[str, SecretCases]] = Future()
        threading.Thread(target=self._run, args=(compute,), daemon=True).start()

    def __getitem__(self, name: str) -> SecretCases:
        return self.wait()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.wait())

    def __len__(self) -> int:
        return len(self.wait())

    @property
    def is_pending(self) -> bool:
        """Whether who looks a name up would have to wait."""
        return not self._future.done()

    @property
    def failed(self) -> bool:
        """Whether there is nothing to wait for any more: `compute` raised."""
        return self._future.done() and self._future.exception() is not None

    def wait(self) -> Mapping[str, SecretCases]:
        """All of them."""
        return self._future.result()

    def _run(self, compute: Callable[[], Mapping[str, SecretCases]]) -> None:
        try:
            self._future.set_result(compute())
        except BaseException as error:
            self._future.set_exception(error)
