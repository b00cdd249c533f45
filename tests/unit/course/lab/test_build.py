"""The build: everything generated, byte for byte the same each time, and a diff of what is stale."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from traitlets.config import Config

from edl_labs.checks import plain_data
from edl_labs.checks.known_mistakes import KnownMistake, digests
from edl_labs.checks.lab_facts import facts
from edl_labs.checks.spec import cases_of
from edl_labs.course.assignment import load_assignment
from edl_labs.course.course_folder import Course
from edl_labs.course.lab import build as build_module
from edl_labs.course.lab.build import build
from edl_labs.course.lab.goldens import alike, as_committed, rounded
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.prove import prove
from edl_labs.course.own_course import configure
from edl_labs.errors import EdlError
from tests.sampling import few
from tests.unit.course.lab import kit

NOTEBOOK, TABLE = f"labs/{kit.LAB}/{kit.LAB}.ipynb", "labs/README.md"
PROBED = 'student.doubled_time(given["x"])'
GOLDENS = f"edl_labs/exercises/goldens/{kit.LAB}.json"


def generated(course: Course) -> dict[str, bytes]:
    """Every generated file and its bytes."""
    places = (course.labs, course.goldens, course.source)
    return {course.shown(p): p.read_bytes() for place in places for p in sorted(place.rglob("*")) if p.is_file()}


def test_assignments_of_nbgraders_form_are_left_alone(course: Course) -> None:
    folder = course.root / "assignments" / "ps1"
    folder.mkdir(parents=True)
    (folder / "problem1.ipynb").write_text("{}")
    (folder / "data.csv").write_text("1")
    (course.labs / "ps1").mkdir(parents=True)
    (course.labs / "ps1" / "ps1.ipynb").write_text("released by nbgrader")
    build(course)
    build(course)

    assert ["data.csv", "problem1.ipynb"] == sorted(path.name for path in (course.source / "ps1").iterdir())
    assert "released by nbgrader" == (course.labs / "ps1" / "ps1.ipynb").read_text()
    assert build(course, check=True).ok


def test_nbgraders_generate_assignment_writes_the_same_bytes(built: Course) -> None:
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory

    config = Config()
    configure(config, str(built.root / "nbgrader_config.py"))
    config.CourseDirectory.assignment_id = kit.LAB
    config.GenerateAssignment.no_database = True
    config.SaveCells.enabled = False
    config.GenerateAssignment.force = True
    made = (built.root / NOTEBOOK).read_bytes()
    (built.root / NOTEBOOK).write_bytes(b"{}")
    GenerateAssignment(coursedir=CourseDirectory(config=config), config=config).start()

    assert made == (built.root / NOTEBOOK).read_bytes()


def test_a_build_makes_notebooks_goldens_and_the_table(course: Course) -> None:
    steps: list[tuple[int, int]] = []

    report = build(course, progress=lambda done, total, text: steps.append((done, total)))

    assert {NOTEBOOK, GOLDENS, TABLE, f"build/source/{kit.LAB}/{kit.LAB}.ipynb"} == set(generated(course))
    assert {NOTEBOOK, GOLDENS, TABLE} == set(report.changed)
    assert [(1, 4), (2, 4), (3, 4), (4, 4)] == steps


@pytest.mark.slow
def test_a_rebuild_changes_no_byte_not_even_in_another_process(built: Course) -> None:
    before = generated(built)
    code = (
        "import sys; from edl_labs.course.course_folder import Course; from edl_labs.course.lab.build import build;"
        "print(build(Course(sys.argv[1])).changed)"
    )

    env = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code, built.root], env=env, capture_output=True, text=True, check=True)

    assert "()" == done.stdout.strip()
    assert before == generated(built)


def test_check_writes_nothing_and_finds_nothing_stale_after_a_build(built: Course) -> None:
    report = build(built, check=True)

    assert (True, (), "") == (report.ok, report.changed, report.diff)


def test_check_shows_a_stale_notebook_as_a_diff(built: Course) -> None:
    kit.replace(kit.source(built), "print(size)", "print(label)")
    before = generated(built)

    report = build(built, check=True)

    assert (False, before) == (report.ok, generated(built))
    assert (NOTEBOOK,) == report.changed
    assert f"--- a/{NOTEBOOK}\n+++ b/{NOTEBOOK}\n" in report.diff
    assert '-    "print(size)"\n+    "print(label)"\n' in report.diff


@pytest.mark.parametrize("name", [NOTEBOOK, GOLDENS, TABLE])
def test_check_shows_what_is_missing(built: Course, name: str) -> None:
    (built.root / name).unlink()

    report = build(built, check=True)

    assert (False, (name,)) == (report.ok, report.changed)
    assert f"--- /dev/null\n+++ b/{name}\n" in report.diff


@pytest.mark.parametrize("name", ["labs/lab99_gone/lab99_gone.ipynb", "edl_labs/exercises/goldens/lab99_gone.json"])
def test_check_shows_what_no_lab_makes_any_more_and_a_build_removes_it(built: Course, name: str) -> None:
    orphan = built.root / name
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_text("{}\n")

    report = build(built, check=True)

    assert (False, (name,)) == (report.ok, report.changed)
    assert f"--- a/{name}\n+++ /dev/null\n" in report.diff
    assert (name,) == build(built).changed
    assert not orphan.exists()


def test_a_file_of_somebody_in_labs_is_neither_kept_silently_nor_removed(built: Course) -> None:
    notes = built.labs / kit.LAB / "notes.txt"
    notes.write_text("mine")

    for check in (True, False):
        with pytest.raises(EdlError, match=f"labs/{kit.LAB}/notes.txt does not come from any lab"):
            build(built, check=check)
    assert "mine" == notes.read_text()


@pytest.mark.parametrize("place", ["labs", f"labs/{kit.LAB}", f"solutions/{kit.LAB}"])
def test_what_a_check_left_beside_a_notebook_changes_no_build_and_stays(built: Course, place: str) -> None:
    points = built.root / place / ".edl_labs" / f"{kit.LAB}.json"
    points.parent.mkdir()
    points.write_text("{}")

    assert () == build(built, check=True).changed == build(built).changed
    assert points.is_file()


def test_one_check_in_a_released_notebook_does_not_make_it_another_assignment(built: Course, monkeypatch) -> None:
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(built.exercises))
    release = built.labs / kit.LAB
    (release / "runs.csv").write_text("1,2")
    before = load_assignment(kit.LAB, source=built.source / kit.LAB, release=release)
    for name in (".edl_labs/points.json", ".ipynb_checkpoints/x.txt", "__pycache__/runs.pyc"):
        (release / name).parent.mkdir()
        (release / name).write_text("{}")

    after = load_assignment(kit.LAB, source=built.source / kit.LAB, release=release)

    assert (before.files, before.digest) == (after.files, after.digest)
    assert b"1,2" == after.files["runs.csv"]


def test_a_source_notebook_without_the_releases_roles_is_remarked_on(built: Course, monkeypatch) -> None:
    """Grading reads roles from the source alone, and would run all cells, or skip one that is given."""
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(built.exercises))
    source = built.source / kit.LAB / f"{kit.LAB}.ipynb"

    def remarks() -> tuple[str, ...]:
        return load_assignment(kit.LAB, source=source.parent, release=built.labs / kit.LAB).remarks

    assert () == remarks()

    source.write_text(source.read_text().replace('"edl_labs": {\n     "role": "given"\n    }', ""))

    assert [True] == ["lacks 1 role of cells" in line and "edl-labs build" in line for line in remarks()]


def test_stale_points_are_found_in_notebook_goldens_and_table(built: Course) -> None:
    kit.replace(kit.toml(built), "points = 2", "points = 4")

    assert {NOTEBOOK, GOLDENS, TABLE} == set(build(built, check=True).changed)


def test_a_data_file_that_lab_toml_names_is_released_and_no_other_is(course: Course) -> None:
    (kit.source(course).parent / "runs.csv").write_text("1,2\n")
    kit.replace(kit.toml(course), 'device = "any"', 'device = "any"\ndata = ["runs.csv"]')

    build(course)

    names = {p.name for p in course.labs.rglob("*") if p.is_file()}
    assert {"README.md", f"{kit.LAB}.ipynb", "runs.csv"} == names


def test_the_goldens_hold_public_facts_and_what_the_solution_gives(built: Course) -> None:
    data = json.loads((built.goldens / f"{kit.LAB}.json").read_text())

    golden = data["goldens"]["doubled_time"]
    cases, wants = cases_of(plain_data.from_json(golden["cases"])), plain_data.from_json(golden["wants"])
    assert (2, "Doubling", 30) == (data["schema"], data["title"], data["minutes"])
    assert [("doubled_time", "code", 2), ("why_twice", "explain", 3)] == [
        (e["name"], e["kind"], e["points"]) for e in data["exercises"]
    ]
    assert ["doubled_time"] == list(data["goldens"])
    assert [rounded(2 * case["x"], 9) for case in cases] == wants


def test_goldens_hold_no_rubric_and_no_model_answer(built: Course) -> None:
    text = (built.goldens / f"{kit.LAB}.json").read_text()

    assert "allocator" not in text


def nudged(built: Course, nudge: Callable[[float], object]) -> str:
    """The committed goldens with another number in them; what they hold now."""
    path = built.goldens / f"{kit.LAB}.json"
    data = json.loads(path.read_text())
    entry = data["goldens"]["doubled_time"]["cases"][0]["d"][0][1]["d"][0]  # given, then x
    entry[1] = nudge(entry[1])
    path.write_text(json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return path.read_text()


def test_goldens_of_another_processor_are_not_stale_and_a_build_keeps_their_bytes(built: Course) -> None:
    committed = nudged(built, lambda value: math.nextafter(value, math.inf))

    reports = build(built, check=True), build(built)

    assert [(True, ()), (True, ())] == [(report.ok, report.changed) for report in reports]
    assert committed == (built.goldens / f"{kit.LAB}.json").read_text()


@pytest.mark.parametrize(
    "nudge", few([lambda v: v * (1 + 1e-5), str, lambda v: [v], lambda v: -v, int, lambda v: None], quick=2)
)
def test_goldens_that_differ_in_more_than_last_digits_are_stale(
    built: Course, nudge: Callable[[float], object]
) -> None:
    before = (built.goldens / f"{kit.LAB}.json").read_text()
    nudged(built, nudge)

    assert (GOLDENS,) == build(built, check=True).changed
    assert (GOLDENS,) == build(built).changed
    assert before == (built.goldens / f"{kit.LAB}.json").read_text()


def test_goldens_that_are_not_the_builds_are_stale(built: Course) -> None:
    for text in ("{}", "no JSON", '{"goldens": {"doubled_time": {"seed": 1, "cases": 7}}}'):
        (built.goldens / f"{kit.LAB}.json").write_text(text)

        assert (GOLDENS,) == build(built, check=True).changed


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_arrays_are_alike_where_their_numbers_are(dtype: str) -> None:
    values = numpy.array([0.0, 0.3, numpy.inf, numpy.nan, -1e4], dtype=dtype)
    last, far, zero = values.copy(), values.copy(), values.copy()
    last[[1, 4]] *= 1 + numpy.finfo(dtype).eps
    far[1] *= 1 + 1e-5
    zero[0] = 1e-30

    assert alike(values, last)
    assert [False] * 4 == [alike(values, other) for other in (far, zero, values[1:], values.real.astype("float16"))]


def test_sums_that_cancel_are_alike_relative_to_the_largest_value_of_their_vector() -> None:
    vector = [float(number) for number in range(-8, 8)]
    near = [one + 4e-6 for one in vector]
    far = [one + 4e-5 for one in vector]

    assert alike(vector, near)
    assert alike(numpy.array(vector), numpy.array(near))
    assert not alike(vector, far)
    assert not alike(vector[:9], near[:9])
    assert not alike([*vector, 1], [*near, 2])


def test_arrays_and_tensors_of_other_dtypes_or_shapes_are_not_alike() -> None:
    import torch

    half, whole = torch.tensor([1.0, 3e38], dtype=torch.bfloat16), torch.tensor([1, 2])

    assert alike(half, half.clone())
    assert alike(half.float(), half.float() * (1 + 2**-23))
    assert not alike(half.float(), half.float() * (1 + 1e-5))
    assert not alike(half, half.float())
    assert not alike(half, half.reshape(2, 1))
    assert not alike(whole, whole + 1)
    assert not alike(whole, whole.numpy())
    assert not alike(numpy.arange(3), numpy.arange(1, 4))
    assert alike(plain_data.from_json(plain_data.to_json([half])), [half])


def test_structure_order_and_signs_of_zero_count() -> None:
    pairs = [({"a": 1, "b": 2}, {"b": 2, "a": 1}), ([1.0], [1.0, 1.0]), (0.0, -0.0), (True, 1), (1, 1.0), ("a", "b")]

    assert [False] * len(pairs) == [alike(old, new) for old, new in pairs]
    assert alike({"a": [float("nan"), None, True, "x", 7, -0.0]}, {"a": [float("nan"), None, True, "x", 7, -0.0]})


def test_a_mistakes_digest_of_floats_stays_as_committed_and_another_does_not() -> None:
    def made(sums: list[float], count: int, why: str = "one too many") -> tuple[KnownMistake, list[dict[str, object]]]:
        records: list[dict[str, object]] = [{"value": {"count": count, "sums": sums}}]
        return KnownMistake("Wrong.", why, "count", digests(records)), records

    old, _ = made([0.1234565], 3)
    near, here = made([0.1234565001], 3)
    counted, there = made([0.1234565001], 4)

    assert old.digests != near.digests
    assert old == as_committed(near, old, here)
    assert (counted.digests[0][0], old.digests[0][1]) == as_committed(counted, old, there).digests[0]
    assert near == as_committed(near, replace(old, why="other"), here)
    assert near == as_committed(near, replace(old, digests=()), here)
    assert near == as_committed(near, replace(old, code="changed"), here)


def test_the_library_reads_the_goldens_of_a_course(built: Course) -> None:
    from edl_labs.checks.lab_facts import facts

    with built.activated():
        found = facts(kit.LAB)

    assert 5 == found.points
    assert 4 == len(found.golden("doubled_time")[1])


def test_floats_are_rounded_wherever_they_are() -> None:
    import torch

    third = 1 / 3
    value = {"a": [third, 7, "x", None, True], "b": numpy.array([third, float("nan")]), "c": torch.tensor([third])}

    got = rounded(value, 3)

    assert [0.333, 7, "x", None, True] == got["a"]
    assert 0.333 == got["b"][0]
    assert numpy.isnan(got["b"][1])
    assert abs(0.333 - got["c"].item()) < 1e-7
    assert torch.float32 == got["c"].dtype


def test_a_solution_that_does_not_run_is_named_and_nothing_is_written(course: Course) -> None:
    kit.replace(kit.source(course), "label = ", "other = undefined_name\nlabel = ")
    kit.toml(course).write_text(kit.TOML.replace("size = ", "other = 1\nsize = "))

    with pytest.raises(EdlError, match=f"{kit.LAB}: the solution does not run") as caught:
        build(course)

    assert "parameters: NameError" in caught.value.why
    assert {} == generated(course)


def test_a_probe_that_fails_on_the_solution_is_named(course: Course) -> None:
    kit.replace(course.exercises / f"{kit.LAB}.py", PROBED, f"{PROBED}.nothing")

    with pytest.raises(EdlError, match="the probe of doubled_time failed on the solution, case 0"):
        build(course)


def test_a_comparison_stricter_than_the_goldens_digits_is_refused(course: Course) -> None:
    kit.replace(course.exercises / f"{kit.LAB}.py", "if not close(got, want):", "if not close(got, want, rtol=1e-12):")

    with pytest.raises(EdlError, match="doubled_time: the solution fails its own golden, case 0") as caught:
        build(course)

    assert "keeps only 9 digits" in caught.value.why
    assert "1e-7 or more" in caught.value.next
    assert {} == generated(course)


def test_with_as_many_digits_as_it_compares_it_builds(course: Course) -> None:
    module = course.exercises / f"{kit.LAB}.py"
    kit.replace(module, "if not close(got, want):", "if not close(got, want, rtol=1e-12):")
    kit.replace(module, '@exercise("doubled_time")', '@exercise("doubled_time", digits=15)')

    assert build(course).changed


@pytest.mark.parametrize(
    ("old", "new", "what", "why"),
    [
        (
            "float(x) for x",
            "1 / 0 for x",
            "cases() raised ZeroDivisionError",
            "division by zero (lab80_doubling.py, line",
        ),
        (
            'if close(got, case["x"])',
            'if case["s"]',
            "compare() of doubled_time raised KeyError",
            "lab80_doubling.py, line",
        ),
        (
            "float(x) for x",
            "float(x) + numpy.random.random() for x",
            "returned different cases for the same seed",
            "global",
        ),
        (
            "float(x) for x",
            "float(x) + time.perf_counter() for x",
            "returned different cases for the same seed",
            "a clock",
        ),
    ],
)
def test_what_an_author_forgot_in_a_module_is_told_with_its_line(
    course: Course, old: str, new: str, what: str, why: str
) -> None:
    module = course.exercises / f"{kit.LAB}.py"
    kit.replace(module, old, new)
    kit.replace(module, "from edl_labs.checks", "import time\n\nimport numpy\n\nfrom edl_labs.checks")

    with pytest.raises(EdlError) as caught:
        build(course)

    assert what in caught.value.what
    assert why in caught.value.why
    assert {} == generated(course)


def test_the_sources_of_a_lab_that_is_gone_are_removed(built: Course) -> None:
    old = built.source / "lab99_gone" / "lab99_gone.ipynb"
    old.parent.mkdir()
    old.write_text("{}")

    build(built)

    assert not old.parent.exists()


def test_the_table_lists_title_minutes_points_exercises_and_device(built: Course) -> None:
    lines = (built.labs / "README.md").read_text().splitlines()
    row = next(line for line in lines if line.startswith(f"| [{kit.LAB}]"))

    assert f"| [{kit.LAB}]({kit.LAB}/{kit.LAB}.ipynb) | Doubling | 30 | 5 | `doubled_time`, `why_twice` | any |" == row


def test_building_leaves_directory_and_environment_as_they_were(course: Course) -> None:
    before = (Path.cwd(), os.environ.get("EDL_LABS_EXERCISES"))

    build(course)

    assert before == (Path.cwd(), os.environ.get("EDL_LABS_EXERCISES"))


def test_what_has_not_changed_is_not_built_again_and_what_has_is(
    built: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def goldens(course: Course, lab: Lab, *, locked: dict[str, str]) -> str:
        made.append(lab.name)
        return built_before

    golden = built.goldens / f"{kit.LAB}.json"
    built_before = golden.read_text()
    monkeypatch.setattr(build_module, "goldens", goldens)
    build(built)
    build(built)

    assert [] == made
    golden.write_text("{}")
    build(built)
    kit.source(built).write_text(kit.source(built).read_text() + "\n# %%\nprint(label)\n")
    build(built)
    module = built.exercise_module(kit.LAB)
    module.write_text(module.read_text() + "# mended\n")
    build(built)
    assert [kit.LAB] * 3 == made
    assert built_before == golden.read_text()
    build(built, check=True)
    assert [kit.LAB] * 4 == made


def test_what_students_install_is_renewed_in_every_lab_and_makes_no_other_release(built: Course) -> None:
    before = json.loads((built.root / NOTEBOOK).read_text())["metadata"]["edl_labs"]["release"]
    (built.root / "course.toml").write_text('[course]\ninstall = "https://example.org/w.whl"\n')
    report = build(built, only=("lab99_another",))
    after = json.loads((built.root / NOTEBOOK).read_text())

    assert NOTEBOOK in report.changed
    assert "https://example.org/w.whl" in json.dumps(after["cells"])
    assert before == after["metadata"]["edl_labs"]["release"]


RECOGNIZED = """\
# %% mistake="three_times"
# told: that is three times
# why: three runs were added up
# next: add up two
def doubled_time(duration_s):
    return 3 * duration_s


