"""`sweep`: a function measured over a grid of parameters, resumable from its JSON."""

from __future__ import annotations

import inspect
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edl_labs.bench.measurement import Measurement
from edl_labs.bench.measuring import measure
from edl_labs.bench.text import time_text
from edl_labs.bench.values import read_tree, rebuilt
from edl_labs.errors import EdlError, UsageError

SCHEMA = 1


@dataclass(frozen=True)
class Point:
    """One place of the grid and what was measured there; `failed` says why where nothing was."""

    parameters: Mapping[str, Any]
    measurement: Measurement | None
    failed: str = ""


@dataclass(frozen=True, repr=False)
class Sweep:
    """The measured points of a grid, in the grid's order; `settings` are the keywords they were measured with."""

    name: str
    points: tuple[Point, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return "\n".join([f"{self.name}:", *(f"  {_place(p.parameters)}: {_result(p)}" for p in self.points)])

    def to_json(self) -> dict[str, Any]:
        """The sweep as plain JSON data with a schema number."""
        points = [
            {
                "parameters": dict(p.parameters),
                "measurement": None if p.measurement is None else p.measurement.to_json(),
                "failed": p.failed,
            }
            for p in self.points
        ]
        settings = dict(self.settings)
        return {"kind": "sweep", "schema": SCHEMA, "name": self.name, "settings": settings, "points": points}

    @classmethod
    def from_json(cls, tree: str | Mapping[str, Any]) -> Sweep:
        """The sweep that `to_json` wrote, from its tree or its text."""
        data = read_tree(tree, kind="sweep", schema=SCHEMA)
        return rebuilt(
            lambda: cls(str(data["name"]), tuple(map(_point, data["points"])), dict(data.get("settings", {}))),
            kind="sweep",
        )


def sweep(
    fn: Callable[..., Any],
    grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    *,
    budget_s: float = 0.4,
    path: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    name: str | None = None,
    **options: Any,
) -> Sweep:
    """`fn(**parameters)` measured at each place of `grid`, as a `Sweep`.

    `grid` maps names to values (their product is taken), or lists places. `fn` may return a function instead of a
    result: then it is a set-up, and what it returns is timed. With `path` each point is saved as it is measured, and
    a later call measures what that file lacks or holds as failed, and adds it; another function (by name) or other
    settings are refused there. `progress(done, total, text)` is told of each point. A place where `fn` raises is kept
    with the reason. Other keywords go to `measure`, and `budget_s` is for one point.
    """
    places = _places(grid)
    file = None if path is None else Path(path)
    label = str(name or getattr(fn, "__name__", "sweep"))
    settings = _settings(budget_s, options)
    known = _saved(file, label, settings)
    order = [_key(place) for place in places]
    points: list[Point] = []
    for index, (key, place) in enumerate(zip(order, places, strict=True)):
        if progress is not None:
            progress(index, len(places), _place(place))
        if key in known and known[key].measurement is not None:
            points.append(known[key])
            continue
        points.append(_measured(fn, place, budget_s, options))
        if file is not None:
            known[key] = points[-1]
            # This grid's order first, then what the file knows of other grids.
            kept = [known[k] for k in dict.fromkeys([*order, *known]) if k in known]
            _write(file, Sweep(label, tuple(kept), settings))
    if progress is not None:
        progress(len(places), len(places), "")
    return Sweep(label, tuple(points), settings)


def _measured(fn: Callable[..., Any], place: Mapping[str, Any], budget_s: float, options: Mapping[str, Any]) -> Point:
    try:
        made = fn(**place)
        timed = made if callable(made) else lambda: fn(**place)
        return Point(place, measure(timed, budget_s=budget_s, name=_place(place), **options))
    except UsageError:
        raise
    except EdlError as error:
        return Point(place, None, error.what)
    except Exception as error:
        return Point(place, None, f"{type(error).__name__}: {str(error)[:200]}")


def _places(grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(grid, Mapping):
        names = list(grid)
        places = [dict(zip(names, values, strict=True)) for values in itertools.product(*map(list, grid.values()))]
    else:
        places = [dict(place) for place in grid]
    if not places:
        raise UsageError("the grid is empty", why="a sweep measures at least one place", next='give {"n": [256, 512]}')
    try:
        json.dumps(places)
    except (TypeError, ValueError) as error:
        raise UsageError(
            "a grid holds plain values", why=str(error), next="give numbers and text, and build tensors in fn"
        ) from None
    return places


def _settings(budget_s: float, options: Mapping[str, Any]) -> dict[str, Any]:
    """What distinguishes these measurements from others of the same function: the budget, and what is no default."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(measure).parameters.items()}
    said = {name: _said(value) for name, value in options.items()}
    changed = {name: text for name, text in said.items() if name not in defaults or text != _said(defaults[name])}
    return {"budget_s": budget_s, **changed}


def _said(value: Any) -> Any:
    """Plain values as JSON gives them back; anything else by its name or type."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return str(getattr(value, "name", "") or getattr(value, "__name__", "") or type(value).__name__)


def _saved(file: Path | None, label: str, settings: Mapping[str, Any]) -> dict[str, Point]:
    if file is None or not file.exists():
        return {}
    saved = Sweep.from_json(file.read_text(encoding="utf-8"))
    if saved.name != label:
        raise _other(file, f"it holds the times of {saved.name}, and this is {label}")
    if saved.settings and dict(saved.settings) != dict(settings):
        raise _other(file, f"it was measured with {_place(saved.settings)}, and this asks for {_place(settings)}")
    return {_key(point.parameters): point for point in saved.points}


def _other(file: Path, why: str) -> UsageError:
    return UsageError(
        f"{file.name} is of another sweep", why=why, next="give another path=, or delete that file to measure anew"
    )


def _write(file: Path, result: Sweep) -> None:
    # Replaced in one step: a sweep that is interrupted while it writes can still be resumed.
    beside = file.with_name(file.name + ".part")
    beside.write_text(json.dumps(result.to_json(), indent=1) + "\n", encoding="utf-8")
    beside.replace(file)


def _point(tree: Mapping[str, Any]) -> Point:
    taken = tree["measurement"]
    return Point(dict(tree["parameters"]), None if taken is None else Measurement.from_json(taken), str(tree["failed"]))


def _key(place: Mapping[str, Any]) -> str:
    return json.dumps(place, sort_keys=True)


def _place(place: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in place.items())


def _result(point: Point) -> str:
    if point.measurement is None:
        return point.failed
    return time_text(point.measurement.median_s, point.measurement.half_width)
