"""own_traces in a notebook: the check reads the two files beside it, and says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs.checks import check
from edl_labs.trace.packed_trace import FILES

HANDED_IN = Path(__file__).parents[3] / "solutions" / "lab05_profiling" / "handed_in"
ANSWERS = {"cause": "data", "place": "dataloader", "change": "each batch is one array"}


def points(answers: dict[str, str]) -> float:
    return float(check("own_traces", {"own_change": lambda asked: answers[asked]}))


def test_the_files_beside_the_notebook_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert points(ANSWERS) == 0
    for file in FILES:
        (tmp_path / file).write_bytes((HANDED_IN / file).read_bytes())
    assert points(ANSWERS) == 3
    assert points(ANSWERS | {"place": "aten::addmm"}) == 2.5
    assert points(ANSWERS | {"cause": "copy"}) == 0
    (tmp_path / FILES[1]).unlink()
    (tmp_path / FILES[1]).symlink_to(HANDED_IN / FILES[1])
    assert points(ANSWERS) == 0


def test_what_is_missing_is_named_with_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILES[0]).write_bytes((HANDED_IN / FILES[0]).read_bytes())
    points(ANSWERS)
    told = capsys.readouterr().out

    assert "own_after.json.gz cannot be found" in told
    assert "own_before" not in told
    assert "trace.hand_in(before, after)" in told
