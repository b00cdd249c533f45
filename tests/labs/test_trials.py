"""Mistakes of new students: their files are whole, and what they are told is what was judged."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from edl_labs.checks.lab_exercises import lab_names
from edl_labs.checks.lab_facts import facts
from tests.labs.trials import STATES, TRIALS, VERDICTS, Told, Trial, read_trial, read_trials, write_told
from tests.labs.trials.play import lab_of_trial, play, table

LABS = sorted(folder.name for folder in TRIALS.glob("lab*"))
MOST_PLAYED_S = 3600  # a dozen mistakes, of which each may reach its exercise's limit


# Whoever judges has written neither the mistakes nor the messages; trials that hand in files cannot be played yet.
NOT_JUDGED = {
    "own_traces": "its mistakes are recordings, which nobody from outside has read so far",
    "micro_batch": "only its author has read its messages so far",
}


def exercises_of(lab: str) -> set[str]:
    """The exercises that have code, of the lab `lab01`."""
    (name,) = (name for name in lab_names() if name.startswith(f"{lab}_"))
    return {one.name for one in facts(name).exercises if one.kind == "code"}


@pytest.mark.parametrize("lab", LABS)
def test_the_mistakes_of_an_exercise_are_eight_or_more_and_whole(lab: str) -> None:
    known = exercises_of(lab)
    for trial in read_trials(lab):
        names = [mistake.name for mistake in trial.mistakes]

        assert trial.exercise in known
        assert len(names) >= 8, f"{trial.exercise} has {len(names)} mistakes"
        assert [] == [name for name in names if not name.isidentifier() or names.count(name) > 1]
        assert [] == [one.name for one in trial.mistakes if len(one.wrong.split()) < 3 or not one.code.strip()]
        assert len(names) == len({as_read(one.code) for one in trial.mistakes}), f"{trial.exercise} has one twice"


@pytest.mark.parametrize("lab", LABS)
def test_what_was_told_is_of_the_mistakes_and_what_was_judged_is_what_was_told(lab: str) -> None:
    for trial in read_trials(lab):
        told, judged = trial.told, trial.judged
        if told:
            assert [mistake.name for mistake in trial.mistakes] == list(told), trial.exercise
            assert {one.state for one in told.values()} <= set(STATES)
        if judged:
            asked = {name: one.digest for name, one in told.items() if one.state != "passed"}
            assert asked == {name: judged[name].message_digest for name in asked if name in judged}, trial.exercise
            assert judged.keys() <= told.keys()
            assert {one.verdict for one in judged.values()} <= set(VERDICTS)


@pytest.mark.parametrize("lab", LABS)
def test_a_lab_that_is_judged_is_judged_in_every_exercise(lab: str) -> None:
    judged = {trial.exercise for trial in read_trials(lab) if trial.judged}

    assert judged in (set(), exercises_of(lab) - NOT_JUDGED.keys())
    assert not judged & NOT_JUDGED.keys(), "it is judged: take it off the list"


@pytest.mark.slow
@pytest.mark.timeout(MOST_PLAYED_S)
@pytest.mark.parametrize("trial", read_trials(), ids=lambda trial: f"{trial.lab}-{trial.exercise}")
def test_a_mistake_is_told_what_was_judged(trial: Trial) -> None:
    """A message that has changed must be judged again: play it, and see whether its verdict still holds."""
    again = {one.name: one for one in play(trial, lab_of_trial(trial.lab))}

    known = {name: one.message_digest for name, one in trial.judged.items()} or {
        name: one.digest for name, one in trial.told.items()
    }
    assert known == {name: again[name].digest for name in known}
    passed = {name for name, one in trial.told.items() if one.state == "passed"}
    assert passed == {name for name in trial.told if again[name].state == "passed"}


def test_what_is_told_is_written_and_read_again(tmp_path: Path) -> None:
    odd = 'a "quote", ""two"", """three""", \\ and \x1b[0m\u2028\n  ✗ "last"'
    path = tmp_path / "one.told.toml"
    told = [Told("odd", "wrong", 0.25, odd), Told("empty", "ended", 0.0, "")]

    write_told(path, told)

    trial = Trial("lab01", "one", tmp_path, ())
    assert {one.name: one for one in told} == trial.told


def test_a_digest_is_of_the_words_alone() -> None:
    first = Told("a", "wrong", 0.0, "case 1 of 13: 2.5e-3 s at <object at 0x7f01>")
    same = Told("a", "wrong", 0.0, "case 2 of 13:  1.25 s at <object at 0xab02>")
    other = Told("a", "wrong", 0.0, "case 1 of 13: 2.5e-3 s before <object at 0x7f01>")

    assert first.digest == same.digest
    assert first.digest != other.digest
    assert first.digest != Told("a", "passed", 0.0, first.message).digest


EXAMPLE = """
[[mistake]]
name = "{name}"
wrong = "an example of a mistake"
code = '''
{code}
'''
"""
FUNCTION = "def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):\n    "
EXAMPLES = {
    "right": f"{FUNCTION}best = max(unit.get(dtype, 0) for unit in row.values())\n"
    "    return 2e6 * best * sm_count * clock_mhz",
    "raises": f"{FUNCTION}raise Exception('later')",
    "half": f"{FUNCTION}return (",
    "misspelt": FUNCTION.replace("peak_flop", "peak_flops") + "return 0.0",
    "gone": "import os\nos._exit(0)",
    "gone_when_called": f"{FUNCTION}import os; os._exit(3)",
    "killed": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "loops": f"{FUNCTION}\n    while True:\n        pass",
}


@pytest.mark.slow
@pytest.mark.timeout(600)  # the endless one reaches its exercise's limit
def test_whatever_is_handed_in_something_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "lab01"
    folder.mkdir()
    path = folder / "peak_from_clock.toml"
    path.write_text("".join(EXAMPLE.format(name=name, code=code) for name, code in EXAMPLES.items()), encoding="utf-8")
    told = {one.name: one for one in play(read_trial(path), lab_of_trial("lab01"))}
    write_told(folder / "peak_from_clock.told.toml", told.values())

    assert list(EXAMPLES) == list(told)
    assert (1.0, "passed") == (told["right"].points, told["right"].state)
    assert ["ended"] * 3 == [told[name].state for name in ("gone", "gone_when_called", "killed")]
    assert "later" in told["raises"].message
    assert "SyntaxError" in told["half"].message
    assert "peak_flop_per_s" in told["misspelt"].message
    assert "limit" in told["loops"].message or "endless" in told["loops"].message
    assert table(read_trials(root=tmp_path)).splitlines()[1].split() == (
        ["lab01", "peak_from_clock", "0", "0", "0", "0", "1", "7", "0%"]
    )


def as_read(code: str) -> str:
    """Code as Python reads it, so that layout and comments are no difference."""
    try:
        return ast.dump(ast.parse(code))
    except SyntaxError:
        return code
