"""Shards of a class on a Ray cluster whose machines share the course's folder.

Commands go in, exit codes come out, and nothing else is ever pickled: what students wrote stays in files, and in the
sandbox that each shard itself starts.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edl_labs.checks.lab_exercises import exercises_folder
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.classrun import chosen
from edl_labs.errors import UsageError

STUDENTS_A_SHARD = 8  # the sandbox's start, 3 s of CPU, is shared by eight, and a lost machine costs no more than them
TIMEOUT_S = 6 * 3600  # eight students at 900 s each take two hours; three times that
RETRIES = 5  # of a shard whose machine was lost
_CHECK_S = 120.0  # a machine that imports the package from a slow shared disk
_MAIN = "from edl_labs.cli import main; main()"
_LOST = 255  # as ssh has it for a connection that was lost


def grade_on_ray(
    assignment: str,
    address: str,
    *,
    course: Course,
    options: Sequence[str] = (),
    only: Sequence[str] = (),
    gpus: float = 0.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[int, ...]:
    """Run the shards of a prepared class on the cluster at `address`; their exit codes, in the order of their ends.

    `auto` is the cluster of RAY_ADDRESS, or one on this machine. `options` are those of `edl-labs grade` besides; each
    shard leases `gpus`. UsageError, before anything is graded, names each machine that cannot grade, and why.
    """
    students = chosen(course.students(assignment), only)
    with _cluster(address) as ray:
        environment = _environment(course, assignment)
        _check_machines(ray, course, environment)
        count = shard_count(len(students), int(ray.cluster_resources().get("CPU", 1)))
        given = [*options, *(part for pattern in only for part in ("--only", pattern))]
        task = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES, scheduling_strategy="SPREAD")(run_command)
        verb = [sys.executable, "-P", "-c", _MAIN, "grade", assignment]
        shards = [[*verb, "--shard", f"{number}/{count}", *given] for number in range(1, count + 1)]
        left = [task.remote(command, str(course.root.resolve()), environment) for command in shards]
        codes: list[int] = []
        while left:
            (done, *_), left = ray.wait(left, num_returns=1)
            codes.append(_code(ray, done))
            progress(len(codes), count)
        return tuple(codes)


def shard_count(students: int, cores: int) -> int:
    """As many shards as the cluster has cores for, of at most `STUDENTS_A_SHARD` students each.

    >>> shard_count(4, 4), shard_count(4, 64), shard_count(100, 4)
    (4, 4, 13)
    """
    return max(min(students, cores), -(-students // STUDENTS_A_SHARD))


def run_command(command: Sequence[str], folder: str, environment: Mapping[str, str]) -> int:
    """Run a shard's command in a process of its own, wherever this is called; its exit code."""
    try:
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return _LOST
    return done.returncode


def machine_problem(python: str, mark: str, environment: Mapping[str, str], limit_s: float) -> str:
    """Why the machine that this is called on cannot grade; empty where it can."""
    if not Path(mark).is_file():
        return f"{Path(mark).parent} is not the same folder as on the other machines"
    if not Path(python).is_file():
        return f"there is no {python}"
    command = [python, "-P", "-c", "import edl_labs.course.grade.shards"]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=limit_s
    )
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return "" if done.returncode == 0 else f"{python} cannot import edl_labs: {lines[-1]}"


@contextmanager
def _cluster(address: str) -> Any:
    try:
        import ray
        from ray import cloudpickle
    except ImportError as error:
        raise UsageError("ray is not installed", why=str(error), next="run pip install 'edl-labs[cluster]'") from None
    # By value: a machine without the package can still say so.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    began = not ray.is_initialized()
    if began:
        ray.init(address=None if address == "auto" else address, log_to_driver=False, configure_logging=False)
    try:
        yield ray
    finally:
        if began:
            ray.shutdown()


def _check_machines(ray: Any, course: Course, environment: Mapping[str, str]) -> None:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    mark = course.root.resolve() / f".edl-shared-{secrets.token_hex(8)}"
    mark.write_bytes(b"")
    try:
        nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        place = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes]
        tasks = [ray.remote(num_cpus=0, scheduling_strategy=one)(machine_problem) for one in place]
        asked = [task.remote(sys.executable, str(mark), dict(environment), _CHECK_S) for task in tasks]
        said = [_said(ray, one) for one in asked]
    finally:
        mark.unlink(missing_ok=True)
    problems = [f"{node['NodeManagerAddress']}: {why}" for node, why in zip(nodes, said, strict=True) if why]
    if problems:
        then = "give each machine the same course folder, Python and packages at the same paths"
        raise UsageError("not every machine can grade", why="; ".join(problems), next=then)


def _said(ray: Any, asked: Any) -> str:
    try:
        return str(ray.get(asked, timeout=2 * _CHECK_S))
    except Exception as error:
        return f"{type(error).__name__}: {error}".strip().splitlines()[0]


def _environment(course: Course, assignment: str) -> dict[str, str]:
    """What a shard elsewhere must know of this process: where the library is, if it is not installed, and exercises."""
    found = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    own = course.assignment(assignment).own_exercises
    return found | ({"EDL_LABS_EXERCISES": str(exercises_folder().resolve())} if own else {})


def _code(ray: Any, done: Any) -> int:
    try:
        return int(ray.get(done))
    except Exception:
        return _LOST
