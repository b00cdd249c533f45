"""What `torch.compile` gains on a function, and what its first call costs: on this machine, or as it was recorded."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edl_labs.errors import EdlError
from edl_labs.units import seconds
from edl_labs.values import Value

SERIES = {
    "eager": "eager_s",
    "first compiled call": "first_call_s",
    "compiled, warm": "warm_s",
    "warm against eager, low": "low",
    "warm against eager, high": "high",
}


@dataclass(frozen=True, repr=False)
class CompiledRun(Value):
    """Eager mode, the call that compiles, and those after it; `low` to `high` is a warm call's share of eager time.

    >>> run = CompiledRun(eager_s=0.02, first_call_s=8.0, warm_s=0.01, low=0.45, high=0.55, machine="a laptop")
    >>> print(run)
    measured, a laptop: eager 20 ms, first compiled call 8 s, warm 10 ms (0.45 to 0.55 times the eager time)
    >>> run.paid_after
    800
    """

    DERIVED = ("paid_after",)

    eager_s: float
    first_call_s: float
    warm_s: float
    low: float
    high: float
    machine: str
    is_recorded: bool = False

    @property
    def paid_after(self) -> int | None:
        """After how many calls the first call pays off; None if a warm call may be no faster than eager mode."""
        if not self.high < 1 or self.warm_s >= self.eager_s:
            return None
        return math.ceil(self.first_call_s / (self.eager_s - self.warm_s))

    def __str__(self) -> str:
        how = "recorded" if self.is_recorded else "measured"
        return (
            f"{how}, {self.machine}: eager {seconds(self.eager_s)}, first compiled call {seconds(self.first_call_s)}, "
            f"warm {seconds(self.warm_s)} ({self.low:.2f} to {self.high:.2f} times the eager time)"
        )


def compiled_run(
    function: Callable[[], Any],
    *,
    budget_s: float,
    equal: Callable[[Any, Any], bool] | None = None,
    recorded: tuple[str, int] | None = None,
    here: bool = True,
) -> CompiledRun:
    """`function` compiled, and compared with itself in eager mode for `budget_s`; the first call takes longer, seconds.

    Where nothing can be compiled (no C++ compiler), or with `here=False`, the recording is given: its name, and which
    of its values. EdlError where there is none.
    """
    why = "compiling was switched off with here=False"
    if here:
        try:
            return _compiled(function, budget_s, equal)
        except Exception as error:  # whatever a missing tool-chain raises
            why = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:120]}"
    if recorded is None:
        raise EdlError("this function cannot be compiled here", why=why, next="install a C++ compiler")
    return _recorded(*recorded)


def _compiled(function: Callable[[], Any], budget_s: float, equal: Callable[[Any, Any], bool] | None) -> CompiledRun:
    import torch

    from edl_labs.bench import compare

    _import_quietly()
    torch._dynamo.reset()
    compiled = torch.compile(function)
    began = time.perf_counter()
    compiled()
    first_call_s = time.perf_counter() - began
    measured = compare({"eager": function, "compiled": compiled}, budget_s=budget_s, equal=equal)
    eager, warm = measured.sides
    machine = f"torch {torch.__version__}, {torch.get_num_threads()} threads"
    return CompiledRun(eager.median_s, first_call_s, warm.median_s, measured.low, measured.high, machine)


def _import_quietly() -> None:
    """What compiling imports anyway, without its "No CUDA runtime is found", which a notebook shows in red."""
    logger = logging.getLogger("torch.utils.cpp_extension")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        import torch.utils.cpp_extension  # noqa: F401
    except Exception:
        return  # compiling will say it
    finally:
        logger.setLevel(before)


def _recorded(name: str, at: int) -> CompiledRun:
    from edl_labs.hardware import recordings

    found = recordings.load(name)
    values = {field: found.values(label)[at] for label, field in SERIES.items()}
    stamp = found.environment
    machine = f"torch {stamp['torch']}, {stamp['threads']} thread of an {stamp['cpu_model']}"
    return CompiledRun(**values, machine=machine, is_recorded=True)
