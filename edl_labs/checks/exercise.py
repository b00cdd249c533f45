"""An exercise: three small functions, `cases`, `probe` and `compare`, registered under a name."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
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


def exercise(
    name: str,
    *,
    uses: Iterable[str] = (),
    trusting: bool = False,
    digits: int = 9,
    trains: bool = False,
    timeout_s: float = 60.0,
) -> Callable[[type], type]:
    """Class decorator that registers an exercise under `name`; the module's name says which lab it belongs to."""

    def register(cls: type) -> type:
        missing = [part for part in ("cases", "probe", "compare") if not callable(getattr(cls, part, None))]
        if missing:
            raise EdlError(f"exercise {name} has no {' and no '.join(missing)}", next="see CONTRIBUTING.md, exercises")
        lab = cls.__module__.rpartition(".")[2]
        known = _REGISTRY.exercises.get(name)
        if known is not None and known.lab != lab:
            raise EdlError(f"exercise {name} is in {known.lab} and in {lab}", next="give one of them another name")
        _REGISTRY.exercises[name] = Exercise(
            name, lab, cls(), tuple(uses), trusting=trusting, digits=digits, trains=trains, timeout_s=timeout_s
        )
        return cls

    return register


def exercises_folder() -> Path:
    """Where the exercise modules lie: the package's folder, or what EDL_LABS_EXERCISES names (a course of your own)."""
    own = os.environ.get("EDL_LABS_EXERCISES")
    return Path(own) if own else Path(__file__).resolve().parent.parent / "exercises"


def load_lab(lab: str) -> list[Exercise]:
    """The exercises of one lab in the order of its module, importing it when it was not yet."""
    path = exercises_folder() / f"{lab}.py"
    if _REGISTRY.loaded.get(lab) != path:
        if not path.is_file():
            raise UsageError(f"no exercises for {lab}", why="its module is missing", next=f"edl-labs new {lab}")
        for name in [n for n, e in _REGISTRY.exercises.items() if e.lab == lab]:
            del _REGISTRY.exercises[name]
        _import(lab, path)
        _REGISTRY.loaded[lab] = path
    return [e for e in _REGISTRY.exercises.values() if e.lab == lab]


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


def lab_names() -> list[str]:
    """Every lab that has an exercise module, in order."""
    return sorted(p.stem for p in exercises_folder().glob("lab*.py"))


def _import(lab: str, path: Path) -> None:
    name = f"edl_labs.exercises.{lab}"
    own = Path(__file__).resolve().parent.parent / "exercises" / f"{lab}.py"
    if path.resolve() == own:
        if name in sys.modules:
            importlib.reload(sys.modules[name])
        else:
            importlib.import_module(name)
        return
    spec = importlib.util.spec_from_file_location(f"edl_course.{lab}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
