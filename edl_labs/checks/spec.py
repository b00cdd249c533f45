"""What the author of an exercise writes: a base class that declares every part with its default, and its cases."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, ClassVar, Literal

from edl_labs.checks.evidence_form import answer_text, case_lines
from edl_labs.checks.plain_data import plain_copy
from edl_labs.errors import EdlError, Wrong

MOST_KEPT_BYTES = 400_000  # of timelines as JSON: those of two programs at their own bound, and half as much again
AS_THE_REFERENCE = object()
"""The form of answers where a spec declares none: that of the reference's own evidence."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Case(Mapping[str, Any]):
    """What one probe is asked, in two halves; the judge reads it as one mapping.

    `given` goes into the student's process, who can read all of it. `hidden` (labels, true values, prices, whatever
    the answer follows from) never leaves the judge. A case is no plain data, so that nothing can send it whole.

    >>> case = Case(given={"x": 3}, hidden={"label": "odd"})
    >>> case["label"], list(case), given_halves([case])
    ('odd', ['x', 'label'], [{'x': 3}])
    """

    given: Mapping[str, Any]
    hidden: Mapping[str, Any] = field(default_factory=dict)
    place: int | None = None
    """Its position in the author's order, if the cases are asked in a different order; the judge uses the author's."""

    def __post_init__(self) -> None:
        for key in self.given.keys() & self.hidden.keys():
            raise EdlError(
                f"{key!r} is in both halves of a case",
                why="the student's process receives everything in `given`, so the value would not be hidden",
                next="keep it only in `hidden`; if the student's function needs it, keep it only in `given`",
            )

    @classmethod
    def split(cls, entries: Mapping[str, Any], *hidden: str) -> Case:
        """A case of `entries`; those that are named, where it has them, are hidden."""
        given = {key: value for key, value in entries.items() if key not in hidden}
        return cls(given=given, hidden={key: entries[key] for key in hidden if key in entries})

    def __getitem__(self, key: str) -> Any:
        return self.given[key] if key in self.given else self.hidden[key]

    def __iter__(self) -> Iterator[str]:
        yield from self.given
        yield from self.hidden

    def __len__(self) -> int:
        return len(self.given) + len(self.hidden)


