"""The plan of a run, made before anything runs: the notebooks, their parameters and the device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edl_labs.course.lab.read import read_lab
from edl_labs.course.run.notebook_file import (
    cell_points,
    check_name,
    code_cells,
    explain_name,
    parameter_names,
    read_notebook,
)
from edl_labs.course.run.verdict import Expected
from edl_labs.errors import NothingToDo, UsageError, did_you_mean

if TYPE_CHECKING:
    from edl_labs.course.course_folder import Course

MODES = ("smoke", "full")


@dataclass(frozen=True)
class Plan:
    """One notebook of a run: where it is, what is set in it, and which exercises it must have."""

    lab: str
    title: str
    path: Path
    parameters: Mapping[str, Any]
    expected: tuple[Expected, ...]
    cell_count: int
    env: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, bytes] = field(default_factory=dict)


def plan_runs(
    labs: Sequence[str | Path], *, mode: str, device: str, overrides: Mapping[str, Any], course: Course | None
) -> list[Plan]:
    """The plan of each lab (a name, or a path of a notebook; all when empty), or UsageError: then nothing has run."""
    if mode not in MODES:
        raise UsageError(f"there is no mode {mode!r}", why=f"the modes are {' and '.join(MODES)}")
    wanted = list(labs) or _all_labs(course)
    plans = [_plan(lab, mode=mode, device=device, overrides=overrides, course=course) for lab in wanted]
    names = [plan.lab for plan in plans]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UsageError(
            f"{twice} is listed twice", why="both runs would write the same files", next="list it only once"
        )
    return plans


def choose_device(device: str) -> str:
    """The device as torch names it: the best one here for `auto`; UsageError when the named one is not here."""
    from edl_labs.device import best_device, describe

    if device == "auto":
        return best_device()
    if device == "cpu":
        return device
    kinds = ("cpu", "cuda", "mps", "xpu")
    if device.partition(":")[0] not in kinds:
        raise UsageError(f"there is no device {device!r}", why=f"the devices are auto, {', '.join(kinds)}")
    return describe(device).device if ":" in device else describe(device).kind


def _all_labs(course: Course | None) -> list[str]:
    names = course.lab_names() if course else []
    if not names:
        raise NothingToDo("there is no lab to run", why="the course has none", next="create one with edl-labs new LAB")
    return names


def _plan(lab: str | Path, *, mode: str, device: str, overrides: Mapping[str, Any], course: Course | None) -> Plan:
    path = Path(lab)
    if path.suffix == ".ipynb":
        return _plan_path(path, device, overrides)
    if course is None:
        raise UsageError(f"there is no notebook {lab}", why="this folder is not in a course", next="pass a .ipynb file")
    return _plan_lab(course, str(lab), mode=mode, device=device, overrides=overrides)


def _plan_lab(course: Course, name: str, *, mode: str, device: str, overrides: Mapping[str, Any]) -> Plan:
    lab = read_lab(course, name)
    path = course.source / name / f"{name}.ipynb"
    if unknown := [key for key in overrides if key not in lab.parameters.get(mode, {})]:
        raise _no_parameter(name, unknown[0], lab.parameters.get(mode, {}), where="the command")
    if not path.is_file():
        raise UsageError(
            f"{name} has not been built", why=f"{course.shown(path)} is missing", next="run edl-labs build"
        )
    notebook = read_notebook(path)
    given = {**lab.parameters.get(mode, {}), **overrides}
    home = f"[parameters.{mode}] of {course.shown(course.solutions / name / 'lab.toml')}"
    return Plan(
        lab=name,
        title=lab.title,
        path=path,
        parameters=_parameters(notebook, given, device=device, name=name, home=home, overrides=overrides),
        expected=tuple(Expected(e.name, e.kind, float(e.points)) for e in lab.exercises),
        cell_count=sum(1 for _ in code_cells(notebook)),
        env={**_device_env(device), **_course_env(course)},
        beside=lab.handed_in,
    )


def _plan_path(path: Path, device: str, overrides: Mapping[str, Any]) -> Plan:
    notebook = read_notebook(path)
    return Plan(
        lab=path.stem,
        title=str(notebook.metadata.get("title", path.stem)),
        path=path,
        parameters=_parameters(
            notebook, overrides, device=device, name=path.name, home="the command", overrides=overrides
        ),
        expected=expected_of(notebook),
        cell_count=sum(1 for _ in code_cells(notebook)),
        env=_device_env(device),
    )


def expected_of(notebook: Any) -> tuple[Expected, ...]:
    """The exercises that a notebook itself says it has, in the order of its cells."""
    found: dict[str, Expected] = {}
    for cell in notebook.cells:
        name, answer = check_name(cell), explain_name(cell)
        if name or answer:
            kind = "code" if name else "explain"
            found.setdefault(name or answer, Expected(name or answer, kind, cell_points(cell)))
    return tuple(found.values())


def _parameters(
    notebook: Any, given: Mapping[str, Any], *, device: str, name: str, home: str, overrides: Mapping[str, Any]
) -> dict[str, Any]:
    known = parameter_names(notebook)
    unknown = [key for key in given if key not in known]
    if unknown:
        where = "the command" if unknown[0] in overrides else home
        raise _no_parameter(name, unknown[0], known, where=where)
    return {**({"device": device} if "device" in known else {}), **given}


def _no_parameter(name: str, parameter: str, known: Iterable[str], *, where: str) -> UsageError:
    return UsageError(
        f"{where} sets {parameter!r}, but {name} has no such parameter",
        why=f"its parameters cell assigns {', '.join(known) or 'nothing'}",
        next=did_you_mean(parameter, known) or "assign it in the parameters cell, or do not set it",
    )


def _device_env(device: str) -> dict[str, str]:
    # A lab without a `device` parameter asks torch; then the accelerator must not be there to be found.
    return {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}


def _course_env(course: Course) -> dict[str, str]:
    from edl_labs.checks.lab_exercises import exercises_folder

    own = exercises_folder().resolve()
    return {} if course.exercises.resolve() == own else {"EDL_LABS_EXERCISES": str(course.exercises)}
