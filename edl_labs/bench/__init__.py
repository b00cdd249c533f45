"""Benchmarks that can be trusted: `measure`, `compare`, `Timer`, `sweep`.

>>> from edl_labs.bench import measure
>>> m = measure(lambda: sum(range(100)), budget_s=0.01)
>>> 0 < float(m) < 1
True
"""

from __future__ import annotations

from edl_labs.arguments import lazy_facade

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
    "measured_here": "own_recordings",
    "load_ipython_extension": "magics",
    "unload_ipython_extension": "magics",
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_facade(__name__, _HOMES)
