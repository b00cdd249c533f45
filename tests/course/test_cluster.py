"""A class on several machines: the same gradebook, also when one of them is lost half-way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade.classrun import grade
from edl_labs.course.grade.cluster.backends import LocalBackend, RayBackend, SlurmBackend, make_backend
from edl_labs.course.grade.cluster.grading_units import Unit, leased_gpu, read_unit, spread, spread_class
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
    """The states of the rows after merging what units left, and the marks in the gradebook."""
    report = grade(LAB, course=Repository(course.root), seed=SEED)
    return {row.state for row in report.rows}, marks(course)


@pytest.mark.slow
def test_units_on_this_machine_leave_results_that_only_need_merging(a_class: Callable[[str, int], Course]):
    plain, course = a_class("plain", 3), a_class("units", 3)
    grade(LAB, course=Repository(plain.root), seed=SEED)
    told: list[tuple[int, int]] = []
    codes = spread_class(
        LAB, LocalBackend(2), course=Repository(course.root), seed=SEED, progress=lambda *at: told.append(at)
    )

    assert ((0,), [(1, 1)]) == (codes, told)
    assert ({"kept"}, marks(plain)) == merged(course)
    assert () == spread_class(LAB, LocalBackend(2), course=Repository(course.root), seed=SEED)


@pytest.mark.slow
def test_submitit_runs_units_as_jobs(a_class: Callable[[str, int], Course]):
    pytest.importorskip("submitit", reason="submitit is not installed: pip install 'edl-labs[cluster]'")
    course = a_class("jobs", 3)
    backend = SlurmBackend(cluster="local", logs=course.root / "jobs")
    folder = Repository(course.root)
    codes = spread(LAB, backend, course=folder, students=folder.students(LAB), seed=SEED, students_a_unit=2)

    assert (0, 0) == codes
    assert {"kept"} == merged(course)[0]


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
    plain, course = a_class("plain", 8), a_class("spread", 8)
    grade(LAB, course=Repository(plain.root), seed=SEED)
    cluster = head_node()
    try:
        second = cluster.add_node(num_cpus=1, node_ip_address="127.0.0.3")
        cluster.wait_for_nodes()
        lost = threading.Event()

        def lose(done: int, total: int) -> None:
            if not lost.is_set():
                lost.set()
                cluster.remove_node(second, allow_graceful=False)

        folder = Repository(course.root)
        backend = RayBackend(cluster.address)
        codes = spread(
            LAB, backend, course=folder, students=folder.students(LAB), seed=SEED, students_a_unit=1, progress=lose
        )
    finally:
        cluster.shutdown()

    assert lost.is_set()
    assert [0] * 8 == list(codes)
    assert ({"kept"}, marks(plain)) == merged(course)


@pytest.mark.slow  # the test above runs the same command, twice, through a backend
def test_a_unit_is_one_command_over_one_file(a_class: Callable[[str, int], Course], tmp_path: Path):
    course = a_class("one", 1)
    path = tmp_path / "unit.json"
    Unit(str(course.root), LAB, ("s00",), SEED, "unsafe", str(course.exercises)).write(path)
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    command = [sys.executable, "-m", "edl_labs.course.grade.cluster.grading_units", str(path)]
    codes = [subprocess.run(command, env=env, cwd=tmp_path, timeout=120).returncode for _ in range(2)]

    assert [0, 0] == codes
    assert 1 == len(list((course.root / "course" / "grading" / LAB / "results").glob("*.json")))


@pytest.mark.parametrize(
    "text", ["", "[]", '{"schema": 2}', '{"schema": 1, "course": "c"}', '{"schema": 1, "students": 3}']
)
def test_what_is_no_specification_is_refused_with_a_reason(text: str, tmp_path: Path):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="does not describe a unit of grading"):
        read_unit(path)


def test_specifications_of_before_gpus_still_read(tmp_path: Path):
    path = tmp_path / "unit.json"
    unit = Unit("c", LAB, ("a",), 1, "unsafe")
    unit.write(path)
    data = json.loads(path.read_text())
    del data["gpu"]
    path.write_text(json.dumps(data))

    assert unit == read_unit(path)


def test_the_leased_gpu_is_the_one_that_the_cluster_names():
    assert 3 == leased_gpu({"CUDA_VISIBLE_DEVICES": "3"})
    assert 2 == leased_gpu({"CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_GPUS": "2,3"})
    for said in ("", "GPU-8f", "none"):
        with pytest.raises(UsageError, match="no GPU was leased"):
            leased_gpu({"CUDA_VISIBLE_DEVICES": said})


def test_an_unknown_backend_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match="local, ray, slurm"):
        make_backend("cloud", jobs=1)


@pytest.mark.slow
def test_what_was_graded_without_a_gpu_does_not_stand_in_for_what_was_with_one(a_class: Callable[[str, int], Course]):
    course = a_class("gpu", 1)
    plain = grade(LAB, course=Repository(course.root), seed=SEED)
    on_gpu = grade(LAB, course=Repository(course.root), seed=SEED, on_gpu=True)

    assert ["graded", "failed"] == [plain.rows[0].state, on_gpu.rows[0].state]
    assert "none was leased here" in on_gpu.rows[0].remarks[0]


class Noting:
    """A backend that runs nothing, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.units: list[Unit] = []

    def run(self, paths: Sequence[Path]) -> Iterator[tuple[Path, int]]:
        self.units += map(read_unit, paths)
        return iter([(path, 0) for path in paths])


@pytest.mark.slow
def test_a_class_graded_as_needed_is_sent_out_again_when_it_is_asked_for_whole(a_class: Callable[[str, int], Course]):
    course = a_class("needed", 1)
    folder, sent = Repository(course.root), Noting()
    grade(LAB, course=folder, seed=SEED, all_cells=False)
    spread_class(LAB, sent, course=folder, seed=SEED, all_cells=False)

    assert [] == sent.units

    spread_class(LAB, sent, course=folder, seed=SEED, all_cells=True)

    assert [(("s00",), True)] == [(unit.students, unit.whole) for unit in sent.units]
    assert Unit("c", LAB, ("a",), 1, "unsafe").whole
