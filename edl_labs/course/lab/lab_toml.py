"""The reader of lab.toml: title, minutes, device, run parameters, points and hints, strictly checked."""

from __future__ import annotations

import re
import tomllib
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field, structs

from edl_labs.course.lab.source import NAME
from edl_labs.course.toml_file import Misfit, TomlPath, key_lines, line_of, misfit
from edl_labs.errors import SourceError, did_you_mean

Text = Annotated[str, Meta(pattern=r"\S")]
DataFile = Annotated[str, Meta(pattern=r"^[\w-][\w.-]*(/[\w-][\w.-]*)*(?<!\.py)(?<!\.toml)(?<!\.ipynb)\Z")]
Points = Annotated[int, Meta(gt=0, lt=1000)] | Annotated[float, Meta(gt=0, lt=1000)]
Minutes = Annotated[int, Meta(ge=0, lt=1000)] | Annotated[float, Meta(ge=0, lt=1000)]
Mode = Literal["smoke", "full"]
_RUBRIC = re.compile(r"(\d+(?:\.\d+)?) points?: \S.*", re.DOTALL)
_OF_ONE_KIND = {"code": ("library", "optional"), "explain": ("rubric", "model_answer")}  # which no other kind has
_MORE_HINTS = "an exercise needs two or more hints, each more explicit than the one before"
# Key → what its error says, and what to write instead. A key that is missing has the value None.
_SAID = {
    "title": ("title is missing or empty", 'write title = "..."'),
    "minutes": ("minutes must be a whole number above 0", "write minutes = 90"),
    "device": ("device is {value!r}", "write one of any, cuda"),
    "data": ("{value!r} is not a data file of the lab", "list files that are next to lab.toml"),
    "public_lines": ("public_lines must be a list of strings", 'write public_lines = ["...", "..."]'),
    "graded_with": ("graded_with is {value!r}", "write smoke (the default) or full"),
    "parameters": (
        "parameters.smoke or parameters.full is missing",
        "write [parameters.smoke] for a quick run and [parameters.full] for the full run",
    ),
    "gives_away": (
        "`gives_away` must be a table that has a list of strings for each box",
        'write NAME = ["...", "..."] below [gives_away]',
    ),
    "exercise": ("the lab has no exercise", "write an [[exercise]] table for each exercise"),
    "exercise.name": ("name is missing or empty", 'write name = "..."'),
    "exercise.kind": ("kind is {value!r}", "write one of code, explain"),
    "exercise.points": (
        "{name}: points must be a number above 0",
        "write points = 2, or optional = true for practice without points",
    ),
    "exercise.hints": ("hints must be a list of strings", 'write hints = ["...", "..."]'),
    "exercise.rubric": ("rubric must be a list of strings", 'write rubric = ["1 point: ...", ...]'),
    "exercise.model_answer": ("model_answer is missing or empty", 'write model_answer = "..."'),
    "exercise.library": (
        "{name}: `library` must be a table that has a sentence for each function",
        'write library = { "torch.profiler.schedule" = "why it is an answer" }',
    ),
    "exercise.optional": ("{name}: `optional` must be true or false", "write optional = true"),
    "exercise.minutes": (
        "{name}: minutes must be a number that is not negative",
        "write minutes = 20, or leave it out",
    ),
    "exercise.pause_after": (
        "{name}: a sitting cannot end here",
        "write pause_after = true only for the last graded exercise of a sitting",
    ),
}


class _ExerciseTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an [[exercise]] table may hold."""

    name: Text
    kind: Literal["code", "explain"] = "code"
    points: Points = 0.0
    hints: tuple[Text, ...] = ()
    rubric: tuple[Text, ...] = ()
    model_answer: str = ""
    library: dict[str, Text] = {}
    """Library functions that are an allowed answer, each with a sentence that says why."""
    optional: bool = False
    """Whether it is practice: checked, proved and shown like every other exercise, but without points."""
    minutes: Minutes = 0
    """Its share of the lab's minutes, with the text before it; all graded exercises or none have minutes (then 0)."""
    pause_after: bool = False
    """Whether a sitting ends after it, so that the lab continues on another day."""


class LabExercise(_ExerciseTable, frozen=True, kw_only=True):
    """One exercise as lab.toml describes it; `line` is where."""

    line: int = 1

    @property
    def weight(self) -> float:
        """What proofs count it as: its points, or 1 where it has none."""
        return self.points or 1.0


class _LabTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a lab.toml may hold."""

    title: Text
    minutes: Annotated[int, Meta(gt=0)]
    device: Literal["any", "cuda"] = "any"
    data: tuple[DataFile, ...] = ()
    public_lines: tuple[Text, ...] = ()
    graded_with: Mode = "smoke"
    """The table of parameters that a notebook is graded with."""
    gives_away: dict[str, tuple[Text, ...]] = {}
    """For each prediction box, texts that give its answer away: none may be visible before the reveal."""
    parameters: Annotated[dict[Mode, dict[str, Any]], Meta(min_length=2)]
    exercises: Annotated[tuple[_ExerciseTable, ...], Meta(min_length=1)] = field(name="exercise")


class LabToml(_LabTable, frozen=True, kw_only=True):
    """A valid lab.toml. `lines` says where each key is."""

    file: str
    lines: dict[TomlPath, int]
    exercises: tuple[LabExercise, ...]

    def line(self, *path: str | int) -> int:
        """The line of a key, or of the nearest table around it."""
        return line_of(self.lines, path)


def read_lab_toml(text: str, *, file: str) -> LabToml:
    """The content of a lab.toml; SourceError with file and line for whatever is not as it must be."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        line = int(at[1]) if at else text.count("\n") + 1
        raise SourceError(f"this is not valid TOML: {error}", file=file, line=line, next="fix the line") from None
    return _Reader(data, key_lines(text), file).lab()


