"""check, hint and Progress as a student meets them."""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from edl_labs import Progress, case, check, hint
from edl_labs.checks import Case, Exercise, Outcome, _check, lab_facts, progress, progress_map
from edl_labs.checks.evidence_form import yours
from edl_labs.checks.lab_cells import tell_missing_names
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.lab_facts import ExerciseFacts
from edl_labs.checks.probe_process import ProbeDied, ProbeProcess
from edl_labs.checks.score import MIME, Score
from edl_labs.errors import UsageError, Wrong
from tests.unit.checks import course

pytestmark = pytest.mark.usefixtures("numbers")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LATEST", {})
    monkeypatch.setattr(lab_facts, "NOTEBOOK_LAB", [""])
    monkeypatch.setattr(progress, "NOTEBOOK_LAB", lab_facts.NOTEBOOK_LAB)
    monkeypatch.setattr(_check, "_HINTS_SHOWN", {})


def test_a_right_answer_scores_its_points_and_says_so(capsys) -> None:
    score = check("double", {"double": lambda x: 2 * x})

    assert "2.0" == repr(score)
    assert "✓ double: passed, 2 / 2 points\n" == capsys.readouterr().out


def test_a_wrong_answer_is_told_what_why_next_and_the_inputs_but_not_the_answer(capsys) -> None:
    score = check("double", {"double": lambda x: 3 * x})

    out = capsys.readouterr().out
    assert 0 == score
    assert (
        'what: that is three times\n  why:  x was added twice\n  next: hint("double")\n'
        "  case 1 of 4; 4 are not right:\n    x = " in out
    )
    x = float(out.rpartition("x = ")[2].splitlines()[0])
    assert str(2 * x) not in out
    assert f"    yours: {{'y': {3 * x:.7g}}}\n    case(\"double\", 1) returns these inputs as values\n" in out


