"""The first half's judges: mistakes beyond the known wrong answers, and answers that are right in another form."""

from __future__ import annotations

import math
import statistics

import pytest


def test_finish_times_names_the_first_operation_that_goes_wrong(judged):
    def forgets_the_queue(program, *, launch_s):
        host_s = device_s = 0.0
        for name, duration_s in program:
            if name == "host":
                host_s += duration_s
            elif name == "sync":
                host_s = max(host_s, device_s)
            else:
                host_s += launch_s
                device_s = host_s + duration_s
                host_s = device_s if name == "blocking copy" else host_s
        return host_s, device_s

    outcome = judged("finish_times", finish_times=forgets_the_queue)

    assert 0 == outcome.points
    assert "in your answer, two operations of one stream overlap" == outcome.what
    assert "'launch'" in outcome.why


def test_finish_times_may_come_as_a_list_or_a_tuple(judged, solution):
    listed = judged("finish_times", finish_times=lambda p, **k: list(solution["finish_times"](p, **k)))

    assert "passed" == listed.state


def test_finish_times_swapped_are_told_so(judged, solution):
    outcome = judged("finish_times", finish_times=lambda p, **k: solution["finish_times"](p, **k)[::-1])

    assert "the two times are swapped" == outcome.what


def test_finish_times_with_three_answers_are_refused(judged):
    outcome = judged("finish_times", finish_times=lambda program, *, launch_s: (0.0, 0.0, 0.0))

    assert "expected two times: when the host returns, and when the device is done" == outcome.what


def test_an_operation_that_is_not_written_yet_is_named(judged, solution):
    def unwritten(operation):
        def finish_times(program, *, launch_s):
            if any(name == operation for name, _ in program):
                raise NotImplementedError
            return solution["finish_times"](program, launch_s=launch_s)

        return finish_times

    told = {one: judged("finish_times", finish_times=unwritten(one)).what for one in ("host", "blocking copy")}

    assert {one: f"your code does not handle a {one} yet" for one in told} == told


def test_a_wrong_time_comes_before_an_operation_that_is_not_written(judged):
    def launches_alone(program, *, launch_s):
        if any(name != "launch" for name, _ in program):
            raise NotImplementedError
        return launch_s * len(program), sum(duration_s for _, duration_s in program)

    assert (
        "in your answer, an operation begins before it was launched"
        == judged("finish_times", finish_times=launches_alone).what
    )


def test_finish_times_that_are_all_unwritten_are_not_attempted(judged):
    def stub(program, *, launch_s):
        raise NotImplementedError

    assert "not attempted" == judged("finish_times", finish_times=stub).state


@pytest.mark.parametrize(
    ("issue", "told"),
    [
        (0.0, "in your answer, issuing a blocking copy takes no time"),
        (0.5, "in your answer, a blocking copy ends at the wrong time"),
    ],
)
def test_a_blocking_copy_without_its_launch_is_told_and_one_with_half_is_not(judged, issue, told):
    def finish_times(program, *, launch_s):
        host_s = device_s = 0.0
        for name, duration_s in program:
            spent_s = {"host": duration_s, "sync": 0.0, "blocking copy": issue * launch_s}.get(name, launch_s)
            host_s += spent_s
            if name not in ("host", "sync"):
                device_s = max(host_s, device_s) + duration_s
            host_s = max(host_s, device_s) if name in ("sync", "blocking copy") else host_s
        return host_s, device_s

    assert told == judged("finish_times", finish_times=finish_times).what


def test_a_refusal_by_another_error_is_an_error(judged):
    def divides_first(time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s):
        fraction = max(moved_bytes / bandwidth_byte_per_s, flop / peak_flop_per_s) / time_s
        if not 0 <= fraction <= 1:
            raise ValueError("impossible")
        return fraction

    outcome = judged("faster_than_light", fraction_of_light=divides_first)

    assert "your code divides by a time of zero instead of refusing it" == outcome.what


IMPOSSIBLE = ValueError("impossible")


def light(*, impossible=IMPOSSIBLE, fraction=max):
    """A fraction_of_light that raises `impossible`, and says `fraction` of the two fractions."""

    def fraction_of_light(time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s):
        bounds_s = moved_bytes / bandwidth_byte_per_s, flop / peak_flop_per_s
        if time_s <= 0 or time_s < max(bounds_s):
            raise impossible
        return fraction(bound_s / time_s for bound_s in bounds_s)

    return fraction_of_light


