"""Reads labs (cells, lab.toml, known mistakes), and checks that they agree with each other and with other labs."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from edl_labs.checks.lab_exercises import lab_names
from edl_labs.course.course_folder import Course
from edl_labs.course.lab import rules
from edl_labs.course.lab.lab_toml import read_lab_toml
from edl_labs.course.lab.mistakes import Mistake, read_mistakes
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.places import check_places, registered
from edl_labs.course.lab.prediction_boxes import check_gives_away
from edl_labs.course.lab.source import Cell, parse
from edl_labs.course.own_files import own_files
from edl_labs.errors import NothingToDo, SourceError, UsageError, did_you_mean


def read_lab(course: Course, name: str) -> Lab:
    """The lab called `name`; SourceError with file and line at the first thing that is wrong with it."""
    if name not in course.lab_names():
        raise no_such_lab(course, name)
    return _read(course, name)


def no_such_lab(course: Course, name: str) -> UsageError:
    """The error for a lab that does not exist, with the nearest name."""
    names = course.lab_names()
    return UsageError(
        f"there is no lab called {name!r}",
        why=f"solutions/ contains {', '.join(names) or 'no lab yet'}",
        next=did_you_mean(name, names, cutoff=0.4) or "create one with edl-labs new LAB",
    )


def read_labs(course: Course) -> list[Lab]:
    """Every lab of the course, validated alone and against the others."""
    labs = [_read(course, name) for name in course.lab_names()]
    if not labs:
        raise NothingToDo(
            "there are no labs", why=f"{course.shown(course.solutions)} is empty", next="run edl-labs new LAB"
        )
    _check_unique(course, labs)
    for name in sorted(set(lab_names(course.exercises)) - {lab.name for lab in labs}):
        file = course.shown(course.exercise_module(name))
        mend = f"run edl-labs new {name}, or remove the module"
        raise SourceError(f"there is no solutions/{name}", file=file, line=1, next=mend)
    return labs


def _read(course: Course, name: str) -> Lab:
    folder = course.solutions / name
    source, toml_path = folder / f"{name}.py", folder / "lab.toml"
    file, toml_file = course.shown(source), course.shown(toml_path)
    for path, shown in ((source, file), (toml_path, toml_file)):
        if not path.is_file():
            raise SourceError(
                "this file of the lab is missing", file=shown, line=1, next=f"create a lab with edl-labs new {name}"
            )
    cells = parse(_text(source, file), file=file)
    rules.check_cells(cells)
    toml = read_lab_toml(_text(toml_path, toml_file), file=toml_file)
    mistakes = _mistakes(course, folder, cells)
    lab = Lab(name, folder, file, tuple(cells), toml, mistakes, tuple(rules.warnings(cells)))
    check_places(course, lab)
    _check_said(lab)
    check_gives_away(cells, toml)
    _check_parameters(lab)
    _check_replaced(lab)
    _check_stray(course, lab)
    return lab


def _mistakes(course: Course, folder: Path, cells: list[Cell]) -> tuple[Mistake, ...]:
    """Those of each exercise, in the order of their cells."""
    code = {str(cell.name): cell.source for cell in cells if cell.role == "solve"}
    paths = {path.stem: path for path in sorted((folder / "mistakes").glob("*.py"))}
    for name, path in paths.items():
        if name not in code:
            raise SourceError(
                f"this lab has no exercise {name} that is answered in code",
                file=course.shown(path),
                line=1,
                why=f"the exercises answered in code are {', '.join(code) or 'none'}",
                next=did_you_mean(name, code) or "name the file after one of them",
            )
    found: list[Mistake] = []
    for name in (name for name in code if name in paths):
        file = course.shown(paths[name])
        found += read_mistakes(_text(paths[name], file), exercise=name, solution=code[name], file=file)
    return tuple(found)


def _check_unique(course: Course, labs: list[Lab]) -> None:
    seen: dict[str, str] = {}
    for lab in labs:
        for one in lab.exercises:
            if one.name in seen:
                raise SourceError(
                    f"{seen[one.name]} also has an exercise called {one.name}",
                    file=lab.toml.file,
                    line=one.line,
                    why="check(name) finds an exercise by its name alone",
                    next="rename one of them",
                )
            seen[one.name] = lab.name
        registered(course, lab.name)


def _text(path: Path, file: str) -> str:
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SourceError("this is not UTF-8 text", file=file, line=line, next="save the file as UTF-8") from None
    for mark, called in (("\r", "a carriage return"), ("\ufeff", "a byte order mark"), ("\t", "a tab")):
        if mark in text:
            line = text[: text.index(mark)].count("\n") + 1
            raise SourceError(
                f"{called}",
                file=file,
                line=line,
                next="save the file in UTF-8, with Unix line endings and without tabs",
            )
    return text


def _check_said(lab: Lab) -> None:
    """Refuse prose that contradicts lab.toml, the one home of title, minutes and points."""
    cell = lab.cells[0]
    heading = cell.source.split("\n")[0]
    if lab.title not in heading:
        why = f"the title in lab.toml is {lab.title!r}"
        raise cell.error(f"the heading is {heading!r}", line=cell.first, why=why, next="make the two agree")
    said = re.findall(r"(\d+)\W*min", cell.source)
    if str(lab.minutes) not in said:
        what = (
            f"the first cell says {said[0]} minutes" if said else "the first cell does not say how long the lab takes"
        )
        why = f"lab.toml says {lab.minutes} minutes"
        raise cell.error(what, why=why, next=f'write "{lab.minutes} minutes" there')
    if len(lab.sittings) > 1 and "sittings" not in cell.source:
        why = f"`pause_after` in lab.toml divides the lab into {len(lab.sittings)} sittings"
        raise cell.error(
            "the first cell does not mention the sittings", why=why, next="list the sections of each sitting"
        )
    _check_points_said(lab, cell, lab.points)
    _check_headings(lab)
    for one in lab.exercises:
        if one.kind == "explain":
            _check_points_said(lab, lab.cell("explain", one.name), one.points)


def _check_points_said(lab: Lab, cell: Cell, points: float) -> None:
    for said in re.findall(r"(\d+(?:\.\d+)?) points?\b", cell.source):
        if float(said) != points:
            why = f"{lab.toml.file} gives {points:g}"
            raise cell.error(
                f"the cell says {said} points", why=why, next="remove the number: the notebook shows points"
            )


def _check_headings(lab: Lab) -> None:
    """Refuse a heading that gives its section other points than lab.toml does."""
    starts = [i for i, c in enumerate(lab.cells) if i > 0 and c.kind == "markdown" and c.source.startswith("#")]
    for start, end in pairwise([*starts, len(lab.cells)]):
        named = {str(c.name) for c in lab.cells[start:end] if c.role in ("solve", "explain")}
        said = re.search(r"(\d+(?:\.\d+)?) points?\b", lab.cells[start].source.split("\n")[0])
        points = sum(one.points for one in lab.exercises if one.name in named)
        if said and named and float(said[1]) != points:
            why = f"{lab.toml.file} gives its exercises {points:g}"
            then = "remove the number: the notebook shows points"
            raise lab.cells[start].error(f"the heading says {said[1]} points", why=why, next=then)


def _check_parameters(lab: Lab) -> None:
    cell = lab.cell("parameters")
    names = rules.parameter_values(cell)
    for mode, table in lab.parameters.items():
        for key in table:
            if key not in names:
                raise SourceError(
                    f"the parameter {key} is not assigned in the parameters cell",
                    file=lab.toml.file,
                    line=lab.toml.line("parameters", mode, key),
                    why=f"that cell, at {lab.file}:{cell.line}, assigns {', '.join(names) or 'nothing'}",
                    next="assign it there, or remove the key",
                )
        for name, value in names.items():
            if name not in table:
                raise cell.error(
                    f"the parameter {name} has no value in [parameters.{mode}]",
                    line=cell.first + value.lineno - 1,
                    why="each parameter needs a value for the smoke run and for the full run",
                    next=f"add {name} = ... to this table",
                )


def _check_replaced(lab: Lab) -> None:
    for one in lab.mistakes:
        names = rules.defined_names(lab.cell("solve", one.exercise))
        if not set(names) & rules.bound_names(one.code):
            raise SourceError(
                f"{one.name} does not redefine any name that the solution of {one.exercise} defines",
                file=one.file,
                line=one.line,
                why=f"the solution defines {', '.join(names)}",
                next="define one of these names, with the mistake in it",
            )


def _check_stray(course: Course, lab: Lab) -> None:
    expected = {f"{lab.name}.py", "lab.toml", "equivalent.toml", *lab.toml.data}
    for path in own_files(lab.folder):
        inside = path.relative_to(lab.folder)
        mistakes = inside.parts[0] == "mistakes" and len(inside.parts) == 2 and path.suffix == ".py"
        handed_in = inside.parts[0] == "handed_in" and len(inside.parts) == 2
        if inside.as_posix() not in expected and not mistakes and not handed_in:
            raise SourceError(
                "this file does not belong to the lab",
                file=course.shown(path),
                line=1,
                why=f"a lab consists of {lab.name}.py, lab.toml, mistakes/*, handed_in/* and the files in `data`",
                next="list it under `data` if students need it; otherwise remove it",
            )
    for name in lab.toml.data:
        if not (lab.folder / name).is_file():
            raise SourceError(f"there is no {name}", file=lab.toml.file, line=lab.toml.line("data"))
