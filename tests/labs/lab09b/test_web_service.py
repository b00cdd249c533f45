"""lab09b's web service: its rules on drawn loads and over HTTP, and what its cells say where no server can run."""

from __future__ import annotations

import sys

import pytest

from edl_labs.checks.spec import authors_order
from edl_labs.inference.http_load import load_over_http
from edl_labs.inference.http_service import HttpService, missing_for_http, served
from edl_labs.virtual.server import BatchLimits, BatchRules, serve_micro_batches
from tests.marks import answer_forms

MISSING = missing_for_http()
KINDS = ("trickle", "full batches", "crowd", "slow model", "no wait")


@pytest.fixture(scope="module")
def section(cells, solution):
    """The names of section 7's cells that define something, on top of the solution's."""
    names = dict(solution)
    (first,) = (at for at, cell in enumerate(cells) if cell.source.startswith("## 7. "))
    for cell in cells[first:]:
        if cell.kind == "code" and cell.role is None and ("def " in cell.source or cell.source.startswith("from ")):
            exec(compile(cell.source, cell.label, "exec"), names)
    return names


@pytest.fixture(scope="module")
def rules(solution):
    return BatchRules(solution["accepts"], solution["expired"], solution["due"])


def run_of(case, rules):
    limits = BatchLimits(**case["limits"])
    return serve_micro_batches(case["arrivals_s"], limits, rules, lambda n: case["base_s"] + case["each_s"] * n)


@pytest.mark.parametrize("seed", range(20))
def test_each_draw_meets_every_limit_exactly(exercises, rules, seed):
    drawn = exercises["micro_batch"].draw_cases(seed)
    cases = dict(zip(KINDS, (drawn[at] for at in authors_order(drawn)), strict=True))
    runs = {kind: run_of(case, rules) for kind, case in cases.items()}

    trickle, limits = cases["trickle"], cases["trickle"]["limits"]
    assert trickle["arrivals_s"][0] + limits["max_wait_s"] in trickle["arrivals_s"]  # comes as the wait ends
    assert any(
        len(one.numbers) == cases["full batches"]["limits"]["max_batch"]
        and one.start_s == cases["full batches"]["arrivals_s"][one.numbers[-1]]
        for one in runs["full batches"].batches
    )
    assert {"answered", "full"} == {one.outcome for one in runs["crowd"].calls}
    slow = runs["slow model"]
    assert {"answered", "timed out"} == {one.outcome for one in slow.calls}
    waits = [b.start_s - slow.calls[number].arrival_s for b in slow.batches for number in b.numbers]
    assert cases["slow model"]["limits"]["timeout_s"] == max(waits)
    assert len({len(one.numbers) for one in runs["no wait"].batches}) > 1


@pytest.mark.parametrize("form", [answer_forms.named, answer_forms.lazy, answer_forms.boxed])
def test_answers_come_in_other_forms_too(solution, judged, form):
    oddly = {name: answer_forms.oddly(solution[name], form) for name in ("accepts", "expired", "due")}

    assert 1 == judged("micro_batch", **oddly).points


def test_a_rule_that_asks_again_more_often_than_it_must_is_right(solution, judged):
    def due(now_s, queue, limits):
        found = solution["due"](now_s, queue, limits)
        return found if isinstance(found, list) else min(found, now_s + 0.125)

    assert 1 == judged("micro_batch", due=due).points


@pytest.mark.parametrize(
    ("what", "replaced"),
    [
        ("your rules let requests wait forever", {"due": lambda now_s, queue, limits: 1e9 + now_s}),
        ("one of your batches starts too early", {"due": lambda now_s, queue, limits: [queue[0].number]}),
        ("your functions do not return the numbers of requests as a list", {"due": lambda now_s, queue, limits: None}),
        (
            "a result names a request that is not waiting, or names one twice",
            {"due": lambda now_s, queue, limits: [queue[0].number] * 2},
        ),
        ("due() returned an empty batch", {"due": lambda now_s, queue, limits: []}),
        (
            "your rules refuse a request while the queue has room",
            {"accepts": lambda queue, limits: len(queue) % 2 == 0},
        ),
        ("your rules give up a request too early", {"expired": lambda now_s, queue, limits: [queue[0].number]}),
    ],
)
def test_other_mistakes_are_told_by_the_first_moment_that_differs(judged, what, replaced):
    outcome = judged("micro_batch", **replaced)

    assert (0, what) == (outcome.points, outcome.what)


@pytest.mark.parametrize(
    "lie",
    [
        {"batches": [[]]},
        {"batches": [[-1]], "starts_s": [0.0]},
        {"refused": [10**30]},
        {"given_up": [5], "given_up_s": [float("nan")]},
        {"problem": "never heard of"},
    ],
)
def test_evidence_that_no_run_gives_earns_nothing_and_breaks_nothing(exercises, solution, lie):
    from edl_labs.checks import judge
    from edl_labs.checks.evidence import collect
    from edl_labs.checks.spec import given_halves

    exercise = exercises["micro_batch"]
    cases = exercise.draw_cases(3)
    records = collect(exercise, dict(solution), given_halves(cases))
    want = [record["value"] for record in records]
    outcome = judge(exercise, cases, [{**one, "value": {**one["value"], **lie}} for one in records], want, points=1)

    assert 0 == outcome.points
    assert "judge" not in outcome.what


@pytest.mark.skipif(bool(MISSING), reason=f"no server here: {MISSING}")
@pytest.mark.parametrize("most", [1, 4])
def test_the_labs_server_answers_each_with_its_own_label_in_batches_of_at_most_so_many(section, most):
    def own(asked):
        return [{"label": one["item"]} for one in asked]

    service = HttpService(own, BatchLimits(max_batch=most, max_wait_s=0.02, max_queue=100, timeout_s=60.0))
    with served(service, section["routes"], section["batches"]) as url:
        loaded = load_over_http(f"{url}/predict", [{"item": n} for n in range(40)], [0.001 * n for n in range(40)])

    assert [{"label": n} for n in range(40)] == list(loaded.bodies)
    assert (40, True) == (sum(service.counts.batch_sizes), max(service.counts.batch_sizes) <= most)


@pytest.mark.skipif(bool(MISSING), reason=f"no server here: {MISSING}")
def test_the_labs_network_gives_an_item_one_label_alone_and_in_a_batch(section):
    model = section["small_ranker"]()
    together = model([{"item": n} for n in range(5)])

    assert together == [model([{"item": n}])[0] for n in range(5)]


def test_where_no_server_can_run_the_cell_says_so_and_imports_nothing(section, cells, monkeypatch, capsys):
    monkeypatch.setenv("EDL_LABS_QUICK", "1")
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    (cell,) = (cell for cell in cells if "missing_for_http()" in cell.source)
    exec(compile(cell.source, cell.label, "exec"), dict(section))

    said = capsys.readouterr().out
    assert said.startswith("not run here: this is a quick run. Recorded on 2 busy cores")
    assert 2 == len(said.splitlines())


def test_the_prediction_is_what_one_by_one_cannot_answer(section, capsys):
    run, *_ = section["sweep"]([(200, 1, 0.0), (200, 16, 0.0)])

    assert 0.3 < run.refused_share < 1 - 125 / 200  # the queue has room for the first ones
    assert "one by one" not in capsys.readouterr().out
