"""The cases of fuse_and_tune: tactics whose times and formats lead every known short cut to another engine."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab09_inference.engine_tactics import PROBLEMS, SLACK, asked, price_s

_TRIES = 4000  # of a case; one in some tens is decided
_COSTS = 1.03  # what a short cut costs at least: the lab's text allows 2 %
_INTERRUPTED = 0.15  # of the runs: a mean is off by a fifth, and five of nine are hardly ever hit
_FORMATS = ("fp16", "fp16 channels last", "int8")
Chosen = tuple[float, list[str]]


_DECIDED: tuple[dict[str, tuple[str, ...]], ...] = (  # by case: which short cuts have to cost, of which problem
    {"one format": ("first runs", "means", "slowest"), "fusions": ("none", "longest", "greedy", "always")},
    {"formats": ("fastest", "greedy", "no input")},
    {"formats": ("no output", "one")},
    {"all": ("fastest", "none", "greedy")},
)


@case_source("fuse_and_tune")
def engines(rng: Any) -> list[Case]:
    return [Case.split(_engine(rng, decided), "slips") for decided in _DECIDED]


def _engine(rng: Any, decided: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """One on which the short cuts `decided` cost too much, and no two that cost choose the same engine."""
    for _ in range(_TRIES):
        case = _drawn(rng)
        time_s = {one["name"]: statistics.median(one["times_s"][1:]) for one in case["tactics"]}
        slips: dict[str, Any] = {}
        for problem in sorted(PROBLEMS, key=lambda one: one not in decided):
            slips[problem] = _slips(case, problem, time_s)
            told = _dear(case, problem, slips[problem], time_s, 1 + SLACK)
            dear = _dear(case, problem, slips[problem], time_s, _COSTS)
            if not set(decided.get(problem, ())) <= set(dear) or len(set(told.values())) < len(told):
                break
        else:
            return {**case, "slips": slips}
    raise AssertionError(f"no drawn network was decided by {', '.join(decided)}; draw other times")


def _dear(case: Any, problem: str, slips: Any, time_s: Any, least: float) -> dict[str, tuple[str, ...]]:
    """Those that cost at least so many times what the best one does."""
    known = {one["name"]: one for one in case["tactics"]}
    best_s = _best(case, problem, time_s)[0]
    return {
        name: tuple(names)
        for name, names in slips.items()
        if price_s(case, [known[one] for one in names], case["reformat_s"], time_s) > least * best_s
    }


def _drawn(rng: Any) -> dict[str, Any]:
    layers = int(rng.integers(6, 9))
    base_s = rng.uniform(20e-6, 90e-6, layers)
    tactics: list[dict[str, Any]] = []
    alone_s: list[float] = []

    def tactic(first: int, last: int, reads: str, writes: str, one_s: float) -> None:
        name = f"tactic {len(tactics)}"
        own = {"name": name, "first": first, "last": last, "reads": reads, "writes": writes}
        tactics.append(own)
        alone_s.append(one_s)

    for at in range(layers):
        for form, low, high in zip(_FORMATS, (0.8, 0.55, 0.4), (1.2, 1.1, 0.9), strict=True):
            for _ in range(2 if form == "fp16" else 1):
                tactic(at, at, form, form, base_s[at] * rng.uniform(low, high))
        if rng.random() < 0.3:
            tactic(at, at, "int8", "fp16 channels last", base_s[at] * rng.uniform(0.45, 0.8))
    for first in range(layers - 1):
        for length in (2, 3):
            last = first + length - 1
            if last < layers and rng.random() < 0.5:
                form = str(rng.choice(_FORMATS, p=[0.6, 0.2, 0.2]))
                share = {"fp16": 1.0, "fp16 channels last": 0.85, "int8": 0.7}[form]
                tactic(first, last, form, form, share * base_s[first : last + 1].sum() * rng.uniform(0.6, 1.2))
    timed = [
        {**one, "times_s": times_s} for one, times_s in zip(tactics, _runs(rng, numpy.array(alone_s)), strict=True)
    ]
    order = [timed[int(at)] for at in rng.permutation(len(timed))]
    ends_s, inner_s = rng.uniform(25e-6, 60e-6, 2), rng.uniform(4e-6, 30e-6, layers - 1)
    reformat_s = [round(float(one), 8) for one in (ends_s[0], *inner_s, ends_s[1])]
    given, wanted = "fp16", str(rng.choice(["fp16", "fp16 channels last"]))
    return {"layers": layers, "tactics": order, "reformat_s": reformat_s, "given": given, "wanted": wanted}


def _runs(rng: Any, one_s: Any) -> list[list[float]]:
    """For each tactic a cold run and nine warm ones, of which some were interrupted."""
    many = len(one_s)
    warm = rng.uniform(0.98, 1.02, (many, 9))
    warm *= 1 + rng.uniform(0.3, 3, (many, 9)) * (rng.random((many, 9)) < _INTERRUPTED)
    runs_s = one_s[:, None] * numpy.concatenate([rng.uniform(3, 12, (many, 1)), warm], axis=1)
    return [[float(one) for one in row] for row in runs_s.round(9)]


def _best(
    case: Any, problem: str, time_s: Any, *, pays: Callable[[int, bool], bool] = lambda at, meets: not meets
) -> Chosen:
    """The fastest engine where a conversion in front of layer `at` is paid if `pays(at, formats meet)`."""
    layers, tactics, reformat_s = asked(case, problem)
    ways: list[dict[str, Chosen]] = [{} for _ in range(layers + 1)]
    ways[0][case["given"]] = (0.0, [])

    def into(at: int, form: str) -> Chosen:
        return min((s + reformat_s[at] * pays(at, form == one), names) for one, (s, names) in ways[at].items())

    for at in range(layers):
        for one in tactics:
            if one["first"] == at:
                spent_s, names = into(at, one["reads"])
                new = (spent_s + time_s[one["name"]], [*names, one["name"]])
                there = ways[one["last"] + 1]
                there[one["writes"]] = min(there.get(one["writes"], new), new)
    return into(layers, case["wanted"])


def _slips(case: Any, problem: str, time_s: Any) -> dict[str, list[str]]:
    layers, tactics, _ = asked(case, problem)

    def by(statistic: Callable[[list[float]], float]) -> list[str]:
        return _alone(layers, tactics, {one["name"]: statistic(one["times_s"]) for one in tactics})

    if problem == "one format":
        slowest = _alone(layers, tactics, {name: -one for name, one in time_s.items()})
        means = by(lambda times_s: statistics.fmean(times_s[1:]))
        return {"first runs": by(lambda times_s: times_s[0]), "means": means, "slowest": slowest}
    greedy = _greedy(case, problem, time_s)

    def if_paid(pays: Callable[[int, bool], bool]) -> list[str]:
        return _best(case, problem, time_s, pays=pays)[1]

    if problem == "fusions":
        alone, longest = _best(case, "one format", time_s)[1], _longest(layers, tactics, time_s)
        return {"none": alone, "longest": longest, "greedy": greedy, "always": if_paid(lambda at, meets: at < layers)}
    unpaid = {
        "fastest": if_paid(lambda at, meets: False),
        "no output": if_paid(lambda at, meets: not meets and at < layers),
        "no input": if_paid(lambda at, meets: not meets and at > 0),
        "greedy": greedy,
        "one": _one_format(case, problem, time_s),
    }
    return unpaid | ({"none": _best(case, "formats", time_s)[1]} if problem == "all" else {})


def _alone(layers: int, tactics: Any, time_s: Any) -> list[str]:
    return [
        min((one["name"] for one in tactics if one["first"] == at == one["last"]), key=time_s.__getitem__)
        for at in range(layers)
    ]


def _longest(layers: int, tactics: Any, time_s: Any) -> list[str]:
    at, names = 0, []
    while at < layers:
        here = [one for one in tactics if one["first"] == at]
        best = min(here, key=lambda one: (-one["last"], time_s[one["name"]]))
        names.append(best["name"])
        at = best["last"] + 1
    return names


def _greedy(case: Any, problem: str, time_s: Any) -> list[str]:
    """The least time a layer next, with its conversion."""
    layers, tactics, reformat_s = asked(case, problem)
    at, form, names = 0, case["given"], []

    def a_layer_s(one: Any) -> float:
        extra_s = reformat_s[at] if one["reads"] != form else 0.0
        return float((time_s[one["name"]] + extra_s) / (one["last"] + 1 - at))

    while at < layers:
        best = min((one for one in tactics if one["first"] == at), key=a_layer_s)
        names.append(best["name"])
        at, form = best["last"] + 1, best["writes"]
    return names


def _one_format(case: Any, problem: str, time_s: Any) -> list[str]:
    """The best engine of tactics that read and write one format."""
    known, found = {one["name"]: one for one in case["tactics"]}, []
    for form in _FORMATS:
        same = [one for one in case["tactics"] if one["reads"] == one["writes"] == form]
        names = _best({**case, "tactics": same}, problem, time_s)[1]
        plan = [known[name] for name in names]
        found.append((price_s(case, plan, case["reformat_s"], time_s), names))
    return min(found)[1]
