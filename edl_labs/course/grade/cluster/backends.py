"""Where units run: processes here, a Ray cluster, or Slurm. Paths go in and exit codes come out; nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Protocol

from edl_labs.errors import UsageError

KINDS = ("local", "ray", "slurm")
TIMEOUT_S = 6 * 3600  # eight students at 900 s each take two hours; three times that
_LOST = 255  # as ssh has it for a connection that was lost


class Backend(Protocol):
    """Runs units; yields each specification with its exit code as it ends, in any order.

    A unit whose machine was lost is tried elsewhere; one that cannot be run has a code other than 0.
    """

    def run(self, specifications: Sequence[Path]) -> Iterator[tuple[Path, int]]:
        """Run all of them."""
        ...


def make_backend(kind: str, *, jobs: int, address: str = "", partition: str = "", gpus: float = 0.0) -> Backend:
    """The backend called `kind`. `gpus` is leased for each unit; a share of one lets units take turns on it."""
    makers: dict[str, Callable[[], Backend]] = {
        "local": lambda: LocalBackend(jobs),
        "ray": lambda: RayBackend(address, gpus=gpus),
        "slurm": lambda: SlurmBackend(partition, gpus=gpus),
    }
    if kind not in makers:
        raise UsageError(f"there is no backend {kind!r}", next=f"choose one of {', '.join(KINDS)}")
    return makers[kind]()


def run_command(specification: str, python: str, environment: dict[str, str]) -> int:
    """Run one unit's command in a process of its own, wherever this is called; its exit code."""
    command = [python, "-m", "edl_labs.course.grade.cluster.grading_units", specification]
    try:
        done = subprocess.run(command, env={**os.environ, **environment}, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return _LOST
    return done.returncode


class LocalBackend:
    """Processes on this machine, `jobs` at a time."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def run(self, specifications: Sequence[Path]) -> Iterator[tuple[Path, int]]:
        """Run all of them."""
        with ThreadPoolExecutor(self.jobs) as pool:
            running = {pool.submit(run_command, str(s), sys.executable, _environment()): s for s in specifications}
            for done in as_completed(running):
                yield running[done], done.result()


class RayBackend:
    """A Ray cluster whose machines share the course's folder. `address` empty: the one of RAY_ADDRESS, or a local one.

    Only the path of a specification and an exit code are ever pickled: what students wrote stays in files, behind the
    sandbox that the unit itself starts.
    """

    def __init__(self, address: str = "", *, gpus: float = 0.0, retries: int = 5) -> None:
        self.address, self.gpus, self.retries = address, gpus, retries

    def run(self, specifications: Sequence[Path]) -> Iterator[tuple[Path, int]]:
        """Run all of them; Ray itself starts a unit again when its machine is lost."""
        ray = _import("ray", "cluster")
        began = not ray.is_initialized()
        if began:
            ray.init(
                address=self.address or None, log_to_driver=False, configure_logging=False, ignore_reinit_error=True
            )
        try:
            options = {
                "num_cpus": 1,
                "num_gpus": self.gpus,
                "max_retries": self.retries,
                "scheduling_strategy": "SPREAD",
            }
            task = ray.remote(**options)(run_command)
            running = {task.remote(str(s), sys.executable, _environment()): s for s in specifications}
            while running:
                done, _ = ray.wait(list(running), num_returns=1)
                yield running.pop(done[0]), _code(ray, done[0])
        finally:
            if began:
                ray.shutdown()


class SlurmBackend:
    """Slurm through submitit: one job for each unit. `cluster` is submitit's: "slurm", or "local" to try it without."""

    def __init__(
        self, partition: str = "", *, gpus: float = 0.0, cluster: str = "slurm", logs: Path | None = None
    ) -> None:
        self.partition, self.gpus, self.cluster, self.logs = partition, gpus, cluster, logs

    def run(self, specifications: Sequence[Path]) -> Iterator[tuple[Path, int]]:
        """Submit all of them, and wait."""
        submitit = _import("submitit", "cluster")
        if not specifications:
            return
        executor = submitit.AutoExecutor(
            folder=str(self.logs or specifications[0].parent / "jobs"), cluster=self.cluster
        )
        asked: dict[str, Any] = {"timeout_min": TIMEOUT_S // 60, "cpus_per_task": 1}
        if self.gpus:
            asked["gpus_per_node"] = max(1, round(self.gpus))
        if self.partition and self.cluster == "slurm":
            asked["slurm_partition"] = self.partition
        executor.update_parameters(**asked)
        jobs = {executor.submit(run_command, str(s), sys.executable, _environment()): s for s in specifications}
        for job in submitit.helpers.as_completed(list(jobs)):
            yield jobs[job], int(job.result()) if not job.exception() else _LOST


def _environment() -> dict[str, str]:
    """What a unit elsewhere must know of this process: where the library lies, if it is not installed."""
    paths = [path for path in sys.path if path]
    return {"PYTHONPATH": os.pathsep.join(paths)}


def _code(ray: Any, reference: Any) -> int:
    try:
        return int(ray.get(reference))
    except Exception:
        return _LOST


def _import(name: str, extra: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(f"{name} is not installed", why=str(error), next=f"pip install 'edl-labs[{extra}]'") from None
