"""course.toml, the settings of a course: its name, hosts, due dates, late policy, groups and limits."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field, structs

from edl_labs.course.sandbox.limits import Limits
from edl_labs.course.toml_file import Misfit, key_lines, line_of, misfit
from edl_labs.errors import UsageError, did_you_mean

FILE = "course.toml"
Share = Annotated[float, Meta(ge=0, le=1)]
Number = Annotated[float, Meta(ge=0)]


class About(Struct, frozen=True, forbid_unknown_fields=True):
    """`[course]`: what it is called, what its wheel is, and which files say who is in it."""

    name: str = ""
    version: str = ""
    install: str = ""
    edl_labs: str = ""
    timezone: str = "UTC"
    roster: str = ""
    repository: str = ""
    groups: str = ""


class Late(Struct, frozen=True, forbid_unknown_fields=True):
    """`[late]`: what lateness costs."""

    grace_minutes: Number = 0.0
    per_day: Share = 0.0
    at_most: Share = 1.0
    closes_after_days: Number = float("inf")


class Grading(Struct, frozen=True, forbid_unknown_fields=True):
    """`[grading]`: how class runs grade."""

    all_cells: bool = False


class Dates(Struct, frozen=True, forbid_unknown_fields=True):
    """An `[[assignment]]`: when it is due, and for whom later; TOML's own dates and times."""

    name: Annotated[str, Meta(min_length=1)]
    due: Any = None
    extensions: dict[str, Any] = {}


class CourseFile(Struct, frozen=True, forbid_unknown_fields=True):
    """All that course.toml says."""

    course: About = About()
    late: Late = Late()
    limits: dict[str, Any] = {}
    grading: Grading = Grading()
    assignments: tuple[Dates, ...] = field(name="assignment", default=())


_TABLES: dict[str, type[Struct]] = {
    "": CourseFile,
    "course": About,
    "late": Late,
    "grading": Grading,
    "assignment": Dates,
}
# Key → what its error says, why, and what to write instead.
_SAID = {
    "assignment": ("`assignment` is not a list of tables", "", "write [[assignment]] above each"),
    "assignment.name": ("an [[assignment]] has no name", "", 'write name = "lab01_gpu_basics"'),
    "assignment.extensions": (
        "`extensions` is not a table",
        "",
        'write [assignment.extensions], and below it "id" = 2026-10-01',
    ),
    "grading.all_cells": ("all_cells is {value!r}", "it must be true or false", "write all_cells = true"),
    **{
        key: (f"{key} is not a table", "it is {value!r}", f"write [{key}]")
        for key in ("course", "late", "limits", "grading")
    },
    **{
        f"late.{one.name}": (
            f"{one.name} is {{value!r}}",
            f"it must be a number {'from 0 to 1' if one.type == Share else 'of 0 or more'}",
            f"write, for example, {one.name} = {0.1 if one.type == Share else 7}",
        )
        for one in structs.fields(Late)
    },
}


def read_course_file(root: Path) -> CourseFile:
    """What course.toml of the course in `root` says: empty where there is no such file, UsageError for a wrong one."""
    try:
        text = (root / FILE).read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except FileNotFoundError:
        return CourseFile()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{FILE} cannot be read", why=str(error), next="fix the file") from None
    try:
        return msgspec.convert(data, CourseFile)
    except msgspec.ValidationError as error:
        found = misfit(error, data)
        raise _refusal(found, line_of(key_lines(text), found.path)) from None


def _refusal(found: Misfit, line: int) -> UsageError:
    table, _, key = found.key.rpartition(".")
    if found.unknown:
        where = f"[[{table}]]" if table == "assignment" else f"[{table}]" if table else "the file"
        known = [one.encode_name for one in structs.fields(_TABLES[table])]
        return _unknown(where, key, known, f"line {line} sets it")
    usual = (f"{key} is {{value!r}}", "it must be text", f'write {key} = "..."')
    what, why, then = _SAID.get(found.key, usual)
    why = why.format(value=found.value)
    return wrong(what.format(value=found.value), f"line {line}" + (f": {why}" if why else ""), then)


def _unknown(where: str, key: str, known: Iterable[str], why: str = "") -> UsageError:
    then = did_you_mean(key, known) or f"use one of {', '.join(known)}"
    return wrong(f"{where} has no entry {key!r}", why, then)


def wrong(what: str, why: str, then: str) -> UsageError:
    """What is wrong with the file."""
    return UsageError(f"{FILE}: {what}", why=why, next=then)


def set_limits(table: Mapping[str, Any]) -> Limits:
    """The usual limits, changed as `[limits]` of course.toml says; UsageError for what it cannot mean."""
    known = {limit.name: limit for limit in fields(Limits)}
    unknown = [name for name in table if name not in known]
    if unknown:
        raise _unknown("[limits]", unknown[0], known)
    changed: dict[str, Any] = {name: _limit(known[name], value) for name, value in table.items()}
    found = Limits(**changed)
    if found.notebook_s > found.cpu_s:
        why = f"notebook_s is {found.notebook_s:g}, so a process that computes for all of this time would be ended"
        raise wrong(f"cpu_s is {found.cpu_s}", why, f"write cpu_s = {math.ceil(found.notebook_s)} or more")
    return found


def _limit(limit: Field[Any], value: Any) -> int | float:
    least, most, whole = limit.metadata["least"], limit.metadata["most"], type(limit.default) is int
    if type(value) in ((int,) if whole else (int, float)) and least <= value <= most:
        return int(value) if whole else float(value)
    why = f"it must be {'a whole number' if whole else 'a number'} from {least:_} to {most:_}"
    raise wrong(f"{limit.name} is {value!r}", why, f"write, for example, {limit.name} = {limit.default:_}")
