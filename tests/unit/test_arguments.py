"""A wrong call of a public function is refused in a sentence that says what, why and next."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edl_labs import Timer, compare, measure, sweep
from edl_labs import graph as g
from edl_labs import hardware as h
from edl_labs import inference as i
from edl_labs import numerics as n
from edl_labs import pipeline as p
from edl_labs import predict as pr
from edl_labs import roofline as r
from edl_labs import trace as t
from edl_labs.arguments import checked_arguments, fits, wording
from edl_labs.clock import Clock, HostClock
from edl_labs.errors import EdlError, UsageError
from edl_labs.virtual import VirtualGPU, replay

ROOT = Path(__file__).resolve().parents[2]
Function = Callable[..., Any]
LINEAR, X, TOO_WIDE = nn.Linear(4, 4), torch.zeros(2, 4), torch.zeros(2, 5)
MACHINE, WORK = r.Machine.of("A100-80GB"), r.work.gemm(8, 8, 8)


def f() -> None:
    return None


# ruff format would give each of them three lines.
# fmt: off
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "measure a number": (lambda: measure(3), "measure() needs a function, got int."),
    "measure on the text cuda": (lambda: measure(f, clock="cuda"), "a Clock or None, got the text 'cuda'"),
    "measure for no time": (lambda: measure(f, budget_s=0), "budget_s must be positive, got 0."),
    "measure at 95": (lambda: measure(f, level=95), "level must be between 0 and 1, got 95."),
    "measure with budget": (lambda: measure(f, budget=1), "measure() got an unexpected keyword argument 'budget'."),
    "compare numbers": (lambda: compare({1: f, 2: f}), "compare() needs a dict of text to function, got dict of int"),
    "compare a number": (lambda: compare({"a": f, "b": 3}), "compare() needs a dict of text to function"),
    "compare one": (lambda: compare({"a": f}), "compare() needs at least two functions, got 1."),
    "compare a list": (lambda: compare([f, f]), "got list with function at index 0"),
    "compare within 50": (lambda: compare({"a": f, "b": f}, band=50), "band must be 0 or more and below 1, got 50."),
    "compare at level 95": (lambda: compare({"a": f, "b": f}, level=95), "level must be between 0 and 1"),
    "sweep a number": (lambda: sweep(f, {"n": 3}), "grid must be a dict of text to iterable"),
    "sweep no grid": (lambda: sweep(f, 3), "got int"),
    "sweep to a number": (lambda: sweep(f, {"n": [1]}, path=3), "path must be a path or None, got int"),
    "time on the text cuda": (lambda: Timer(clock="cuda"), "clock must be a Clock or None"),
    "no machine": (lambda: r.Machine.of(None), "Machine.of() needs text or an Accelerator, got None."),
    "bound of a number": (lambda: r.bound(MACHINE, 3), "work must be a Work, got int"),
    "bound on a name": (lambda: r.bound("A100-80GB", WORK), "bound() needs a Machine, got the text 'A100-80GB'"),
    "roof of nothing": (lambda: r.roof(MACHINE, None), "work must be a Work"),
    "place a number": (lambda: r.place(MACHINE, 3), "point must be a Point"),
    "place numbers": (lambda: r.place_all(MACHINE, [3]), "an iterable of Points, got list with int at index 0"),
    "ceilings of a number": (lambda: r.ceilings(dtypes=3), "dtypes must be an iterable"),
    "count a number": (lambda: r.count(3), "count() needs a function, got int."),
    "count a wrong shape": (lambda: r.count(LINEAR, TOO_WIDE), "Linear cannot run on these inputs"),
    "plan a text": (lambda: n.memory_plan(LINEAR, X, "H200", budget="16GB"), "budget must be a whole number or None"),
    "plan below 0": (lambda: n.memory_plan(LINEAR, X, "H200", budget=-1), "budget must be positive, got -1."),
    "plan a number": (lambda: n.memory_plan(3, X, "H200"), "memory_plan() needs a Module, got int."),
    "plan on a number": (lambda: n.memory_plan(LINEAR, X, 3), "machine must be a Machine or text, got int"),
    "saved by a wrong shape": (lambda: n.saved_activations(LINEAR, TOO_WIDE), "Linear cannot run on these inputs"),
    "saved by a number": (lambda: n.saved_activations(3, X), "saved_activations() needs a function"),
    "saved with a loss of 3": (lambda: n.saved_activations(LINEAR, X, loss=3), "loss must be a function or None"),
    "tensors of a number": (lambda: n.SavedTensors(3), "SavedTensors() needs an iterable of Tensors, got int."),
    "state of a number": (lambda: n.training_state(3), "training_state() needs a Module"),
    "rates of no dtype": (lambda: n.rates_here("q"), "there is no format 'q'"),
    "gradients of a number": (lambda: n.recorded_gradients(LINEAR, 3), "loss must be a function"),
    "fault of a number": (lambda: p.whose_fault([1, 2], 3), "step must be a function, got int"),
    "fault of no loader": (lambda: p.whose_fault(3, f), "whose_fault() needs"),
    "a batch of -1": (lambda: p.LoaderModel(-1, 0.1), "batch_size must be positive, got -1."),
    "-1 workers": (lambda: p.LoaderModel(1, 0.1).sample_per_s(-1), "workers must be 0 or more, got -1."),
    "feed batches of 0": (lambda: p.feed([1], batch_size=0), "feed(batch_size=0"),
    "feed collated by 3": (lambda: p.feed([1], batch_size=1, collate=3), "collate must be a function or None"),
    "run no data set": (lambda: p.run_loader(3, batch_size=1, workers=0), "run_loader() needs a Sized, got int."),
    "run for -1 s": (lambda: p.run_loader([1], batch_size=1, workers=0, seconds=-1), "seconds must be positive"),
    "stages of 3": (lambda: p.measure_ladder([3], [1]), "a list of Stages, got list with int at index 0"),
    "waste of 3": (lambda: p.waste(3), "waste() needs an iterable of whole numbers, got 3."),
    "pages of 3": (lambda: p.cache_state(3), "cache_state() needs a path or an iterable of paths, got int"),
    "hand over none": (lambda: p.measure_handoff(X, batches=0), "batches must be 4 or more, got 0."),
    "within text": (lambda: p.within("x", f, what="a"), "within() needs a number, got the text 'x'"),
    "sleep below 0": (lambda: p.sleeping_step(-1), "duration_s must be 0 or more, got -1."),
    "predict a number": (lambda: pr.predict_step(3, X), "predict_step() needs a function, got int."),
    "predict with 3": (lambda: pr.predict_step(LINEAR, X, efficiencies=3), "must be an Efficiencies or None"),
    "a cluster of text": (lambda: pr.predict_step(LINEAR, X, cluster="q"), "must be a number of GPUs or a dict"),
    "no machines": (lambda: pr.compare_machines(LINEAR, X, []), "machines= must name at least one GPU"),
    "a price of 3": (lambda: pr.compare_machines(LINEAR, X, price_per_hour=3), "price_per_hour must be a dict of text"),
    "calibrate 3": (lambda: pr.calibrate(3), "calibrate() needs a Bench or None"),
    "an accelerator of 3": (lambda: h.accelerator(3), "accelerator() needs text, got int"),
    "a clock of text": (lambda: h.flop_rate(sm_count="a", fma_per_clock_per_sm=1, clock_hz=1), "needs a whole number"),
    "fold a number": (lambda: i.fold_batch_norms(3), "fold_batch_norms() needs a Module"),
    "a grid of text": (lambda: i.integer_grid("abc"), "Expected numbers, got str."),
    "a grid's axis": (lambda: i.integer_grid([1.0], axis=7), "axis is 7, but the values have 1 dimension"),
    "noise of two "
    "shapes": (lambda: i.sqnr_db([1.0, 2.0], [1.0]), "The values have shape (2,), but the rounded values"),
    "shares of a number": (lambda: t.attribute(3), "attribute() needs a Trace, an AnalysedTrace or a path, got int."),
    "shares of no file": (lambda: t.attribute("/no/such.json"), "cannot read such.json"),
    "gain from a number": (lambda: t.what_if(3, "copy"), "what_if() needs a Trace, an AnalysedTrace or a path"),
    "habits of a number": (lambda: t.antipatterns(3), "antipatterns() needs a Trace, an AnalysedTrace or a path"),
    "run a number without copies": (lambda: t.ablate(3, "copy"), "ablate() needs a Loop, got int."),
    "read a number": (lambda: t.read_trace(3), "read_trace() needs a path, a dict or a list, got int."),
    "no ceilings' time": (lambda: r.ceilings(budget_s=0), "budget_s must be positive, got 0."),
    "a GPU of a number": (lambda: VirtualGPU(3), "VirtualMachine.of() needs text or an Accelerator, got int."),
    "replayed on a number": (lambda: replay([], 3), "VirtualMachine.of() needs text or an Accelerator, got int."),
    "a machine's name": (lambda: measure(f, work=WORK, machine="H200", budget_s=0.02), "a bound, got the text 'H200'"),
    "fusions of a number": (lambda: g.fusions(3), "fusions() needs a Graph, got int."),
}
# fmt: on


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_is_refused_in_a_sentence(case: str) -> None:
    call, said = WRONG[case]
    with pytest.raises(EdlError) as caught:
        call()

    assert said in caught.value.what
    assert caught.value.why
    assert caught.value.next


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (np.float32(3), float),
        (np.int64(3), int),
        (torch.tensor(3), int),
        (torch.tensor(3.0), float),
        (3, float),
        (True, bool),
        (np.bool_(True), bool),
        (np.arange(3), Sequence[float]),
        (torch.zeros(3), Iterable[Any]),
        (range(3), Sequence[int]),
        (iter([1]), Iterator[int]),
        (Path("x"), str | os.PathLike[str]),
        ({"a": len}, Mapping[str, Function]),
        ([1, 2], tuple[int, int]),
        (HostClock(), Clock | None),
        (object(), Any),
    ],
)
def test_what_fits_an_annotation(value: object, hint: Any) -> None:
    assert fits(value, hint)


@pytest.mark.parametrize(
    ("value", "hint", "words"),
    [
        (True, int, "a whole number"),
        (2.5, int, "a whole number"),
        (torch.tensor(2.5), int, "a whole number"),
        ("3", float, "a number"),
        (1j, float, "a number"),
        ("abc", Sequence[str], "a list of texts"),
        ((1, 2, 3), tuple[int, int], "a tuple of whole numbers"),
        ([1, "a"], Sequence[float], "a list of numbers"),
        ({"n": 3}, Mapping[str, Iterable[Any]], "a dict of text to iterable"),
        (3, str | os.PathLike[str] | None, "a path or None"),
        ("cuda", Clock, "a Clock"),
        (None, Function, "a function"),
        ([1], Iterator[int], "an iterator of whole numbers"),
        ([1], Iterable[Iterable[int]], "an iterable of iterables of whole numbers"),
        ([1], Sequence[str | None], "a list of texts or None"),
    ],
)
def test_what_does_not_fit_and_the_annotation_in_words(value: object, hint: Any, words: str) -> None:
    assert not fits(value, hint)
    assert words == wording(hint)


def test_a_call_that_lacks_an_argument_names_it_and_a_near_name_is_offered() -> None:
    @checked_arguments()
    def train(steps: int, *, budget_s: float = 1.0) -> int:
        return steps

    with pytest.raises(UsageError, match=r"train\(\) missing a required argument: 'steps'"):
        train()
    with pytest.raises(UsageError) as caught:
        train(1, budget=2.0)

    assert "Its arguments are steps, budget_s." == caught.value.why
    assert "Use budget_s=…" == caught.value.next
    assert 3 == train(3)


def test_numbers_of_numpy_are_whole_numbers_and_numbers_inside_too() -> None:
    eight = np.int64(8)

    assert n.checkpointed_peak(64, 8) == n.checkpointed_peak(64, eight)
    assert n.underflow_report([1e-8], "fp16", scale=2.0) == n.underflow_report([1e-8], "fp16", scale=np.float32(2))
    assert pr.ParallelLayout.of(8) == pr.ParallelLayout.of(eight)


def test_an_import_that_fails_in_the_callers_own_function_is_the_callers_error() -> None:
    def step() -> None:
        import no_such_library  # noqa: F401

    with pytest.raises(ModuleNotFoundError, match="no_such_library") as caught:
        t.diagnose(step)

    assert caught.value.__cause__ is None


VERBS = {
    "count": "from edl_labs.roofline import count; count(len, [1])",
    "ceilings": "from edl_labs.roofline import ceilings; ceilings()",
    "predict_step": "from edl_labs.predict import predict_step",
    "saved_activations": "from edl_labs.numerics import saved_activations",
    "memory_plan": "from edl_labs.numerics import memory_plan",
    "feed": "from edl_labs.pipeline import feed; feed([1], batch_size=1)",
}


@pytest.mark.parametrize("verb", VERBS)
def test_without_torch_each_verb_says_so(verb: str) -> None:
    code = f"import sys; sys.modules['torch'] = None; {VERBS[verb]}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)

    assert 1 == ran.returncode
    assert f"{verb}" in ran.stderr
    assert "needs torch, which is not installed here." in ran.stderr.partition("UsageError: ")[2]
    assert "next: Run `pip install torch`, and restart the kernel." in ran.stderr
