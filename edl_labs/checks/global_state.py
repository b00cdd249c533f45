"""Python's, numpy's and torch's global settings: the same for every probe, and the student's own again afterwards."""

from __future__ import annotations

import decimal
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

# As many threads as the process was given: sums of floats depend on it. Read before any student's code can change it.
_THREADS = int(given) if (given := os.environ.get("OMP_NUM_THREADS", "")).isdigit() and given != "0" else 1
_Setting = tuple[Callable[[], Any], Callable[[Any], Any], Any]  # how it is read, how it is made, and fresh
# What decimal's own documentation gives as the default context.
_TRAPS = (decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow)


@contextmanager
def fresh_global_state() -> Iterator[None]:
    """Global settings as a new process has them, and random numbers that repeat; what was set before comes back.

    A setting that cannot be read or made, because its function was replaced, stays as it is.
    """
    with ExitStack() as stack:
        with suppress(Exception):
            stack.enter_context(_normal_mode())
        for settings in (_python, _numpy, _torch):
            for read, write, fresh in _told(settings):
                with suppress(Exception):
                    stack.callback(_quietly, write, read())
                    write(fresh)
        yield


def _told(settings: Callable[[], list[_Setting]]) -> list[_Setting]:
    try:
        return settings()
    except Exception:
        return []


def _quietly(write: Callable[[Any], Any], value: Any) -> None:
    with suppress(Exception):
        write(value)


def _python() -> list[_Setting]:
    context = decimal.Context(28, decimal.ROUND_HALF_EVEN, -999_999, 999_999, 1, 0, [], list(_TRAPS))
    return [
        (random.getstate, random.setstate, random.Random(0).getstate()),
        (decimal.getcontext, decimal.setcontext, context),
        # A warning that was made an error is one no longer; which are shown is the student's choice.
        (lambda: list(warnings.filters), _filter, [one for one in warnings.filters if one[0] != "error"]),
    ]


def _filter(filters: Any) -> None:
    warnings.filters[:] = filters  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]


def _numpy() -> list[_Setting]:
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return []
    errors = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
    shown: dict[str, Any] = {"precision": 8, "threshold": 1000, "edgeitems": 3, "linewidth": 75, "suppress": False}
    shown |= {"nanstr": "nan", "infstr": "inf", "sign": "-", "formatter": None, "floatmode": "maxprec", "legacy": False}
    seeded = numpy.random.RandomState(0).get_state()
    return [
        (numpy.random.get_state, numpy.random.set_state, seeded),
        (numpy.geterr, lambda value: numpy.seterr(**value), errors),
        (numpy.geterrcall, numpy.seterrcall, None),
        (numpy.get_printoptions, lambda value: numpy.set_printoptions(**value), shown),
    ]


def _torch() -> list[_Setting]:
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "set_default_dtype"):
        return []  # not there, or only half imported
    printing = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
    return [
        (torch.get_default_dtype, torch.set_default_dtype, torch.float32),
        (lambda: _default_device(torch), torch.set_default_device, None),
        (torch.get_num_threads, torch.set_num_threads, _THREADS),
        (torch.is_grad_enabled, torch.set_grad_enabled, True),
        (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly, False),
        (lambda: _determinism(torch), lambda pair: _determine(torch, *pair), (False, False)),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"),
        (lambda: dict(vars(torch._tensor_str.PRINT_OPTS)), lambda value: torch.set_printoptions(**value), printing),
        # A subnormal number is 0 where they are flushed; torch tells no other way.
        (lambda: sys.float_info.min / 2 == 0, torch.set_flush_denormal, False),
        *_autocast(torch),
        *[_flag(torch.backends.cudnn, name) for name in ("benchmark", "deterministic")],
        (torch.get_rng_state, torch.set_rng_state, torch.Generator(device="cpu").manual_seed(0).get_state()),
        *_cuda_random(torch),
    ]


def _default_device(torch: Any) -> Any:
    """What `set_default_device` was told last; None where it was told nothing."""
    mode = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if mode is None else mode.device


def _determinism(torch: Any) -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def _determine(torch: Any, mode: bool, warn_only: bool) -> None:
    # torch's own setter imports inductor for one more flag: seconds in every process that runs a probe.
    inductor = sys.modules.get("torch._inductor.config")
    if inductor is not None:
        inductor.deterministic = mode  # type: ignore[attr-defined]
    torch._C._set_deterministic_algorithms(mode, warn_only=warn_only)


def _autocast(torch: Any) -> list[_Setting]:
    cache: _Setting = (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, True)
    enabled: list[_Setting] = [
        (partial(torch.is_autocast_enabled, kind), partial(torch.set_autocast_enabled, kind), False)
        for kind in ("cpu", "cuda")
    ]
    dtypes: list[_Setting] = [
        (partial(torch.get_autocast_dtype, kind), partial(torch.set_autocast_dtype, kind), dtype)
        for kind, dtype in (("cpu", torch.bfloat16), ("cuda", torch.float16))
    ]
    return [cache, *enabled, *dtypes]


def _flag(module: Any, name: str) -> _Setting:
    return partial(getattr, module, name), partial(setattr, module, name), False


def _cuda_random(torch: Any) -> list[_Setting]:
    if not torch.cuda.is_initialized():
        return []
    states = [torch.Generator(device=f"cuda:{i}").manual_seed(0).get_state() for i in range(torch.cuda.device_count())]
    return [(torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all, states)]


@contextmanager
def _normal_mode() -> Iterator[None]:
    """Outside of an inference mode that was entered and never left."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_inference_mode_enabled():
        yield
        return
    with torch.inference_mode(mode=False):
        yield
