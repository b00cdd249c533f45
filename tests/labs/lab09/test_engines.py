"""lab09's practice: arenas and engines against worked-out answers, exhaustive search and the library's graph."""

from __future__ import annotations

import itertools
import statistics

import pytest

from edl_labs.exercises.lab09_inference.engine_tactics import PROBLEMS, asked, price_s
from edl_labs.graph import Graph

torch = pytest.importorskip("torch")

CHAIN = [
    {"reads": ["x"], "writes": "a", "in_place": False},
    {"reads": ["a"], "writes": "b", "in_place": True},
    {"reads": ["b"], "writes": "c", "in_place": False},
    {"reads": ["c", "b"], "writes": "d", "in_place": True},
]
SIZES = {"x": 100, "a": 600, "b": 600, "c": 600, "d": 600}


def test_a_residual_block_by_hand(solution):
    lives = solution["lifetimes"](CHAIN, ["d"])
    over = [solution["may_overwrite"](at, CHAIN, ["d"], SIZES) for at in range(4)]

    assert {"x": (0, 0), "a": (0, 1), "b": (1, 3), "c": (2, 3), "d": (3, 3)} == lives
    assert [[], ["a"], [], ["c", "b"]] == over
    assert 2 * 768 == solution["least_bytes"](CHAIN, ["d"], SIZES, align=256)
    assert 2 * 600 == solution["least_bytes"](CHAIN, ["d"], SIZES, align=1)


def test_an_output_is_kept_to_the_end_and_never_written_over(solution):
    outputs = ["b", "d"]

    assert (1, 3) == solution["lifetimes"](CHAIN, outputs)["b"]
    assert ["c"] == solution["may_overwrite"](3, CHAIN, outputs, SIZES)


@pytest.mark.slow
def test_lifetimes_are_the_librarys(solution):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4), torch.nn.ReLU())
    graph = Graph.of(model, torch.empty(32, 8))
    kernels, sizes = solution["kernels_of"](graph)
    ours = solution["lifetimes"](kernels, [])
    theirs = {name: graph.lifetimes[name] for name in sizes if name in graph.maker and name not in graph.kept}

    assert len(theirs) == 3
    assert {name: (one.first, one.last) for name, one in theirs.items()} == {name: ours[name] for name in theirs}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_arenas_hold_what_lives_and_need_little_more_than_the_least(exercises, solution, seed):
    for case in exercises["memory_plan"].draw_cases(seed):
        given = (case["kernels"], case["outputs"], case["sizes"])
        lives, offsets = solution["lifetimes"](*given[:2]), solution["memory_plan"](*given, align=case["align"])
        least = solution["least_bytes"](*given, align=case["align"])
        for at, kernel in enumerate(case["kernels"]):
            here = [name for name, (first, last) in lives.items() if first <= at <= last]
            for one, other in itertools.combinations(here, 2):
                apart = max(offsets[one], offsets[other]) >= min(
                    offsets[one] + case["sizes"][one], offsets[other] + case["sizes"][other]
                )
                under = solution["may_overwrite"](at, *given)

                assert apart or {one, other} <= {kernel["writes"], *under} or offsets[one] == offsets[other]
        assert max(offsets[name] + case["sizes"][name] for name in offsets) <= 1.05 * least


def test_an_arena_of_a_tenth_too_much_passes_and_more_does_not(judged, solution):
    def apart(share):
        def plan(kernels, outputs, sizes, *, align):
            offsets = solution["memory_plan"](kernels, outputs, sizes, align=align)
            least = solution["least_bytes"](kernels, outputs, sizes, align=align)
            gap = int(share * least) // align * align
            return {name: at + gap for name, at in offsets.items()}

        return plan

    assert 1 == judged("memory_plan", memory_plan=apart(0.04)).points
    assert "your plan leaves gaps that no tensor fits into" == judged("memory_plan", memory_plan=apart(0.2)).what


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_engines_are_the_best_of_all(exercises, solution, seed, problem):
    case = min(exercises["fuse_and_tune"].draw_cases(seed), key=lambda one: one["layers"])
    layers, tactics, reformat_s = asked(case, problem)
    time_s = {one["name"]: statistics.median(one["times_s"][1:]) for one in tactics}
    chosen = solution["fuse_and_tune"](layers, tactics, reformat_s, given=case["given"], wanted=case["wanted"])
    known = {one["name"]: one for one in tactics}
    best_s = min(price_s(case, plan, reformat_s, time_s) for plan in _every(layers, _fastest_alike(tactics, time_s)))

    assert best_s == pytest.approx(price_s(case, [known[name] for name in chosen], reformat_s, time_s))


def _fastest_alike(tactics, time_s):
    """Of tactics that do the same in the same formats, the fastest."""
    alike = {}
    for one in sorted(tactics, key=lambda one: -time_s[one["name"]]):
        alike[one["first"], one["last"], one["reads"], one["writes"]] = one
    return list(alike.values())


def _every(layers, tactics, at=0):
    if at == layers:
        yield []
    for one in tactics:
        if one["first"] == at:
            for rest in _every(layers, tactics, one["last"] + 1):
                yield [one, *rest]


def test_typical_is_the_median_of_warm_runs(solution):
    assert 3.0 == solution["typical_s"]([90.0, 3.0, 2.0, 50.0, 1.0, 4.0])


def test_bad_answers_are_told_and_do_not_break_the_check(judged):
    nothing = judged("fuse_and_tune", fuse_and_tune=lambda *given, **named: [])
    twice = judged("fuse_and_tune", fuse_and_tune=lambda layers, tactics, *rest, **named: 2 * [tactics[0]["name"]])

    assert "your engine ends before the network does" == nothing.what
    assert twice.what in ("your engine computes a layer twice", "your engine skips a layer")
    assert 0 == judged("memory_plan", lifetimes=lambda kernels, outputs: None).points
    assert 0 == judged("memory_plan", memory_plan=lambda *given, **named: {"x": "here"}).points
    assert "your plan is for the wrong tensors" == judged("memory_plan", memory_plan=lambda *given, **named: {}).what


@pytest.mark.parametrize("kind", [list, tuple])
def test_other_forms_of_the_right_answers_pass(judged, solution, kind):
    def over(*given):
        return kind(solution["may_overwrite"](*given))

    def lives(*given):
        return {name: kind(ends) for name, ends in solution["lifetimes"](*given).items()}

    def engine(*given, **named):
        return kind(solution["fuse_and_tune"](*given, **named))

    assert 1 == judged("memory_plan", may_overwrite=over, lifetimes=lives).points
    assert 1 == judged("fuse_and_tune", fuse_and_tune=engine).points
