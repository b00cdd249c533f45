"""Proving by mutation: who survives, who hangs, who dies, and what equivalent.toml may say."""

from __future__ import annotations

import json

import psutil
import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.build import build
from edl_labs.course.lab.read import read_lab
from edl_labs.errors import EdlError, SourceError, UsageError
from tests.unit.course.lab import kit
from tools.mutants import mutation
from tools.mutants.mutation import LabMutation, MutatedExercise, mutate

LINE = "twice_as_long_s = 4 * half_of(duration_s)"
NAME = "doubled_time"


def mutated(course: Course, solution: str = LINE, **given) -> MutatedExercise:
    """The one exercise, with its solution's first line replaced."""
    if solution != LINE:
        kit.replace(kit.source(course), LINE, solution)
    (one,) = mutate(course, kit.LAB, **{"inputs": 40, **given}).exercises
    return one


def list_equivalent(course: Course, mutant: str, *, more: str = 'reason = "it is"', exercise: str = NAME) -> None:
    path = course.solutions / kit.LAB / mutation.EQUIVALENTS
    path.write_text(f'[[equivalent]]\nexercise = "{exercise}"\nmutant = {json.dumps(mutant)}\n{more}\n')


def test_a_good_comparison_lets_no_mutant_live(course: Course) -> None:
    one = mutated(course)

    assert (True, 1.0, (), ()) == (one.ok, one.share, one.survivors, one.problems)
    assert one.mutants == one.killed > 5


def test_a_loose_comparison_lets_some_live_and_they_are_told_with_their_line(course: Course) -> None:
    kit.replace(course.exercises / f"{kit.LAB}.py", "if not close(got, want):", "if got < want:")

    one = mutated(course)

    assert not one.ok
    assert (24, f"{NAME}: - {LINE} + {LINE.replace('4', '5')}", 3) in [
        (s.line, s.change, s.seeds_passed) for s in one.survivors
    ]
    assert one.share == one.killed / one.mutants < mutation.TARGET


def test_a_mutant_that_loses_under_some_seeds_is_killed_and_told(course: Course) -> None:
    draw = "[float(x) for x in rng.uniform(1, 2, 4)]"
    some = "[float(x) for x in rng.uniform(1, 2, 4)] + [3.0] * int(rng.integers(0, 2))"
    kit.replace(course.exercises / f"{kit.LAB}.py", draw, some)

    one = mutated(course, "twice_as_long_s = 2 * duration_s + (duration_s > 2.5)", seeds=8)

    assert 0 < len(one.sometimes)
    assert all(0 < survivor.seeds_passed < 8 for survivor in one.sometimes)
    assert one.killed == one.mutants - len(one.survivors)


@pytest.mark.slow
def test_mutants_that_hang_or_end_their_process_are_killed_and_the_rest_is_judged(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutation, "_MORE_S", 1.0)
    lines = ["import os", "left = 3", "while left > 0:", "    left -= 1", "if left != 0:", "    os._exit(0)", LINE]

    one = mutated(course, "\n    ".join(lines))

    changes = [survivor.change for survivor in one.survivors]
    assert not [change for change in changes if "left += 1" in change or "if not left" in change or LINE in change]
    assert one.killed > 10


@pytest.mark.slow
def test_the_time_of_imports_gives_no_mutant_more_time(course: Course) -> None:
    start_s = 2.0
    kit.replace(kit.source(course), "def half_of", f"import time\n\ntime.sleep({start_s})\n\n\ndef half_of")
    lab = read_lab(course, kit.LAB)
    with course.activated():
        run = mutation._Mutating(course, lab, mutation.exercises_of(course, lab)[NAME], 3, None, 40)
        try:
            run._reference()
        finally:
            run._close()

    assert mutation._MORE_S < run.wall_s < mutation._MORE_S + mutation._SLOWER * start_s


def test_what_a_mutant_does_to_its_process_is_gone_with_it(course: Course) -> None:
    kit.replace(kit.source(course), "def half_of", "SEEN = []\n\ndef half_of")
    lines = "if duration_s < 0:\n        SEEN.append(1)\n    " + LINE.replace("4 *", "(4 + len(SEEN)) *")

    assert [] == [
        s.change for s in mutated(course, lines).survivors if "not duration_s" in s.change or "True" in s.change
    ]


def test_a_mutant_whose_cell_does_not_run_is_no_survivor(course: Course) -> None:
    table = (
        "class Table:\n    ### BEGIN SOLUTION\n    halves = 8 // 2\n    assert halves == 4\n    ### END SOLUTION\n\n\n"
    )
    kit.replace(kit.source(course), "def doubled_time", f"{table}def doubled_time")

    assert not [survivor for survivor in mutated(course).survivors if "8 // 3" in survivor.change]


def test_a_sample_is_that_many_and_the_same_again(course: Course) -> None:
    steps: list[tuple[int, int]] = []

    one = mutated(course, sample=3, progress=lambda done, total, text: steps.append((done, total)))

    assert 3 == one.mutants
    assert [(1, 3), (2, 3), (3, 3)] == steps


