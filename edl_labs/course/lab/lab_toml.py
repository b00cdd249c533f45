"""The reader of lab.toml: title, minutes, device, run parameters, points and hints, strictly checked."""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

from edl_labs.course.lab.source import NAME
from edl_labs.errors import SourceError

DEVICES = ("any", "cuda")
KINDS = ("code", "explain")
_TOP = ("title", "minutes", "device", "data", "public_lines", "graded_with", "parameters", "exercise")
_COMMON = ("name", "kind", "points", "hints", "minutes", "pause_after")
_CODE = ("library", "optional")
_EXPLAIN = ("rubric", "model_answer")
_RUBRIC = re.compile(r"(\d+(?:\.\d+)?) points?: \S.*", re.DOTALL)
_Path = tuple["str | int", ...]
_HEADER = re.compile(r"\s*\[(\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=(.*)$", re.DOTALL)
_TOKENS = (
    r'"""(?:\\.|[^\\])*?"""',
    r"'''.*?'''",
    r'(?P<open>"""|\'\'\')',  # what is left of the three quotes when no end is in sight
    r'"(?:\\.|[^"\\\n])*"',
    r"'[^'\n]*'",
    r"#[^\n]*",
)
_STRINGS = re.compile("|".join(_TOKENS), re.DOTALL)


@dataclass(frozen=True)
class LabExercise:
    """One exercise as lab.toml describes it; `line` is where."""

    name: str
    kind: str
    points: float
    hints: tuple[str, ...]
    rubric: tuple[str, ...] = ()
    model_answer: str = ""
    library: tuple[tuple[str, str], ...] = ()
    """Library functions that are an allowed answer, each with a sentence that says why."""
    optional: bool = False
    """Practice: it is checked, proved and shown as every other, and gives no points."""
    minutes: float = 0.0
    """Of the lab's, with the reading before it; those of all graded exercises make the lab's. 0 where none has them."""
    pause_after: bool = False
    """A sitting ends with it: the lab goes on another day."""
    line: int = 1

    @property
    def weight(self) -> float:
        """What proofs count it as: its points, or 1 where it has none."""
        return self.points or 1.0


@dataclass(frozen=True)
class LabToml:
    """A valid lab.toml. `lines` says where each key is."""

    file: str
    title: str
    minutes: int
    device: str
    data: tuple[str, ...]
    public_lines: tuple[str, ...]
    parameters: dict[str, dict[str, Any]]
    exercises: tuple[LabExercise, ...]
    graded_with: str = "smoke"
    """Which of the parameters' two tables a notebook is graded with."""
    lines: dict[tuple[str | int, ...], int] = field(repr=False, default_factory=dict)

    def line(self, *path: str | int) -> int:
        """The line of a key, or of the nearest table around it."""
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]