def test_an_exercise_says_what_an_exception_means(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Wrong("no number has that name", why="x", next="y")
    double = next(one for one in load_lab(course.LAB) if one.name == "double")
    meant = lambda case, error: known if error == "KeyError" else None  # noqa: E731
    monkeypatch.setattr(type(double.spec), "explain_exception", staticmethod(meant), raising=False)

    told = [check("double", {"double": lambda x, of=of: of[x]}).outcome.what for of in ({}, [])]

    assert known.what == told[0]
    assert told[1].startswith("your code raised TypeError")


def test_an_exception_that_is_returned_is_told_as_that() -> None:
    assert "your function returned an exception" == check("double", {"double": ValueError}).outcome.what


class _Answered(Exercise):
    def probe(self, student: Any, given: Any) -> None: ...

    def compare(self, case: Any, got: Any, want: Any) -> None: ...


class _Recorded(_Answered):
    answer_form: ClassVar[Any] = {"program": ""}


class _Formatted(_Recorded):
    def format_answer(self, case: Any, got: Any) -> str:
        return f"{got['seen']} for {case}"


@pytest.mark.parametrize(
    ("spec", "record", "told"),
    [
        (_Answered(), {"value": [1 / 3, 4, "a"]}, "yours: [0.3333333, 4, 'a']"),
        (_Answered(), {"value": None}, "yours: None"),
        (_Answered(), {"value": list(range(1000))}, "…"),
        (_Answered(), {"error": {"type": "KeyError"}}, ""),
        (_Recorded(), {"value": {"program": "[]"}}, ""),
        (_Formatted(), {"value": {"seen": 7}}, "yours: 7 for x"),
        (_Formatted(), {"value": {}}, ""),
    ],
)
def test_what_a_students_code_gave_stands_below_the_case(spec: Exercise, record: dict[str, Any], told: str) -> None:
    text = yours(spec.format_answer, "x", record)

    assert text.endswith(told)
    assert bool(text) == bool(told)
    assert len(text) < 600


def test_names_are_those_of_the_caller_when_none_are_given() -> None:
    names: dict[str, Any] = {"check": check}

    exec("def double(x): return 2 * x\nscore = check('double')", names)

    assert 2.0 == names["score"]


@pytest.mark.parametrize("name", ["dubble", "", None, 3, "why"])
def test_an_exercise_that_cannot_be_checked_scores_nothing_and_explains(name: Any, capsys) -> None:
    assert 0.0 == check(name, {})
    assert "what:" in capsys.readouterr().out


def test_a_near_name_is_offered(capsys) -> None:
    check("dubble", {})

    out = capsys.readouterr().out
    assert 'did you mean check("double")?' in out
    assert "quadruple" not in out


def test_a_name_near_none_lists_those_of_the_lab_that_was_checked_last(capsys) -> None:
    check("zzzz", {})
    assert "quadruple" not in capsys.readouterr().out

    check("double", {})
    check("zzzz", {})
    assert f"why:  the exercises of {course.LAB} are double, quadruple, why" in capsys.readouterr().out


def test_without_a_name_check_and_hint_say_what_is_missing(capsys) -> None:
    assert 0.0 == check()
    out = capsys.readouterr().out
    assert "what: the name of an exercise is missing" in out
    assert "next: use the name in the cell's title" in out
    assert "the name of an exercise is missing" in hint().text


def test_only_the_prints_of_the_failing_case_are_shown(numbers: Path, capsys) -> None:
    seen: list[float] = []

    def double(x: float) -> float:
        seen.append(x)
        print("case", len(seen))
        os.write(1, b"from C %d\n" % len(seen))
        return 2 * x if len(seen) != 2 else 0.0

    outcome = check("double", {"double": double}).outcome

    assert "case 2\nfrom C 2\n" == outcome.printed
    assert "your code printed in this case: case 2" in capsys.readouterr().out


def test_prints_of_right_answers_are_cut_to_their_first_lines() -> None:
    outcome = check("double", {"double": lambda x: [print("x") for _ in range(100)] and 2 * x}).outcome

    assert "x\n" * 20 + "…" == outcome.printed


@pytest.mark.parametrize(("points", "text"), [(1 / 3, "0.33"), (1.1667, "1.17"), (2.0, "2"), (0.5, "0.5")])
def test_people_read_two_decimals_at_most(points: float, text: str) -> None:
    from edl_labs.checks.outcome_display import points_text

    assert f"{text} / 2 points" == points_text(points, 2)


def noisy(x: float) -> float:
    print("to stdout")
    print("to stderr", file=sys.stderr)
    os.write(2, b"from C\n")
    warnings.warn("old", DeprecationWarning, stacklevel=1)
    sys.displayhook(1e9)
    return 2 * x


def test_noise_changes_no_score_and_reaches_no_stderr(capfd) -> None:
    score = check("double", {"double": noisy})

    out, err = capfd.readouterr()
    assert 2.0 == score
    assert "" == err
    assert "1000000000.0" not in out
    assert "your code printed: to stdout" in out
    assert "from C" in out


def test_endless_printing_is_kept_short() -> None:
    score = check("double", {"double": lambda x: [print("x" * 1000) for _ in range(2000)] and 2 * x})

    assert len(score.outcome.printed) <= 40_000


def test_a_mistake_in_what_is_built_on_is_pointed_to(capsys) -> None:
    score = check("quadruple", {"double": lambda x: 3 * x, "quadruple": lambda x: 9 * x})

    assert 0 == score
    assert (
        'next: hint("quadruple"); but first make check("double") pass (grading uses a correct double instead of yours)'
    ) in capsys.readouterr().out


def unwritten(x: float) -> float:
    raise NotImplementedError


@pytest.mark.parametrize(("double", "is_told"), [(lambda x: 3 * x, True), (unwritten, False)])
def test_practice_that_is_built_on_is_pointed_to_once_it_is_begun(
    monkeypatch: pytest.MonkeyPatch, double: Any, is_told: bool
) -> None:
    known = lab_facts.facts(course.LAB)
    practice = replace(known.exercise("double"), optional=True, points=0.0)
    exercises = tuple(practice if one.name == "double" else one for one in known.exercises)
    monkeypatch.setattr(lab_facts, "_read", lambda *_: replace(known, exercises=exercises))

    outcome = check("quadruple", {"double": double, "quadruple": lambda x: 9 * x}).outcome

    assert is_told == ('but first make check("double") pass' in outcome.next)


@pytest.mark.parametrize("quadruple", [lambda x: "four", lambda x: 1 / 0, lambda x: None])
def test_a_mistake_of_form_is_not_put_on_what_is_built_on(quadruple: Any) -> None:
    outcome = check("quadruple", {"double": lambda x: 3 * x, "quadruple": quadruple}).outcome

    assert "first make" not in outcome.next
    assert "builds on" not in outcome.why


def test_hints_escalate_and_stay_at_the_last() -> None:
    assert ["think", "think twice", "think twice"] == [hint("double").text for _ in range(3)]
    assert "think" == hint("double", 1).text
    assert "hint 1 of 2 for double: think" == repr(hint("double", 1))
    assert "there is no exercise called 'nothing'" in hint("nothing").text


def test_progress_adds_up_and_shows_as_text_and_html() -> None:
    check("double", {"double": lambda x: 2 * x})
    check("quadruple", {})

    so_far = Progress(course.LAB)

    assert (2.0, 6) == (so_far.points, so_far.max_points)
    assert "Numbers: 2 / 6 points so far" in str(so_far)
    assert "why: 0 / 1 (marked by hand)" in str(so_far)
    assert "<b>double</b><br><small>passed, 2 / 2</small>" in so_far.html()
    assert "→ next: " in so_far.html().partition("<b>quadruple</b>")[0], "what comes next is said in words"


def test_the_map_leads_to_each_exercise_and_tells_about_how_long_the_rest_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("EDL_LABS_EXERCISES")

    lab = Progress("lab01_gpu_basics")

    assert '<a href="#3.-A-timer-that-does-not-lie" title="3. A timer that does not lie"><b>honest_timer' in lab.html()
    assert '<a href="#5.-What-does-a-measured-speed-up-mean%3F"' in lab.html(), "one that is marked by hand, too"
    assert len(lab.facts.exercises) == lab.html().count("<a href=")
    assert f", about {lab.facts.minutes} of {lab.facts.minutes} minutes left" in str(lab)


def test_minutes_left_are_those_of_the_open_exercises_or_their_shares_by_points() -> None:
    facts = replace(
        lab_facts.facts(course.LAB),
        minutes=100,
        exercises=tuple(
            ExerciseFacts(name, "code", points, ("a", "b"), minutes=minutes)
            for name, points, minutes in (("one", 1.0, 70.0), ("two", 3.0, 30.0))
        ),
    )
    plain = replace(facts, exercises=tuple(replace(one, minutes=0.0) for one in facts.exercises))
    done = {"one": Outcome("one", course.LAB, "passed", 1.0, 1.0), "two": None}

    assert ", about 30 of 100 minutes left" in progress_map.as_text(facts, done)
    assert ", about 75 of 100 minutes left" in progress_map.as_text(plain, done)


def test_a_lab_of_two_sittings_says_where_the_first_ends_and_what_is_left_of_it() -> None:
    exercises = tuple(
        ExerciseFacts(name, "code", 1.0, ("a", "b"), minutes=60.0, pause_after=name == "two")
        for name in ("one", "two", "three", "four")
    )
    facts = replace(lab_facts.facts(course.LAB), minutes=240, exercises=exercises)
    passed = {name: Outcome(name, course.LAB, "passed", 1.0, 1.0) for name in ("one", "two", "three", "four")}
    begun, halfway = {**dict.fromkeys(passed), "one": passed["one"]}, {**passed, "three": None, "four": None}

    assert "240, in 2 sittings" == facts.minutes_said
    assert ", about 180 of 240 minutes left, 60 of them in this sitting" in progress_map.as_text(facts, begun)
    assert ", about 120 of 240 minutes left\n" in progress_map.as_text(facts, halfway)
    lines = progress_map.as_text(facts, begun).splitlines()
    assert lines[3] == "  -- a good place to stop for today"
    assert 1 == progress_map.as_html(facts, begun).count("a good place to stop")


@pytest.mark.usefixtures("notebook")
def test_a_map_that_a_page_shows_follows_later_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    update = SimpleNamespace(update=lambda bundle, raw: shown.append(bundle))
    monkeypatch.setattr(progress, "_MAPS", {})
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw, display_id: shown.append(bundle) or update)

    Progress(course.LAB)._ipython_display_()
    check("double", {"double": lambda x: 2 * x})

    assert ["0 / 6 points", "2 / 6 points"] == [bundle["text/plain"][9:21] for bundle in shown]


