"""Benchmarks that can be trusted: `measure`, `compare`, `Timer`, `sweep`.

>>> from edl_labs.bench import measure
>>> m = measure(lambda: sum(range(100)), budget_s=0.01)
>>> 0 < float(m) < 1
True
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "measure": "_measure",
    "compare": "_compare",
    "Timer": "_timer",
    "sweep": "_sweep",
    "Sweep": "_sweep",
    "Measurement": "results",
    "Comparison": "results",
    "Mistake": "results",
    "State": "timing.processor_state",
    "FunctionFailed": "timing.blocks",
    "DifferentOutputs": "equal_outputs",
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