def read_lab_toml(text: str, *, file: str) -> LabToml:
    """The content of a lab.toml; SourceError with file and line for whatever is not as it must be."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        line = int(at[1]) if at else text.count("\n") + 1
        raise SourceError(f"not TOML: {error}", file=file, line=line, next="mend the line") from None
    return _Reader(data, key_lines(text), file).lab()


class _Reader:
    def __init__(self, data: dict[str, Any], lines: dict[tuple[str | int, ...], int], file: str) -> None:
        self.data, self.lines, self.file = data, lines, file

    def error(self, what: str, *path: str | int, why: str = "", next: str = "") -> SourceError:
        while path not in self.lines:
            path = path[:-1]
        return SourceError(what, file=self.file, line=self.lines[path], why=why, next=next)

    def lab(self) -> LabToml:
        self.known(self.data, _TOP)
        device = self.data.get("device", "any")
        if device not in DEVICES:
            raise self.error(f"device is {device!r}", "device", next=f"write one of {', '.join(DEVICES)}")
        return LabToml(
            file=self.file,
            title=self.text(self.data, "title"),
            minutes=self.minutes(),
            device=device,
            data=self.names(),
            public_lines=tuple(self.texts(self.data, "public_lines")),
            parameters=self.parameters(),
            exercises=self.exercises(),
            graded_with=self.graded_with(),
            lines=self.lines,
        )

    def known(self, table: dict[str, Any], keys: tuple[str, ...], *path: str | int) -> None:
        for key in table:
            if key not in keys:
                near = difflib.get_close_matches(key, keys, n=1)
                better = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(keys)}"
                raise self.error(f"unknown key {key}", *path, key, next=better)

    def text(self, table: dict[str, Any], key: str, *path: str | int) -> str:
        value = table.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"{key} is missing or empty", *path, key, next=f'write {key} = "..."')
        return value

    def texts(self, table: dict[str, Any], key: str, *path: str | int) -> list[str]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) and v.strip() for v in value):
            raise self.error(f"{key} is not a list of texts", *path, key, next=f'write {key} = ["...", "..."]')
        return value

    def minutes(self) -> int:
        value = self.data.get("minutes")
        if type(value) is not int or value <= 0:
            raise self.error("minutes is not a whole number above 0", "minutes", next="write minutes = 90")
        return value

    def names(self) -> tuple[str, ...]:
        names = self.texts(self.data, "data")
        for name in names:
            if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)*", name) or name.endswith((".py", ".toml", ".ipynb")):
                raise self.error(f"{name!r} is not a data file of the lab", "data", next="name files beside lab.toml")
        return tuple(names)

    def parameters(self) -> dict[str, dict[str, Any]]:
        tables = self.data.get("parameters")
        if not isinstance(tables, dict) or set(tables) != {"smoke", "full"}:
            extra = [t for t in tables if t not in ("smoke", "full")] if isinstance(tables, dict) else []
            raise self.error(
                f"unknown table parameters.{extra[0]}" if extra else "parameters.smoke or parameters.full is missing",
                *(("parameters", extra[0]) if extra else ("parameters",)),
                next="write [parameters.smoke] for a quick headless run and [parameters.full] for the real one",
            )
        for mode, table in tables.items():
            if not isinstance(table, dict):
                raise self.error(f"parameters.{mode} is not a table", "parameters", mode)
        return {mode: dict(tables[mode]) for mode in ("smoke", "full")}

    def graded_with(self) -> str:
        value = self.data.get("graded_with", "smoke")
        if value not in ("smoke", "full"):
            raise self.error(f"graded_with is {value!r}", "graded_with", next="write smoke, the usual one, or full")
        return str(value)

    def exercises(self) -> tuple[LabExercise, ...]:
        tables = self.data.get("exercise", [])
        if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables) or not tables:
            raise self.error("the lab has no exercise", "exercise", next="write an [[exercise]] table for each")
        found = [self.exercise(table, index) for index, table in enumerate(tables)]
        seen: dict[str, LabExercise] = {}
        for index, one in enumerate(found):
            if one.name in seen:
                why = f"the first is at line {seen[one.name].line}"
                raise self.error(f"there is a second exercise called {one.name}", "exercise", index, "name", why=why)
            seen[one.name] = one
        self.shared_minutes([one for one in found if not one.optional])
        return tuple(found)

    def shared_minutes(self, graded: list[LabExercise]) -> None:
        """Refuse minutes of some exercises only, and minutes that do not make the lab's."""
        total = sum(one.minutes for one in graded)
        if not total or (all(one.minutes for one in graded) and total == self.minutes()):
            return
        why = f"the graded exercises have {total:g} minutes, and the lab has {self.minutes()}"
        need = "give each graded exercise its minutes, with the reading before it, or none"
        raise self.error("the exercises' minutes are not the lab's", "minutes", why=why, next=need)

    def exercise(self, table: dict[str, Any], index: int) -> LabExercise:
        at = ("exercise", index)
        kind = table.get("kind", "code")
        if kind not in KINDS:
            raise self.error(f"kind is {kind!r}", *at, "kind", next=f"write one of {', '.join(KINDS)}")
        self.known(table, (*_COMMON, *(_EXPLAIN if kind == "explain" else _CODE)), *at)
        name = self.text(table, "name", *at)
        if not NAME.fullmatch(name):
            why = "names are lower-case letters, digits and underscores, at most 40, a letter first"
            raise self.error(f"{name!r} is not an exercise's name", *at, "name", why=why)
        points = self.points(table, name, *at)
        hints = self.texts(table, "hints", *at)
        if len(hints) < 2:
            raise self.error(
                f"{name} has {len(hints)} hint{'' if len(hints) == 1 else 's'}",
                *(*at, "hints"),
                why="an exercise has two or more, each saying more than the one before",
                next='write hints = ["...", "..."]',
            )
        said = [" ".join(hint.casefold().split()) for hint in hints]
        if len(set(said)) < len(said):
            why = "an exercise has two or more, each saying more than the one before"
            raise self.error(f"{name} gives the same hint twice", *(*at, "hints"), why=why, next="write another one")
        explain = self.explain(table, name, points, *at) if kind == "explain" else self.allowed(table, name, *at)
        minutes = table.get("minutes", 0)
        if type(minutes) not in (int, float) or not 0 <= minutes < 1000:
            need = "write minutes = 20, or leave it out"
            raise self.error(f"{name}: minutes is not a number from 0", *(*at, "minutes"), next=need)
        pause = table.get("pause_after", False)
        if type(pause) is not bool or (pause and table.get("optional")):
            need = "write pause_after = true with the last graded exercise of a sitting"
            raise self.error(f"{name}: no sitting ends here", *(*at, "pause_after"), next=need)
        rest = {"line": self.lines[at], "minutes": minutes, "pause_after": pause}
        return LabExercise(name, kind, points, tuple(hints), **rest, **explain)

    def points(self, table: dict[str, Any], name: str, *at: str | int) -> float:
        """The points of an exercise; none where it is optional practice."""
        optional, points = table.get("optional", False), table.get("points")
        if type(optional) is not bool:
            raise self.error(f"{name}: optional is not true or false", *at, "optional", next="write optional = true")
        if optional:
            if points is not None:
                why = "optional practice gives no points"
                raise self.error(f"{name}: it is optional and has points", *at, "points", why=why, next="remove one")
            return 0.0
        if isinstance(points, bool) or not isinstance(points, (int, float)) or not 0 < points < 1000:
            need = "write points = 2, or optional = true for practice without points"
            raise self.error(f"{name}: points is not a number above 0", *at, "points", next=need)
        return points

    def allowed(self, table: dict[str, Any], name: str, *at: str | int) -> dict[str, Any]:
        library = table.get("library", {})
        said = isinstance(library, dict) and all(isinstance(why, str) and why.strip() for why in library.values())
        if not said:
            need = 'write library = { "torch.profiler.schedule" = "why it is an answer" }'
            raise self.error(f"{name}: library is not a table of functions and sentences", *at, "library", next=need)
        return {"library": tuple(library.items()), "optional": table.get("optional", False)}

    def explain(self, table: dict[str, Any], name: str, points: float, *at: str | int) -> dict[str, Any]:
        rubric = self.texts(table, "rubric", *at)
        if not rubric:
            raise self.error(f"{name} has no rubric", *at, "rubric", next='write rubric = ["1 point: ...", ...]')
        marks = [_RUBRIC.fullmatch(line) for line in rubric]
        if not all(marks):
            bad = rubric[marks.index(None)]
            raise self.error(f"{name}: {bad!r} gives no points", *at, "rubric", next='write "1 point: what earns it"')
        total = sum(float(mark[1]) for mark in marks if mark)
        if abs(total - points) > 1e-9:
            raise self.error(f"{name}: the rubric gives {total:g} points, the exercise {points:g}", *at, "rubric")
        answer = self.text(table, "model_answer", *at)
        return {"rubric": tuple(rubric), "model_answer": answer.strip()}


def key_lines(text: str) -> dict[_Path, int]:
    """The line of every table and key: `("exercise", 0, "points")` → 7. The text must be valid TOML."""
    found: dict[_Path, int] = {(): 1}
    counts: dict[_Path, int] = {}
    table: _Path = ()
    pending, at = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        pending, at = (pending + "\n" + line, at) if pending else (line, number)
        if _open(pending):
            continue
        statement, pending = pending, ""
        header = _HEADER.match(statement)
        if header:
            table = _parts(header[2])
            if header[1]:
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            found.setdefault(table, at)
        elif key := _KEY.match(statement):
            found.setdefault((*table, *_parts(key[1])), at)
    return found


def _parts(dotted: str) -> _Path:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _open(statement: str) -> bool:
    """Whether a string or an array that starts in `statement` goes on in the next line."""
    if not _KEY.match(statement):
        return False
    tokens = list(_STRINGS.finditer(statement))
    if any(token["open"] for token in tokens):
        return True
    bare = _STRINGS.sub("", statement)
    return bare.count("[") + bare.count("{") > bare.count("]") + bare.count("}")
