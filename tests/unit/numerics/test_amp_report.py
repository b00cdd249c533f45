"""Whether AMP can help: each reason found on a model that has it, and the report measured where it can be."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from edl_labs.errors import UsageError
from edl_labs.hardware import accelerator
from edl_labs.numerics import AmpReport, Rates, amp_report, predict_amp, training_step
from edl_labs.numerics._amp_report import _gap

A100 = Rates.of("A100-80GB")


def predicted(model: nn.Module, *shape: int, rates: Rates = A100, dtype: torch.dtype = torch.float16):
    return predict_amp(model, torch.empty(*shape), rates, dtype=dtype)


def products(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, outputs, bias=False))


def test_one_product_is_priced_by_its_flop_at_the_datasheets_rate() -> None:
    found = predicted(products(4096, 4096), 8192, 4096)
    flop = 3 * 2 * 8192 * 4096 * 4096  # forward, and two products as large for the gradients

    assert flop / accelerator("A100-80GB").peak_flop_per_s("fp32") == pytest.approx(found.full.compute_s)
    assert flop / accelerator("A100-80GB").peak_flop_per_s("fp16") == pytest.approx(found.low.compute_s)
    assert ("compute-bound", True) == (found.limit, found.can_help)
    assert 10 < found.speedup < 16


def test_deck_003s_linear_is_too_small_for_amp() -> None:
    found = predicted(nn.Linear(1024, 512), 64, 1024, rates=Rates.of("V100-16GB"))

    assert ("launch-bound", False) == (found.limit, found.can_help)
    assert found.speedup < 1  # casts are launches too


def test_elementwise_work_is_memory_bound_and_gains_nothing() -> None:
    model = nn.Sequential(nn.LayerNorm(1024), nn.GELU(), nn.LayerNorm(1024))
    found = predicted(model, 65536, 1024)

    assert ("memory-bound", pytest.approx(1.0)) == (found.limit, found.speedup)


def test_misaligned_products_gain_nothing_until_they_are_padded() -> None:
    odd, padded = predicted(products(4097, 4099), 8192, 4097), predicted(products(4104, 4104), 8192, 4104)

    assert (("misaligned",), pytest.approx(1.0, abs=0.1)) == (odd.reasons, odd.speedup_low)
    assert 1.0 == odd.misaligned_share
    assert ((), True) == (padded.reasons, padded.speedup_low > 10)


def test_an_fp32_step_that_runs_in_tf32_already_gains_two_at_most() -> None:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        ampere, volta = (predicted(products(4096, 4096), 8192, 4096, rates=r) for r in (A100, Rates.of("V100-16GB")))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before

    assert ("already TF32",) == ampere.reasons
    assert 1.5 < ampere.speedup <= 2.0
    assert ((), True) == (volta.reasons, volta.speedup > 4)  # it has no TF32


def test_convolutions_run_in_tf32_unless_told_otherwise() -> None:
    found = predicted(nn.Sequential(nn.Conv2d(512, 512, 3, padding=1, bias=False)), 64, 512, 64, 64)

    assert "already TF32" in found.reasons


def test_a_device_without_a_faster_unit_says_so() -> None:
    plain = Rates("plain", {"fp32": 1e12, "fp16": 1e12}, other_flop_per_s=1e12, byte_per_s=1e12)

    assert "no faster unit" in predicted(products(4096, 4096), 8192, 4096, rates=plain).reasons
    assert "no faster unit" in predicted(products(4096, 4096), 8192, 4096, dtype=torch.bfloat16, rates=plain).reasons


def test_without_backward_a_third_of_the_products_remains() -> None:
    both = predicted(products(4096, 4096), 8192, 4096)
    alone = predict_amp(products(4096, 4096), torch.empty(8192, 4096), A100, dtype=torch.float16, backward=False)

    assert both.full.compute_s == pytest.approx(3 * alone.full.compute_s)


def test_kernels_are_counted_as_roofline_counts_them() -> None:
    lookup, lstm = nn.Embedding(1000, 16), nn.LSTM(8, 4)
    rows = predict_amp(lookup, torch.zeros(5, dtype=torch.long), A100, dtype=torch.float16, backward=False)
    gates = predict_amp(lstm, torch.empty(2, 3, 8), A100, dtype=torch.bfloat16, device_type="cpu")

    assert (8 * 5 + 2 * 4 * 5 * 16) / A100.byte_per_s == pytest.approx(rows.full.memory_s)  # not the whole table
    assert ("lstm",) == gates.misaligned  # torch's own counter knows no products in oneDNN's kernel


def test_another_machines_report_is_modelled_and_says_so() -> None:
    report = amp_report(products(4096, 4096), torch.empty(8192, 4096), machine="A100-80GB")

    assert (None, None) == (report.measured, report.speedup)
    assert "modelled" in repr(report)
    assert 1 == json.loads(json.dumps(report.to_json()))["schema"]


def test_here_it_is_measured_and_the_model_is_left_alone() -> None:
    model, x = products(64, 64), torch.randn(32, 64)
    report = amp_report(model, x, budget_s=0.1, seed=1, dtype=torch.bfloat16)

    assert report.measured is not None
    assert 0 < report.speedup
    assert "measured:" in repr(report)
    assert model[0].weight.grad is None
    assert report.to_json() == AmpReport.from_json(json.dumps(report.to_json())).to_json()
    assert report.speedup == AmpReport.from_json(report.to_json()).speedup


@pytest.mark.parametrize(("dtype", "expected"), [(None, torch.float32), (torch.bfloat16, torch.bfloat16)])
def test_a_training_step_runs_under_autocast_only_if_asked(dtype, expected) -> None:
    seen = []

    def loss(output: torch.Tensor) -> torch.Tensor:
        seen.append(output.dtype)
        return output.float().sum()

    training_step(products(8, 8), (torch.ones(2, 8),), device_type="cpu", dtype=dtype, loss=loss)()

    assert [expected] == seen


class Told:
    """A comparison that says what the test wants it to say."""

    def __init__(self, speedup: float, verdict: str = "faster") -> None:
        self.speedup, self.verdict = speedup, verdict


@pytest.mark.parametrize(
    ("speedup", "light", "verdict", "said"),
    [
        (14.0, 0.9, "faster", "as predicted (main reason: compute-bound"),
        (40.0, 0.9, "faster", "more than predicted"),
        (1.2, 0.1, "faster", "far from its limits"),
        (5.0, 0.9, "faster", "casts and operators that stay"),
        (1.0, 0.9, "inconclusive", "too noisy"),
    ],
)
def test_the_gap_between_prediction_and_measurement_gets_its_sentence(speedup, light, verdict, said) -> None:
    found = predicted(products(4096, 4096), 8192, 4096)

    assert said in _gap(found, Told(speedup, verdict), 0.98 * speedup, 1.02 * speedup, light)  # type: ignore[arg-type]


def test_a_misaligned_model_that_gains_little_is_told_to_pad() -> None:
    # Between the two ends of the prediction anything is as predicted; below them padding is what is left to say.
    found = predicted(products(4097, 4099), 8192, 4097)

    assert "pad them" in _gap(found, Told(0.7, "slower"), 0.69, 0.71, 0.9)  # type: ignore[arg-type]


@pytest.mark.parametrize("machine", ["A1000", 7])
def test_a_machine_that_is_none_is_refused(machine) -> None:
    with pytest.raises(Exception, match=r"not a machine|no accelerator"):
        amp_report(products(8, 8), torch.empty(2, 8), machine=machine)


def test_a_dtype_that_lowers_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="does not lower"):
        amp_report(products(8, 8), torch.empty(2, 8), machine="A100-80GB", dtype=torch.float32)
