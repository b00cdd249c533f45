"""A submission of the largest size costs grading and the report little outside of its kernel, whatever is in it."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product

import pytest

from tests.sampling import few
from tests.unit.course.grade.large_sources import NO_JSON, PROSE, SIZE, SOURCES, handed_in

MOST_CPU_S, MOST_BYTES = 10.0, 1 << 30


def test_the_sources_are_of_the_largest_size():
    sizes = {name: len(text) for name, text in SOURCES.items()}

    assert {} == {name: size for name, size in sizes.items() if not 0.8 * SIZE < size <= SIZE + 2_000}


@pytest.mark.parametrize(
    ("verb", "name"),
    [*(("read", name) for name in NO_JSON), *few([*product(("grade", "report"), (*SOURCES, *PROSE))], quick=4)],
)
def test_a_large_source_costs_little_outside_of_the_kernel(verb: str, name: str):
    command = [sys.executable, "-m", "tests.unit.course.grade.large_sources", verb, name]
    cpu_s, peak_bytes = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)

    assert MOST_CPU_S > cpu_s
    assert MOST_BYTES > peak_bytes


def test_the_prose_fills_a_notebook():
    assert len(handed_in("many brackets").cells) > SIZE // len(PROSE["many brackets"])