def test_a_result_is_plain_json(course: Course) -> None:
    found = mutate(course, kit.LAB, sample=2)

    data = json.loads(json.dumps(found.to_json()))

    assert (kit.LAB, 3, True) == (data["lab"], data["seeds"], data["ok"])
    assert found == LabMutation.from_json(data)


def test_an_exercise_that_the_lab_lacks_is_refused(course: Course) -> None:
    with pytest.raises(UsageError, match="has no exercise called 'tripled_time'"):
        mutate(course, kit.LAB, ["tripled_time"])


def test_a_solution_that_does_not_run_raises_with_the_cell(course: Course) -> None:
    kit.replace(kit.source(course), "def half_of", "undefined_name\ndef half_of")

    with pytest.raises(EdlError, match="the solution does not run"):
        mutate(course, kit.LAB)


ABSOLUTE = LINE.replace("(duration_s)", "(abs(duration_s))")
SAME = f"{NAME}: - {ABSOLUTE} + {LINE}"


def test_an_equivalent_mutant_is_a_survivor_until_it_is_listed(course: Course) -> None:
    assert [SAME] == [survivor.change for survivor in mutated(course, ABSOLUTE).survivors]

    list_equivalent(course, SAME)
    one = mutated(course)

    assert (True, 1, (), ()) == (one.ok, one.equivalent, one.survivors, one.problems)
    assert one.killed == one.mutants - 1
    assert read_lab(course, kit.LAB)
    assert build(course).ok


def test_a_listed_mutant_that_differs_on_drawn_inputs_is_a_problem(course: Course) -> None:
    kit.replace(course.exercises / f"{kit.LAB}.py", "if not close(got, want):", "if got < want:")
    mutant = f"{NAME}: - {LINE} + {LINE.replace('4', '5')}"
    list_equivalent(course, mutant)

    assert (f"equivalent.toml lists {mutant!r}, but its results differ on drawn inputs",) == mutated(course).problems

    list_equivalent(course, mutant, more='reason = "longer is fine"\nchecked = "by hand"')

    assert () == mutated(course).problems


def test_what_the_solution_gives_is_made_once_for_all_listed_mutants(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.replace(course.exercises / f"{kit.LAB}.py", "if not close(got, want):", "if got < want:")
    longer = [f"{NAME}: - {LINE} + {LINE.replace('4', other)}" for other in ("5", "8")]
    table = f'[[equivalent]]\nexercise = "{NAME}"\nreason = "longer is fine"\nmutant = '
    path = course.solutions / kit.LAB / mutation.EQUIVALENTS
    path.write_text("\n".join(table + json.dumps(mutant) for mutant in longer))
    asked, records = [], mutation._Mutating._records

    def counted(self, mutant, cases, **given):
        asked.append(mutant and mutant.identity)
        return records(self, mutant, cases, **given)

    monkeypatch.setattr(mutation._Mutating, "_records", counted)

    one = mutated(course)

    problems = tuple(f"equivalent.toml lists {mutant!r}, but its results differ on drawn inputs" for mutant in longer)
    assert problems == one.problems
    assert [None, *longer] == asked[-3:]


def test_a_listed_mutant_that_loses_points_is_a_problem(course: Course) -> None:
    mutant = f"{NAME}: - {LINE} + {LINE.replace('4', '5')}"
    list_equivalent(course, mutant)

    assert (f"equivalent.toml lists {mutant!r}, but it loses points",) == mutated(course).problems


def test_an_entry_that_no_mutant_has_any_more_is_a_problem(course: Course) -> None:
    list_equivalent(course, "old: - x + y")

    assert ("equivalent.toml lists 'old: - x + y', but this mutant no longer exists",) == mutated(course).problems


def test_many_entries_ask_for_another_reader(course: Course) -> None:
    list_equivalent(course, SAME)

    (remark,) = mutated(course, ABSOLUTE).remarks

    assert remark.endswith("of its mutants are listed as equivalent: ask another person to check equivalent.toml")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"more": 'reason = " "'}, "has no reason"),
        ({"more": ""}, "not a list of equivalent mutants"),
        ({"more": 'reason = "x"\nwhy = "y"'}, "not a list of equivalent mutants"),
        ({"exercise": "why_twice"}, "'why_twice' is not a code exercise of this lab"),
    ],
)
def test_a_list_that_is_not_right_is_refused_with_its_file(course: Course, changed, said) -> None:
    list_equivalent(course, "x", **changed)

    with pytest.raises(SourceError, match=said) as raised:
        mutate(course, kit.LAB)
    assert f"solutions/{kit.LAB}/equivalent.toml" == raised.value.file


def test_no_process_stays_behind(course: Course) -> None:
    before = set(psutil.Process().children(recursive=True))
    mutated(course, sample=2)

    assert not set(psutil.Process().children(recursive=True)) - before
