"""diagnose: what a case is made of, and what labelled one its numbers are most like, tell next to nothing."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

SECRET, LEARNT = range(1000, 1200), range(2000, 2100)


def parts(case):
    """What can be read off a case without a size: its kind, its keys in their order, its machine, and pairs of them."""
    layer, machine = case["layer"], case["machine"]
    chip = (machine["sms"], machine["bandwidth_byte_per_s"])
    return {
        "nothing": (),
        "kind": layer["kind"],
        "keys": tuple(layer),
        "length": len(layer),
        "machine": chip,
        "sms": machine["sms"],
        "kind and machine": (layer["kind"], chip),
        "product and machine": (len(layer) == 5, chip),
    }


def majority(cases, way):
    """The most common answer for each value, and for one that never came the most common of all."""
    found, answers = {}, Counter(answer for _, answer in cases)
    for case, answer in cases:
        found.setdefault(parts(case)[way], Counter())[answer] += 1
    best = {value: counts.most_common(1)[0][0] for value, counts in found.items()}
    return lambda case: best.get(parts(case)[way], answers.most_common(1)[0][0])


HUNDRED = pytest.param(LEARNT, id="a hundred draws", marks=pytest.mark.slow)


@pytest.mark.parametrize("seeds", [pytest.param([1], id="the public cases"), HUNDRED])
def test_a_case_without_its_sizes_does_not_tell_the_limiter(exercises, solution, seeds):
    exercise = exercises["diagnose"]

    def answered(seed):
        return [(case, solution["diagnose"](case["layer"], case["machine"])) for case in exercise.draw_cases(seed)]

    labelled = [pair for seed in seeds for pair in answered(seed)]
    draws = [answered(seed) for seed in SECRET]
    earned = {}
    for way in parts(labelled[0][0]):
        guess = majority(labelled, way)
        hits = [[float(guess(case) == answer) for case, answer in draw] for draw in draws]
        earned[way] = [exercise.spec.combine(found) for found in hits]

    # Once in a hundred times, as luck may: two of 200 draws, and three standard deviations more.
    assert {} == {way: lucky for way, shares in earned.items() if (lucky := sum(s > 0 for s in shares)) > 6}


def numbers(case):
    """The logarithms of a case's sizes, of its machine, and of both."""
    layer, machine = case["layer"], case["machine"]
    sides = [layer.get(one, layer.get(other, 1)) for one, other in (("m", "batch"), ("n", "outputs"), ("k", "inputs"))]
    elements = layer.get("elements", layer.get("rows", 1) * layer.get("features", 1))
    sizes = [*map(math.log, (*sides, elements)), float(len(layer) == 5)]
    chip = [math.log(machine[name]) for name in ("sms", "peak_flop_per_s", "bandwidth_byte_per_s")]
    return {"sizes": sizes, "work": [sum(sizes)], "machine": chip, "sizes and machine": [*sizes, *chip]}


@pytest.mark.parametrize("seeds", [pytest.param([1], id="the public cases"), HUNDRED])
def test_the_most_similar_case_does_not_tell_the_limiter(exercises, solution, seeds):
    exercise = exercises["diagnose"]

    def answered(seed):
        cases = exercise.draw_cases(seed)
        return [numbers(case) for case in cases], [solution["diagnose"](c["layer"], c["machine"]) for c in cases]

    learnt, draws = [answered(seed) for seed in seeds], [answered(seed) for seed in SECRET[:100]]
    labels = [label for _, drawn in learnt for label in drawn]
    earned = {}
    for way in learnt[0][0][0]:
        known = np.array([case[way] for cases, _ in learnt for case in cases])
        spread = known.std(axis=0) + 1e-9
        shares = []
        for cases, right in draws:
            asked = np.array([case[way] for case in cases])
            nearest = (((asked[:, None] - known[None]) / spread) ** 2).sum(axis=2).argmin(axis=1)
            hits = [float(labels[at] == answer) for at, answer in zip(nearest, right, strict=True)]
            shares.append(exercise.spec.combine(hits))
        earned[way] = sum(shares) / len(shares)

    assert {} == {way: share for way, share in earned.items() if share > 0.02}
    assert earned["sizes"] == earned["work"] == 0 or len(seeds) > 1


def test_each_product_comes_with_each_answer_and_each_other_layer_with_both(exercises, solution):
    for seed in range(20):
        answers = {}
        for case in exercises["diagnose"].draw_cases(seed):
            layer, machine = case["layer"], case["machine"]
            answers.setdefault(tuple(layer.items()), []).append(solution["diagnose"](layer, machine))

        others = [["latency", "memory"]] * 2
        assert sorted([*[["latency", "math", "memory"]] * 4, ["math", "math"], *others]) == sorted(
            map(sorted, answers.values())
        )


def test_kinds_are_limited_alike_in_every_draw(exercises, solution):
    for seed in range(20):
        cases = exercises["diagnose"].draw_cases(seed)
        found = Counter((len(c["layer"]) == 5, solution["diagnose"](c["layer"], c["machine"])) for c in cases)

        products = {(True, "latency"): 4, (True, "math"): 6, (True, "memory"): 4}
        assert {**products, (False, "latency"): 2, (False, "memory"): 2} == found
