"""Traces as profilers of other torch versions write them: the same loop gives the same shares and FLOPs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from edl_labs.trace.handed_in import read_handed_in
from edl_labs.trace.packed_trace import packed
from edl_labs.trace.pair_facts import facts
from tests.unit.trace.own_traces import CUDA, Tree, cuda_pair

Event = dict[str, Any]
EPOCH_US = 1.7e15  # a clock's microseconds since 1970


def changed(tree: Tree, change: Callable[[Event], None]) -> Tree:
    made = copy.deepcopy(tree)
    for event in made["traceEvents"]:
        if event.get("ph") == "X":
            change(event)
    return made


def whole_microseconds(event: Event) -> None:
    """Before fractions were written; times count from 1970."""
    start, end = round(event["ts"] + EPOCH_US), round(event["ts"] + event["dur"] + EPOCH_US)
    event["ts"], event["dur"] = start, end - start


def strides_and_ids(event: Event) -> None:
    """What later versions add to an operator."""
    event["args"] = {"External id": 7, "Record function id": 0, "Ev Idx": 3, **event.get("args", {})}
    if event["cat"] == "cpu_op":
        event["args"] |= {"Input Strides": [[256, 1], [1, 256]], "Input type": ["float", "float"], "Sequence number": 5}


def no_concrete_inputs(event: Event) -> None:
    """Before values of scalar inputs were written."""
    event.get("args", {}).pop("Concrete Inputs", None)


def texts_for_threads(event: Event) -> None:
    event["pid"], event["tid"] = str(event["pid"]), str(event["tid"])


def relative(tree: Tree) -> Tree:
    return {**tree, "baseTimeNanoseconds": 1_700_000_000_000_000_000, "displayTimeUnit": "ms", "trace_id": "ab"}


def with_stack(tree: Tree) -> Tree:
    """Each Python frame as an event of its own, around the operators."""
    operators = [event for event in tree["traceEvents"] if event.get("cat") == "cpu_op"]
    frames = [
        {**event, "cat": "python_function", "name": "<built-in method mm>", "args": {"Python id": number}}
        for number, event in enumerate(operators)
    ]
    return {**tree, "traceEvents": [*tree["traceEvents"], *copy.deepcopy(frames)]}


def marks_of_the_device(tree: Tree) -> Tree:
    """Later versions repeat each step's mark on the device's rows."""
    marks = [event for event in tree["traceEvents"] if event["name"].startswith("ProfilerStep#")]
    again = [{**mark, "cat": "gpu_user_annotation", "pid": 0, "tid": 7, "ts": mark["ts"] + 30} for mark in marks]
    return {**tree, "traceEvents": [*tree["traceEvents"], *again]}


FORMS: dict[str, Callable[[Tree], Tree]] = {
    "whole microseconds since 1970": lambda tree: changed(tree, whole_microseconds),
    "times from a base, with fractions": relative,
    "strides, types and ids": lambda tree: changed(tree, strides_and_ids),
    "no concrete inputs": lambda tree: changed(tree, no_concrete_inputs),
    "texts for processes and threads": lambda tree: changed(tree, texts_for_threads),
    "frames of Python": with_stack,
    "marks on the device's rows": marks_of_the_device,
}


@pytest.mark.parametrize("cause", CUDA)
@pytest.mark.parametrize("form", FORMS)
def test_a_trace_in_another_versions_form_is_judged_alike(form: str, cause: str) -> None:
    tree = cuda_pair(*CUDA[cause])[0]
    data, steps = packed(FORMS[form](tree), tree["edl_labs"], (), scrub=str)
    plain, _ = packed(tree, tree["edl_labs"], (), scrub=str)
    want, got = (facts(read_handed_in(one)) for one in (plain, data))

    assert steps == 8
    assert list(want.bounds_s) == list(got.bounds_s)
    assert want.flop_per_step == got.flop_per_step
    assert want.shares == pytest.approx(got.shares, abs=0.02)  # a microsecond of a step that has 50 at least
