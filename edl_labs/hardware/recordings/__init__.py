"""Results of experiments made on accelerators, or modelled where no recording exists yet, in one schema."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from edl_labs.errors import EdlError

SCHEMA = 1
MINE = "my_recordings"  # a folder next to the notebook: recordings that a student brought home
_MAX_POINTS = 100_000  # far more than a picture shows


@dataclass(frozen=True)
class Series:
    """One line of a recording: `values` in `unit`, one for each x."""

    label: str
    unit: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Recording:
    """An experiment's result: what was varied, what came out, on which machine; `modelled` says that none was measured.

    `environment` is the stamp of the machine (`edl_labs.device.Device.to_dict()`), of a modelled one its parameters.
    `hardware_key` is an accelerator's of the table, or "CPU" for what a processor did.
    """

    name: str
    title: str
    experiment: str
    hardware_key: str
    modelled: bool
    environment: Mapping[str, Any]
    x_label: str
    x_unit: str
    x: tuple[float, ...]
    series: tuple[Series, ...]

    def values(self, label: str) -> tuple[float, ...]:
        """The values of the series with this label."""
        for series in self.series:
            if series.label == label:
                return series.values
        raise EdlError(
            f"the recording {self.name} has no series {label!r}",
            why=f"its series are {', '.join(series.label for series in self.series)}",
            next="use one of these labels",
        )

    def to_dict(self) -> dict[str, Any]:
        """The recording as plain data, in the schema of `schema.json`."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "title": self.title,
            "experiment": self.experiment,
            "hardware_key": self.hardware_key,
            "modelled": self.modelled,
            "environment": dict(self.environment),
            "x": {"label": self.x_label, "unit": self.x_unit, "values": list(self.x)},
            "series": [{"label": one.label, "unit": one.unit, "values": list(one.values)} for one in self.series],
        }

    def to_json(self) -> str:
        """The recording as the text that its file holds."""
        return json.dumps(self.to_dict(), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def names() -> tuple[str, ...]:
    """The recordings that ship with the library."""
    files = resources.files("edl_labs.hardware.recordings").iterdir()
    return tuple(sorted(file.name.removesuffix(".json") for file in files if _is_recording(file.name)))


def load(name: str) -> Recording:
    """The recording with this name; EdlError, naming those there are, for another."""
    if name not in names():
        raise EdlError(
            f"there is no recording {str(name)[:60]!r}",
            why=f"the recordings are {', '.join(names())}",
            next="load one of these recordings",
        )
    text = resources.files("edl_labs.hardware.recordings").joinpath(f"{name}.json").read_text(encoding="utf-8")
    return parse(text, name=name)


def find(experiment: str, *, hardware_key: str | None = None) -> Recording:
    """The best recording of an experiment, of `hardware_key` if given: yours, then a measured, then a modelled one."""
    own = mine(experiment)
    if own is not None and hardware_key in (None, own.hardware_key):
        return own
    found = [one for one in map(load, names()) if one.experiment == experiment]
    fitting = [one for one in found if hardware_key in (None, one.hardware_key)]
    if not fitting:
        raise EdlError(
            f"there is no recording of {experiment!r}" + (f" on {hardware_key}" if hardware_key else ""),
            why=f"there are only {', '.join(f'{one.experiment} on {one.hardware_key}' for one in map(load, names()))}",
            next="use one of these, or run `python -m tools.gpu_experiments` on such a machine",
        )
    return min(fitting, key=lambda one: one.modelled)


def mine(experiment: str) -> Recording | None:
    """Your own recording of an experiment, from `my_recordings/` in this folder; None without one that can be read."""
    path = Path(MINE) / f"{experiment}.json"
    try:
        return parse(path.read_text(encoding="utf-8"), name=experiment) if path.is_file() else None
    except (OSError, UnicodeDecodeError, EdlError):
        return None


def parse(text: str, *, name: str) -> Recording:
    """The recording in a JSON text; EdlError, saying what is wrong, where it does not hold one."""
    try:
        data = json.loads(text)
        recording = _recording(data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _broken(name, f"{type(error).__name__}: {error}") from error
    problem = _problem(recording, data.get("schema"), name)
    if problem:
        raise _broken(name, problem)
    return recording


def _recording(data: dict[str, Any]) -> Recording:
    return Recording(
        **{field: data[field] for field in ("name", "title", "experiment", "hardware_key", "modelled", "environment")},
        x_label=data["x"]["label"],
        x_unit=data["x"]["unit"],
        x=tuple(map(_number, data["x"]["values"])),
        series=tuple(Series(one["label"], one["unit"], tuple(map(_number, one["values"]))) for one in data["series"]),
    )


def _problem(recording: Recording, schema: object, name: str) -> str:
    texts = (recording.name, recording.title, recording.experiment, recording.hardware_key)
    if schema != SCHEMA:
        return f"its schema is {schema!r}, not {SCHEMA}"
    if not all(type(text) is str and text for text in texts) or type(recording.modelled) is not bool:
        return "name, title, experiment and hardware_key must be strings, and modelled must be true or false"
    if recording.name != name:
        return f"it contains the name {recording.name!r}"
    if recording.modelled and "modelled" not in recording.title.lower():
        return "it is modelled, but its title does not say so"
    if type(recording.environment) is not dict or not recording.environment:
        return "it has no environment stamp"
    if not recording.series or not 1 <= len(recording.x) <= _MAX_POINTS:
        return "it has no points, or too many"
    if any(len(series.values) != len(recording.x) for series in recording.series):
        return "a series does not have exactly one value for each x"
    return ""


def _number(value: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
        raise ValueError(f"{str(value)[:40]} is not a number")
    return value  # type: ignore[return-value]


def _is_recording(filename: str) -> bool:
    return filename.endswith(".json") and filename != "schema.json"


def _broken(name: str, problem: str) -> EdlError:
    return EdlError(
        f"the recording {name} cannot be read",
        why=problem,
        next="record it again with `python -m tools.gpu_experiments`, or restore the file",
    )
