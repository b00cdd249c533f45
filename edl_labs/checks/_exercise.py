"""An exercise: three small functions, `cases`, `probe` and `compare`, registered under a name."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from edl_labs.checks.spec import Exercise, defines
from edl_labs.errors import EdlError, place_of

KINDS = ("code", "explain")


@dataclass(frozen=True)
class RegisteredExercise:
    """A registered exercise; `spec` is what its author wrote.

    `uses` names exercises whose reference stands in when the student's own is wrong; `trusting` marks evidence that
    rests on the student's process; `digits` is how many significant digits of floats a golden keeps; `trains` lowers
    the number of seeds it is proved with; `sleeps` says that its probe waits for most of its time, so that in grading
    another submission has the core meanwhile; `timeout_s` bounds all cases together, in `check` and in grading.
    """

    name: str
    lab: str
    spec: Exercise
    uses: tuple[str, ...] = ()
    trusting: bool = False
    digits: int = 9
    trains: bool = False
    sleeps: bool = False
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
        draw = self.drawing()
        try:
            cases = draw(rng)
        except EdlError:
            raise
        except Exception as error:
            raise EdlError(
                f"exercise {self.name}: cases() raised {type(error).__name__}",
                why=f"{error or 'it gave no message'} ({place_of(error)})",
                next="mend that line; cases() gets a numpy Generator and returns a list of plain data",
            ) from error
        if not isinstance(cases, list) or not cases:
            raise EdlError(f"exercise {self.name}: cases() gave no list of cases", next="return a list of plain data")
        return cases

    def drawing(self) -> Drawing:
        """What draws its cases: the spec's own method, or the judge's; EdlError where that is not installed."""
        return self.spec.cases if defines(type(self.spec), "cases") else _judges_drawing(self)


Drawing = Callable[[Any], list[Any]]
REGISTERED: dict[str, RegisteredExercise] = {}
"""Every exercise of the labs that were imported, by name."""
DRAWINGS: dict[str, Drawing] = {}
"""What draws cases in the judge's parts that were imported, by exercise."""
PACKAGE = "edl_labs.exercises"


def exercise(
    name: str,
    *,
    uses: Iterable[str] = (),
    trusting: bool = False,
    digits: int = 9,
    trains: bool = False,
    sleeps: bool = False,
    timeout_s: float = 60.0,
) -> Callable[[type], type]:
    """Class decorator that registers an exercise under `name`.

    It belongs to the lab whose folder or module below `exercises/` the class is written in. Its cases are drawn by its
    method `cases`, or by a function in the lab's `judge/` that says `@draws(name)`.
    """

    def register(cls: type) -> type:
        spec = _with_defaults(cls)
        missing = [part for part in ("probe", "compare") if not defines(spec, part)]
        if missing:
            raise EdlError(f"exercise {name} has no {' and no '.join(missing)}", next="see CONTRIBUTING.md, exercises")
        home = _lab_of(spec.__module__)
        known = REGISTERED.get(name)
        if known is not None and known.lab != home:
            raise EdlError(f"exercise {name} is in {known.lab} and in {home}", next="give one of them another name")
        REGISTERED[name] = RegisteredExercise(
            *(name, home, spec(), tuple(uses)),
            trusting=trusting,
            digits=digits,
            trains=trains,
            sleeps=sleeps,
            timeout_s=timeout_s,
        )
        return spec

    return register


def _with_defaults(cls: type) -> type[Exercise]:
    """The class itself, or with Exercise as its base where it lacks that."""
    if issubclass(cls, Exercise):
        return cls
    return type(cls.__name__, (cls, Exercise), {"__module__": cls.__module__, "__doc__": cls.__doc__})


def draws(name: str) -> Callable[[Drawing], Drawing]:
    """Decorator in a lab's `judge/`: the function draws the cases of the exercise `name`, as a method `cases` would.

    `judge/` is in no install of students: what labels cases or solves them a second time belongs there.
    """

    def register(drawing: Drawing) -> Drawing:
        known = DRAWINGS.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (drawing.__module__, drawing.__qualname__):
            raise EdlError(
                f"the cases of {name} are drawn in {known.__module__} and in {drawing.__module__}",
                next="keep one of the two functions",
            )
        DRAWINGS[name] = drawing
        return drawing

    return register


def _judges_drawing(exercise: RegisteredExercise) -> Drawing:
    """What draws an exercise's cases in the `judge/` beside it, imported when it was not yet."""
    judge = f"{PACKAGE}.{_lab_of(type(exercise.spec).__module__)}.judge"
    try:
        importlib.import_module(judge)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{judge}.".startswith(f"{error.name}."):
            raise
    if exercise.name not in DRAWINGS:
        raise EdlError(
            f"the hidden cases of {exercise.name} are not in this install",
            why="what students install holds no draws: they lie in the lab's judge/ folder",
            next="use a checkout of the course, or the wheel that `edl-labs wheel --judge` makes; "
            f'an author writes @draws("{exercise.name}") in judge/, or a method `cases`',
        )
    return DRAWINGS[exercise.name]


def _lab_of(module: str) -> str:
    """The part of a module's dotted path that stands below the package of exercises; its last part elsewhere."""
    below = module.removeprefix(f"{PACKAGE}.")
    return module.rpartition(".")[2] if below == module else below.partition(".")[0]
