"""`new`: writes a lab with one exercise, or an exercise in all its places, from templates."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from edl_labs.course.course_folder import LAB_NAME, Course
from edl_labs.course.lab.build import Progress, build
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.read import read_lab
from edl_labs.course.lab.source import NAME
from edl_labs.errors import EdlError, UsageError
from edl_labs.values import Value

_TEMPLATES = Path(__file__).with_name("templates")
_FIRST = '"""The exercises of {lab}."""\n\nfrom __future__ import annotations\n'
KINDS = ("function", "gpu", "cluster", "explain")
MINUTES = 60  # what a new lab says until its author knows better
MINUTES_OF = {"explain": 12, "code": 10}  # by the rates of docs/authoring.md, for what the templates ask


@dataclass(frozen=True, repr=False)
class NewReport(Value):
    """What `new` wrote by hand, and what the build then made of it."""

    lab: str
    exercise: str
    written: tuple[str, ...]
    built: tuple[str, ...]
    minutes: int = 0
    """The minutes of the new exercise, if the lab's exercises have minutes; the lab's total grows by as much."""


def new(
    course: Course, lab: str, exercise: str | None = None, *, kind: str = "function", progress: Progress | None = None
) -> NewReport:
    """Write a new lab with one exercise, or `exercise` into a lab that exists, and build the lab.

    `kind` is function, gpu (a program on a VirtualGPU), cluster (one for each rank) or explain (prose). Nothing is
    changed when a name is bad or taken, or when the lab does not build afterwards.
    """
    if kind not in KINDS:
        why = f"the kinds are {', '.join(KINDS)}"
        raise UsageError(f"there is no kind {kind!r}", why=why, next="write, for example, --kind function")
    if not LAB_NAME.fullmatch(lab):
        raise UsageError(
            f"{lab!r} is not a lab's name",
            why="a lab's name is lab, two digits, an underscore and lower-case words",
            next="choose a name such as lab06_input_pipeline",
        )
    exists = lab in course.lab_names()
    if exists and exercise is None:
        raise UsageError(
            f"{lab} already exists",
            why=f"{course.shown(course.solutions / lab)} exists",
            next=f"to add an exercise to it, run edl-labs new {lab} EXERCISE",
        )
    name = exercise if exercise is not None else f"{lab.partition('_')[2]}_first"[:40].rstrip("_")
    _check_exercise_name(course, name)
    minutes = 0
    if exists:
        known = read_lab(course, lab)
        minutes = _own_minutes(known, kind)
        texts = _exercise_texts(course, known, name, kind, minutes=minutes)
    else:
        texts = _lab_texts(course, lab, name, kind)
    built = _write_and_build(course, lab, texts, progress)
    return NewReport(lab, name, tuple(course.shown(path) for path in texts), built, minutes)


def _own_minutes(lab: Lab, kind: str) -> int:
    """Minutes for a new exercise of `lab`; 0 where its exercises have none."""
    return MINUTES_OF["explain" if kind == "explain" else "code"] if any(e.minutes for e in lab.exercises) else 0


def _check_exercise_name(course: Course, name: str) -> None:
    if not NAME.fullmatch(name) or not name.isidentifier() or _reserved(name):
        raise UsageError(
            f"{name!r} is not an exercise's name",
            why="a name has up to 40 lower-case letters, digits and underscores, a letter first, and is no keyword",
            next="choose a name that says what is graded, such as finish_times",
        )
    for other in course.lab_names():
        if name in (one.name for one in read_lab(course, other).exercises):
            raise UsageError(
                f"an exercise called {name} already exists",
                why=f"it is in {other}, and check(name) finds an exercise only by its name",
                next="choose another name",
            )


def _reserved(name: str) -> bool:
    import builtins
    import keyword

    return (
        keyword.iskeyword(name) or keyword.issoftkeyword(name) or hasattr(builtins, name) or name in ("check", "hint")
    )


def _lab_texts(course: Course, lab: str, name: str, kind: str) -> dict[Path, str]:
    if kind == "explain":
        why, then = "a lab with only written answers cannot be built", f"run edl-labs new {lab}, then add the question"
        raise UsageError("the first exercise of a lab must be answered in code", why=why, next=then)
    module = course.exercise_module(lab)
    for path in (module, course.goldens / f"{lab}.json", course.labs / lab):
        if path.exists():
            raise UsageError(f"{course.shown(path)} already exists", next="remove it, or choose another name")
    values = {"title": _words(lab.partition("_")[2]), "minutes": MINUTES}
    folder = course.solutions / lab
    heading = "1. One slow run" if kind == "function" else f"1. {_words(name)}"
    return {
        folder / f"{lab}.py": _filled("lab.py", **values) + _filled(f"{kind}/cells.py", name=name, heading=heading),
        folder / "lab.toml": _filled("lab.toml", **values) + _filled(f"{kind}/exercise.toml", name=name),
        **_mistake_texts(folder, name, kind),
        module: _module_text(_FIRST.format(lab=lab), name, kind),
    }


def _exercise_texts(course: Course, lab: Lab, name: str, kind: str, *, minutes: int) -> dict[Path, str]:
    source, toml = lab.folder / f"{lab.name}.py", lab.folder / "lab.toml"
    text, facts, table = _ended(source), _ended(toml), _filled(f"{kind}/exercise.toml", name=name)
    if minutes:
        text, facts = _longer_said(lab, text, by=minutes), _longer(lab, facts, by=minutes)
        table = re.sub(r"^points = .*$", rf"\g<0>\nminutes = {minutes}", table, count=1, flags=re.MULTILINE)
    return {
        source: _inserted(lab, text, _filled(f"{kind}/cells.py", name=name, heading=_words(name))),
        toml: facts + table,
        **_mistake_texts(lab.folder, name, kind),
        **({} if kind == "explain" else _module_texts(course, lab.name, name, kind)),
    }


def _filled(template: str, **values: Any) -> str:
    """A template's text. Names in solutions are filled in too, so that no line of one can be read in the package."""
    words = {"v": "in_order", "w": "stream", "u": "handle", "l": "layer"}
    return _templates().get_template(f"{template}.jinja").render(**words, **values)


