"""What Triton's own interpreter computes, in a process of its own: it has to be chosen before Triton is imported."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

Job = tuple[str, tuple[int, ...], dict[str, Any]]
ROOT = Path(__file__).resolve().parents[4]


def interpreted(jobs: list[Job]) -> list[Any]:
    """For each source, grid and arguments of a function `kernel`: its arrays afterwards, or the error as text."""
    with tempfile.TemporaryDirectory() as folder:
        task, answer = Path(folder, "jobs"), Path(folder, "answer")
        task.write_bytes(pickle.dumps(jobs))
        environment = {**os.environ, "TRITON_INTERPRET": "1"}
        command = [sys.executable, "-m", __name__, str(task), str(answer)]
        subprocess.run(command, env=environment, cwd=ROOT, check=True, timeout=1200)
        return list(pickle.loads(answer.read_bytes()))


def _run(job: Job, folder: Path, name: str) -> Any:
    import torch

    from tests.unit.virtual.tiles.compiler_oracle import module_of

    source, grid, arguments = job
    given = {key: torch.from_numpy(one) if hasattr(one, "dtype") else one for key, one in arguments.items()}
    try:
        module_of(folder, source, name).kernel[grid](**given)
    except Exception as error:  # the interpreter's errors have no common class
        return f"{type(error).__name__}: {error}"
    return {key: one.numpy() for key, one in given.items() if hasattr(one, "numpy")}


def main(task: Path, answer: Path) -> None:
    """Answer the jobs of a file."""
    import warnings

    warnings.simplefilter("ignore")
    jobs = pickle.loads(task.read_bytes())
    found = [_run(job, task.parent, f"job{number}") for number, job in enumerate(jobs)]
    answer.write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
