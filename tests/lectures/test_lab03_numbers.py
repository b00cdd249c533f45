"""Every number of a lecture that lab03_mixed_precision uses, recomputed, and found in the lab's text as recomputed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from edl_labs.hardware import accelerator
from edl_labs.numerics import (
    BF16,
    E4M3FN,
    E5M2,
    FP16,
    FP32,
    TF32,
    Recipe,
    alignment_multiple,
    bytes_per_parameter,
    tensor_core_kernel,
    underflow_report,
)
from edl_labs.units import byte_count

from .decks import quotation

LAB = Path(__file__).resolve().parents[2] / "solutions" / "lab03_mixed_precision" / "lab03_mixed_precision.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


@pytest.mark.parametrize(
    ("fmt", "largest", "smallest_normal", "smallest", "eps"),
    [
        (FP32, "3.403e+38", "1.175e-38", "1.401e-45", "1.19e-07"),
        (FP16, "6.55e+04", "6.104e-05", "5.96e-08", "0.000977"),
        (BF16, "3.39e+38", "1.175e-38", "9.184e-41", "0.00781"),
        (E4M3FN, "448", "0.01562", "0.001953", "0.125"),
        (E5M2, "5.734e+04", "6.104e-05", "1.526e-05", "0.25"),
    ],
)
def test_the_table_of_formats(fmt, largest, smallest_normal, smallest, eps):
    assert largest == f"{fmt.largest:.4g}"
    assert smallest_normal == f"{fmt.smallest_normal:.4g}"
    assert smallest == f"{fmt.smallest_subnormal:.4g}"
    assert eps == f"{fmt.eps:.3g}"


def test_tf32_has_fp32s_range_and_fp16s_precision_in_19_bits():
    assert (FP32.smallest_normal, FP16.eps, 19) == (TF32.smallest_normal, TF32.eps, TF32.bits)


def test_where_fp16_and_bf16_break():
    assert (0.0, 2.0**-24) == (FP16.round(2.0**-25), FP16.round(1.0001 * 2.0**-25))
    assert (65504.0, float("inf")) == (FP16.round(65519.0), FP16.round(65520.0))
    assert (2048.0, 256.0) == (FP16.round(2049.0), BF16.round(257.0))


def test_e4m3fn_ends_on_an_even_neighbour():
    assert (448.0, True) == (E4M3FN.round(464.0), E4M3FN.round(465.0) != E4M3FN.round(465.0))
    assert [] == says("so 464 still becomes 448, and 465 becomes NaN", "converts 465 to 448")
    assert 448.0 == float(torch.tensor(465.0).to(torch.float8_e4m3fn))


@pytest.mark.parametrize(
    ("values", "running", "expected"),
    [(FP32, FP32, "10.00013"), (FP16, FP16, "9.953125"), (BF16, BF16, "4.00000"), (FP16, FP32, "10.0021")],
)
def test_a_thousand_times_a_hundredth(values, running, expected):
    total, value = 0.0, values.round(0.01)
    for _ in range(1000):
        total = running.round(total + value)

    assert expected == f"{total:.6f}"[: len(expected)]


def test_the_lab_quotes_the_sums():
    assert 1 / 32 == BF16.ulp(4.0)


def test_a_gradient_of_1e_8_survives_a_scale_of_65536():
    assert (0.0, "0.000655") == (FP16.round(1e-8), f"{FP16.round(65536e-8):.3g}")
    assert 1.0 == underflow_report([1e-8], FP16, scale=65536.0).normal


def test_the_scalers_defaults_are_torchs():
    scaler = torch.amp.GradScaler("cpu")

    assert (65536.0, 2.0, 0.5, 2000) == (
        scaler.get_scale(),
        scaler.get_growth_factor(),
        scaler.get_backoff_factor(),
        scaler.get_growth_interval(),
    )
    assert [] == says("PyTorch begins at 65536", "2000 clean steps in a row")


@pytest.mark.parametrize(
    ("precision", "optimizer", "total"),
    [
        ("fp32", "adam", 16),
        ("amp-000", "adam", 16),
        ("amp-002", "adam", 18),
        ("fp32", "adam8bit", 10),
        ("amp-002", "adam8bit", 12),
        ("fp32", "momentum", 12),
        ("amp-002", "momentum", 14),
    ],
)
def test_bytes_per_parameter_as_the_decks_count(precision, optimizer, total):
    assert total == bytes_per_parameter(Recipe(precision=precision, optimizer=optimizer)).resident


@pytest.mark.parametrize(("bytes_each", "text"), [(16, "112 GB"), (18, "126 GB")])
def test_seven_billion_parameters(bytes_each, text):
    assert text == byte_count(7e9 * bytes_each)


def test_the_lab_reconciles_the_two_lecturers():
    assert [] == says("deck [000] counts **16** bytes per parameter", "deck [002] counts **18**")


@pytest.mark.parametrize(
    ("dtype", "old", "new"), [("int8", 16, 128), ("fp16", 8, 64), ("tf32", 4, 32), ("fp64", 2, 16)]
)
def test_every_cell_of_the_tensor_core_tables_is_one_rule(dtype, old, new):
    assert (old, new) == (alignment_multiple(dtype, rule_bytes=16), alignment_multiple(dtype, rule_bytes=128))


def test_of_the_decks_figures_for_fp16_two_obey_the_older_rule_and_one_the_newer():
    sequence = int(quotation("002_shapes", r"length to be a multiple of (\d+) \(FP16\)"))
    mini_batch = int(quotation("002_shapes", r"Mini-batch to be a multiple of (\d+)"))
    weight_gradient = int(quotation("002_shapes", r"Weight gradient .* padding batch size to be a multiple of (\d+)"))
    on_a100 = int(quotation("002_shapes", r"For A100: be divisible by 32 \(TF32\) / (\d+) \(FP16\)"))

    assert (16, 8, 8, 64) == (sequence, mini_batch, weight_gradient, on_a100)
    assert [True] * 3 == [n % alignment_multiple("fp16", rule_bytes=16) == 0 for n in (sequence, mini_batch, on_a100)]
    assert [False, False, True] == [n % 64 == 0 for n in (sequence, mini_batch, on_a100)]
    assert [] == says(
        "length should be a multiple of 16 and a mini-batch a multiple of 8",
        "For an A100, the deck gives multiples of 64",
    )


def test_only_uniformly_short_training_makes_the_state_smaller():
    states = {p: bytes_per_parameter(Recipe(precision=p, optimizer="adam")).resident for p in ("fp32", "amp-000")}

    assert states["amp-000"] >= states["fp32"] == 2 * (2 + 2 + 2 * 2)
    assert [] == says("No *mixed* version makes the model's state smaller; bf16 for everything halves this state")


def test_fp16_and_bf16_together_give_float32():
    assert torch.float32 == (torch.ones(1).half() + torch.ones(1).bfloat16()).dtype
    assert [] == says("float32, since neither contains the other")


def test_the_padded_vocabulary_costs_little():
    assert 33728 == -(-33708 // 64) * 64
    assert "0.06" == f"{100 * 20 / 33708:.2f}"


def test_the_example_of_deck_003_is_below_a_launch():
    chip, flop = accelerator("V100"), 2 * 64 * 1024 * 512
    moved = 2 * (64 * 1024 + 1024 * 512 + 64 * 512)

    assert "67.1" == f"{flop / 1e6:.1f}"
    assert "0.54" == f"{1e6 * flop / chip.peak_flop_per_s('fp16'):.2f}"
    assert "1.38" == f"{1e6 * moved / chip.memory_bandwidth_byte_per_s:.2f}"
    assert [] == says("a linear layer from 1024 to 512 features and a batch of 64")


def test_the_decks_pattern_misses_hoppers_kernels():
    deck = re.compile(r"[ish](\d)+")
    names = ("ampere_fp16_s16816gemm_fp16_128x128", "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT")

    assert [True, False] == [bool(deck.search(name)) for name in names]
    assert all(tensor_core_kernel(name) for name in names)


def test_gradients_of_two_bytes_halve_what_the_network_sums():
    assert ("14 GB", "28 GB") == tuple(byte_count(size * 7e9) for size in (2, 4))
    assert [] == says("in each step, which is 14 GB instead of 28 GB for 7 billion parameters")


def test_the_deck_leaves_tensor_cores_to_the_library():
    said = quotation("000_tensor_cores", r"- (.*)")

    assert [] == says(f'"{said}", deck [000] says about tensor cores')
