"""Benchmarks that can be trusted: `measure`, `compare`, `Timer`, `sweep`, `selfcheck`.

>>> from edl_labs.bench import measure
>>> m = measure(lambda: sum(range(100)), budget_s=0.01)
>>> 0 < float(m) < 1
True
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "measure": "measuring",
    "compare": "comparing",
    "Timer": "timer",
    "sweep": "sweeping",
    "Sweep": "sweeping",
    "selfcheck": "selfchecking",
    "SelfCheck": "selfchecking",
    "Measurement": "measurement",
    "Comparison": "comparison",
    "Mistake": "values",
    "State": "state",
    "FunctionFailed": "blocks",
    "DifferentOutputs": "outputs",
    "load_ipython_extension": "magics",
    "unload_ipython_extension": "magics",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"edl_labs.bench.{_HOMES[name]}"), name)
    raise AttributeError(f"edl_labs.bench has no {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
