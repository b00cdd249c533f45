"""Hand in each mistake as a student would, and write down what the student reads.

    python -m tests.labs.trials.play lab01 [EXERCISE]
    python -m tests.labs.trials.play --table [lab01]

A mistake runs in a fork of a kernel in which the cells above it have run, with the solutions of earlier exercises: an
endless loop, `os._exit` and a crash end the fork alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from edl_labs.checks import Outcome, check
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.outcome_display import outcome_text
from edl_labs.checks.probe_process import ProbeDied, ProbeProcess
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.read import read_lab
from edl_labs.errors import EdlError, UsageError
from tests.labs.trials import TRIALS, VERDICTS, Mistake, Told, Trial, read_trials, write_told

ROOT = TRIALS.parents[2]
_MODULE = "tests.labs.trials.play"  # this one, which may run as __main__
_CELL_S = 60.0  # a solve cell defines names; a student has pressed ■ by then
_ENDED = "(nothing: the kernel died, or the cell ran until it was stopped)"
_COLUMNS = (*VERDICTS, "passed", "not judged")


def play(trial: Trial, lab: Lab) -> Iterator[Told]:
    """What each mistake of an exercise is told, in their order. EdlError where the cells above do not run."""
    known = next(one for one in load_lab(lab.name) if one.name == trial.exercise)
    limit_s = _CELL_S + 2 * known.timeout_s
    with tempfile.TemporaryDirectory() as folder, ProbeProcess(_cells_above(lab, trial.exercise, folder)) as forker:
        if forker.error:
            raise EdlError(f"{trial.lab}: a cell above {trial.exercise} does not run", why=forker.error)
        for mistake in trial.mistakes:
            yield _told(mistake, trial.exercise, forker, Path(folder, f"{mistake.name}.json"), limit_s)


def _cells_above(lab: Lab, exercise: str, folder: str) -> list[tuple[str, str]]:
    """What has run in the kernel before the solve cell, in a folder of its own."""
    names = [(cell.role, cell.name) for cell in lab.cells]
    above = lab.cells[: names.index(("solve", exercise))]
    ready = (
        f"__import__('sys').path.insert(0, {str(ROOT)!r})\n__import__({_MODULE!r})\n__import__('os').chdir({folder!r})"
    )
    opened = f"__import__('edl_labs').Progress({lab.name!r})"
    cells = [(cell.label, cell.source) for cell in above if cell.role in ("setup", "parameters", "given", "solve")]
    return [("ready", ready), *cells, ("open", opened)]


def _told(mistake: Mistake, exercise: str, forker: ProbeProcess, answer: Path, limit_s: float) -> Told:
    handed_in = f"__import__({_MODULE!r}, fromlist=['']).hand_in({exercise!r}, {str(answer)!r}, globals())"
    cells = [("your cell", mistake.code), ("check", handed_in)]
    try:
        with forker.fork(cells, timeout_s=limit_s) as worker:
            raised = worker.error
    except ProbeDied:
        return Told(mistake.name, "ended", 0.0, _ENDED)
    if not answer.is_file():
        raise EdlError(f"{mistake.name}: the check itself did not come to an end", why=str(raised))
    found = json.loads(answer.read_text(encoding="utf-8"))
    traceback = f"(the cell itself ends with {raised.removeprefix('your cell: ')})\n" if raised else ""
    return Told(mistake.name, found["state"], found["points"], traceback + found["message"])


def hand_in(exercise: str, answer: str, namespace: dict[str, Any]) -> None:
    """In the student's kernel: `check`, and write what it says to the file `answer`."""
    outcome = check(exercise, namespace).outcome
    assert outcome is not None
    told = {"state": outcome.state, "points": _fraction(outcome), "message": outcome_text(outcome)}
    part = f"{answer}.part"
    with open(part, "w", encoding="utf-8", errors="replace") as file:
        json.dump(told, file)
    os.replace(part, answer)


def _fraction(outcome: Outcome) -> float:
    """The fraction of the points; of practice, which has none, the fraction of the cases that are right."""
    if outcome.max_points:
        return round(outcome.points / outcome.max_points, 6)
    return round(outcome.cases_right / outcome.cases_total, 6) if outcome.cases_total else 0.0


def lab_of_trial(lab: str) -> Lab:
    """The lab `lab01`, or with its whole name."""
    found = sorted((ROOT / "solutions").glob(f"{lab.partition('_')[0]}_*"))
    if not found:
        raise UsageError(f"there is no lab {lab!r}", next="name it as in solutions/: lab01")
    return read_lab(Course(ROOT), found[0].name)


def table(trials: Iterable[Trial]) -> str:
    """Verdicts counted per exercise, per lab and in all. `passed`: wrong, and the check did not see it."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for trial in trials:
        judged, told = trial.judged, trial.told
        for name in told or [mistake.name for mistake in trial.mistakes]:
            is_passed = name in told and told[name].state == "passed"
            column = "passed" if is_passed else judged[name].verdict if name in judged else "not judged"
            for row in ((trial.lab, trial.exercise), (trial.lab, "in all"), ("all labs", "")):
                counts.setdefault(row, Counter())[column] += 1
    order = sorted(counts, key=lambda row: (row[0] == "all labs", row[0], row[1] == "in all"))
    head = f"{'lab':<10}{'exercise':<28}" + "".join(f"{name:>12}" for name in _COLUMNS) + f"{'named':>9}"
    return "\n".join([head, *(_row(row, counts[row]) for row in order)])


def _row(row: tuple[str, str], count: Counter[str]) -> str:
    share = f"{count['named'] / count.total():.0%}"
    return f"{row[0]:<10}{row[1]:<28}" + "".join(f"{count[name]:>12}" for name in _COLUMNS) + f"{share:>9}"


def main(arguments: list[str] | None = None) -> int:
    """Play a lab's mistakes, or print the table of verdicts."""
    parser = argparse.ArgumentParser(prog="python -m tests.labs.trials.play", description=__doc__.splitlines()[0])
    parser.add_argument("lab", nargs="?", default="", help="lab01, …")
    parser.add_argument("exercise", nargs="?", default="")
    parser.add_argument("--table", action="store_true", help="verdicts per exercise and lab; plays nothing")
    asked = parser.parse_args(arguments)
    trials = read_trials(asked.lab.partition("_")[0], asked.exercise)
    if asked.table:
        print(table(trials))
        return 0
    if not asked.lab or not trials:
        parser.error(f"no mistakes in {TRIALS.name}/{asked.lab or 'labNN'}/{asked.exercise or 'EXERCISE'}.toml")
    lab = lab_of_trial(asked.lab)
    for trial in trials:
        _play_and_write(trial, lab)
    return 0


def _play_and_write(trial: Trial, lab: Lab) -> None:
    told = []
    for one in play(trial, lab):
        told.append(one)
        print(f"{trial.exercise}: {one.name}: {one.state}, {one.points:g}", flush=True)
    write_told(trial.told_path, told)


if __name__ == "__main__":
    sys.exit(main())
