"""Bytes that claim to be a trace: whatever they are, reading them is bounded and ends in a trace or one line."""

from __future__ import annotations

import json
import time

import pytest

from edl_labs.trace import TraceError, handed_in
from edl_labs.trace.handed_in import read_handed_in
from tests.unit.trace.hostile_files import good, hostile
from tests.unit.trace.own_traces import as_file

QUICK = [name for name, (data, told) in hostile().items() if told and "without end" not in name]


@pytest.mark.parametrize("name", QUICK)
def test_hostile_bytes_end_in_one_line(name: str) -> None:
    data, told = hostile()[name]
    with pytest.raises(TraceError) as error:
        read_handed_in(data)

    assert told in str(error.value)


def test_values_of_any_kind_in_known_places_are_read_or_refused() -> None:
    strange = [None, True, -1, 1e308, "x" * 10_000, [], {}, [[]], float("nan")]
    for number, value in enumerate(strange):
        for key in ("ts", "dur", "args", "pid", "cat", "name"):
            tree = json.loads(json.dumps(good()))
            tree["traceEvents"][number][key] = value
            tree["edl_labs"] |= {"stamp": value, "sampled_lines": value, "timed_step_s": value, "input_shapes": value}
            try:
                found = read_handed_in(as_file(tree))
            except TraceError:
                continue

            assert found.step_s > 0


def test_the_limit_of_events_is_counted_before_anything_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed_in, "_decode", lambda text: pytest.fail("it was decoded"))
    begun_s = time.process_time()
    with pytest.raises(TraceError, match="too many events"):
        read_handed_in(hostile()["objects without end"][0])

    assert time.process_time() - begun_s < 30
