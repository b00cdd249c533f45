"""lab08c's guards: what the solution decides is what this torch does, and slips are told apart."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import pytest

from edl_labs.bench.recompiles import watch_calls
from edl_labs.exercises.lab08c_compilers.compiled_calls import LINES, Guards
from edl_labs.exercises.lab08c_compilers.guard_slips import SAID, why_it_fits, why_none_fits
from edl_labs.exercises.lab08c_compilers.judge.drawn_calls import BREAKS, SLIPS, Rules, decisions


def function_of(lines: list[dict[str, Any]]) -> Any:
    """The function that a case's lines stand for."""
    torch = pytest.importorskip("torch")
    body = ["y = x * scale + shift", "if verbose: y = y + 1"]
    for line in lines:
        body += [f"if {line['only_if']}:", f"    {line['code']}"] if line["only_if"] else [line["code"]]
    source = "\n    ".join(["def f(x, scale, shift, verbose):", *body, "return y * 2"])
    names: dict[str, Any] = {"torch": torch}
    exec(compile(source, "<a case of guards>", "exec"), names)
    return names["f"]


def torchs_own(case: dict[str, Any]) -> list[str]:
    given = Guards().student_inputs(case)
    calls = [tuple(args[name] for name in ("x", "scale", "shift", "verbose")) for args in given["calls"]]
    with contextlib.redirect_stdout(io.StringIO()):
        return [call.decision for call in watch_calls(function_of(case["lines"]), calls)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_torch_decides_as_the_rules_say(exercises, solution, seed):
    for case in exercises["guards"].draw_cases(seed):
        want = decisions(case["lines"], case["calls"])

        assert want == torchs_own(case)
        given = Guards().student_inputs(case)
        cache = solution["Cache"](given["lines"])
        assert want == [cache.call(args) for args in given["calls"]]


def test_every_line_breaks_or_stays_as_the_judge_says():
    torch = pytest.importorskip("torch")
    for code in LINES:
        function = function_of([{"code": code, "only_if": None}])
        with contextlib.redirect_stdout(io.StringIO()):
            (call,) = watch_calls(function, [(torch.ones(3, 2), 0.5, 1, False)])

        assert (code, "break" if code in BREAKS else "recompile") == (code, call.decision)


def test_every_slip_has_a_sentence_and_shows_in_the_cases_of_each_seed(exercises):
    assert list(SAID) == list(SLIPS)
    for seed in range(1, 6):
        cases = exercises["guards"].draw_cases(seed)
        right = [decisions(case["lines"], case["calls"]) for case in cases]
        wrong = {
            name: [decisions(case["lines"], case["calls"], **slip) for case in cases] for name, slip in SLIPS.items()
        }

        assert [] == [name for name, found in wrong.items() if found == right]


def test_no_two_slips_decide_alike_in_all_cases(exercises):
    cases = exercises["guards"].draw_cases(1)
    found = [tuple(case["slips"][name] for case in cases) for name in SAID]

    assert len(found) == len(set(found))


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_hit_is_explained_by_a_version_that_takes_it(exercises, seed):
    for case in exercises["guards"].draw_cases(seed):
        rules, makers = Rules(case["lines"]), []
        right = decisions(case["lines"], case["calls"])
        for at, args in enumerate(case["calls"]):
            if rules.call(args) != "hit":
                makers += [at] if right[at] != "eager" else []
                continue
            named = int(re.search(r"call (\d+)", why_it_fits(case["calls"], right, at))[1])
            version = rules.versions[makers.index(named)]

            assert all(rules._fits(version[name], args[name]) for name in args)


def test_what_differs_is_said_of_a_call_that_hits_and_of_one_that_does_not():
    def call(*sizes, scale=0.5):
        x = {"sizes": list(sizes), "dtype": "float32", "layout": "contiguous"}
        return {"x": x, "scale": scale, "shift": 3, "verbose": False}

    calls, right = [call(4, 8), call(5, 8), call(6, 8), call(1, 8), call(5, 8)], ["recompile", "recompile", "hit"]
    right += ["recompile", "hit"]

    assert why_it_fits(calls, right, 2) == (
        "the version made for call 1 fits; what differs had changed before, and is free: size 0 of x (5 in "
        "that call, 6 in this one)"
    )
    assert "call 1 made a version for exactly these arguments" == why_it_fits(calls, right, 4)
    assert why_none_fits(calls, right, 3).endswith(
        "call 1 is the most similar to this one; it differs in size 0 of x (5 in that call, 1 in this one)"
    )
    assert "there is no version yet" == why_none_fits(calls, right, 0)
