"""Trials: mistakes of new students, what each of them is told, and how well it tells.

Three files for each exercise, `labNN/EXERCISE.…`:

* `toml`, `[[mistake]]` with `name`, `wrong` (what is wrong, in a sentence) and `code` (the whole solve cell). They were
  written from the released notebook, before anybody saw a message; those of lab03 and lab04 by somebody who had
  seen an older list of the labs' own wrong answers.
* `told.toml`, `[told.NAME]` with `state`, `points` (the fraction), `digest` and `message`. `play.py` writes it.
* `judged.toml`, `[judged.NAME]` with `verdict`, `message_digest` and `why`, by somebody who wrote neither the mistakes
  nor the messages; a message that was mended after that reading was judged again by whoever mended it. A mistake that
  passes is told nothing and needs no verdict.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TRIALS = Path(__file__).resolve().parent
VERDICTS = ("named", "partly", "misleading", "useless")
STATES = ("not attempted", "wrong", "partly", "passed", "ended")

_ADDRESS = re.compile(r"0x[0-9a-f]+")
_NUMBER = re.compile(r"\d[\d,.]*(e[+-]?\d+)?")


@dataclass(frozen=True)
class Mistake:
    """One wrong answer: `code` is what the student leaves in the solve cell, `wrong` says what is wrong with it."""

    name: str
    wrong: str
    code: str


@dataclass(frozen=True)
class Told:
    """What a student who made the mistake is told. The state `ended` is a kernel that died or never came back."""

    name: str
    state: str
    points: float
    message: str

    @property
    def digest(self) -> str:
        """A digest of the words: numbers, addresses and temporary files may differ between machines and versions."""
        words = re.sub(re.escape(tempfile.gettempdir()) + r"[^\s'\"]*", "PATH", self.message)
        words = _NUMBER.sub("#", _ADDRESS.sub("#", words))
        return hashlib.sha256(f"{self.state}\n{' '.join(words.split())}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Judged:
    """How well the message of `message_digest` tells what is wrong; `verdict` is one of VERDICTS."""

    name: str
    verdict: str
    message_digest: str
    why: str


@dataclass(frozen=True)
class Trial:
    """One exercise of a lab with its mistakes, as they were written."""

    lab: str
    exercise: str
    folder: Path
    mistakes: tuple[Mistake, ...]

    @property
    def told_path(self) -> Path:
        """Where what the mistakes are told lies."""
        return self.folder / f"{self.exercise}.told.toml"

    @property
    def told(self) -> dict[str, Told]:
        """What each mistake is told, by its name; empty before it was played."""
        return {k: Told(k, v["state"], v["points"], v["message"]) for k, v in _table(self.told_path, "told").items()}

    @property
    def judged(self) -> dict[str, Judged]:
        """The verdict for each mistake that has one, by its name."""
        table = _table(self.folder / f"{self.exercise}.judged.toml", "judged")
        return {k: Judged(k, v["verdict"], v["message_digest"], v.get("why", "")) for k, v in table.items()}


def read_trials(lab: str = "", exercise: str = "", *, root: Path = TRIALS) -> list[Trial]:
    """The trials of a lab (`lab01`), or of one of its exercises, or all; `root` is the folder that holds them."""
    files = sorted(path for path in root.glob(f"{lab or 'lab*'}/*.toml") if "." not in path.stem)
    return [read_trial(path) for path in files if exercise in ("", path.stem)]


def read_trial(path: Path) -> Trial:
    """The trial whose mistakes lie in `path`, `labNN/EXERCISE.toml`."""
    mistakes = tomllib.loads(path.read_text(encoding="utf-8")).get("mistake", [])
    return Trial(path.parent.name, path.stem, path.parent, tuple(Mistake(**one) for one in mistakes))


def write_told(path: Path, told: Iterable[Told]) -> None:
    """Write a `told.toml`."""
    path.write_text("\n".join(map(_told_text, told)), encoding="utf-8")


def _told_text(told: Told) -> str:
    head = f'[told.{told.name}]\nstate = "{told.state}"\npoints = {float(told.points)!r}\ndigest = "{told.digest}"\n'
    return f'{head}message = """\n{_escaped(told.message)}"""\n'


def _escaped(text: str) -> str:
    """Text within three double quotes of TOML: control characters and quotes that would end it are escaped."""
    text = text.replace("\\", "\\\\").replace('""', '\\"\\"').encode("utf-8", "replace").decode()
    text = "".join(c if c in "\n\t" or c.isprintable() else _code_point(c) for c in text)
    return text[:-1] + '\\"' if text.endswith('"') and not text.endswith('\\"') else text


def _code_point(character: str) -> str:
    return f"\\U{ord(character):08x}"


def _table(path: Path, key: str) -> dict[str, dict]:
    return tomllib.loads(path.read_text(encoding="utf-8")).get(key, {}) if path.is_file() else {}