def test_the_widget_follows_later_checks() -> None:
    widget = Progress(course.LAB).widget()
    check("double", {"double": lambda x: 2 * x})

    assert "2 / 6 points so far" in widget.value


def test_the_score_is_clamped_and_carries_its_outcome() -> None:
    score = check("double", {"double": lambda x: 2 * x})
    bundle = score._repr_mimebundle_()

    assert {"text/plain", "text/html", MIME} == set(bundle)
    assert ("double", 2.0, 1) == (bundle[MIME]["name"], bundle[MIME]["points"], bundle[MIME]["schema"])
    assert [2.0, 0.0, 0.0] == [
        Score(9, outcome=score.outcome),
        Score(-1, outcome=score.outcome),
        Score(float("nan"), outcome=score.outcome),
    ]


def test_html_shows_what_students_wrote_as_text() -> None:
    from edl_labs.checks.outcome_display import outcome_html

    def double(x: float) -> float:
        raise ValueError("<script>alert(1)</script>")

    outcome = check("double", {"double": double}).outcome

    assert "<script>" not in outcome_html(outcome)
    assert "&lt;script&gt;" in outcome_html(outcome)


def test_the_second_process_agrees_with_this_one(numbers: Path) -> None:
    with ProbeProcess(course.SOLUTION, exercises_folder=numbers) as worker:
        records = worker.collect("quadruple", [Case(given={"x": 2.5})])

    assert [{"value": 10.0}] == records