# %% mistake="same"
# told: the duration came back as it was
def doubled_time(duration_s):
    return duration_s
"""


def test_goldens_have_the_mistakes_that_are_recognized_by_their_answers(course: Course) -> None:
    kit.mistakes(course).write_text(RECOGNIZED)
    build(course)
    with course.activated():
        (one,) = facts(kit.LAB).known_mistakes("doubled_time")
        cases, _ = facts(kit.LAB).golden("doubled_time")

    assert ("that is three times", "three runs were added up", "add up two") == (one.what, one.why, one.next)
    assert digests([{"value": 3 * case["x"]} for case in cases]) == one.digests
    proof = prove(course, kit.LAB, exercises=["doubled_time"], seeds=2)
    assert [] == [found.text for found in proof.exercises[0].mistakes if not found.ok]


@pytest.mark.parametrize("part", ["is_public(self, case)", "public_want(self, case, want)"])
def test_a_digest_of_few_answers_is_refused(course: Course, part: str) -> None:
    kit.mistakes(course).write_text(RECOGNIZED)
    module = course.exercises / f"{kit.LAB}.py"
    module.write_text(f"{module.read_text()}\n    def {part}:\n        return True\n")

    with pytest.raises(EdlError) as caught:
        build(course)

    assert "cannot be recognized by its answers" in str(caught.value)
    assert "lines `# why:` and `# next:`" in caught.value.next
