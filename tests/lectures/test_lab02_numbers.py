"""Every worked number of the lectures on rooflines, through the public API, and as lab02 quotes it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from edl_labs.hardware import accelerator
from edl_labs.roofline import Machine, attainable_flop_per_s, bound, find_limiter, gemm, work
from edl_labs.units import percent

from .decks import quotation, quotations

LAB = Path(__file__).resolve().parents[2] / "solutions" / "lab02_roofline" / "lab02_roofline.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))

GPU_2015 = Machine.simple("GPU circa 2015", peak_flop_per_s=6e12, bandwidth_byte_per_s=300e9)
# The deck's V100: 125 TFLOP/s of tensor cores, 900 GB/s, 80 SMs.
V100 = Machine.simple("V100", peak_flop_per_s={"fp16": 125e12}, bandwidth_byte_per_s=900e9, units=80)


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


# ---------------------------------------------------------------- deck [004]: the speed of light


def test_the_gpu_of_2015_has_its_ridge_at_20():
    assert 20.0 == GPU_2015.ridge_flop_per_byte("fp32")
    assert [] == says("6 TFLOP/s and 300 GB/s", "20 FLOPs for every byte")


def test_the_matrix_vector_product_takes_seven_microseconds():
    product = work.matvec(1024, 512)
    light = bound(GPU_2015, product)

    assert 2_103_296 == product.moved_bytes
    assert 1_048_576 == product.total_flops
    assert pytest.approx(7.01099e-6, rel=1e-5) == light.memory_s
    assert pytest.approx(0.1748e-6, rel=1e-3) == light.compute_s
    assert "memory" == light.limiter


def test_the_deck_loses_a_twentieth_by_dividing_rounded_numbers():
    exact = bound(GPU_2015, work.matvec(1024, 512)).flop_per_s
    deck_gflop_per_s = int(quotation("004_matvec", r"= \*\*(\d+) GFLOPs"))

    assert pytest.approx(149.56e9, rel=1e-4) == exact
    assert deck_gflop_per_s == int(1e6 / 7e-6 / 1e9)
    assert "5.1 %" == percent(1 - 1e9 * deck_gflop_per_s / exact, digits=2)
    assert "2.49 %" == percent(exact / 6e12)


def test_counting_exactly_2n_minus_1_changes_a_tenth_of_a_per_cent():
    seconds = bound(GPU_2015, work.matvec(1024, 512)).time_s

    assert pytest.approx(149.42e9, rel=1e-4) == 1024 * (2 * 512 - 1) / seconds


def test_the_matrix_vector_product_has_an_intensity_of_a_half():
    assert pytest.approx(0.4985, abs=1e-4) == work.matvec(1024, 512).intensity_flop_per_byte


def test_multiply_and_add_as_one_operation_has_an_intensity_of_exactly_64():
    one = work.gemm(512, 512, 512, accumulate=True)
    light = bound(GPU_2015, one)

    assert 4_194_304 == one.moved_bytes
    assert 64.0 == one.intensity_flop_per_byte
    assert pytest.approx(44.74e-6, rel=1e-3) == light.compute_s
    assert pytest.approx(13.98e-6, rel=1e-3) == light.memory_s
    assert "compute" == light.limiter


def test_two_operations_have_42_7_and_without_reading_c_it_would_be_85_3():
    two = work.gemm(512, 512, 512, accumulate=True, fused=False)

    assert "42.7" == f"{two.contraction_flops / two.moved_bytes:.1f}"
    assert "85.3" == f"{work.gemm(512, 512, 512).intensity_flop_per_byte:.1f}"
    assert [] == says("gets 64 FLOP/B")


@pytest.mark.parametrize(("light", "left"), [(0.5, 2.0), (0.8, 1.25)])
def test_the_fraction_of_light_says_what_is_left(light, left):
    product = work.gemm(512, 512, 512)
    best_s = bound(GPU_2015, product).time_s

    assert pytest.approx(left) == 1 / bound(GPU_2015, product, time_s=best_s / light).fraction_of_light


# ---------------------------------------------------------------- deck [004]: minibatches


@pytest.mark.parametrize(
    ("batch", "intensity"),
    [(1, "0.50"), (16, "7.76"), (32, "15.06"), (64, "28.44"), (128, "51.20"), (1024, "170.67")],
)
def test_intensity_of_a_1024_wide_layer_grows_with_the_batch(batch, intensity):
    assert intensity == f"{work.linear(batch, 1024, 1024).intensity_flop_per_byte:.2f}"


@pytest.mark.parametrize(("width", "crossover"), [(512, 47.4), (1024, 43.4), (2048, 41.6), (213, 64.1)])
def test_a_layer_becomes_compute_bound_at_40n_over_n_minus_80(width, crossover):
    below, above = (work.linear(int(crossover) + more, width, width) for more in (0, 1))

    assert crossover == round(40 * width / (width - 80), 1)
    assert "memory" == bound(GPU_2015, below).limiter
    assert "compute" == bound(GPU_2015, above).limiter


def test_a_layer_of_width_80_or_less_never_becomes_compute_bound():
    assert 20 > work.linear(10**9, 80, 80).intensity_flop_per_byte
    assert pytest.approx(64 / 4, rel=1e-3) == work.linear(10**6, 64, 64).intensity_flop_per_byte
    assert [] == says('"about 64"', "M = 43, not 64", "N = 213", "M tends to 40", "intensity tends to N / 4")


# ---------------------------------------------------------------- deck [002]: table, ridges, products


@pytest.mark.parametrize(
    ("name", "operation", "intensity", "limiter"),
    [
        ("linear, batch 512", work.linear(512, 1024, 4096, dtype="fp16"), 315.08, "compute"),
        ("linear, batch 1", work.linear(1, 1024, 4096, dtype="fp16"), 0.99878, "memory"),
        ("ReLU", work.elementwise(1 << 20, dtype="fp16"), 0.25, "memory"),
    ],
)
def test_rows_of_the_table_of_intensities(name, operation, intensity, limiter):
    assert pytest.approx(intensity, rel=1e-4) == operation.intensity_flop_per_byte
    assert limiter == bound(V100, operation).limiter


@pytest.mark.parametrize(("kind", "intensity"), [("mean", 2.25), ("max", 2.0)])
def test_the_deck_counts_nine_operations_a_window_where_a_maximum_needs_eight(kind, intensity):
    pool = work.pooling(1, 64, height=56, width=56, kernel=3, padding=1, kind=kind, dtype="fp16")

    assert intensity == pool.intensity_flop_per_byte
    assert [] == says("counts nine operations per window", "eight comparisons, which would give 2.0 FLOP/B")


def test_layer_norm_is_far_below_ten():
    assert 10 > work.norm(512, 1024, dtype="fp16").intensity_flop_per_byte


def test_the_v100_ridge_is_138_9():
    assert "138.9" == f"{V100.ridge_flop_per_byte('fp16'):.1f}"
    assert [] == says("a ridge at 138.9 FLOP/B")


@pytest.mark.parametrize(
    ("name", "dtype", "ridge", "digits"),
    [
        ("A100-80GB", "fp16", 153.0, 1),
        ("A100-40GB", "fp16", 200.6, 1),
        ("A100-80GB", "tf32", 76.5, 1),
        ("A100-80GB", "fp32", 9.6, 1),
        ("H100-SXM", "fp16", 295.2, 0),
        ("H200", "bf16", 206.0, 0),
    ],
)
def test_ridges_of_later_gpus(name, dtype, ridge, digits):
    assert round(ridge, digits) == round(Machine.of(name).ridge_flop_per_byte(dtype), digits)


@pytest.mark.parametrize(
    ("shape", "deck", "exact", "limiter"),
    [((8192, 128, 8192), 124.1, 124.12, "memory"), ((8192, 8192, 8192), 2730, 2730.67, "compute")],
)
def test_products_of_8192_rows(shape, deck, exact, limiter):
    product = work.gemm(*shape, dtype="fp16")

    assert exact == round(product.intensity_flop_per_byte, 2)
    # The deck cuts digits off (2730.67 becomes 2730).
    assert 0 <= product.intensity_flop_per_byte - deck < 1
    assert limiter == bound(V100, product).limiter


def test_a_narrow_product_crosses_the_v100_ridge_at_a_width_of_144():
    assert "memory" == bound(V100, work.gemm(8192, 143, 8192, dtype="fp16")).limiter
    assert "compute" == bound(V100, work.gemm(8192, 144, 8192, dtype="fp16")).limiter
    assert 139.11 == round(work.gemm(8192, 144, 8192, dtype="fp16").intensity_flop_per_byte, 2)


@pytest.mark.parametrize(("name", "side"), [("V100", 417), ("A100-80GB", 459), ("H200", 619)])
def test_a_square_product_has_a_third_of_its_side_as_intensity(name, side):
    machine = V100 if name == "V100" else Machine.of(name)

    assert pytest.approx(side / 3) == work.gemm(side, side, side, dtype="fp16").intensity_flop_per_byte
    assert "compute" == bound(machine, work.gemm(side, side, side, dtype="fp16")).limiter
    assert "memory" == bound(machine, work.gemm(side - 2, side - 2, side - 2, dtype="fp16")).limiter


@pytest.mark.parametrize(("machine", "batch"), [(V100, 168), (Machine.of("A100-80GB"), 189)])
def test_the_linear_layer_crosses_the_ridge_at_a_batch_of(machine, batch):
    assert "memory" == bound(machine, work.linear(batch - 1, 1024, 4096, dtype="fp16")).limiter
    assert "compute" == bound(machine, work.linear(batch, 1024, 4096, dtype="fp16")).limiter


def test_few_tiles_are_latency_limited_whatever_their_intensity():
    a100 = Machine.of("A100-80GB")
    long, tall = work.gemm(1024, 1024, 65536, dtype="fp16"), work.gemm(8192, 128, 8192, dtype="fp16")
    tiles = [
        gemm.quantization(m, n, k, tile=(256, 128), sms=108).tiles
        for m, n, k in ((1024, 1024, 65536), (8192, 128, 8192))
    ]

    assert [32, 32] == tiles
    assert "508" == f"{long.intensity_flop_per_byte:.0f}"
    assert ["latency", "latency"] == [find_limiter(a100, one, parallel_items=32).limiter for one in (long, tall)]
    assert "compute" == find_limiter(a100, long, parallel_items=108).limiter
    assert [] == says("has 508 FLOP/B", "1024 × 1024 is 32 tiles: 76 of 108 SMs", "124.1 FLOP/B")


@pytest.mark.parametrize(("m", "tiles", "useful"), [(256, 4, 1.0), (257, 6, 0.669)])
def test_one_row_more_than_two_tiles_needs_six(m, tiles, useful):
    found = gemm.quantization(m, 256, 1024, tile=(128, 128), sms=108)

    assert tiles == found.tiles
    assert useful == round(found.tile_efficiency, 3)


@pytest.mark.parametrize(
    ("tiles", "waves", "efficiency"),
    [(108, 1, "100 %"), (109, 2, "50.5 %"), (120, 2, "55.6 %"), (216, 2, "100 %"), (217, 3, "67 %")],
)
def test_waves_on_the_108_sms_of_an_a100(tiles, waves, efficiency):
    found = gemm.quantization(256 * tiles, 128, 4096, tile=(256, 128), sms=108)

    assert (tiles, waves) == (found.tiles, found.waves)
    assert efficiency == percent(found.wave_efficiency)


@pytest.mark.parametrize(("dtype", "tera"), [("tf32", 155.93), ("fp16", 311.87), ("int8", 623.7), ("fp32", 19.49)])
def test_peaks_of_the_a100(dtype, tera):
    assert pytest.approx(tera, rel=1e-3) == Machine.of("A100-80GB").peak_flop_per_s(dtype) / 1e12


# ---------------------------------------------------------------- decks [001], [002], [003]: where time goes


def test_contractions_have_hundreds_of_times_the_flop_rate_of_the_rest():
    rate = {name: flop / time for name, flop, time in (("mul", 99.80, 61.0), ("norm", 0.17, 25.5), ("ew", 0.03, 13.5))}

    assert (245, 736) == (round(rate["mul"] / rate["norm"]), round(rate["mul"] / rate["ew"]))
    assert [] == says(
        "| tensor contraction | 99.80 | 61.0 |", "| element-wise | 0.03 | 13.5 |", "hundreds of times lower"
    )


def test_amdahl_leaves_2_56_for_tensor_cores_and_1_64_for_the_rest():
    assert ("2.56", "1.64") == (f"{1 / (1 - 0.61):.2f}", f"{1 / 0.61:.2f}")


@pytest.mark.parametrize(("milliseconds", "tera"), [(1.430, 6.76), (0.840, 11.50)])
def test_cudnn_benchmark_raised_a_convolution_to_11_5_tflop_per_s(milliseconds, tera):
    conv = work.conv2d(32, 64, 64, height=64, width=64, kernel=3, padding=1)

    assert pytest.approx(9.664e9, rel=1e-3) == conv.total_flops
    assert tera == round(conv.total_flops / (1e-3 * milliseconds) / 1e12, 2)


def test_the_profile_with_a_cuda_column_ran_at_a_cpus_rate():
    first = work.conv2d(16, 3, 64, height=224, width=224, kernel=7, stride=2, padding=3)

    assert pytest.approx(3.776e9, rel=1e-3) == first.total_flops
    assert 382 == round(first.total_flops / 9.880e-3 / 1e9)


def test_the_half_precision_demo_is_shorter_than_a_launch():
    layer = work.linear(64, 1024, 512, dtype="fp16")
    light = bound(V100, layer)

    assert pytest.approx(67.1e6, rel=1e-3) == layer.total_flops
    assert ("0.54", "1.38") == (f"{1e6 * light.compute_s:.2f}", f"{1e6 * light.memory_s:.2f}")


# ---------------------------------------------------------------- deck [004]: several nodes


@pytest.mark.parametrize(
    ("shape", "before", "after"),
    [((512, 512, 512), 85.33, 64.0), ((1024, 1024, 64), 28.44, 15.06), ((4096, 4096, 64), 31.03, 15.75)],
)
def test_half_a_minibatch_has_less_intensity_on_each_node(shape, before, after):
    m, k, n = shape
    whole, half = (work.gemm(m, columns, k).intensity_flop_per_byte for columns in (n, n // 2))

    assert (before, after) == (round(whole, 2), round(half, 2))


def test_half_of_a_minibatch_of_64_falls_below_the_ridge():
    whole, half = work.gemm(1024, 64, 1024), work.gemm(1024, 32, 1024)

    assert ["compute", "memory"] == [bound(GPU_2015, one).limiter for one in (whole, half)]
    assert 6e12 == attainable_flop_per_s(GPU_2015, whole.intensity_flop_per_byte)
    assert 6e12 > attainable_flop_per_s(GPU_2015, half.intensity_flop_per_byte)


def network_intensity(minibatch: float, *, nodes: int, products: int = 1) -> float:
    """FLOPs of `products` products per byte that a ring of fp32 gradients sends, for each weight of a layer."""
    return products * 2 * minibatch / nodes / (2 * (nodes - 1) / nodes * 4)


def test_the_networks_ridge_is_1000():
    assert 1000.0 == 6e12 / 6e9
    assert [] == says("1000 FLOPs for every byte")


@pytest.mark.parametrize("minibatch", [400, 4000, 12345])
def test_two_nodes_have_an_intensity_of_a_quarter_of_the_minibatch(minibatch):
    assert pytest.approx(minibatch / 4) == network_intensity(minibatch, nodes=2)
    assert [] == says("N / 4 FLOPs per byte")


@pytest.mark.parametrize("nodes", [2, 3, 8, 64])
def test_a_ring_of_p_nodes_has_n_over_4_p_minus_1_and_twice_that_behind_the_whole_backward_pass(nodes):
    update, backward = (network_intensity(4000, nodes=nodes, products=products) for products in (1, 2))

    assert pytest.approx(4000 / (4 * (nodes - 1))) == update
    assert pytest.approx(2 * update) == backward


@pytest.mark.parametrize(
    ("link_byte_per_s", "minibatch"), [(6e9, 4000), (40e9, 600), (6.8e9, 3529), (5e9, 4800), (1e9, 24000)]
)
def test_the_smallest_minibatch_that_hides_a_link(link_byte_per_s, minibatch):
    smallest = math.ceil(6e12 / link_byte_per_s / network_intensity(1, nodes=2) * (1 - 1e-12))

    # 3529.4 is rounded down by the deck's arithmetic, and up by whoever wants to hide it all.
    assert minibatch == round(smallest) or minibatch + 1 == smallest


def test_the_decks_max_pool_took_longer_than_both_convolutions():
    rows = quotations("003_profile", r"(?m)^(\w+)\t([\d.]+)us\t")
    pool_us = max(float(spent) for name, spent in rows if name.startswith("max_pool"))
    convolutions_us = [float(spent) for name, spent in rows if name == "conv2d"]

    assert 2 == len(convolutions_us)
    assert sum(convolutions_us) < pool_us
    assert "28.8" == f"{pool_us / 1e3:.1f}"
    assert [] == says("max-pool took 28.8 ms", "longer than both convolutions of the profile")


def test_the_experiment_is_shortest_at_the_ridge():
    """Deck [004]: time falls, then rises again with M, here with 1 + M / 200 times the examples."""
    floor = 43

    def wall(m):
        return (1 + m / 200) / m * max(floor, m) / floor

    assert quotation("004_minibatch", r"falls, then rises again with M") in TEXT
    assert floor == min(range(1, 2000), key=wall)
    assert [] == says("1 + M / 200 times as many examples")


@pytest.mark.parametrize(("rails", "of_peak", "nodes"), [(1, 1.0, 7), (2, 1.0, 13), (1, 0.5, 13)])
def test_a_second_rail_and_a_slower_node_each_take_strong_scaling_to_thirteen(lab, rails, of_peak, nodes):
    job = {"weights": 10**8, "itemsize": 4, "buckets": 16, "batch": 8000, "largest_batch": 8000}
    cluster = {"nodes": 64, "node_flop_per_s": of_peak * 6e12, "link_byte_per_s": rails * 6e9}

    assert ("strong", nodes) == lab["plan"](job | {"least_efficiency": 0.7}, cluster)
    assert [] == says("scaling from seven nodes to thirteen", "only half of their peak", "scale to thirteen, too")


def test_a_batch_of_128_reaches_most_of_an_a100_and_not_all_of_it():
    """Deck [002]'s guideline is for the A100 of 80 GB; a layer's intensity tends to its batch as it gets wider."""
    chip = accelerator("A100-80GB")
    ridge = chip.peak_flop_per_s("fp16") / chip.memory_bandwidth_byte_per_s
    batch = int(quotation("002_guideline", r"greater than (\d+)"))
    wide = work.gemm(batch, 1 << 24, 1 << 24, dtype="fp16")

    assert (153, 128) == (round(ridge), batch)
    assert pytest.approx(128, rel=1e-3) == wide.total_flops / wide.moved_bytes
    assert "84 %" == percent(batch / ridge, digits=2)
    assert ("64", "256") == quotation("002_guideline", r"at least (\d+) and ideally (\d+)")
    assert [] == says(
        '"at least 64 and ideally 256"',
        "ridge in fp16 is 153 FLOP/B",
        "has only 128 FLOP/B, which allows 84 % of the ceiling",
    )


def test_the_cycle_time_argument_has_three_levers():
    assert ["software", "hardware", "model"] == quotations("004_cycle_time", r"Change the (\w+)")
    assert [] == says("argues with the *cycle time*: research is guided exploration")
    assert [] == says("three levers: different software, different hardware, and a different model")
