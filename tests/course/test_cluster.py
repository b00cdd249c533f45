"""A class on several machines: the same gradebook, also when one of them is lost half-way."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade.classrun import grade
from edl_labs.course.grade.ray_shards import grade_on_ray, machine_problem
from edl_labs.course.grade.shards import Shard, grade_shard, leased_gpu, prepare
from edl_labs.errors import UsageError
from tests.course.course_fixture import LAB, Course, solve_cell

SEED = 5
KINDS = ({}, {"area": solve_cell("area", body="return 1")}, {"halves": solve_cell("halves", body="return values")})


@pytest.fixture
def a_class(released: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], Course]:
    """Makes courses with the same class."""

    def make(name: str, students: int) -> Course:
        shutil.copytree(released.root, tmp_path / name)
        course = Course(tmp_path / name)
        monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
        for number in range(students):
            course.submit(f"s{number:02}", course.answered(KINDS[number % len(KINDS)], prose=f"So, {number}."))
        return course

    return make


def marks(course: Course) -> dict[str, dict[str, float | None]]:
    return {student: course.scores(student) for student in Repository(course.root).students(LAB)}


def merged(course: Course) -> tuple[set[str], dict[str, dict[str, float | None]]]:
    """The states of the rows after merging what shards left, and the marks in the gradebook."""
    report = grade(LAB, course=Repository(course.root))
    return {row.state for row in report.rows}, marks(course)


def books(course: Course) -> list[Path]:
    return sorted(course.root.rglob("gradebook.db"))


def test_shards_of_a_class_that_is_not_prepared_are_refused(a_class: Callable[[str, int], Course]):
    course = Repository(a_class("unprepared", 1).root)

    with pytest.raises(UsageError, match="is not prepared"):
        grade_shard(LAB, Shard(1, 2), course=course)
    assert not (course.grading(LAB) / "seed.json").exists()


@pytest.mark.slow
def test_shards_leave_results_that_only_need_merging(a_class: Callable[[str, int], Course]):
    plain, course = a_class("plain", 3), a_class("shards", 3)
    grade(LAB, course=Repository(plain.root), seed=SEED)
    before = [path.read_bytes() for path in books(course)]
    folder = Repository(course.root)
    prepare(LAB, course=folder, seed=SEED)
    reports = [grade_shard(LAB, Shard(number, 2), course=folder) for number in (1, 2, 2)]

    assert [(2, 0), (1, 0), (0, 1)] == [(one.graded, one.kept) for one in reports]
    assert [0, 0, 0] == [one.exit_code for one in reports]
    assert before == [path.read_bytes() for path in books(course)]
    assert ({"kept"}, marks(plain)) == merged(course)


@pytest.mark.slow
def test_a_shard_is_one_command(a_class: Callable[[str, int], Course]):
    course = a_class("command", 2)
    command = [sys.executable, "-c", "from edl_labs.cli import main; main()", "grade", LAB]
    refused, prepared, shard = (
        subprocess.run([*command, *options], cwd=course.root, capture_output=True, text=True, timeout=240)
        for options in (["--shard", "1/1"], ["--prepare", "--seed", "5"], ["--shard", "1/1"])
    )

    assert 2 == refused.returncode
    assert f"edl-labs grade {LAB} --prepare" in refused.stderr
    assert f"{LAB} is ready for shards, with seed 5\n" == prepared.stdout
    assert "shard 1/1: 2 graded, 0 graded before, 0 unreadable\n" == shard.stdout


def test_shards_share_a_class_without_a_rest():
    students = [f"s{number}" for number in range(10)]
    parts = [Shard(number, 4).of(students) for number in range(1, 5)]

    assert sorted(students) == sorted(student for part in parts for student in part)
    assert {2, 3} == {len(part) for part in parts}


@pytest.mark.parametrize("text", ["", "3", "0/8", "9/8", "1/0", "a/b", "-1/2"])
def test_what_names_no_shard_is_refused(text: str):
    with pytest.raises(UsageError, match="is not a shard"):
        Shard.parse(text)


def test_a_machine_says_why_it_cannot_grade(tmp_path: Path):
    mark = tmp_path / "mark"
    missing = machine_problem(sys.executable, str(mark), {}, 60.0)
    mark.write_bytes(b"")

    assert f"{tmp_path} is not the same folder as on the other machines" == missing
    assert "there is no /nowhere/python" == machine_problem("/nowhere/python", str(mark), {}, 60.0)
    assert "cannot import edl_labs" in machine_problem("/usr/bin/false", str(mark), {}, 60.0)
    assert "" == machine_problem(sys.executable, str(mark), {}, 60.0)


def head_node() -> Any:
    """A Ray cluster of one node. Ray gives a node 30 s to start, which a busy machine may need twice."""
    from ray.cluster_utils import Cluster

    settings = {"num_cpus": 1, "node_ip_address": "127.0.0.2", "include_dashboard": False}
    try:
        return Cluster(initialize_head=True, head_node_args=settings)
    except Exception:
        return Cluster(initialize_head=True, head_node_args=settings)


@pytest.mark.slow
def test_a_ray_cluster_that_loses_a_node_gives_the_same_gradebook(
    a_class: Callable[[str, int], Course], monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("ray", reason="ray is not installed: pip install 'edl-labs[cluster]'")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    plain, course = a_class("plain", 4), a_class("spread", 4)
    grade(LAB, course=Repository(plain.root), seed=SEED)
    folder = Repository(course.root)
    prepare(LAB, course=folder, seed=SEED)
    cluster = head_node()
    try:
        second = cluster.add_node(num_cpus=1, node_ip_address="127.0.0.3")
        cluster.wait_for_nodes()
        lost = threading.Event()

        def lose(done: int, total: int) -> None:
            if not lost.is_set():
                lost.set()
                cluster.remove_node(second, allow_graceful=False)

        codes = grade_on_ray(LAB, cluster.address, course=folder, progress=lose)
    finally:
        cluster.shutdown()

    assert lost.is_set()
    assert [0, 0] == list(codes)
    assert ({"kept"}, marks(plain)) == merged(course)


def test_the_leased_gpu_is_the_one_that_the_cluster_names():
    assert 3 == leased_gpu({"CUDA_VISIBLE_DEVICES": "3"})
    assert 2 == leased_gpu({"CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_GPUS": "2,3"})
    for said in ("", "GPU-8f", "none"):
        with pytest.raises(UsageError, match="no GPU was leased"):
            leased_gpu({"CUDA_VISIBLE_DEVICES": said})


@pytest.mark.slow
def test_what_was_graded_without_a_gpu_does_not_stand_in_for_what_was_with_one(a_class: Callable[[str, int], Course]):
    course = a_class("gpu", 1)
    plain = grade(LAB, course=Repository(course.root), seed=SEED)
    on_gpu = grade(LAB, course=Repository(course.root), seed=SEED, on_gpu=True)

    assert ["graded", "failed"] == [plain.rows[0].state, on_gpu.rows[0].state]
    assert "this process has no GPU" in on_gpu.rows[0].remarks[0]


@pytest.mark.slow
def test_a_class_graded_as_declared_is_graded_again_when_all_cells_are_asked_for(a_class: Callable[[str, int], Course]):
    folder = Repository(a_class("declared", 1).root)
    grade(LAB, course=folder, seed=SEED, all_cells=False)
    shards = [grade_shard(LAB, Shard(1, 1), course=folder, all_cells=all_cells) for all_cells in (False, True)]

    assert [(0, 1), (1, 0)] == [(one.graded, one.kept) for one in shards]
