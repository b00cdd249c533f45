"""Intervals keep their promise on seeded noise; estimates stand outliers; shapes are recognised."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edl_labs import stats
from edl_labs.errors import UsageError
from tests.sampling import few

TRUTH = 0.01


def slot_noise(shape, rng, count):
    """Noise of consecutive time slots, in log time."""
    fast = 0.01 * rng.standard_normal(count)
    if shape == "drift":
        return fast + 0.2 * np.linspace(0, 1, count) + 0.05 * np.cumsum(rng.standard_normal(count)) / math.sqrt(count)
    if shape == "heavy":
        return 0.01 * rng.standard_t(1.2, count)
    draws, on, state = rng.random(count), 0, np.zeros(count)
    stays, starts = (0.85, 0.05) if shape == "bursts" else (0.97, 0.03)
    for i in range(count):
        on = int(draws[i] < stays) if on else int(draws[i] < starts)
        state[i] = on
    return fast + state * (rng.exponential(0.5, count) if shape == "bursts" else 0.3)


def paired(shape, rng, rounds, of=np.mean):
    """Log-ratios of A B B A rounds whose order is a coin's; `of` makes one value of a side's two readings."""
    noise, coins = slot_noise(shape, rng, 4 * rounds).reshape(rounds, 4), rng.random(rounds) < 0.5
    swing = of(noise[:, [0, 3]], axis=1) - of(noise[:, [1, 2]], axis=1)
    return TRUTH + np.where(coins, swing, -swing)


def covered(shape, *, seed, runs, stop_at=None, rounds=60, of=np.mean):
    rng, hits, used = np.random.default_rng(seed), 0, []
    for _ in range(runs):
        ratios = paired(shape, rng, rounds, of)
        count = rounds
        if stop_at is not None:
            looks = (n for n in range(8, rounds, 3) if stats.planned_half_width(ratios[:n]) <= stop_at)
            count = next(looks, rounds)
        found = stats.sign_flip_interval(ratios[:count])
        hits += found.low <= TRUTH <= found.high
        used.append(count)
    return hits / runs, float(np.mean(used))


@pytest.mark.parametrize("of", [np.mean, np.min])
@pytest.mark.parametrize("shape", ["drift", "bursts", "bimodal", "heavy"])
def test_the_paired_interval_covers_at_its_level_whatever_the_noise_does(shape, of):
    share, _ = covered(shape, seed=1, runs=1000, of=of)

    assert 0.935 <= share <= 0.965


@pytest.mark.slow
@pytest.mark.parametrize("of", [np.mean, np.min])
@pytest.mark.parametrize("shape", few(["heavy", "drift", "bursts", "bimodal"], quick=1))
def test_stopping_on_the_sizes_of_deviations_costs_no_coverage(shape, of):
    share, used = covered(shape, seed=2, runs=1000, stop_at=0.006, of=of)

    assert 0.935 <= share <= 0.965
    assert 8 <= used < 59


def test_a_rule_that_stops_on_the_answer_does_cost_coverage():
    """The test above can fail: stopping when the interval leaves the truth out is found out."""
    rng, hits = np.random.default_rng(3), 0
    for _ in range(300):
        ratios = paired("drift", rng, 60)
        found = [stats.sign_flip_interval(ratios[:n]) for n in range(8, 60, 2)]
        best = next((e for e in found if not e.low <= TRUTH <= e.high), found[-1])
        hits += best.low <= TRUTH <= best.high

    assert hits / 300 < 0.9


def test_the_planned_width_does_not_change_when_sides_swap_places():
    rng = np.random.default_rng(4)
    sizes = rng.standard_normal(400)
    flipped = np.where(rng.random(400) < 0.5, sizes, -sizes)

    assert stats.planned_half_width(sizes) == pytest.approx(stats.planned_half_width(flipped), rel=0.05)
    assert stats.planned_half_width(abs(sizes)) < 0.8 * stats.planned_half_width(sizes)  # it would see a one-sided coin


def test_the_planned_width_is_about_the_width_that_comes():
    rng = np.random.default_rng(5)
    widths = []
    for _ in range(50):
        swing = 0.01 * rng.standard_normal(60)
        widths.append(stats.sign_flip_interval(swing).half_width / stats.planned_half_width(swing))

    assert 0.9 < np.median(widths) < 1.1


@pytest.mark.parametrize("rounds", [6, 7, 10, 40, 81, 300, 1500])
def test_the_signed_rank_interval_has_at_least_its_level(rounds):
    rng = np.random.default_rng(rounds)
    runs = 60 if rounds > 200 else 400
    hits = 0
    for _ in range(runs):
        found = stats.sign_flip_interval(rng.standard_normal(rounds))
        hits += found.low <= 0 <= found.high

    assert hits / runs >= 0.95 - 2.6 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.parametrize("rounds", [2, 3, 5])
def test_few_rounds_give_a_wide_interval_that_still_covers(rounds):
    rng = np.random.default_rng(rounds)
    found = [stats.sign_flip_interval(rng.standard_normal(rounds)) for _ in range(400)]

    assert np.mean([e.low <= 0 <= e.high for e in found]) > 0.92


def test_one_round_knows_a_centre_and_no_interval():
    found = stats.sign_flip_interval([0.5])

    assert (0.5, -math.inf, math.inf) == (found.center, found.low, found.high)
    assert math.isnan(stats.sign_flip_interval([]).center)


def test_one_wild_round_in_ten_moves_the_centre_little():
    calm = [0.01 * k for k in range(-5, 5)]

    assert abs(stats.sign_flip_interval([*calm, 1e6]).center - stats.sign_flip_interval(calm).center) < 0.02


def series(kind, rng, count):
    if kind == "heavy":
        return rng.standard_t(1.2, count)
    if kind == "skewed":
        return np.exp(rng.standard_normal(count)) - 1
    if kind == "memory":
        out, noise = np.zeros(count + 100), rng.standard_normal(count + 100)
        for i in range(1, len(out)):
            out[i] = 0.6 * out[i - 1] + noise[i]
        return out[100:]
    return rng.standard_normal(count)


@pytest.mark.parametrize(("kind", "least"), [("plain", 0.93), ("heavy", 0.93), ("skewed", 0.93), ("memory", 0.91)])
def test_the_median_interval_covers_the_median_it_came_from(kind, least):
    rng = np.random.default_rng(6)
    found = [stats.median_interval(series(kind, rng, 300)) for _ in range(600)]

    assert least <= np.mean([e.low <= 0 <= e.high for e in found]) <= 0.985


def test_memory_makes_samples_worth_less():
    rng = np.random.default_rng(7)

    assert 2.5 < stats.inefficiency(series("memory", rng, 20000)) < 5.5
    assert 1.0 == pytest.approx(stats.inefficiency(series("plain", rng, 20000)), abs=0.1)


def test_samples_that_only_trend_are_covered_whole():
    found = stats.median_interval([1.0 + 0.1 * k for k in range(13)])

    assert (1.0, pytest.approx(2.2)) == (found.low, found.high)


@pytest.mark.parametrize("bad", [[1.0, math.nan], [math.inf], [[1.0]]])
def test_samples_that_are_no_numbers_are_refused(bad):
    with pytest.raises(UsageError, match="finite numbers"):
        stats.median_interval(bad)


def test_a_level_beyond_one_is_refused():
    with pytest.raises(UsageError, match="level"):
        stats.sign_flip_interval([1.0] * 10, level=95)


def test_two_clock_speeds_are_seen_as_two_modes():
    rng = np.random.default_rng(8)
    found = stats.shape(np.concatenate([rng.normal(1.0, 0.01, 70), rng.normal(1.3, 0.01, 30)]))

    assert "bimodal" == found.words
    assert (pytest.approx(1.0, abs=0.02), pytest.approx(1.3, abs=0.02)) == found.modes
    assert 0.3 == pytest.approx(found.slow_mode_share)


@pytest.mark.parametrize("seed", range(20))
def test_one_normal_mode_is_not_split_in_two(seed):
    assert "steady" == stats.shape(np.random.default_rng(seed).normal(1.0, 0.05, 60)).words


def test_interrupted_blocks_are_a_slow_tail():
    rng = np.random.default_rng(9)
    times = rng.normal(1.0, 0.01, 100)
    times[::11] += rng.exponential(1.0, len(times[::11])) + 0.2

    assert "slow tail" == stats.shape(times).words


def test_drift_is_the_change_from_the_first_third_to_the_last():
    assert 0.2 == pytest.approx(stats.drift([1.0] * 10 + [1.1] * 10 + [1.2] * 10))
    assert 0.0 == stats.drift([1.0, 2.0])
