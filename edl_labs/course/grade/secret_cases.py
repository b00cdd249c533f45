"""A class's seed, and what it makes secret: the cases of each exercise with the solution's evidence for them."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from edl_labs.course.grade.files import write_atomically


@dataclass(frozen=True)
class SecretCases:
    """The cases of one exercise and the reference's evidence for them, encoded."""

    cases: bytes
    wants: bytes


def class_seed(folder: Path, *, seed: int | None = None) -> int:
    """The seed of the secret cases: the given one, else the recorded one, else a new one. It is recorded."""
    path = folder / "seed.json"
    if seed is None:
        if path.is_file():
            return int(json.loads(path.read_text(encoding="utf-8"))["seed"])
        seed = secrets.randbelow(1 << 48)
    write_atomically(path, json.dumps({"seed": seed}).encode(), mode=0o600)
    return seed


class ClassSecrets(Mapping[str, SecretCases]):
    """What `compute` returns, worked out in a thread of its own; whoever looks a name up waits for it.

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