def given_halves(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """What of each case may leave the judge: the one place where cases are split."""
    return [dict(case.given) for case in cases]


def plain_cases(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """Both halves as plain data, for what the judge keeps and for goldens."""
    return [
        {
            "given": dict(case.given),
            "hidden": dict(case.hidden),
            **({} if case.place is None else {"place": case.place}),
        }
        for case in cases
    ]


def authors_order(cases: list[Any]) -> list[int]:
    """The numbers of the cases in the order in which their author drew them."""
    places = [getattr(case, "place", None) for case in cases]
    return sorted(range(len(cases)), key=lambda at: at if (place := places[at]) is None else place)


def cases_of(plain: Iterable[Mapping[str, Any]]) -> list[Case]:
    """The cases of what `plain_cases` made."""
    return [Case(**halves) for halves in plain]


def copied_cases(cases: Iterable[Case]) -> list[Case]:
    """Cases that share nothing with `cases`."""
    return cases_of(plain_copy(plain_cases(cases)))


def with_hand_ins(cases: Iterable[Case], read: Any) -> list[Case]:
    """The cases, with what was `read` of the files that were handed in in their hidden halves."""
    return [replace(case, hidden={**case.hidden, "handed_in": read}) for case in cases]


def read_here(spec: type[Exercise] | Exercise, cases: Iterable[Case], files: Mapping[str, bytes]) -> list[Case]:
    """The cases, with what the exercise reads here of `files`: the instructor's own, which are trusted."""
    if not spec.hand_ins:
        return list(cases)
    module, _, function = spec.hand_in_reader.partition(":")
    known = {name: files[name] for name in spec.hand_ins if name in files}
    return with_hand_ins(cases, getattr(import_module(module), function)(known))


class Exercise(ABC):
    """An exercise: `probe` and `compare`, and `cases` unless the lab's `judge/` draws them. All else is optional.

    `cases` and `compare` run on the judge's side, `probe` next to the student's code. Both halves of a case and all
    evidence are plain data.
    """

    answer_form: ClassVar[Any] = AS_THE_REFERENCE
    """The form of the evidence, where the goldens contain only a part of the reference's own (`public_want`)."""
    skip_type_check: ClassVar[bool] = False
    """`compare` checks the form itself and gets arrays as lists; otherwise a wrong form is refused before `compare`."""
    returns: ClassVar[Mapping[str, Any]] = {}
    """The return types of the student's functions, by function name, where `probe` reads an answer before it passes it
    on: `{"fit": tuple[float, float]}`. An answer of a different form is refused and never reaches the probe."""
    source_is_evidence: ClassVar[bool] = False
    """The evidence is a dict whose "source" lists the texts of cells. Grading reads them in the submitted notebook."""

    answers: ClassVar[tuple[str, ...] | Literal["all"] | None] = None
    """The fields of the evidence that the text asks for, as `"scale"` or `"steps.scale"`, or `"all"`; each exercise
    declares them. All other fields are claims of the student's process and must not earn points on their own:
    `edl-labs test LAB --forge` falsifies them, and everything that a recorded program may not choose.
    `"programs.scale.factor"` is a field of an operation that the program may choose here."""

    hand_ins: ClassVar[tuple[str, ...]] = ()
    """Files next to the notebook that are judged. `case["handed_in"]` contains what was read from those that exist.
    It is hidden: the student's process never gets it, and nothing that the process reports can replace it."""
    hand_in_reader: ClassVar[str] = ""
    """The function, "module:name", that turns the bytes of the named files into plain data. Grading calls it in a
    separate process, under limits: the judge never touches the bytes. It returns `{"refused": [what, why, next]}` for
    files that it cannot read, and grading does the same if that process does not finish."""

    def cases(self, rng: Any) -> list[Case]:
        """The cases that a numpy Generator draws."""
        raise NotImplementedError

    @abstractmethod
    def probe(self, student: Any, given: Any) -> object:
        """The evidence of one case, from the student's names and the half of the case that the student is given."""
        raise NotImplementedError

    @abstractmethod
    def compare(self, case: Case, got: Any, want: Any) -> float | None:
        """Nothing where the evidence is right, a fraction, or `Wrong` is raised; `want` is the reference's evidence."""
        raise NotImplementedError

    def combine(self, fractions: list[float]) -> float:
        """The share of the points from the fractions of all cases; by default one case that earns nothing costs all."""
        return 0.0 if not fractions or min(fractions) <= 0 else sum(fractions) / len(fractions)

    def diagnose_all_cases(self, cases: list[Case], got: list[Any], want: list[Any]) -> Wrong | None:
        """The one mistake that explains the answers to all cases, the right ones too; a single case may fit several."""
        return None

    def explain_exception(self, case: Case, kind: str) -> Wrong | None:
        """What an exception of the type `kind` means in this case; None where its own message says it."""
        return None

    def format_case(self, case: Case) -> str:
        """A case as its student reads it; by default what the student's code is given."""
        return case_lines(dict(case.given))

    def format_answer(self, case: Case, got: Any) -> str:
        """What the student's code gave, as text below the case; by default nothing where there is an `answer_form`."""
        return answer_text(got) if self.answer_form is AS_THE_REFERENCE else ""

    def student_inputs(self, case: Case) -> object:
        """What `case("name")` gives a student to try their code on, such as the tensors that a seed makes."""
        return dict(case.given)

    def is_public(self, case: Case) -> bool:
        """Whether goldens hold a case of the public seed. Where few can be asked at all, they would give most away."""
        return True

    def public_want(self, case: Case, want: Any) -> object:
        """What goldens hold of the reference's evidence, where all of it would be an answer to copy."""
        return want

    def leaderboard_metrics(self, cases: list[Case], got: list[Any]) -> Mapping[str, float]:
        """Numbers by name that accompany the mark of answers which earn points, for a leaderboard."""
        return {}

    def leaderboard_timelines(self, cases: list[Case], got: list[Any], want: list[Any]) -> Mapping[str, Any]:
        """What ran when in one case, the student's and the reference's, as `TrainingSteps.to_plain()` gives it."""
        return {}

    def stand_in(self) -> Mapping[str, Any]:
        """What takes the place of this exercise's class where another uses it: names made of what libraries have."""
        return {}


def finite_metrics(spec: Exercise, cases: list[Case], records: list[Any]) -> dict[str, float]:
    """What the spec says in numbers of answers that earn points: finite ones by name, or nothing."""
    try:
        found = spec.leaderboard_metrics(cases, [record["value"] for record in records])
        numbers = {str(name): float(value) for name, value in found.items()}
    except Exception:  # the mark stands, whatever is said beside it
        return {}
    return numbers if all(map(math.isfinite, numbers.values())) else {}


def kept_timelines(spec: Exercise, cases: list[Case], records: list[Any], want: list[Any]) -> dict[str, Any]:
    """What the spec keeps of answers that earned points, for a leaderboard to show.

    Plain JSON data of at most MOST_KEPT_BYTES, or nothing: the mark counts, whatever is stored with it.
    """
    try:
        order = authors_order(cases)
        drawn, got, right = ([every[at] for at in order] for every in (cases, records, want))
        kept = spec.leaderboard_timelines(drawn, [record["value"] for record in got], right)
        text = json.dumps(kept, allow_nan=False)
        found = json.loads(text)
    except Exception:
        return {}
    return found if isinstance(found, dict) and len(text) <= MOST_KEPT_BYTES else {}


def defines(spec: type[Exercise], part: str) -> bool:
    """Whether an exercise's author wrote a part, or left it as it is here."""
    return getattr(spec, part) is not getattr(Exercise, part)