@pytest.mark.parametrize("impossible", [ValueError, ValueError(""), ValueError("  ")])
def test_a_refusal_without_a_word_keeps_most_of_the_points(judged, impossible):
    outcome = judged("faster_than_light", fraction_of_light=light(impossible=impossible))

    assert ("partly", "the error has no message") == (outcome.state, outcome.what)
    assert 0.8 < outcome.points < 0.95


def test_a_refusal_with_any_words_is_whole(judged):
    assert "passed" == judged("faster_than_light", fraction_of_light=light(impossible=ValueError(12))).state


def test_the_mean_of_two_fractions_is_told_and_another_mean_is_not(judged):
    def told(fraction):
        return judged("faster_than_light", fraction_of_light=light(fraction=fraction)).what

    assert "your code averages two fractions" == told(lambda fractions: statistics.fmean(fractions))
    assert "the fraction is wrong" == told(lambda fractions: math.sqrt(math.prod(fractions)))


def test_a_division_by_another_zero_is_an_error_like_any(judged):
    def times_slower(time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s):
        bound_s = max(moved_bytes / bandwidth_byte_per_s, flop / peak_flop_per_s)
        if time_s <= 0 or time_s < bound_s:
            raise ValueError("impossible")
        return 1 / (time_s / bound_s)

    outcome = judged("faster_than_light", fraction_of_light=times_slower)

    assert outcome.what.startswith("your code raised ZeroDivisionError")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda light_s, time_s: 100 * light_s / time_s, "your answer is a percentage"),
        (lambda light_s, time_s: 1.0, "the fraction is wrong"),
        (lambda light_s, time_s: 0.9 * light_s / time_s, "the fraction is wrong"),
    ],
)
def test_fractions_that_are_none_are_told_what_they_are(judged, answer, told):
    def fraction(time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s):
        light_s = max(moved_bytes / bandwidth_byte_per_s, flop / peak_flop_per_s)
        if time_s <= 0 or time_s < light_s:
            raise ValueError("impossible")
        return answer(light_s, time_s)

    assert told == judged("faster_than_light", fraction_of_light=fraction).what


def test_tiles_may_be_counted_with_ceil_of_a_float(judged):
    def with_ceil(m, n, *, tile_m, tile_n):
        tiles = math.ceil(m / tile_m) * math.ceil(n / tile_n)
        ragged = tiles - math.floor(m / tile_m) * math.floor(n / tile_n)
        return tiles, (tiles * tile_m * tile_n - m * n) / (tiles * tile_m * tile_n), ragged

    assert "passed" == judged("tile_quantization", tile_report=with_ceil).state


@pytest.mark.parametrize("seed", range(5))
def test_the_smallest_of_equally_good_widths_is_as_right_as_the_largest(judged, solution, seed):
    def from_the_top(m, *, bound, tile_m, tile_n, sm_count):
        def share(n):
            tiles, wasted, _ = solution["tile_report"](m, n, tile_m=tile_m, tile_n=tile_n)
            return (1 - wasted) * solution["wave_report"](tiles, sm_count=sm_count)[1]

        return max(range(bound, 0, -1), key=share)

    assert "passed" == judged("wave_quantization", seed=seed, best_width=from_the_top).state


