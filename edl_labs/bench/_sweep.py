"""`sweep`: a function measured over a grid of parameters, resumable from its JSON."""

from __future__ import annotations

import inspect
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edl_labs.arguments import checked_arguments
from edl_labs.bench._measure import measure
from edl_labs.bench.results import Measurement
from edl_labs.errors import EdlError, UsageError
from edl_labs.presenters import present
from edl_labs.units import time_text
from edl_labs.values import Value, as_tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class GridPoint:
    """One point of the grid and its measurement; `failed` gives the reason if there is none."""

    parameters: Mapping[str, Any]
    measurement: Measurement | None
    failed: str = ""


@dataclass(frozen=True, repr=False)
class Sweep(Value):
    """The measured points of a grid, in the grid's order; `settings` are the keywords they were measured with."""

    ROWS = "points"

    name: str
    points: tuple[GridPoint, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return "\n".join([f"{self.name}:", *(f"  {_place(p.parameters)}: {_result(p)}" for p in self.points)])

    def plot(self, axes: Axes | None = None, *, x: str, logarithmic: bool = True) -> Axes:
        """The picture of time over the parameter `x`, a line for each setting of the others, on `axes` or new ones."""
        drawn: Axes = present("plot", self, axes, x=x, logarithmic=logarithmic)
        return drawn


@checked_arguments()
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
    settings are refused there. `progress(done, total, text)` is called at each point. A place where `fn` raises is kept
    with the reason. Other keywords go to `measure`, and `budget_s` is for one point.
    """
    places = _places(grid)
    file = None if path is None else Path(path)
    label = str(name or getattr(fn, "__name__", "sweep"))
    settings = _settings(budget_s, options)
    known = _saved(file, label, settings)
    order = [_key(place) for place in places]
    points: list[GridPoint] = []
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


def _measured(
    fn: Callable[..., Any], place: Mapping[str, Any], budget_s: float, options: Mapping[str, Any]
) -> GridPoint:
    try:
        made = fn(**place)
        timed = made if callable(made) else lambda: fn(**place)
        return GridPoint(place, measure(timed, budget_s=budget_s, name=_place(place), **options))
    except UsageError:
        raise
    except EdlError as error:
        return GridPoint(place, None, error.what)
    except Exception as error:
        return GridPoint(place, None, f"{type(error).__name__}: {str(error)[:200]}")


def _places(grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(grid, Mapping):
        names = list(grid)
        places = [dict(zip(names, values, strict=True)) for values in itertools.product(*map(list, grid.values()))]
    else:
        places = [dict(place) for place in grid]
    if not places:
        raise UsageError(
            "the grid is empty", why="a sweep needs at least one point to measure", next='pass {"n": [256, 512]}'
        )
    try:
        json.dumps(places)
    except (TypeError, ValueError) as error:
        raise UsageError(
            "a grid can contain only plain values",
            why=str(error),
            next="pass numbers and strings, and create tensors inside fn",
        ) from None
    return places


def _settings(budget_s: float, options: Mapping[str, Any]) -> dict[str, Any]:
    """What sets these measurements apart from others of the same function: the budget, and what is not a default."""
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


def _saved(file: Path | None, label: str, settings: Mapping[str, Any]) -> dict[str, GridPoint]:
    if file is None or not file.exists():
        return {}
    saved = Sweep.from_json(file.read_text(encoding="utf-8"))
    if saved.name != label:
        raise _other(file, f"it contains the times of {saved.name}, but this sweep is of {label}")
    if saved.settings and dict(saved.settings) != dict(settings):
        raise _other(file, f"it was measured with {_place(saved.settings)}, but this sweep uses {_place(settings)}")
    return {_key(point.parameters): point for point in saved.points}


def _other(file: Path, why: str) -> UsageError:
    return UsageError(
        f"{file.name} belongs to a different sweep",
        why=why,
        next="use a different path=, or delete this file to measure again",
    )


def _write(file: Path, result: Sweep) -> None:
    # Replaced in one step: a sweep that is interrupted while it writes can still be resumed.
    beside = file.with_name(file.name + ".part")
    beside.write_text(json.dumps(result.to_json(), indent=1) + "\n", encoding="utf-8")
    beside.replace(file)


def _key(place: Mapping[str, Any]) -> str:
    return json.dumps(as_tree(place), sort_keys=True)


def _place(place: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in place.items())


def _result(point: GridPoint) -> str:
    if point.measurement is None:
        return point.failed
    return time_text(point.measurement.median_s, point.measurement.half_width)
