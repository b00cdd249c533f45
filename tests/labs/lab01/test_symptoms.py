"""What lab01's exercises say of a mistake that the answers to all cases show."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("picked", "told"),
    [
        (lambda bound, tile_n: 1, "your function returned the narrowest matrix: "),
        (lambda bound, tile_n: min(tile_n, bound), "your code considers only what the tiles waste, not the waves"),
        (
            lambda bound, tile_n: bound // tile_n * tile_n + 1,
            "your code considers only the waves, not what the tiles waste",
        ),
    ],
)
def test_widths_that_another_criterion_picks_are_told(judged, picked, told):
    def best_width(m, *, bound, tile_m, tile_n, sm_count):
        return picked(bound - tile_n if bound > 2 * tile_n else bound, tile_n)

    assert told in judged("wave_quantization", best_width=best_width).what


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda row, dtype: max(n for unit in row.values() for n in unit.values()), "uses the rate of another dtype"),
        (lambda row, dtype: min([n for unit in row.values() if (n := unit.get(dtype))] or [0]), "the slower unit"),
    ],
)
def test_rates_that_another_number_of_the_row_gives_are_told(judged, change, told):
    def peak(row, dtype, *, sm_count, clock_mhz):
        return 2 * sm_count * clock_mhz * 1e6 * change(row, dtype)

    assert told in judged("peak_from_clock", peak_flop_per_s=peak).what


def test_a_peak_that_follows_no_machine_is_told(judged):
    def one_machine(row, dtype, *, sm_count, clock_mhz):
        return 2 * 108 * 1410 * 1e6 * max(unit.get(dtype, 0) for unit in row.values())

    assert (
        "your code does not use sm_count and clock_mhz" == judged("peak_from_clock", peak_flop_per_s=one_machine).what
    )


def test_an_exception_for_a_missing_dtype_is_told(judged, solution):
    def refuses(row, dtype, **machine):
        if not any(dtype in unit for unit in row.values()):
            raise ValueError(dtype)
        return solution["peak_flop_per_s"](row, dtype, **machine)

    assert "your code raised ValueError; expected 0.0" == judged("peak_from_clock", peak_flop_per_s=refuses).what


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda m, n, tm, tn, r: (r[0], r[1], int(m % tm > 0 and n % tn > 0)),
            "your code counts a tile as ragged only if it hangs over both edges",
        ),
        (lambda m, n, tm, tn, r: (-(-m // tn) * -(-n // tm), *r[1:]), "your code swaps the sides of the tile"),
        (
            lambda m, n, tm, tn, r: (r[0], (r[0] * tm * tn - m * n) / (r[2] * tm * tn) if r[2] else 0.0, r[2]),
            "your answer is the waste of only the ragged tiles",
        ),
    ],
)
def test_tiles_are_told_what_was_counted(judged, solution, change, told):
    def report(m, n, *, tile_m, tile_n):
        return change(m, n, tile_m, tile_n, solution["tile_report"](m, n, tile_m=tile_m, tile_n=tile_n))

    assert told == judged("tile_quantization", tile_report=report).what


def overlapped(*, streams: int = 3, blocking: bool = False, waits: bool = False, early: bool = False, loads_last=False):
    """Four parts, each copied in, computed and copied out in a stream of its own, in turn."""

    def run(gpu, nbytes, *, load, kernel):
        source, result = (gpu.host_empty(nbytes, pin_memory=True) for _ in range(2))
        inside, chunk = gpu.empty(nbytes), -(-nbytes // 12)
        if not loads_last:
            load(gpu, source)
        used = [gpu.Stream() for _ in range(streams)]
        copies = gpu.Stream()
        for number, start in enumerate(range(0, nbytes, chunk)):
            part = slice(start, min(start + chunk, nbytes))
            event = gpu.Event()
            with gpu.stream(copies if early else used[number % streams]):
                if early:
                    event.record()
                gpu.copy(inside[part], source[part], non_blocking=not blocking)
            if early:
                used[number % streams].wait_event(event)
            with gpu.stream(used[number % streams]):
                kernel(gpu, inside[part], inside[part])
                gpu.copy(result[part], inside[part], non_blocking=True)
            if waits:
                gpu.synchronize()
        if loads_last:
            load(gpu, source)
        gpu.synchronize()
        return result

    return run


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"blocking": True}, "in your program, each copy to the device is a blocking copy"),
        ({"waits": True}, "your program waits for the device after every part"),
    ],
)
def test_schedules_are_told_what_holds_them_up(judged, wrong, told):
    assert told == judged("transfer_overlap", run_overlapped=overlapped(**wrong)).what


def test_two_streams_are_told_that_there_are_three_engines(judged):
    outcome = judged("transfer_overlap", run_overlapped=overlapped(streams=2))

    assert "the result is right and work overlaps, but your schedule is slower than it could be" == outcome.what
    assert "two streams cannot keep three engines busy" in outcome.next


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"early": True}, "your program records the event before it issues this work"),
        ({"loads_last": True}, "load the input first"),
    ],
)
def test_races_are_told_what_would_order_them(judged, wrong, told):
    assert told in judged("transfer_overlap", run_overlapped=overlapped(**wrong)).next
