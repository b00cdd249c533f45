"""An exercise: three small functions, `cases`, `probe` and `compare`, registered under a name."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import CodeType
from typing import Any

from edl_labs.checks.spec import Case, Exercise, copied_cases, defines
from edl_labs.errors import EdlError, place_of

KINDS = ("code", "explain")
PUBLIC_SEED = 1  # known to all; class runs draw from secret ones
_A_CASE = "a list of Case(given={...}, hidden={...}) with plain data"
_HOOKS = sorted(part for part in vars(Exercise) if not part.startswith("_"))
_ALIKE = 0.8  # of difflib's measure: slips of some letters, or a piece too many
FORMER_HOOKS = {
    "show": "format_case",
    "yours": "format_answer",
    "throughout": "diagnose_all_cases",
    "form": "answer_form",
    "raised": "explain_exception",
    "inputs": "student_inputs",
    "public": "public_want",
    "loose": "skip_type_check",
    "entry": "leaderboard_metrics",
    "timelines": "leaderboard_timelines",
}
"""The names of optional parts in version 1 of the contract, which found them by name."""


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

    def draw_cases(self, seed: int) -> list[Case]:
        """The cases of `seed`: the same list for the same seed, different for each exercise.

        They come in a drawn order, those of the public seed in the author's: who only counts how often they were asked
        cannot tell by the public cases what a secret one is about. `judge` sees them in the author's again.
        """
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
                next=f"correct the line named above; cases() gets a numpy Generator and must return {_A_CASE}",
            ) from error
        if not isinstance(cases, list) or not cases or not all(isinstance(case, Case) for case in cases):
            raise EdlError(
                f"exercise {self.name}: cases() did not return a list of cases",
                why="each case must declare which of its parts the student's process receives",
                next=f"return {_A_CASE}",
            )
        if seed != PUBLIC_SEED:
            order = numpy.random.Generator(numpy.random.PCG64(int.from_bytes(digest[16:], "little")))
            cases = [replace(cases[at], place=int(at)) for at in order.permutation(len(cases))]
        return copied_cases(cases)

    def drawing(self) -> Drawing:
        """What draws its cases: the spec's own method, or the judge's; EdlError where that is not installed."""
        return self.spec.cases if defines(type(self.spec), "cases") else _judges_drawing(self)


Drawing = Callable[[Any], list[Case]]
REGISTERED: dict[str, RegisteredExercise] = {}
"""All exercises of the imported labs, by name."""
DRAWINGS: dict[str, Drawing] = {}
"""The functions that draw cases, from the imported `judge/` folders, by exercise."""
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
    method `cases`, or by a function in the lab's `judge/` that says `@case_source(name)`.
    """

    def register(cls: type) -> type:
        spec = _of_this_version(name, cls)
        home = _lab_of(spec.__module__)
        known = REGISTERED.get(name)
        if known is not None and known.lab != home:
            raise EdlError(
                f"exercise {name} is defined in both {known.lab} and {home}", next="give one of them another name"
            )
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


def _of_this_version(name: str, cls: type) -> type[Exercise]:
    """The class, if it is one of the typed contract; EdlError says what is not."""
    if not issubclass(cls, Exercise):
        raise EdlError(
            f"exercise {name}: {cls.__name__} is not a subclass of Exercise",
            why="the base class provides a default for every optional part",
            next=f"write `class {cls.__name__}(Exercise)`, with `from edl_labs.checks import Exercise`",
        )
    former = sorted(FORMER_HOOKS.keys() & {part for base in cls.__mro__ for part in vars(base)})
    if former:
        raise EdlError(
            f"exercise {name} defines {former[0]}, the former name of {FORMER_HOOKS[former[0]]}",
            why="the judge used to call an optional part by the former name, but no longer does",
            next=f"rename it to {FORMER_HOOKS[former[0]]}; if it is only a helper, call it, for example, _{former[0]}",
        )
    for part in sorted({part for base in cls.__mro__ for part in vars(base)} - vars(Exercise).keys()):
        meant = [] if part.startswith("_") else get_close_matches(part, _HOOKS, n=1, cutoff=_ALIKE)
        if meant and not _is_read(cls, part):
            raise EdlError(
                f"exercise {name} defines {part}, which no other part of the class uses",
                why=f"the name is almost that of an optional part, {meant[0]}",
                next=f"rename it to {meant[0]}; if it is only a helper, call it, for example, _{part}",
            )
    missing = [part for part in ("probe", "compare") if not defines(cls, part)]
    if missing:
        raise EdlError(
            f"exercise {name} has no {' and no '.join(missing)}",
            why="the judge needs both probe and compare",
            next="write them as docs/authoring.md shows",
        )
    if not cls.answers:
        raise EdlError(
            f"exercise {name} does not declare its answers",
            why="without this declaration, answers cannot be distinguished from other evidence",
            next='write `answers = "all"` in the class, or list the fields that are answers: `answers = ("scale",)`',
        )
    return cls


def _is_read(cls: type, part: str) -> bool:
    """Whether another part of the class, or of a base, reads `part`, such as `compare` that calls a helper."""
    return any(
        part in _names_in(getattr(function, "__code__", None))
        for base in cls.__mro__
        for name, value in vars(base).items()
        if name != part
        for function in _functions_of(value)
    )


def _functions_of(value: Any) -> list[Any]:
    """The functions that a class holds as `value`: of a property there are up to three."""
    held = [getattr(value, place, None) for place in ("__func__", "func", "fget", "fset", "fdel")]
    return [inspect.unwrap(one) for one in [value, *held] if callable(one)]


def _names_in(code: Any) -> set[str]:
    """The globals and attributes that code names, with those of the functions inside; no local names."""
    if not isinstance(code, CodeType):
        return set()
    return set(code.co_names).union(*map(_names_in, code.co_consts))


def case_source(name: str) -> Callable[[Drawing], Drawing]:
    """Decorator in a lab's `judge/`: the function draws the cases of the exercise `name`, as a method `cases` would.

    `judge/` is in no install of students: what labels cases or solves them a second time belongs there.
    """

    def register(drawing: Drawing) -> Drawing:
        known = DRAWINGS.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (drawing.__module__, drawing.__qualname__):
            raise EdlError(
                f"both {known.__module__} and {drawing.__module__} draw the cases of {name}",
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
            f"the secret cases of {exercise.name} are not in this install",
            why="the code that draws secret cases is in the lab's judge/ folder, which the students' wheel lacks",
            next="use a checkout of the course, or the wheel that `edl-labs wheel --judge` builds; "
            f'if you are its author, write @case_source("{exercise.name}") in judge/, or a method `cases`',
        )
    return DRAWINGS[exercise.name]


def _lab_of(module: str) -> str:
    """The part of a module's dotted path that stands below the package of exercises; its last part elsewhere."""
    below = module.removeprefix(f"{PACKAGE}.")
    return module.rpartition(".")[2] if below == module else below.partition(".")[0]
