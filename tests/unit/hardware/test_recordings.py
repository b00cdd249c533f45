"""Recordings have one schema, say whether they are modelled, and those that ship are what the model gives."""

from __future__ import annotations

import copy
import json
from importlib import resources

import jsonschema
import pytest

from edl_labs.device import describe
from edl_labs.errors import EdlError, UsageError
from edl_labs.hardware import accelerator
from edl_labs.hardware.recordings import find, load, names, parse
from edl_labs.virtual import VirtualGPU, VirtualMachine
from tools.gpu_experiments import COPY_BYTES, PROGRAMS, calibrated, makespan_s, measured, modelled, write

SCHEMA = json.loads(resources.files("edl_labs.hardware.recordings").joinpath("schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", names())
def test_a_shipped_recording_is_in_the_schema_and_names_its_accelerator(name):
    recording = load(name)
    jsonschema.validate(recording.to_dict(), SCHEMA)

    assert name == recording.name
    if recording.hardware_key == "CPU":
        assert recording.environment["cpu_model"]
        assert not recording.modelled
    else:
        assert accelerator(recording.hardware_key)
    assert recording.environment


def test_shipped_modelled_recordings_are_what_the_model_gives_today(tmp_path):
    shipped = resources.files("edl_labs.hardware.recordings")
    for path in write(modelled("H200"), tmp_path):
        assert path.read_text(encoding="utf-8") == shipped.joinpath(path.name).read_text(encoding="utf-8")


def test_a_modelled_recording_says_so_in_its_title():
    for recording in modelled("A100-80GB"):
        assert recording.modelled
        assert recording.title.startswith("Modelled, not measured")


def test_without_a_synchronisation_launches_seem_to_take_their_overhead():
    recording = load("h200_async_launch_modelled")
    machine = VirtualMachine.from_dict(recording.environment["virtual_machine"])
    seeming, true = (recording.values(series.label) for series in recording.series)

    assert pytest.approx([count * machine.launch_overhead_s for count in recording.x], rel=0.05) == list(seeming)
    assert pytest.approx([count * 200e-6 for count in recording.x], rel=0.1) == list(true)


def test_large_copies_run_at_the_rates_of_their_memory_and_small_ones_at_their_latency():
    recording = load("h200_pinned_copies_modelled")
    machine = VirtualMachine.from_dict(recording.environment["virtual_machine"])
    pageable, pinned, returned = (recording.values(series.label) for series in recording.series)

    assert COPY_BYTES == recording.x
    assert pytest.approx(recording.x[-1] / machine.pageable_byte_per_s, rel=0.01) == pageable[-1]
    assert pytest.approx(recording.x[-1] / machine.link_byte_per_s, rel=0.01) == pinned[-1]
    assert pytest.approx(machine.copy_overhead_s, rel=0.05) == max(returned)
    assert pinned[0] > 2 * recording.x[0] / machine.link_byte_per_s


def test_lab01_states_what_was_recorded_on_the_gpu():
    """Its text says that a launch takes 10 to 17 µs there."""
    launches, copies = find("async_launch", hardware_key="H200"), find("pinned_copies", hardware_key="H200")
    seeming, true = (launches.values(series.label) for series in launches.series)
    per_launch_s = [time_s / count for count, time_s in zip(launches.x, seeming, strict=True)]

    assert not launches.modelled
    assert not copies.modelled
    assert 10e-6 <= min(per_launch_s)
    assert max(per_launch_s) <= 17e-6
    assert pytest.approx([count * 200e-6 for count in launches.x], rel=0.11) == list(true)
    assert 5 < copies.values("pageable")[-1] / copies.values("pinned")[-1]


def test_a_measured_recording_is_found_before_a_modelled_one(monkeypatch):
    (one, _) = modelled("H200")
    measured_text = one.to_json().replace('"modelled": true', '"modelled": false')
    real = parse(measured_text, name=one.name)
    monkeypatch.setattr("edl_labs.hardware.recordings.names", lambda: ("a", "b"))
    monkeypatch.setattr("edl_labs.hardware.recordings.load", {"a": one, "b": real}.__getitem__)

    assert find("async_launch") is real


def test_what_is_not_recorded_is_refused_with_what_there_is():
    with pytest.raises(EdlError) as caught:
        find("async_launch", hardware_key="T4")
    assert "there is no recording of 'async_launch' on T4" == caught.value.what
    with pytest.raises(EdlError) as caught:
        load("../../errors")

    assert names()[0] in caught.value.why


def test_a_series_is_found_by_its_label():
    recording = load(names()[0])

    assert recording.series[0].values == recording.values(recording.series[0].label)
    with pytest.raises(EdlError):
        recording.values("speed")


def changed(change):
    data = copy.deepcopy(load("h200_async_launch_modelled").to_dict())
    change(data)
    return json.dumps(data)


BROKEN = {
    "no JSON": "{",
    "a list": "[]",
    "deep": "[" * 100_000,
    "another schema": changed(lambda d: d.update(schema=2)),
    "no schema": changed(lambda d: d.pop("schema")),
    "another name": changed(lambda d: d.update(name="x")),
    "a modelled one that hides it": changed(lambda d: d.update(title="Measured on an H200")),
    "modelled as a text": changed(lambda d: d.update(modelled="no")),
    "no environment": changed(lambda d: d.update(environment={})),
    "a value too few": changed(lambda d: d["series"][0]["values"].pop()),
    "a text as value": changed(lambda d: d["x"]["values"].__setitem__(0, "1")),
    "NaN": changed(lambda d: d["x"]["values"].__setitem__(0, float("nan"))),
    "no series": changed(lambda d: d.update(series=[])),
    "no x": changed(lambda d: d.pop("x")),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_recording_is_refused_with_a_reason(text):
    with pytest.raises(EdlError) as caught:
        parse(text, name="h200_async_launch_modelled")

    assert "the recording h200_async_launch_modelled cannot be read" == caught.value.what
    assert caught.value.why


def test_an_unchanged_recording_is_read_back():
    recording = load("h200_async_launch_modelled")

    assert recording == parse(recording.to_json(), name=recording.name)


def test_measuring_without_a_gpu_says_so():
    if describe().kind == "cuda":
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(UsageError) as caught:
        measured()

    assert caught.value.next


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_that_are_compared_with_reality_run_on_the_model(name):
    gpu = VirtualGPU(VirtualMachine.of("H200").warm())

    assert 1e-4 < makespan_s(gpu, PROGRAMS[name], repeats=2) < 1.0


def test_overlap_hides_most_of_the_copies_in_the_model():
    machine = VirtualMachine.of("H200").warm()
    one, three = (
        makespan_s(VirtualGPU(machine), PROGRAMS[f"copy, compute, copy in {streams}"], repeats=1)
        for streams in ("one stream", "three streams")
    )

    assert three < 0.6 * one


@pytest.mark.parametrize("key", ["T4", "H200"])
def test_calibration_finds_the_parameters_of_a_machine_that_it_does_not_know(key):
    truth = VirtualMachine.of(key).warm()
    found = calibrated(VirtualGPU(truth), VirtualMachine.of("A100-80GB"))

    for name in ("launch_overhead_s", "link_byte_per_s", "pageable_byte_per_s"):
        assert pytest.approx(getattr(truth, name), rel=0.05) == getattr(found, name)
