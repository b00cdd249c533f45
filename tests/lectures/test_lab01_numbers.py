"""Every number of a lecture that lab01_gpu_basics quotes, recomputed, and found in the lab's text as recomputed."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from edl_labs.hardware import accelerator, flop_rate
from edl_labs.units import percent, seconds
from edl_labs.virtual import VirtualGPU, VirtualMachine

LAB = Path(__file__).resolve().parents[2] / "solutions" / "lab01_gpu_basics" / "lab01_gpu_basics.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


def test_three_toasts_take_three_minutes_and_not_four():
    sides, places = 3 * 2, 2

    assert 3 == sides / places
    assert 4 == 2 * math.ceil(3 / places)
    assert [] == says("two more: four minutes")


def test_ten_launches_show_a_timer_forty_times_too_fast():
    launch_s, kernel_s = 5e-6, 200e-6

    assert "50 µs" == seconds(10 * launch_s)
    assert 40 == round(kernel_s / launch_s)
    assert [] == says("forty times too fast")


def test_cudnn_benchmark_gained_the_backward_pass_one_per_cent():
    forward, both, backward = 1430 / 840, 2870 / 2260, (2870 - 1430) / (2260 - 840)

    assert ("1.70", "1.27", "1.014") == (f"{forward:.2f}", f"{both:.2f}", f"{backward:.3f}")
    assert [] == says("| forward | 1430 µs | 840 µs | 1.70 |", "| forward + backward | 2870 µs | 2260 µs | 1.27 |")


def test_the_a100_peak_follows_from_its_clock():
    peak = flop_rate(sm_count=108, fma_per_clock_per_sm=1024, clock_hz=1.41e9)

    assert 312 == round(peak / 1e12)
    assert peak == accelerator("A100").peak_flop_per_s("fp16")
    assert [] == says("108 SMs at 1.41 GHz", "312 TFLOP/s")


def test_tensor_cores_were_worth_eight_and_sixteen_times():
    assert (8, 16) == (512 / 64, 1024 / 64)
    assert [] == says("512 against 64 on Volta is 8×", "1024 against 64 on the A100 is 16×")


def test_the_friends_vector_sum_is_faster_than_light():
    bound_s = 3 * 256e6 / accelerator("A100-80GB").memory_bandwidth_byte_per_s

    assert 0.3e-3 < bound_s
    assert [] == says("0.3 ms on an A100 with 2039 GB/s", "768 MB")


def test_half_the_speed_of_light_leaves_a_factor_of_two():
    assert (2, 1.25) == (1 / 0.5, 1 / 0.8)
    assert [] == says("a kernel at 0.5 can become twice as fast, one at 0.8 only 1.25 times")


def test_one_row_more_is_half_as_much_work_again():
    tiles = math.ceil(257 / 128) * math.ceil(256 / 128)

    assert (4, 6) == (math.ceil(256 / 128) ** 2, tiles)
    assert "0.4 %" == f"{100 * (257 / 256 - 1):.1f} %"


@pytest.mark.parametrize(
    ("tiles", "efficiency"), [(108, "100 %"), (109, "50.5 %"), (120, "55.6 %"), (216, "100 %"), (217, "67 %")]
)
def test_waves_on_108_sms(tiles, efficiency):
    waves = math.ceil(tiles / 108)

    assert efficiency == percent(tiles / (waves * 108))


def test_the_first_tooth_that_stays_above_nine_tenths_begins_with_tile_973():
    lowest = {waves: (108 * (waves - 1) + 1) / (108 * waves) for waves in range(1, 100)}
    first = min(waves for waves, efficiency in lowest.items() if efficiency >= 0.9)

    assert 973 == 108 * (first - 1) + 1
    assert [] == says("the first tooth that never falls below 90 % begins with tile 973")


@pytest.mark.parametrize(
    ("gb_per_s", "words", "unit_s", "rounded"),
    [
        (30, "9 hours", 3600, 9),
        (40, "7 hours", 3600, 7),
        (5, "2 days", 86400, 2),
        (6, "2 days", 86400, 2),
        (6.8, "2 days", 86400, 2),
        (1, "2 weeks", 7 * 86400, 2),
    ],
)
def test_a_petabyte_takes_what_the_deck_says_at_the_printed_speed(gb_per_s, words, unit_s, rounded):
    assert rounded == round(1e15 / (gb_per_s * 1e9) / unit_s)
    assert [] == says(f"| {gb_per_s:g} GB/s | {words} |")


def test_a_petabyte_over_sata_takes_nineteen_days():
    days = 1e15 / (6e9 / 8 * 8 / 10) / 86400

    assert 19 == round(days)


def test_a_pebibyte_is_an_eighth_more_than_a_petabyte():
    assert "12.6 %" == percent(2**50 / 1e15 - 1)
    assert [] == says("1 PiB is 12.6 % more than 1 PB")


def test_three_kernels_that_fill_a_third_of_the_chip_take_one_wave_in_three_streams():
    """Deck [001]: a serial and a concurrent model."""
    block_s, waves = 1e-3, []
    for streams in (1, 3):
        gpu = VirtualGPU(VirtualMachine.of("A100").warm())
        lanes = [gpu.Stream() for _ in range(streams)]
        for kernel in range(3):
            gpu.launch("third", duration_s=block_s, blocks=36, stream=lanes[kernel % streams])
        gpu.synchronize()
        waves.append(round(gpu.timeline.makespan_s / block_s))

    assert [3, 1] == waves
    assert 108 == 3 * 36
    assert [] == says(
        "In one stream, three kernels of 36 blocks take three waves", "in three streams, their 108 blocks fill one wave"
    )


def test_a_gb200_has_fifteen_thousand_times_the_memory_of_a_voodoo2():
    """Deck [001]."""
    assert 15_500 == 186e9 / 12e6
    assert [] == says("a Voodoo2 of 1998 had 12 MB, a GB200 has 186 GB, 15 500 times as much")