def test_a_width_beyond_the_bound_or_no_whole_number_is_refused(judged):
    told = "the width is not a whole number from 1 to the bound"

    assert told == judged("wave_quantization", best_width=lambda m, **shape: shape["bound"] + 1).what
    assert told == judged("wave_quantization", best_width=lambda m, **shape: 0.5 + shape["bound"] // 2).what


def whole_tiles(solution, *, from_tiles):
    """A best_width that tries multiples of tile_n alone; with `from_tiles` 1, none at all below a tile."""

    def best_width(m, *, bound, tile_m, tile_n, sm_count):
        def share(n):
            tiles, wasted, _ = solution["tile_report"](m, n, tile_m=tile_m, tile_n=tile_n)
            return (1 - wasted) * solution["wave_report"](tiles, sm_count=sm_count)[1]

        return max(range(from_tiles * tile_n or 1, bound + 1, tile_n), key=share)

    return best_width


def test_widths_of_whole_tiles_alone_are_told(judged, solution):
    outcome = judged("wave_quantization", best_width=whole_tiles(solution, from_tiles=1))

    assert "your function did not return the best width" == outcome.what
    assert "a multiple of tile_n; " in outcome.why


def test_widths_one_beyond_whole_tiles_are_not_told_so(judged, solution):
    outcome = judged("wave_quantization", best_width=whole_tiles(solution, from_tiles=0))

    assert "multiple of tile_n" not in outcome.why


def test_no_width_below_a_tile_is_told(judged, solution):
    def best_width(m, *, bound, tile_n, **shape):
        if bound < tile_n:
            return max(range(tile_n, bound + 1, tile_n))
        return solution["best_width"](m, bound=bound, tile_n=tile_n, **shape)

    outcome = judged("wave_quantization", best_width=best_width)

    assert "your code tries no width if the bound is less than the width of a tile" == outcome.what


def test_the_function_that_is_not_written_is_named_and_none_of_two_is_not_attempted(judged):
    def stub(*args, **shape):
        raise NotImplementedError

    told = judged("wave_quantization", best_width=stub)

    assert ("wrong", "best_width still raises NotImplementedError") == (told.state, told.what)
    assert "not attempted" == judged("wave_quantization", best_width=stub, wave_report=stub).state


@pytest.mark.parametrize(
    ("size_of", "told"),
    [
        (lambda unit: unit[0], "your code raised KeyError for a unit without a prefix"),
        (lambda unit: {"P": 1}[unit], "your code raised KeyError: "),
    ],
)
def test_a_unit_without_a_prefix_is_told_and_another_key_error_is_not(judged, solution, size_of, told):
    def transfer_s(size, rate, *, efficiency=1.0):
        {"k", "K", "M", "G", "T", "P"} & {size_of(size.split()[1])} or {}["prefix"]
        return solution["transfer_s"](size, rate, efficiency=efficiency)

    assert judged("petabyte", transfer_s=transfer_s).what.startswith(told)


def test_a_best_width_that_forgets_the_waste_loses(judged, solution):
    def fullest_waves(m, *, bound, tile_m, tile_n, sm_count):
        def full(n):
            tiles, *_ = solution["tile_report"](m, n, tile_m=tile_m, tile_n=tile_n)
            return solution["wave_report"](tiles, sm_count=sm_count)[1]

        return max(range(1, bound + 1), key=full)

    assert (
        "your code considers only the waves, not what the tiles waste"
        == judged("wave_quantization", best_width=fullest_waves).what
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda peak: 2 * peak, "the peak is wrong"),
        (lambda peak: peak / 1e12, "your answers are in TFLOP/s"),
        (lambda peak: peak or 1e12, "your function returned a rate for a dtype that the SM does not have"),
    ],
)
def test_wrong_peaks_are_told_what_they_are(judged, solution, change, told):
    outcome = judged(
        "peak_from_clock", peak_flop_per_s=lambda row, dtype, **k: change(solution["peak_flop_per_s"](row, dtype, **k))
    )

    assert told == outcome.what


@pytest.mark.parametrize(
    ("factor", "told"),
    [
        (1 / 3600, "your times are in hours"),
        (1 / 86400, "your times are in days"),
        (1000, "your times are in milliseconds"),
        (7, "the transfer time is wrong"),
    ],
)
def test_wrong_transfer_times_are_told_what_they_are(judged, solution, factor, told):
    assert (
        told
        == judged("petabyte", transfer_s=lambda size, rate, **k: factor * solution["transfer_s"](size, rate, **k)).what
    )


def test_the_librarys_count_of_tiles_and_waves_is_not_the_whole_answer(judged):
    from edl_labs.roofline.gemm import quantization

    def tile_report(m, n, *, tile_m, tile_n):
        found = quantization(m, n, 1, tile=(tile_m, tile_n), sms=1)
        return found.tiles, 1 - found.tile_efficiency

    def wave_report(tiles, *, sm_count):
        found = quantization(tiles, 1, 1, tile=(1, 1), sms=sm_count)
        return found.waves, found.wave_efficiency

    assert 0 == judged("tile_quantization", tile_report=tile_report).points
    assert 0 == judged("wave_quantization", wave_report=wave_report).points
