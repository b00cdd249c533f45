"""The typed contract: a case has two halves of which one travels, and what is of an older contract is refused."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

import numpy
import pytest

from edl_labs.checks import Case, Exercise, RegisteredExercise, exercise, plain_data
from edl_labs.checks._exercise import FORMER_HOOKS
from edl_labs.checks.spec import cases_of, copied_cases, given_halves, plain_cases
from edl_labs.errors import EdlError, PlainDataError

AUTHORING = Path(__file__).resolve().parents[3] / "docs" / "authoring.md"
MOST_LINES = 8  # of an example, without its mark; five, and three where it takes a setting and a method
CASE = Case(given={"x": [1, 2]}, hidden={"label": "odd"})


def test_the_judge_reads_both_halves_as_one_mapping() -> None:
    assert ({"x": [1, 2], "label": "odd"}, 2, "odd", None) == (
        *(dict(CASE), len(CASE), CASE["label"]),
        CASE.get("seed"),
    )
    with pytest.raises(KeyError, match="seed"):
        CASE["seed"]


def test_a_case_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        CASE.given = {}  # type: ignore[misc]


def test_a_key_in_both_halves_is_named() -> None:
    with pytest.raises(EdlError, match="'label' is in both halves of a case"):
        Case(given={"label": 1}, hidden={"label": 2})


def test_entries_are_split_by_name() -> None:
    assert CASE == Case.split({"label": "odd", "x": [1, 2]}, "label", "slips")
    assert {"x": [1, 2]} == Case.split({"label": "odd", "x": [1, 2]}, "label").given


def test_only_the_given_half_can_be_sent() -> None:
    assert [{"x": [1, 2]}] == given_halves([CASE])
    for whole in (CASE, [CASE], {"case": CASE}):
        with pytest.raises(PlainDataError, match="of type Case"):
            plain_data.encode(whole)


def test_both_halves_come_back_from_what_the_judge_keeps() -> None:
    kept = cases_of(plain_data.decode(plain_data.encode(plain_cases([CASE]))))

    assert (dict(CASE.given), dict(CASE.hidden)) == (kept[0].given, kept[0].hidden)


def test_a_copy_shares_nothing() -> None:
    (copied,) = copied_cases([CASE])

    copied["x"].append(3)

    assert {"x": [1, 2], "label": "odd"} == dict(CASE)


class Complete(Exercise):
    """Its two abstract parts alone."""

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        return given

    def compare(self, case: Case, got: Any, want: Any) -> None: ...


def test_by_default_a_student_sees_what_their_code_is_given() -> None:
    spec = Complete()

    assert ("x = [1, 2]", {"x": [1, 2]}) == (spec.format_case(CASE), spec.student_inputs(CASE))


@pytest.mark.parametrize(
    "drawn", [[], [{"x": 1}], [CASE, {"x": 1}], (CASE,), None], ids=["none", "dicts", "mixed", "a tuple", "None"]
)
def test_drawing_anything_but_cases_is_refused(drawn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Complete, "cases", lambda self, rng: drawn)

    with pytest.raises(EdlError, match="did not return a list of cases") as refused:
        RegisteredExercise("ex", "lab90_x", Complete()).draw_cases(1)

    assert "Case(given={...}, hidden={...})" in refused.value.next


def test_drawn_cases_are_plain_data_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Complete, "cases", lambda self, rng: [Case(given={"x": numpy.float64(1.5), "pair": (1, 2)})])

    (case,) = RegisteredExercise("ex", "lab90_x", Complete()).draw_cases(1)

    assert (float, [1, 2]) == (type(case["x"]), case["pair"])


def refusal(cls: type) -> EdlError:
    with pytest.raises(EdlError) as refused:
        exercise("of_no_lab")(cls)
    return refused.value


def test_a_class_without_the_base_is_refused() -> None:
    class Old:
        def probe(self, student: Any, case: Any) -> Any: ...

        def compare(self, case: Any, got: Any, want: Any) -> None: ...

    error = refusal(Old)

    assert "exercise of_no_lab: Old is not a subclass of Exercise" == error.what
    assert "class Old(Exercise)" in error.next


@pytest.mark.parametrize("name", sorted(FORMER_HOOKS))
def test_a_part_under_its_former_name_is_refused(name: str) -> None:
    error = refusal(type("Old", (Complete,), {name: lambda self: None}))

    assert f"exercise of_no_lab defines {name}, the former name of {FORMER_HOOKS[name]}" == error.what
    assert "used to call an optional part" in error.why


@pytest.mark.parametrize("name", ["studentblock_inputs", "format_anwser", "student_input", "format_cases"])
def test_a_part_that_is_misspelt_is_refused(name: str) -> None:
    error = refusal(type("Misspelt", (Complete,), {name: lambda self, *_: None}))

    assert f"exercise of_no_lab defines {name}, which no other part of the class uses" == error.what


def nearly_a_part(name: str) -> type:
    """A class with a helper of this name, which nothing uses."""
    return type("Helped", (Complete,), {name: lambda self, *_: None})


def calling(name: str) -> Any:
    """A `compare` that calls the helper of this name in a function of its own."""
    made: dict[str, Any] = {}
    exec(f"def compare(self, case, got, want):\n    return [self.{name}(one) for one in got]", made)
    return made["compare"]


@pytest.mark.parametrize("name", ["case", "answer", "combined", "diagnose_case"])
@pytest.mark.parametrize("kind", [lambda one: one, property, classmethod], ids=["method", "property", "classmethod"])
def test_a_helper_whose_name_is_nearly_a_part_is_refused_only_where_nothing_uses_it(
    name: str, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edl_labs.checks._exercise.REGISTERED", {})
    helped = nearly_a_part(name)

    assert f"defines {name}, which no other part" in refusal(helped).what
    assert f"defines {name}, which no other part" in refusal(type("Own", (Complete,), {name: calling(name)})).what
    called = type("Called", (helped,), {"compare": calling(name)})
    assert called is exercise("of_no_lab")(called)
    called = type("Called", (helped,), {"checked": kind(calling(name))})
    assert called is exercise("of_no_lab")(called)


def test_former_names_lead_to_parts_that_there_are() -> None:
    assert set(FORMER_HOOKS.values()) <= set(vars(Exercise))
    assert not FORMER_HOOKS.keys() & set(vars(Exercise))


@pytest.mark.parametrize(("left", "missing"), [("probe", "compare"), ("compare", "probe")])
def test_what_an_exercise_needs_is_asked_for(left: str, missing: str) -> None:
    error = refusal(type("Half", (Exercise,), {left: lambda self, *_: None}))

    assert f"exercise of_no_lab has no {missing}" == error.what


def test_an_exercise_that_does_not_declare_its_answers_is_refused() -> None:
    error = refusal(type("Silent", (Complete,), {"answers": Exercise.answers}))

    assert "exercise of_no_lab does not declare its answers" == error.what
    assert 'answers = "all"' in error.next


def written_parts() -> dict[str, list[ast.stmt]]:
    """The parts that docs/authoring.md lists, each with what its examples define."""
    section = AUTHORING.read_text(encoding="utf-8").partition("## The parts of an exercise\n")[2].partition("\n## ")[0]
    parts = {part.partition("\n")[0]: part for part in section.split("\n### ")[1:]}
    examples = {name: re.findall(r"```python\n# a fragment\n(.*?)```", text, re.DOTALL) for name, text in parts.items()}
    assert all(one.count("\n") <= MOST_LINES for every in examples.values() for one in every)
    return {name: [node for one in every for node in ast.parse(one).body] for name, every in examples.items()}


def test_every_part_is_documented_with_an_example_that_has_its_parameters() -> None:
    declared = {name: part for name, part in vars(Exercise).items() if name[0] != "_"}
    written = written_parts()

    assert declared.keys() == written.keys()
    for name, part in declared.items():
        if callable(part):
            example = next(node for node in written[name] if isinstance(node, ast.FunctionDef) and node.name == name)
            assert [*inspect.signature(part).parameters] == [one.arg for one in example.args.args]
        else:
            assert name in {ast.unparse(node.targets[0]) for node in written[name] if isinstance(node, ast.Assign)}
