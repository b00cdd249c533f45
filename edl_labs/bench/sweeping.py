"""`sweep`: a function measured over a grid of parameters, resumable from its JSON."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
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
    """The measured points of a grid, in the grid's order."""

    name: str
    points: tuple[Point, ...]

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
        return {"kind": "sweep", "schema": SCHEMA, "name": self.name, "points": points}

    @classmethod
    def from_json(cls, tree: str | Mapping[str, Any]) -> Sweep:
        """The sweep that `to_json` wrote, from its tree or its text."""
        data = read_tree(tree, kind="sweep", schema=SCHEMA)
        return rebuilt(lambda: cls(str(data["name"]), tuple(map(_point, data["points"]))), kind="sweep")


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
    a later call goes on where that file ends. `progress(done, total, text)` is told of each point. A place where `fn`
    raises is kept with the reason. Other keywords go to `measure`, and `budget_s` is for one point.
    """
    places = _places(grid)
    file = None if path is None else Path(path)
    known = _saved(file)
    label = str(name or getattr(fn, "__name__", "sweep"))
    points: list[Point] = []
    for index, place in enumerate(places):
        key = _key(place)
        if progress is not None:
            progress(index, len(places), _place(place))
        points.append(known[key] if key in known else _measured(fn, place, budget_s, options))
        if file is not None and key not in known:
            _write(file, Sweep(label, tuple(points)))
    if progress is not None:
        progress(len(places), len(places), "")
    return Sweep(label, tuple(points))


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


def _saved(file: Path | None) -> dict[str, Point]:
    if file is None or not file.exists():
        return {}
    return {_key(point.parameters): point for point in Sweep.from_json(file.read_text(encoding="utf-8")).points}


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