@cache
def _templates() -> Environment:
    return Environment(loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True)


def _longer(lab: Lab, toml: str, *, by: int) -> str:
    """The text of lab.toml with a lab that takes `by` minutes more."""
    lines, at = toml.split("\n"), lab.toml.line("minutes") - 1
    lines[at] = re.sub(r"(?<==)(\s*)\d[\d_]*", rf"\g<1>{lab.minutes + by}", lines[at], count=1)
    return "\n".join(lines)


def _longer_said(lab: Lab, source: str, *, by: int) -> str:
    """The lab's text, whose first cell says the minutes of the whole lab, with `by` more there."""
    lines, end = source.split("\n"), lab.cells[1].line - 1
    said = re.sub(rf"\b{lab.minutes}(?=\W*min)", str(lab.minutes + by), "\n".join(lines[:end]))
    return "\n".join([said, *lines[end:]])


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _module_text(text: str, name: str, kind: str) -> str:
    """The text of a module with the exercise's class at its end, and its imports where they are not there yet."""
    imports, _, code = _filled(f"{kind}/class.py", name=name, class_name=_class(name)).partition("\n\n\n")
    return _with_lines(text, [line for line in imports.split("\n") if line not in text]) + f"\n\n{code}"


def _module_texts(course: Course, lab: str, name: str, kind: str) -> dict[Path, str]:
    """The class in the lab's one module, or as a module of its own that the lab's folder lists."""
    module = course.exercise_module(lab)
    if module.name != "__init__.py":
        return {module: _module_text(_ended(module), name, kind)}
    topic = module.parent / f"{name}.py"
    if topic.exists():
        raise UsageError(f"{course.shown(topic)} already exists", next="choose another name")
    return {topic: _module_text(_FIRST.format(lab=lab), name, kind), module: _listing(_ended(module), lab, name)}


def _listing(text: str, lab: str, name: str) -> str:
    """The text of a lab's `__init__.py` with the exercise's import, and its class at the end of EXERCISES."""
    import ast

    listed = [n for n in ast.parse(text).body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "EXERCISES"]
    if listed:
        value, lines = listed[0].value, text.splitlines()
        at, column = (value.end_lineno or 1) - 1, (value.end_col_offset or 1) - 1
        before = "\n".join([*lines[:at], lines[at][:column]]).rstrip()
        comma = "" if before.endswith((",", "(", "[")) else ","
        text = "\n".join([f"{before}{comma}", f"    {_class(name)},", lines[at][column:], *lines[at + 1 :], ""])
    return _with_lines(text, [f"from edl_labs.exercises.{lab}.{name} import {_class(name)}"])


def _inserted(lab: Lab, text: str, exercise: str) -> str:
    """The source with the exercise at its end, or before the last section when that only shows the progress."""
    last = lab.cells[-1]
    if not last.source.startswith("Progress("):
        return text + exercise
    before = lab.cells[-2]
    heading = before.kind == "markdown" and before.source.startswith("## ")
    lines = text.split("\n")
    at = (before if heading else last).line - 1
    return "\n".join(lines[:at]).rstrip("\n") + "\n" + exercise + "\n" + "\n".join(lines[at:])


def _mistake_texts(folder: Path, name: str, kind: str) -> dict[Path, str]:
    if kind == "explain":
        return {}
    path = folder / "mistakes" / f"{name}.py"
    if path.exists():
        raise UsageError(f"{path.parent.name}/{path.name} already exists", next="remove it, or choose another name")
    return {path: _filled(f"{kind}/mistakes.py", name=name)}


def _with_lines(text: str, imports: list[str]) -> str:
    """The text with import lines behind those that it has."""
    import ast

    tree = ast.parse(text)
    ends = [n.end_lineno or 0 for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    at = max(ends, default=0)
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:at], *(f"{line}\n" for line in imports), *lines[at:]])


def _class(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _ended(path: Path) -> str:
    return path.read_text(encoding="utf-8").rstrip("\n") + "\n"


def _write_and_build(course: Course, lab: str, texts: dict[Path, str], progress: Progress | None) -> tuple[str, ...]:
    before = {path: path.read_bytes() if path.exists() else None for path in texts}
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        _sort_imports([path for path in texts if path.is_relative_to(course.exercises)])
        return build(course, only=(lab,), progress=progress).changed
    except EdlError:
        _restore(course, before)
        raise


def _sort_imports(modules: list[Path]) -> None:
    """Put added imports in the house's order, where ruff is installed."""
    if find_spec("ruff") is not None:
        command = [sys.executable, "-m", "ruff", "check", "--quiet", "--no-cache", "--select", "I", "--fix"]
        subprocess.run([*command, *map(str, modules)], check=False, capture_output=True)


def _restore(course: Course, before: dict[Path, bytes | None]) -> None:
    for path, data in before.items():
        if data is not None:
            path.write_bytes(data)
            continue
        path.unlink(missing_ok=True)
        while path.parent != course.root and path.parent.is_dir() and not any(path.parent.iterdir()):
            path.parent.rmdir()
            path = path.parent
