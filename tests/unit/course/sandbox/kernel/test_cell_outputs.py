"""Outputs are what nbformat has, whatever a kernel puts into its messages."""

from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest

from edl_labs.course.sandbox.kernel.cell_outputs import Message, Outputs


def gathered(*messages: tuple[str, Any], kept_bytes: int = 10_000) -> Outputs:
    outputs = Outputs(kept_bytes)
    for kind, content in messages:
        outputs.add(Message(kind, "p", json.dumps(content).encode(), []))
    return outputs


def text(name: str, words: str) -> tuple[str, dict[str, str]]:
    return "stream", {"name": name, "text": words}


def test_a_stream_is_one_output_until_another_comes_between():
    outputs = gathered(text("stdout", "a"), text("stdout", "b"), text("stderr", "c"), text("stdout", "d"))

    assert [("stdout", "ab"), ("stderr", "c"), ("stdout", "d")] == [
        (output["name"], output["text"]) for output in outputs.finished()
    ]


def test_a_display_is_updated_where_it_stands():
    first = {"data": {"text/plain": "1"}, "metadata": {}, "transient": {"display_id": "x"}}
    second = {"data": {"text/plain": "2"}, "metadata": {}, "transient": {"display_id": "x"}}
    outputs = gathered(("display_data", first), text("stdout", "a"), ("update_display_data", second))

    assert {"text/plain": "2"} == outputs.finished()[0]["data"]


@pytest.mark.parametrize(("wait", "left"), [(False, []), (True, ["a"])])
def test_clearing_waits_for_the_next_output_when_asked_to(wait, left):
    outputs = gathered(text("stdout", "a"), ("clear_output", {"wait": wait}))

    assert left == [output["text"] for output in outputs.finished()]


def test_clearing_that_waited_happens_with_the_next_output():
    outputs = gathered(text("stdout", "a"), ("clear_output", {"wait": True}), text("stdout", "b"))

    assert ["b"] == [output["text"] for output in outputs.finished()]


def test_what_is_too_much_is_cut_and_says_so():
    outputs = gathered(*[text("stdout", "x" * 100)] * 500, kept_bytes=2000)

    assert outputs.truncated
    assert len(outputs.finished()[0]["text"]) <= 2000
    assert "cut off here" in outputs.finished()[-1]["text"]


def test_output_dropped_on_the_way_is_counted_too():
    outputs = Outputs(1000)
    outputs.add(Message("stream", "p", b"", [], dropped_bytes=5000))

    assert outputs.truncated


STRANGE = [
    ("stream", {"name": "stdin", "text": "x"}),
    ("stream", {"name": "stdout", "text": ["x"]}),
    ("stream", {}),
    ("display_data", {}),
    ("display_data", {"data": 7, "metadata": []}),
    ("display_data", {"data": {"text/plain": {"a": 1}, "image/png": ["x", 7]}, "transient": []}),
    ("execute_result", {"execution_count": "x", "data": {"text/plain": "1"}}),
    ("execute_result", {"execution_count": 10**30, "data": {"text/plain": "1"}}),
    ("execute_result", {"execution_count": True, "data": {"application/json": [1]}}),
    ("error", {}),
    ("error", {"ename": 7, "evalue": None, "traceback": "x"}),
    ("error", {"ename": "E", "traceback": ["a", 7]}),
    ("clear_output", {"wait": "yes"}),
    ("update_display_data", {"transient": {"display_id": []}}),
    ("stream", None),
    ("__init__", {}),
    ("comm_open", {"target_name": "x"}),
]


@pytest.mark.parametrize("message", STRANGE)
def test_every_output_is_valid_whatever_came(message):
    cell = nbformat.v4.new_code_cell("1", outputs=gathered(message).finished())

    nbformat.validate(nbformat.v4.new_notebook(cells=[cell]))
