"""Every number of a lecture that lab05_profiling quotes, recomputed, and found in the lab's text as recomputed."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from edl_labs.units import flop_rate
from edl_labs.virtual import VirtualGPU, VirtualMachine

from .decks import quotation, quotations

LAB = Path(__file__).resolve().parents[2] / "solutions" / "lab05_profiling" / "lab05_profiling.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))
# Deck [003]: name, microseconds, and the place of the row around it.
DECK = (
    ("conv2d", 9976.544, None),
    ("convolution", 9958.778, 0),
    ("_convolution", 9946.712, 1),
    ("contiguous", 6.692, 2),
    ("empty", 11.927, 2),
    ("mkldnn_convolution", 9880.452, 2),
)


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


def deck_rows():
    """The rows of deck [003] with starts that let them nest as they did."""
    starts_us = [0.0, 1.0, 2.0, 3.0, 10.0, 22.0]
    return [
        {"name": name, "thread": "main", "start_s": 1e-6 * start, "end_s": 1e-6 * (start + spent)}
        for (name, spent, _), start in zip(DECK, starts_us, strict=True)
    ]


def test_the_decks_six_rows_count_a_convolution_four_times():
    total = sum(spent for _, spent, _ in DECK)

    assert "39,781.1" == f"{total:,.1f}"
    assert "3.99" == f"{total / DECK[0][1]:.2f}"
    assert [] == says("conv2d | 9976.544 µs | 9972.736 µs", "mkldnn_convolution | 9880.452 µs | 9889.792 µs")


def test_self_times_of_the_decks_rows(lab):
    times = lab["self_times"](deck_rows())
    wrappers = {name: f"{1e6 * times[name]:.1f}" for name in ("conv2d", "convolution", "_convolution")}

    assert {"conv2d": "17.8", "convolution": "12.1", "_convolution": "47.6"} == wrappers
    assert pytest.approx(9976.544e-6) == sum(times.values())
    assert [] == says("17.8 µs for conv2d, 12.1 µs for convolution and 47.6 µs for _convolution")


def test_the_decks_convolution_ran_on_a_cpu(lab):
    flop = 2 * 16 * 64 * 112 * 112 * 3 * 7 * 7
    entry = {"flop": float(flop), "cpu_s": 9880.452e-6, "cuda_s": 9889.792e-6}

    assert "3.776" == f"{flop / 1e9:.3f}"
    assert "382 GFLOP/s" == flop_rate(flop / 9880.452e-6)
    assert "cpu" == lab["ran_on"](entry, cpu_flop_per_s=1e12)
    assert [] == says("382 GFLOP/s is a good rate for a CPU")


def test_tocsr_has_thirteen_per_cent_of_a_second_and_more_of_the_run(lab):
    # Two seconds in which other things ran, then the window of 100 samples that deck [000] shows.
    counts = {"als.py:139": 36, "als.py:141": 26, "als.py:160": 23, "tocsr": 13, "other": 2}
    late = [frame for frame, count in counts.items() for _ in range(count)]
    early = ["tocsr"] * 45 + ["bm25_weight"] * 13 + ["import"] * 142
    samples = [{"stack": ["<module>", frame], "idle": False, "gil": n < 73} for n, frame in enumerate(early + late)]
    table = lab["sampler_table"](samples, rate_hz=100, window=100)

    assert (300, 3.0) == (len(samples), len(samples) / 100)
    assert "24.33" == f"{100 * table['gil']:.2f}"
    assert 1.0 == table["active"]
    assert pytest.approx((0.13, 0.58)) == (table["rows"]["tocsr"]["own"], table["rows"]["tocsr"]["own_s"])
    assert pytest.approx((0.0, 0.13)) == (table["rows"]["bm25_weight"]["own"], table["rows"]["bm25_weight"]["own_s"])
    assert pytest.approx((0.36, 0.36)) == (table["rows"]["als.py:139"]["own"], table["rows"]["als.py:139"]["own_s"])


def test_the_decks_visible_rows_are_less_than_the_run():
    rows = quotations("000_py_spy", r"([\d.]+)%\t[\d.]+%\t([\d.]+)s\t")
    own_s = [float(seconds) for _, seconds in rows if float(seconds)]

    assert (23, 11, "1.82") == (len(rows), len(own_s), f"{sum(own_s):.2f}")
    assert 100 == sum(float(share) for share, _ in rows)
    assert [] == says(f"own_s = {own_s}", "these eleven have time of their own", "23 rows contain 1.82 s of the 3.0 s")


def test_the_deck_is_quoted_on_utilisation_in_its_own_words():
    words = quotation("003_utilization", r"- (utilization of each GPU .*)")

    assert [] == says(f'"{words}"')


def test_three_patterns_are_the_decks_and_two_are_ours():
    named = [name.strip() for name in quotations("000_patterns", r"Pattern: (.*?) Bound")]

    assert ["GPU Compute", "CPU CUDA API", "Synchronization"] == named
    assert [] == says("names three typical patterns", "two more that this lab adds (data and copies)")


def test_half_of_200_samples_is_known_to_three_and_a_half_per_cent():
    assert "3.5" == f"{100 * math.sqrt(0.25 / 200):.1f}"
    assert [] == says("with 200 samples, a share of 50 % has an uncertainty of ± 3.5 percentage points")


def test_deck_000_records_six_steps_in_two_traces(lab):
    states = lab["schedule_states"](11, wait=1, warmup=1, active=3, repeat=2)
    letters = {"none": "N", "warmup": "W", "record": "R", "record and save": "S"}

    assert 10 == (1 + 1 + 3) * 2
    assert "NWRRS" * 2 + "N" == "".join(letters[state] for state in states)
    assert [] == says("records six steps in two traces", "stops its loop at step (1 + 1 + 3) * 2")


def test_deck_002_records_for_ever_in_cycles_of_nine(lab):
    states = lab["schedule_states"](900, wait=2, warmup=2, active=5, repeat=0)

    assert 9 == 2 + 2 + 5
    assert 100 == states.count("record and save")
    assert [] == says("`wait=2, warmup=2, active=5, repeat=0`")


@pytest.mark.parametrize(("blocks", "share"), [(1, "0.9"), (54, "50.0"), (108, "100.0"), (109, "50.5"), (216, "100.0")])
def test_a_utilisation_of_one_hundred_per_cent_can_be_one_sm(blocks, share, lab):
    said, working = lab["utilisation"]([{"start_s": 0.0, "end_s": 1.0, "blocks": blocks}], sm_count=108, window_s=1.0)

    assert (1.0, share) == (said, f"{100 * working:.1f}")
    assert [] == says("For one block, the two numbers are 100 % and 0.9 %")


def test_removing_the_items_gains_less_than_their_share(lab):
    step, machine = lab["EXAMPLES"]["synchronisation"], lab["MACHINE"]
    spans = lab["step_spans"](step, machine)
    window_s = max(span["end_s"] for span in spans)
    share = sum(s for (of, _), s in lab["charges"](spans).items() if of == "synchronisation") / window_s
    gain = lab["most_to_gain"](step, machine)[1]["synchronisation"]

    assert 70 == round(100 * share, -1)
    assert gain < 2 < 1 / (1 - share)


def test_the_planted_script_is_several_times_too_slow(lab):
    jobs = [lab["example_job"]() for _ in range(2)]
    losses = lab["train_slowly"](jobs[0])

    assert losses == lab["train"](jobs[1])
    assert jobs[0].gpu.timeline.makespan_s > 3 * jobs[1].gpu.timeline.makespan_s


def test_a_profiler_that_does_not_wait_times_launches(lab):
    gpu = VirtualGPU(VirtualMachine(launch_overhead_s=5e-6))
    start_s = gpu.now_s()
    gpu.launch("kernel", duration_s=2e-4)

    assert pytest.approx(5e-6) == gpu.now_s() - start_s


def test_nvprofs_four_rows_are_device_time_and_its_mean_describes_nothing():
    times = quotations("000_nvprof", r"%\s+([\d.]+)ms\s+(\d+)")
    copies_ms, calls = times[-1]
    largest_ms = float(quotation("000_nvprof", r"([\d.]+)ms\s+\[CUDA memcpy DtoH"))
    others_us = 1e3 * (float(copies_ms) - largest_ms) / (int(calls) - 1)

    assert "1256.4" == f"{sum(float(time_ms) for time_ms, _ in times):.1f}"
    assert "12.69" == f"{1e3 * float(copies_ms) / int(calls):.2f}"
    assert "2.2" == f"{others_us:.1f}"
    assert [] == says("add up to 1256.4 ms", "a mean of 12.69 µs", "a thousand small ones of about 2.2 µs")


def test_the_decks_max_pool_takes_longer_than_its_convolutions():
    rows = quotations("003_profile", r"(?m)^(\w+)\t([\d.]+)us\t")
    pool_us = next(float(spent) for name, spent in rows if name == "max_pool2d_with_indices")
    convolutions_us = [float(spent) for name, spent in rows if name == "conv2d"]

    assert (2, "1.8") == (len(convolutions_us), f"{pool_us / sum(convolutions_us):.1f}")
    assert "28 837.682" == f"{pool_us:_.3f}".replace("_", " ")
    assert [] == says(
        "`max_pool2d_with_indices` takes 28 837.682 µs", "1.8 times as long as the table's two convolutions"
    )


def test_the_gap_that_is_worked_by_hand(lab):
    spans = lab["step_spans"](lab["EXAMPLES"]["synchronisation"], lab["MACHINE"])
    began_s, ended_s, wait = lab["gaps"](spans)[0]
    inside = [one for one in spans if one["row"] == "host" and began_s <= one["start_s"] < ended_s]
    parts = {(one["kind"], one["line"]): f"{1e6 * (one['end_s'] - one['start_s']):.0f}" for one in inside[:2]}
    charged_s = lab["charges"](spans)["synchronisation", "train.py:16"]
    all_gaps_s = [end_s - start_s for start_s, end_s, _ in lab["gaps"](spans)]

    assert ("21.5", "71.5") == (f"{1e6 * began_s:.1f}", f"{1e6 * ended_s:.1f}")
    assert {("python", "train.py:17"): "45", ("call", "train.py:15"): "5"} == parts
    assert ("train.py:16", began_s) == (wait["line"], pytest.approx(wait["end_s"]))
    assert sum(all_gaps_s) == pytest.approx(charged_s), "each gap is the wait's, whole"
    assert [] == says(
        "The device finishes a kernel at 21.5 µs, and its next kernel begins at 71.5 µs; meanwhile the host runs"
        " 45 µs of Python (line 17) and 5 µs of a call (line 15).",
        "All 50 µs are charged to that wait: `synchronisation`, line 16.",
    )


def test_in_the_second_picture_no_wait_ends_where_a_gap_begins(lab):
    spans = lab["step_spans"](lab["EXAMPLES"]["launch"], lab["MACHINE"])
    found = lab["gaps"](spans)

    assert len(found) > 10
    assert {None} == {wait for _, _, wait in found}