class _Reader:
    def __init__(self, data: dict[str, Any], lines: dict[TomlPath, int], file: str) -> None:
        self.data, self.lines, self.file = data, lines, file

    def error(self, what: str, *path: str | int, why: str = "", next: str = "") -> SourceError:
        return SourceError(what, file=self.file, line=line_of(self.lines, path), why=why, next=next)

    def lab(self) -> LabToml:
        try:
            lab = msgspec.convert(self.data, _LabTable)
        except msgspec.ValidationError as error:
            raise self.refusal(misfit(error, self.data)) from None
        exercises = tuple(self.exercise(one, index) for index, one in enumerate(lab.exercises))
        self.check_names(exercises)
        self.check_minutes(lab.minutes, [one for one in exercises if not one.optional])
        return LabToml(**{**structs.asdict(lab), "exercises": exercises}, file=self.file, lines=self.lines)

    def refusal(self, found: Misfit) -> SourceError:
        if found.unknown:
            return self.unknown(found)
        what, then = _SAID.get(found.key, (f"{found.key} is {found.value!r}", "write it as docs/authoring.md shows"))
        place = self.data["exercise"][found.path[1]] if len(found.path) > 2 else {}
        return self.error(what.format(value=found.value, name=place.get("name")), *found.path, next=then)

    def unknown(self, found: Misfit) -> SourceError:
        key = str(found.path[-1])
        if found.path[0] == "parameters":
            return self.error(f"unknown table parameters.{key}", *found.path, next=_SAID["parameters"][1])
        of_exercise = len(found.path) > 1
        known = [one.encode_name for one in structs.fields(_ExerciseTable if of_exercise else _LabTable)]
        then = did_you_mean(key, known) or f"use one of {', '.join(known)}"
        return self.error(f"unknown key {key}", *found.path, next=then)

    def exercise(self, one: _ExerciseTable, index: int) -> LabExercise:
        at, name = ("exercise", index), one.name
        self.check_kind(one, *at)
        if not NAME.fullmatch(name):
            why = "a name has at most 40 lower-case letters, digits and underscores, and begins with a letter"
            raise self.error(f"{name!r} is not an exercise's name", *at, "name", why=why)
        if one.optional and one.points:
            why = "optional practice gives no points"
            raise self.error(
                f"{name} is optional, but has points",
                *at,
                "points",
                why=why,
                next="remove either `points` or `optional`",
            )
        if not one.optional and not one.points:
            raise self.refusal(Misfit((*at, "points"), None, unknown=False))
        self.check_hints(one, *at)
        if one.kind == "explain":
            self.check_rubric(one, *at)
        if one.pause_after and one.optional:
            raise self.refusal(Misfit((*at, "pause_after"), True, unknown=False))
        return LabExercise(**structs.asdict(one), line=self.lines[at])

    def check_kind(self, one: _ExerciseTable, *at: str | int) -> None:
        table = self.data["exercise"][at[1]]
        others = [key for kind, keys in _OF_ONE_KIND.items() if kind != one.kind for key in keys if key in table]
        if others:
            raise self.error(
                f"unknown key {others[0]}",
                *at,
                others[0],
                next=f"remove it: exercises of kind {one.kind} do not have this key",
            )

    def check_hints(self, one: _ExerciseTable, *at: str | int) -> None:
        count = len(one.hints)
        if count < 2:
            what, then = f"{one.name} has {count} hint{'' if count == 1 else 's'}", _SAID["exercise.hints"][1]
            raise self.error(what, *at, "hints", why=_MORE_HINTS, next=then)
        if len({" ".join(hint.casefold().split()) for hint in one.hints}) < count:
            what = f"{one.name} has the same hint twice"
            raise self.error(what, *at, "hints", why=_MORE_HINTS, next="replace one of them")

    def check_rubric(self, one: _ExerciseTable, *at: str | int) -> None:
        if not one.rubric:
            what = f"{one.name} has no rubric"
            raise self.error(what, *at, "rubric", next=_SAID["exercise.rubric"][1])
        marks = [_RUBRIC.fullmatch(line) for line in one.rubric]
        if not all(marks):
            bad = one.rubric[marks.index(None)]
            raise self.error(
                f"{one.name}: {bad!r} does not state its points", *at, "rubric", next='write "1 point: what earns it"'
            )
        total = sum(float(mark[1]) for mark in marks if mark)
        if abs(total - one.points) > 1e-9:
            what = f"{one.name}: the rubric has {total:g} points, but the exercise has {one.points:g}"
            raise self.error(what, *at, "rubric")
        if not one.model_answer.strip():
            raise self.refusal(Misfit((*at, "model_answer"), None, unknown=False))

    def check_names(self, exercises: tuple[LabExercise, ...]) -> None:
        seen: dict[str, LabExercise] = {}
        for index, one in enumerate(exercises):
            if one.name in seen:
                why = f"the first is at line {seen[one.name].line}"
                raise self.error(f"there is a second exercise named {one.name}", "exercise", index, "name", why=why)
            seen[one.name] = one

    def check_minutes(self, minutes: int, graded: list[LabExercise]) -> None:
        """Refuse minutes of some exercises only, and minutes that do not make the lab's."""
        total = sum(one.minutes for one in graded)
        if not total or (all(one.minutes for one in graded) and total == minutes):
            return
        why = f"the graded exercises have {total:g} minutes in total, but the lab has {minutes}"
        need = "give every graded exercise its minutes, including those for the text before it, or remove all of them"
        raise self.error("the exercises' minutes do not add up to the lab's", "minutes", why=why, next=need)