def test_the_second_process_puts_the_reference_in_place_of_a_wrong_name(numbers: Path) -> None:
    wrong = [("solve-double", "def double(x): return 3 * x"), course.SOLUTION[1]]

    with ProbeProcess(wrong, exercises_folder=numbers) as worker:
        alone = worker.collect("quadruple", [Case(given={"x": 2.5})])
        helped = worker.collect("quadruple", [Case(given={"x": 2.5})], references=[course.SOLUTION[0]])

    assert ([{"value": 22.5}], [{"value": 10.0}]) == (alone, helped)


@pytest.mark.parametrize("code", ["import os; os._exit(0)", "while True: pass", "import ctypes; ctypes.string_at(0)"])
def test_a_second_process_that_dies_or_hangs_is_an_error_in_words(numbers: Path, code: str) -> None:
    with pytest.raises(ProbeDied, match="gave no answer"):  # noqa: SIM117
        with ProbeProcess([("solve-x", code)], exercises_folder=numbers, timeout_s=3):
            pass


def test_a_failing_cell_is_named_and_later_cells_still_run(numbers: Path) -> None:
    with ProbeProcess([("first", "1/0"), *course.SOLUTION], exercises_folder=numbers) as worker:
        records = worker.collect("double", [Case(given={"x": 1.0})])

    assert "first: ZeroDivisionError: division by zero" == worker.error
    assert [{"value": {"y": 2.0}}] == records


KERNEL_CELLS = [
    """import logging, os, sys
from edl_labs import check
kept = sys.stderr
logging.basicConfig()
def double(x):
    print("to a kept stream", file=kept)
    os.write(2, b"from C")
    os.system("echo from a child >&2")
    logging.getLogger().error("logged")
    return 2 * x""",
    'check("double")',
    'print("after", file=sys.stderr)',
]


def test_in_a_real_kernel_no_noise_reaches_the_check_cell_and_stderr_works_again_after(tmp_path: Path) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in KERNEL_CELLS])

    nbclient.NotebookClient(book, timeout=60).execute(cwd=str(tmp_path))

    checked, after = (cell.outputs for cell in book.cells[1:])
    assert ["display_data", "execute_result"] == [output.output_type for output in checked]
    assert "2.0" == checked[1]["data"]["text/plain"]
    assert ["after\n"] == [output.text for output in after]


