"""Library functions as answers: found where they fit, refused where they earn, allowed with a sentence."""

from __future__ import annotations

import ast
import inspect

import pytest

from edl_labs.checks import Case
from edl_labs.course.course_folder import Course
from edl_labs.course.lab import library_calls
from edl_labs.course.lab.adapted_calls import adapters
from edl_labs.course.lab.build import build
from edl_labs.course.lab.library_calls import fits, library_functions, private_functions
from edl_labs.course.lab.proofs import ExerciseProof
from edl_labs.course.lab.prove import prove
from edl_labs.course.lab.read import read_lab
from edl_labs.errors import SourceError
from tests.unit.course.lab import kit


@pytest.fixture(autouse=True)
def without_hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    """No hostile submissions: they are another test's."""
    monkeypatch.setattr("edl_labs.course.lab.prove.hostile_cells", lambda lab: {})


def proved(course: Course) -> ExerciseProof:
    build(course)
    return prove(course, kit.LAB, seeds=2).exercises[0]


def ask_for_a_square_root(course: Course) -> None:
    """The exercise becomes one that the standard library answers."""
    kit.replace(kit.source(course), "twice_as_long_s = 4 * half_of(duration_s)", "twice_as_long_s = duration_s ** 0.5")


def test_an_exercise_that_no_library_function_answers_is_proved(course: Course) -> None:
    found = proved(course).library

    assert (True, "no library function earns points, 0 allowed") == (found.ok, found.text)


def test_a_library_function_that_earns_points_is_a_problem(course: Course) -> None:
    ask_for_a_square_root(course)

    assert "doubled_time: library: math.sqrt as doubled_time earns 2" in proved(course).problems


def test_one_that_ends_its_process_costs_the_others_nothing(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_for_a_square_root(course)
    monkeypatch.setattr(library_calls, "_BATCH", 4)

    assert "math.sqrt as doubled_time earns 2" == proved(course).library.text


def test_what_lab_toml_allows_with_a_sentence_is_no_problem(course: Course) -> None:
    ask_for_a_square_root(course)
    kit.replace(
        kit.toml(course), "points = 2\n", 'points = 2\nlibrary = { "math.sqrt" = "roots are not what is taught" }\n'
    )

    found = proved(course).library

    assert (True, "no library function earns points, 1 allowed") == (found.ok, found.text)


def test_an_allowed_function_that_earns_nothing_is_stale(course: Course) -> None:
    kit.replace(
        kit.toml(course), "points = 2\n", 'points = 2\nlibrary = { "math.sqrt" = "roots are not what is taught" }\n'
    )

    assert "lab.toml allows math.sqrt, but it earns nothing" == proved(course).library.text


def test_an_allowed_function_that_earns_behind_an_adapter_alone_is_not_stale(course: Course) -> None:
    kit.replace(kit.source(course), "twice_as_long_s = 4 * half_of(duration_s)", "twice_as_long_s = duration_s / 2")
    kit.replace(
        kit.toml(course), "points = 2\n", 'points = 2\nlibrary = { "math.frexp" = "its first item, between 1 and 2" }\n'
    )

    found = proved(course).library

    assert (True, "no library function earns points, 1 allowed") == (found.ok, found.text)


@pytest.mark.parametrize("value", ['["math.sqrt"]', '{ "math.sqrt" = "" }', '{ "math.sqrt" = 1 }'])
def test_an_allowed_function_needs_its_sentence(course: Course, value: str) -> None:
    kit.replace(kit.toml(course), "points = 2\n", f"points = 2\nlibrary = {value}\n")

    with pytest.raises(
        SourceError, match="doubled_time: `library` must be a table that has a sentence for each function"
    ):
        build(course)


@pytest.mark.parametrize(
    ("asked", "signature", "expected"),
    [
        ("def f(a, b): ...", lambda x, y: 0, True),
        ("def f(a, b): ...", lambda x: 0, False),
        ("def f(a, b=1): ...", lambda x: 0, True),
        ("def f(a, *, k): ...", lambda x, k: 0, True),
        ("def f(a, *, k): ...", lambda x, *, other: 0, False),
        ("def f(a, *, k=1): ...", lambda x: 0, True),
        ("class F:\n    def __init__(self, a): ...", lambda x: 0, True),
        ("class F:\n    def __init__(self, a): ...", lambda x, y: 0, False),
        ("class F:\n    x = 1", lambda: 0, True),
    ],
)
def test_a_function_is_tried_where_it_can_be_called(asked, signature, expected) -> None:
    assert expected == fits(inspect.signature(signature), ast.parse(asked).body[0])


def test_public_functions_are_tried_with_their_shortest_path_and_without_the_course_and_the_judge() -> None:
    found = set(library_functions())

    assert {"edl_labs.roofline.bound", "edl_labs.numerics.FloatFormat", "torch.profiler.schedule", "math.fsum"} <= found
    assert [] == [path for path in found if ".course" in path or ".judge." in path or ".cli" in path]
    assert "edl_labs.roofline._bound.bound" not in found


def test_private_functions_and_those_of_exercises_are_tried_too_and_none_twice(monkeypatch) -> None:
    monkeypatch.setattr(library_calls, "library_functions", library_functions)  # all of them
    public, private = set(library_functions()), set(private_functions())

    assert "edl_labs.virtual.cluster.collective_costs._ring" in private
    assert "edl_labs.exercises.lab08b_layouts.fused_kernels._saving" in private
    assert [] == [path for path in private if ".course" in path or ".judge." in path or ".cli" in path]
    assert not public & private


def test_private_functions_are_tried_where_arguments_are_no_plain_data_and_for_classes(course, monkeypatch) -> None:
    path = "edl_labs.anything._private"
    monkeypatch.setattr(library_calls, "private_functions", lambda: {path: inspect.signature(lambda gpu, x: 0)})
    lab = read_lab(course, kit.LAB)
    asked = ast.parse("def f(a, b): ...\nclass F:\n    def __init__(self, a, b): ...").body

    with_it, without = (library_calls._Trials(course, lab, {}, {}, behind) for behind in ([path], []))

    assert [True, True] == [(path, "") in with_it._candidates(one) for one in asked]
    assert [False, False] == [(path, "") in without._candidates(one) for one in asked]


def test_kernels_of_a_cell_have_their_source_when_calls_are_recorded(course) -> None:
    code = """
from edl_labs.virtual.tiles import jit

@jit
def kernel(x):
    pass

def doubled_time(duration_s):
    return duration_s * len(kernel.source)
"""
    asked, cases = {"doubled_time": ["doubled_time"]}, {"doubled_time": [Case(given={"x": 1.5})]}

    assert ({"doubled_time": []}, {"doubled_time": 0}) == adapters(
        [("solve", code)], asked, cases, ["math.sqrt"], exercises_folder=course.exercises
    )


@pytest.mark.timeout(60)
def test_where_no_function_fits_the_orders_of_thirteen_arguments_are_not_counted() -> None:
    asked = ast.parse(f"def kernel({', '.join('abcdefghijklm')}): ...").body[0]
    assert isinstance(asked, ast.FunctionDef)

    assert [] == list(library_calls._other_orders([], asked))
