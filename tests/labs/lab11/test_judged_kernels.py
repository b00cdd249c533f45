"""The judge evaluates the kernels of the submitted text, on values of its own."""

from __future__ import annotations

import json

import pytest

from edl_labs.errors import Wrong
from edl_labs.exercises.lab11_tiles.evaluated_kernels import kernel_text
from edl_labs.exercises.lab11_tiles.first_kernels import ScaleShiftRelu

RIGHT = """
@jit
def scale_kernel(x_ptr, y_ptr, n, a, b, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, tl.maximum(a * x + b, 0.0), mask=inside)
"""
CASE = {"n": 300, "a": -1.5, "b": 0.5, "seed": 7}


def evidence(source=RIGHT, **changes):
    arguments = [{"tensor": "x"}, {"tensor": "y"}, 300, -1.5, 0.5]
    launch = {"kernel": "scale_kernel", "grid": [3], "arguments": arguments, "named": {"BLOCK": 128}}
    made = {"name": "y", "elements": 300, "dtype": "float32", "zeros": False}
    program = {"allocated": [made], "launches": [launch], "returned": "y", **changes}
    return {"source": [source], "ran": [RIGHT], "program": json.dumps(program)}


def said(got) -> str:
    with pytest.raises(Wrong) as wrong:
        ScaleShiftRelu().compare(CASE, got, {})
    return f"{wrong.value.what} {wrong.value.why}"


def test_the_right_kernel_is_right():
    ScaleShiftRelu().compare(CASE, evidence(), {})


def test_the_text_counts_and_not_what_ran():
    text = said(evidence(RIGHT.replace("offsets < n", "offsets < n + 1")))

    assert "reads past the end of `x`" in text
    assert "the kernel that ran is not the one in the notebook" in text


@pytest.mark.parametrize(
    "changes",
    [
        {"allocated": []},
        {"allocated": [{"name": "x", "elements": 300, "dtype": "float32", "zeros": False}]},
        {"allocated": [{"name": "y", "elements": 10**9, "dtype": "float32", "zeros": False}]},
        {"allocated": [{"name": "y", "elements": -5, "dtype": "float32", "zeros": False}]},
        {"allocated": [{"name": "y", "elements": 300, "dtype": "object", "zeros": False}]},
        {"returned": "z"},
        {"launches": "all of them"},
    ],
    ids=["unknown", "input", "huge", "negative", "type", "returned", "launches"],
)
def test_a_forged_program_is_refused(changes):
    assert "The record of the host function cannot be used" in said(evidence(**changes))


def test_a_program_without_launches_and_a_kernel_that_is_not_there_say_so():
    assert "No kernel was launched" in said(evidence(launches=[]))
    assert "The kernel cannot run" in said(evidence(source="x = 1"))


def test_the_last_definition_of_a_kernel_counts_and_nothing_else_of_a_cell():
    cells = [
        "%matplotlib inline",
        "import os\n@jit\ndef f(x): g(x)\ndef h(): pass",
        "@triton.jit\ndef f(x):\n    return",
    ]

    assert "@triton.jit\ndef f(x):\n    return\n" == kernel_text(cells, ["f"])
    assert "\n" == kernel_text(["(" * 10_000, "@jit\ndef f(): pass\n" + " " * 70_000, "\0"], ["f"])


def test_kernels_of_other_exercises_that_are_not_written_do_not_count():
    stub = "@jit\ndef other(x_ptr):\n    raise NotImplementedError()\n"
    got = evidence()

    ScaleShiftRelu().compare(CASE, {**got, "source": [stub, *got["source"]]}, {})
    assert "@jit\ndef g(x): h(x)\n\n\n@jit\ndef h(x): pass\n" == kernel_text(
        [stub, "@jit\ndef g(x): h(x)", "@jit\ndef h(x): pass"], ["g"]
    )
    assert "scale_kernel is not written" in said(
        evidence("@jit\ndef scale_kernel(x):\n    raise NotImplementedError()")
    )