def test_a_name_that_an_earlier_cell_of_the_lab_defines_is_no_mistake(numbers: Path, capsys) -> None:
    cells = [{"cell_type": "code", "source": ["import torch\n", "y = 1"]}]
    notebook = numbers.parent / "labs" / course.LAB / f"{course.LAB}.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_text(json.dumps({"cells": cells}))
    names: dict[str, Any] = {}
    exec("def double(x): return torch.tensor(2) * x", names)

    score = check("double", names)

    assert "not attempted" == score.outcome.state
    assert (
        "what: torch is undefined: an earlier cell (it starts with `import torch`) defines it but has not run\n"
        in capsys.readouterr().out
    )
    assert "run the cells above (menu Run, Run All Above Selected Cell)" in score.outcome.next


def test_a_name_that_nobody_defines_is_the_codes_own(numbers: Path) -> None:
    names: dict[str, Any] = {}
    exec("def double(x): return torhc.tensor(2) * x", names)

    outcome = check("double", names).outcome

    assert ("wrong", "your code raised NameError: name 'torhc' is not defined") == (outcome.state, outcome.what)


def test_the_last_hint_says_so_and_another_verb_is_suggested() -> None:
    assert "hint 2 of 2 (the last) for double: think twice" == repr(hint("double", 2))
    assert "Hint 2 of 2 (the last)" in hint("double", 2)._repr_html_()
    assert 'did you mean hint("double")?' in hint("dubble").text


def test_a_hint_is_shown_at_once_in_a_notebook_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("IPython.get_ipython", lambda: object())
    monkeypatch.setattr("IPython.display.display", shown.append)

    found = hint("double")

    assert ["think"] == [one.text for one in shown]
    assert None is found._ipython_display_(), "as a cell's last line it shows nothing more"


def test_a_case_gives_its_inputs_as_values_the_failing_one_first() -> None:
    first = case("double", 1)

    check("double", {"double": lambda x: 2 * x if x == first["x"] else 3 * x})

    assert {"x"} == set(case("double"))
    assert case("double", 2) == case("double") != first
    first["x"] = None
    assert None is not case("double", 1)["x"]
    with pytest.raises(UsageError, match="double has no case 9"):
        case("double", 9)


def test_a_case_gives_what_its_exercise_makes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the check gives tensors, made from a seed, a student can use the tensors and not the seed."""
    (double,) = (one for one in load_lab(course.LAB) if one.name == "double")
    monkeypatch.setattr(double.spec, "student_inputs", lambda given: [given["x"]] * 2, raising=False)

    first, second = case("double", 1)

    assert first == second


def test_no_lab_but_the_one_that_the_notebook_names_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_facts, "built_labs", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        lab_facts.lab_of("double")

    Progress(course.LAB)

    assert 2.0 == check("double", {"double": lambda x: 2 * x})


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kernel in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "is_notebook", lambda: True)


@pytest.mark.usefixtures("notebook")
def test_points_survive_a_restart_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    check("double", {"double": lambda x: 2 * x})
    monkeypatch.setattr(progress, "_LATEST", {})  # the kernel starts again

    card = Progress(course.LAB)

    assert 2.0 == card.points
    assert "✓ double: 2 / 2 (passed, before the restart)" in str(card)
    score = check("quadruple", {"quadruple": lambda x: x})
    assert "Numbers so far: 2 / 6 points, 2 of them before the restart" in score._repr_mimebundle_()["text/html"]
    check("double", {"double": lambda x: 0})
    assert 0.0 == Progress(course.LAB).points


@pytest.mark.usefixtures("notebook")
def test_a_check_before_the_cells_above_have_run_again_takes_no_points(monkeypatch: pytest.MonkeyPatch) -> None:
    check("double", {"double": lambda x: 2 * x})
    monkeypatch.setattr(progress, "_LATEST", {})  # the kernel starts again

    score = check("double", {})

    assert "2 / 6 points, 2 of them before the restart" in score._repr_mimebundle_()["text/html"]
    assert "has not run since the kernel was started" in score.outcome.why
    assert score.outcome.next.startswith("run the cells above (menu Run, Run All Above Selected Cell)")
    check("double", {"double": lambda x: x})
    assert 0.0 == Progress(course.LAB).points, "what is wrong now counts, whatever was right before"
    check("double", {})
    assert "not attempted)" in str(Progress(course.LAB))


class Shell:
    """As much of IPython's shell as a line under a traceback needs."""

    def __init__(self, **names: Any) -> None:
        self.user_ns, self.after, self.events = names, [], self

    def register(self, event: str, call: Any) -> None:
        assert "post_run_cell" == event
        self.after.append(call)

    def run(self, code: str) -> None:
        error = None
        try:
            exec(code, self.user_ns)
        except Exception as raised:
            error = raised
        for call in self.after:
            call(SimpleNamespace(error_in_exec=error))


