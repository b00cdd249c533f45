"""edl_labs: course labs on efficient deep learning, in which measuring itself is graded.

The facade is lazy: importing it loads neither torch, numpy nor matplotlib.

>>> import edl_labs
>>> "check" in dir(edl_labs)
True
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from edl_labs.presenters import register_presenter

__version__ = "1.0.0"

# Values do not import what shows them: here, at the top, they are told who does.
register_presenter("plot", "edl_labs.plots:draw")
register_presenter("html", "edl_labs.ui:html")

_HOMES = {
    "check": "edl_labs.checks._check",
    "hint": "edl_labs.checks._check",
    "case": "edl_labs.checks._check",
    "Progress": "edl_labs.checks.progress",
    "Score": "edl_labs.checks.score",
    "Wrong": "edl_labs.errors",
    "exercise": "edl_labs.checks._exercise",
    "measure": "edl_labs.bench",
    "compare": "edl_labs.bench",
    "sweep": "edl_labs.bench",
    "Timer": "edl_labs.bench",
    "load_ipython_extension": "edl_labs.bench",
    "unload_ipython_extension": "edl_labs.bench",
}
_MODULES = (
    "bench",
    "checks",
    "clock",
    "device",
    "errors",
    "graph",
    "hardware",
    "inference",
    "numerics",
    "pipeline",
    "plots",
    "predict",
    "roofline",
    "stats",
    "trace",
    "ui",
    "units",
    "virtual",
)
__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"edl_labs.{name}")
    raise AttributeError(f"edl_labs has no {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
