"""Recordings of diagnosed loops: in the one schema, and honest about what was measured."""

from __future__ import annotations

import json
from importlib import resources

import jsonschema
import pytest

from edl_labs.errors import UsageError
from edl_labs.hardware.recordings import find, load, parse
from edl_labs.trace.corpus.labelled import CORPUS_CAUSES
from edl_labs.trace.loop_recordings import EXPERIMENT, measured_loops, modelled_loops


def test_a_modelled_recording_is_in_the_schema_and_says_so() -> None:
    schema = json.loads(resources.files("edl_labs.hardware.recordings").joinpath("schema.json").read_text())
    recording = modelled_loops("A100-80GB", steps=5)
    jsonschema.validate(recording.to_dict(), schema)

    assert recording == parse(recording.to_json(), name=recording.name)
    assert "Modelled" in recording.title


def test_the_shipped_recording_is_what_the_model_gives_today() -> None:
    assert load("h200_loop_shares_modelled").to_json() == modelled_loops("H200").to_json()


def test_each_loop_has_its_own_cause_in_front() -> None:
    recording = find(EXPERIMENT, hardware_key="H200")

    for number, cause in enumerate(CORPUS_CAUSES):
        shares = {name: recording.values(f"share of {name}")[number] for name in CORPUS_CAUSES}
        assert cause == max(shares, key=lambda name: shares[name])


def test_without_a_gpu_recording_is_refused() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU: tests/gpu records on it")
    with pytest.raises(UsageError, match="no CUDA device"):
        measured_loops()
