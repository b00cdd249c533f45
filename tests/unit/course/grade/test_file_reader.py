"""Hostile files in a process of their own: each ends in one sentence, within measured bounds of time and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from edl_labs.checks import plain_data
from edl_labs.course.grade.file_reader import FileReader
from edl_labs.trace.packed_trace import FILES
from edl_labs.trace.pair_facts import pair_facts
from tests.unit.trace.hostile_files import hostile, slow
from tests.unit.trace.own_traces import as_file, cpu_loops, recorded

FUNCTIONS = "tests.unit.course.grade.reading_functions"
_CPU_S = 8.0  # files of 200 MB were seen to take 1 s, on a machine that did nothing else
_PEAK_BYTES = 700e6  # below the limit, so that nothing here ends by it


@pytest.fixture(scope="module")
def reader() -> Iterator[FileReader]:
    with FileReader(f"{FUNCTIONS}:measured") as made:
        yield made


def read(function: str, files: Mapping[str, bytes] = {"own": b""}, **limits: Any) -> dict[str, Any]:
    with FileReader(f"{FUNCTIONS}:{function}", **limits) as made:
        return dict(plain_data.decode(made.read(files).data))


@pytest.mark.parametrize("kind", hostile())
def test_a_hostile_file_ends_in_one_sentence_within_its_bounds(kind: str, reader: FileReader) -> None:
    data, told = hostile()[kind]
    done = reader.read(dict.fromkeys(FILES, data))
    found = plain_data.decode(done.data)
    said = found.get("refused") or found["facts"].get("refused", ["", "", ""])

    assert told in " ".join(said)
    assert "\n" not in " ".join(said)
    assert done.cpu_s < _CPU_S
    assert found.get("peak_bytes", 0) < _PEAK_BYTES


def test_an_honest_pair_is_read_as_it_is_in_ones_own_process(reader: FileReader) -> None:
    files = dict(zip(FILES, recorded(next(iter(cpu_loops()))), strict=True))

    assert pair_facts(files) == plain_data.decode(reader.read(files).data)["facts"]


def test_a_file_that_takes_minutes_is_given_up_and_the_next_is_read() -> None:
    with FileReader("edl_labs.trace.pair_facts:pair_facts", cpu_s=2.0) as made:
        done = plain_data.decode(made.read(dict.fromkeys(FILES, slow())).data)
        after = plain_data.decode(made.read({}).data)

    assert "it took more than 2 s of CPU time" == done["refused"][1]
    assert "cannot be found" in after["refused"][0]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("endless", "more than 1 s of CPU time"),
        ("hoarding", "took too much memory"),
        ("ended", "exit code 3"),
        ("failing", "RecursionError"),
    ],
)
def test_whatever_becomes_of_the_process_is_one_sentence(function: str, why: str) -> None:
    assert why in read(function, cpu_s=1.0)["refused"][1]


def test_the_process_has_no_way_out(tmp_path: Path) -> None:
    (tmp_path / "x.there").write_text("kept")
    found = read("tried", {"here": str(tmp_path / "x").encode()})

    assert set(found.values()) == {"PermissionError"}
    assert (tmp_path / "x.there").read_text() == "kept"


def test_files_may_hold_anything_as_a_name(reader: FileReader) -> None:
    assert "cannot be found" in plain_data.decode(reader.read({"../x": as_file({})}).data)["facts"]["refused"][0]
