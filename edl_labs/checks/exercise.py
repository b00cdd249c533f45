"""An exercise: three small functions, `cases`, `probe` and `compare`, registered under a name."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edl_labs.errors import EdlError, UsageError

KINDS = ("code", "explain")


@dataclass(frozen=True)
class Exercise:
    """A registered exercise. `spec` holds `cases(rng)`, `probe(student, case)` and `compare(case, got, want)`.

    `uses` names exercises whose reference stands in when the student's own is wrong; `trusting` marks evidence that
    rests on the student's process; `digits` is how many significant digits of floats a golden keeps; `trains` lowers
    the number of seeds it is proved with; `timeout_s` bounds one probe request.
    """

    name: str
    lab: str
    spec: Any
    uses: tuple[str, ...] = ()
    trusting: bool = False
    digits: int = 9
    trains: bool = False
    timeout_s: float = 60.0

    @property
    def summary(self) -> str:
        """The first line of the exercise's docstring."""
        return (self.spec.__doc__ or "").strip().partition("\n")[0]

    def draw_cases(self, seed: int) -> list[Any]:
        """The cases of `seed`: the same list for the same seed, different for each exercise."""
        import numpy

        digest = hashlib.sha256(f"{self.lab}/{self.name}/{seed}".encode()).digest()
        rng = numpy.random.Generator(numpy.random.PCG64(int.from_bytes(digest[:16], "little")))
        cases = self.spec.cases(rng)
        if not isinstance(cases, list) or not cases:
            raise EdlError(f"exercise {self.name}: cases() gave no list of cases", next="return a list of plain data")
        return cases

    def public_wants(self, cases: list[Any], wants: list[Any]) -> list[Any]:
        """What goldens may hold of the reference's evidence: all of it, or what the spec's `public(case, want)` leaves.

        A spec has `public` where the evidence itself would be an answer to copy; then `form` says what evidence looks
        like, since the public reference no longer does.
        """
        public = getattr(self.spec, "public", None)
        return wants if public is None else [public(case, want) for case, want in zip(cases, wants, strict=True)]

    def combine(self, fractions: list[float]) -> float:
        """One fraction from one a case: the spec's own `combine`, else 0 if any is 0, else the mean."""
        own = getattr(self.spec, "combine", None)
        if own is not None:
            return float(min(1.0, max(0.0, own(fractions))))
        return 0.0 if not fractions or min(fractions) <= 0 else sum(fractions) / len(fractions)


@dataclass
class _Registry:
    exercises: dict[str, Exercise] = field(default_factory=dict)
    loaded: dict[str, Path] = field(default_factory=dict)


_REGISTRY = _Registry()
_PACKAGE = "edl_labs.exercises"
_FOLDER = Path(__file__).resolve().parents[1] / "exercises"


def exercise(
    name: str,
    *,
    lab: str = "",
    uses: Iterable[str] = (),
    trusting: bool = False,
    digits: int = 9,
    trains: bool = False,
    timeout_s: float = 60.0,
) -> Callable[[type], type]:
    """Class decorator that registers an exercise under `name`.

    It belongs to `lab`, or else to the folder or module below `exercises/` in which the class is written.
    """

    def register(cls: type) -> type:
        missing = [part for part in ("cases", "probe", "compare") if not callable(getattr(cls, part, None))]
        if missing:
            raise EdlError(f"exercise {name} has no {' and no '.join(missing)}", next="see CONTRIBUTING.md, exercises")
        home = lab or _lab_of(cls.__module__)
        known = _REGISTRY.exercises.get(name)
        if known is not None and known.lab != home:
            raise EdlError(f"exercise {name} is in {known.lab} and in {home}", next="give one of them another name")
        _REGISTRY.exercises[name] = Exercise(
            name, home, cls(), tuple(uses), trusting=trusting, digits=digits, trains=trains, timeout_s=timeout_s
        )
        return cls

    return register