def test_a_name_that_is_not_there_is_followed_by_what_to_do(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.delenv("EDL_LABS_EXERCISES")
    shell = Shell(hint=hint, check=check)
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    tell_missing_names(course.LAB)
    tell_missing_names("lab01_gpu_basics")

    said = []
    for code in ("hnit('double')", "chekc('double')", "print(launches)", "zzyzx", "1 / 0", "hint"):
        shell.run(code)
        said.append(capsys.readouterr().out)

    assert ["There is no hnit; did you mean hint?\n", "There is no chekc; did you mean check?\n"] == said[:2]
    assert said[2].startswith("This cell needs launches, which is undefined now. It is defined in an earlier cell")
    assert said[2].endswith("run the cells above (menu Run, Run All Above Selected Cell), then this one again.\n")
    assert ["", "", ""] == said[3:]


@pytest.mark.usefixtures("notebook")
@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", '{"double": ["passed", 99.0, 99.0]}', '{"double": ["great", 2, 2]}', '{"double": 2}'),
        *('{"double": ["passed", "2", 2]}', '{"double": ["passed", 2, "2"]}', '{"double": [2, 2, 2]}'),
        *('{"double": ["passed", true, 2]}', '{"double": ["passed", NaN, 2]}', '{"double": [[], 2, 2]}'),
        *("[" * 100_000, '{"double": ' + "[" * 100_000, '{"quadruple": ' + "[" * 900 + "]" * 900 + "}"),
    ],
)
def test_points_that_cannot_be_believed_count_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / ".edl_labs").mkdir()
    (tmp_path / ".edl_labs" / f"{course.LAB}.json").write_text(text)

    assert 0.0 == Progress(course.LAB).points
    assert 2.0 == check("double", {"double": lambda x: 2 * x}), "and a check goes on, and is kept"
    kept = json.loads((tmp_path / ".edl_labs" / f"{course.LAB}.json").read_text())
    assert {"double": ["passed", 2.0, 2]} == kept


def test_a_picture_of_points_that_breaks_costs_no_check(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def broken(outcome: Any) -> None:
        raise RuntimeError("no place")

    monkeypatch.setattr(_check, "remember", broken)

    assert 2.0 == check("double", {"double": lambda x: 2 * x})
    assert "Could not save your progress: RuntimeError: no place. Delete .edl_labs" in capsys.readouterr().out


def test_outside_of_a_notebook_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    check("double", {"double": lambda x: 2 * x})

    assert not (tmp_path / ".edl_labs").exists()


def test_a_function_that_takes_other_arguments_is_told_by_its_own_line(numbers: Path) -> None:
    solve = 'def double(x):\n    """Twice the number x."""\n    raise NotImplementedError\n'
    notebook = numbers.parent / "labs" / course.LAB / f"{course.LAB}.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_text(json.dumps({"cells": [{"cell_type": "code", "id": "solve-double", "source": solve}]}))
    names: dict[str, Any] = {}
    exec("def double():\n    return 2", names)

    outcome = check("double", names).outcome

    assert "the arguments of double do not match the call" == outcome.what
    assert "takes 0 positional arguments but 1 was given" == outcome.why
    assert "keep the `def` line unchanged: `double(x)`: Twice the number x" == outcome.next


def test_a_result_of_another_form_is_told_by_the_functions_own_signature(numbers: Path) -> None:
    solve = 'def double(x):\n    """Twice the number x."""\n    raise NotImplementedError\n'
    notebook = numbers.parent / "labs" / course.LAB / f"{course.LAB}.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_text(json.dumps({"cells": [{"cell_type": "code", "id": "solve-double", "source": solve}]}))

    outcome = check("double", {"double": lambda x: None}).outcome

    assert outcome.what.startswith("wrong kind of answer")
    assert "return what the cell describes: `double(x)`: Twice the number x" == outcome.next
