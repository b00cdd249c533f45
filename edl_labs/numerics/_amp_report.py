"""`amp_report`: predict whether AMP helps, measure it, and say what lies between the two."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from edl_labs.arguments import checked_arguments
from edl_labs.bench.results import Comparison
from edl_labs.errors import UsageError
from edl_labs.hardware import lookup
from edl_labs.numerics._autocast_table import lower_dtype
from edl_labs.numerics._predict_amp import AmpPrediction, predict_amp
from edl_labs.numerics._rates_here import Rates, TF32State, check_rates, rates_here, tf32_state
from edl_labs.units import percent, seconds
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class AmpReport(Value):
    """What AMP should do, what it did (`measured` is None where the machine is not here), and why they differ."""

    prediction: AmpPrediction
    measured: Comparison | None
    tf32: TF32State
    explanation: tuple[str, ...]

    @property
    def speedup(self) -> float | None:
        """Measured: time in full precision over time under AMP; None when nothing was measured."""
        return None if self.measured is None else self.measured.speedup

    def __repr__(self) -> str:
        return "\n".join([repr(self.prediction), *self.explanation])


@checked_arguments()
def amp_report(
    model: torch.nn.Module,
    inputs: Any,
    *,
    dtype: Any = None,
    machine: Any = None,
    loss: Callable[[Any], torch.Tensor] | None = None,
    budget_s: float = 1.0,
    seed: int | None = None,
) -> AmpReport:
    """Whether AMP helps one training step of `model(*inputs)`: predicted from shapes, then measured, then explained.

    Without `machine` it is about the device here: a GPU by its datasheet, a CPU by rates measured on the spot (bf16).
    `machine` may be another one ('A100-80GB', or `Rates` of your own), for which only the prediction is made. The model
    is copied; `loss` makes one number of the output (its sum unless given).
    """
    here = "cuda" if torch.cuda.is_available() else "cpu"
    low = lower_dtype("cuda" if machine is not None else here, dtype)
    reached = _device_rates(here, low) if machine is None else check_rates(machine)
    kind = "cuda" if reached.asynchronous else "cpu"
    inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    predicted = predict_amp(model, inputs, reached, dtype=low, device_type=kind)
    measured = None
    if machine is None:
        measured = _measured(model, inputs, dtype=low, device_type=here, loss=loss, budget_s=budget_s, seed=seed)
    return AmpReport(predicted, measured, tf32_state(), tuple(_explain(predicted, measured)))


@checked_arguments()
def training_step(
    model: torch.nn.Module,
    inputs: Any,
    *,
    device_type: str,
    dtype: Any = None,
    loss: Callable[[Any], torch.Tensor] | None = None,
) -> Callable[[], None]:
    """One forward and backward pass of a copy of `model` as a function, under autocast to `dtype` if given."""
    device = torch.device(device_type)
    model = copy.deepcopy(model).to(device)
    inputs = tuple(x.to(device) if isinstance(x, torch.Tensor) else x for x in inputs)

    def step() -> None:
        with torch.autocast(device_type, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            output = model(*inputs)
            value = output.float().sum() if loss is None else loss(output)
        value.backward()
        model.zero_grad(set_to_none=True)

    return step


def _measured(
    model: Any, inputs: Any, *, dtype: Any, device_type: str, loss: Any, budget_s: float, seed: int | None
) -> Comparison:
    from edl_labs.bench import compare
    from edl_labs.clock import clock_for

    steps = {
        "full": training_step(model, inputs, device_type=device_type, loss=loss),
        "amp": training_step(model, inputs, device_type=device_type, dtype=dtype, loss=loss),
    }
    return compare(steps, budget_s=budget_s, equal=False, clock=clock_for(device_type), seed=seed)


def _device_rates(device_type: str, dtype: Any) -> Rates:
    if device_type == "cpu":
        return rates_here(dtype)
    name = torch.cuda.get_device_name()
    chip = lookup(name)
    if chip is None:
        raise UsageError(
            f"there are no figures for {name}",
            why="it is not in the hardware table, and the figures of a similar GPU would be wrong",
            next='pass machine=Rates(name, {"fp32": ..., "fp16": ...}, ...)',
        )
    return Rates.of(chip)


def _explain(predicted: AmpPrediction, measured: Comparison | None) -> list[str]:
    if measured is None:
        return [f"not measured: this machine has no {predicted.device}, so the figures above are only modelled"]
    row = measured.rows[0]
    low, high = (1 / end if end else float("inf") for end in (row.high, row.low))
    said = f"measured: {measured.speedup:.2f} times as fast [{low:.2f}, {high:.2f}], {row.verdict}"
    full = next(side for side in measured.sides if side.name == "full")
    light = predicted.full.time_s / full.median_s
    lines = [said, f"the full-precision step runs at {percent(light)} of its prediction ({seconds(full.median_s)})"]
    return [*lines, _gap(predicted, measured, low, high, light)]


def _gap(predicted: AmpPrediction, measured: Comparison, low: float, high: float, light: float) -> str:
    """One sentence on the distance between the predicted and the measured speed-up."""
    if measured.verdict == "inconclusive":
        return "too noisy to compare with the prediction: use a larger budget_s, on a quiet machine"
    if predicted.speedup_low * 0.9 <= high and low <= predicted.speedup * 1.1:
        return f"as predicted (main reason: {predicted.limit})"
    if measured.speedup > predicted.speedup:
        return (
            "more than predicted: the full-precision step is further from its limit than the AMP step, or AMP also "
            "fused or shrank operations that the prediction counts separately"
        )
    if light < 0.5:
        return (
            "less than predicted: even in full precision the step is far from its limits; what it waits for "
            "(the host, small kernels, caches) does not get faster with fewer bits"
        )
    if predicted.misaligned:
        names = ", ".join(predicted.misaligned[:3])
        return f"less than predicted: {names} break the 16-byte rule; pad them, and measure again"
    return "less than predicted: casts and operators that stay in fp32 take more than their share of bytes"