def exercises_folder() -> Path:
    """Where the exercise modules lie: the package's folder, or what EDL_LABS_EXERCISES names (a course of your own)."""
    own = os.environ.get("EDL_LABS_EXERCISES")
    return Path(own).resolve() if own else _FOLDER


def lab_names(folder: Path | None = None) -> list[str]:
    """Every lab that has exercises, in order: a folder with an `__init__.py`, or a module, called lab…"""
    entries = (folder or exercises_folder()).glob("lab*")
    return sorted({path.stem for path in entries if path.suffix == ".py" or (path / "__init__.py").is_file()})


def module_path(lab: str, folder: Path | None = None) -> Path:
    """The file that lists or holds a lab's exercises, there or not: its folder's `__init__.py`, or its module."""
    listed = (folder or exercises_folder()) / lab / "__init__.py"
    return listed if listed.is_file() else listed.parent.with_suffix(".py")


def load_lab(lab: str) -> list[Exercise]:
    """The exercises of one lab, importing them when they were not yet.

    They come in the order of its `EXERCISES`; of their classes where it has none.
    """
    path = module_path(lab)
    if _REGISTRY.loaded.get(lab) != path:
        if not path.is_file():
            raise UsageError(f"no exercises for {lab}", why="its module is missing", next=f"edl-labs new {lab}")
        if lab in _REGISTRY.loaded or exercises_folder() != _FOLDER:
            forget(lab)
        _import(lab)
        _REGISTRY.loaded[lab] = path
    return [e for e in _REGISTRY.exercises.values() if e.lab == lab]


def forget(lab: str) -> None:
    """Let the next `load_lab` read the lab's files anew."""
    _REGISTRY.loaded.pop(lab, None)
    for name in [name for name, known in _REGISTRY.exercises.items() if known.lab == lab]:
        del _REGISTRY.exercises[name]
    home = f"{_PACKAGE}.{lab}"
    for name in [name for name in sys.modules if name == home or name.startswith(f"{home}.")]:
        del sys.modules[name]


def find(name: str) -> Exercise:
    """The exercise called `name`, whichever lab it is in; UsageError with near names when there is none."""
    for lab in lab_names():
        for found in load_lab(lab):
            if found.name == name:
                return found
    import difflib

    names = [e.name for e in _REGISTRY.exercises.values()]
    near = difflib.get_close_matches(str(name), names, n=1)
    raise UsageError(
        f"no exercise called {name!r}",
        why=f"there are {', '.join(names) or 'none'}",
        next=f'check("{near[0]}")' if near else "look at the name in the cell's title",
    )


def _lab_of(module: str) -> str:
    """The part of a module's dotted path that stands below the package of exercises; its last part elsewhere."""
    below = module.removeprefix(f"{_PACKAGE}.")
    return module.rpartition(".")[2] if below == module else below.partition(".")[0]


def _import(lab: str) -> None:
    """Run the lab's modules. Those of another course are parts of the package too, so that their imports work there."""
    package = importlib.import_module(_PACKAGE)
    package.__path__ = list(dict.fromkeys(map(str, (exercises_folder(), _FOLDER))))
    importlib.invalidate_caches()
    listed = getattr(importlib.import_module(f"{_PACKAGE}.{lab}"), "EXERCISES", None)
    if listed is not None:
        _put_in_order(lab, listed)


def _put_in_order(lab: str, listed: Iterable[type]) -> None:
    places = {cls: place for place, cls in enumerate(listed)}
    found = [known for known in _REGISTRY.exercises.values() if known.lab == lab]
    strangers = [known.name for known in found if type(known.spec) not in places]
    if strangers:
        raise EdlError(f"EXERCISES of {lab} lacks {', '.join(strangers)}", next="list the class there, in its place")
    for known in sorted(found, key=lambda known: places[type(known.spec)]):
        _REGISTRY.exercises[known.name] = _REGISTRY.exercises.pop(known.name)
