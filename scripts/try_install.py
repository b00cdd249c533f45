"""Runs every lab, unsolved and solved, with only what students install.

    python scripts/try_install.py [--torch 2.14] [LAB ...]

It works on any system with Python 3.11 or newer and needs no other software. It creates an environment in
build/try-install, installs this checkout there as a wheel with [lab], and runs each lab in an empty folder. The exit
code is 1 if a cell raises an error, if an unsolved lab gets points, or if a solved lab does not get all points.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS, SUFFIX = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
READERS = "readers"
# What follows a torch of another version than the constraints'.
OF_TORCH = re.compile(r"(torch|torchvision|triton|setuptools|sympy|fsspec|cuda-.*|nvidia-.*)==", re.IGNORECASE)


def main() -> int:
    """Installs and runs; prints a line a run, with what went wrong below."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labs", nargs="*", metavar="LAB", help="the labs to run (default: all)")
    other = "a version of torch that differs from the constraints, such as 2.14 (or set TRY_TORCH)"
    parser.add_argument("--torch", metavar="VERSION", default=os.environ.get("TRY_TORCH"), help=other)
    parser.add_argument("--solved", action="store_true", help="run only the solved labs")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return run_labs(arguments.labs, [True] if arguments.solved else [False, True])
    folder = ROOT / "build" / "try-install"
    install(folder, arguments.torch)
    command = [str(folder / SCRIPTS / f"python{SUFFIX}"), str(Path(__file__).resolve()), "--inside", *arguments.labs]
    environment = {**without_checkout(), "PYTHONPATH": str(folder / READERS)}
    return subprocess.run(command + ["--solved"] * arguments.solved, env=environment, check=False).returncode


def install(folder: Path, torch: str | None) -> None:
    """A new environment with the wheel and `[lab]`, as labs/README.md tells students to make it."""
    venv.create(folder, with_pip=True, clear=True)
    constraints = folder / "constraints.txt"
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if torch is None or not OF_TORCH.match(line)]
    constraints.write_text("\n".join([*kept, f"torch=={torch}.*"] if torch else kept), encoding="utf-8")
    pip = [str(folder / SCRIPTS / f"python{SUFFIX}"), "-m", "pip", "install", "--quiet", "--retries", "8"]
    pip += ["--constraint", str(constraints)]
    subprocess.run([*pip, f"{ROOT}[lab]"], env=without_checkout(), check=True)
    # The labs of this checkout are read with these, which students do not have: in a folder that they do not see.
    subprocess.run([*pip, "--target", str(folder / READERS), "jupytext", "msgspec"], env=without_checkout(), check=True)


def without_checkout() -> dict[str, str]:
    """The variables of this process without those that would bring another Python's packages."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "EDL_LABS", "VIRTUAL"))}


def run_labs(names: list[str], ways: list[bool]) -> int:
    """Runs the labs of this checkout with the installed package; the number of runs that were not as they should."""
    import torch

    from edl_labs.course.course_folder import Course
    from edl_labs.course.lab.read import read_labs

    print(f"{sys.platform}, Python {sys.version.split()[0]}, torch {torch.__version__}", flush=True)
    failed = 0
    for lab in read_labs(Course(ROOT)):
        for solved in ways if not names or lab.name in names else ():
            began_s = time.monotonic()
            wrong = run_lab(lab, solved=solved)
            spent_s = time.monotonic() - began_s
            print(f"{lab.name:32} {'solved' if solved else 'unsolved':9} {spent_s:4.0f} s  {wrong or 'ok'}", flush=True)
            failed += bool(wrong)
    return min(failed, 1)


def run_lab(lab: Any, *, solved: bool) -> str:
    """What went wrong in `edl-labs check` of the lab, in an empty folder; empty where nothing did."""
    with tempfile.TemporaryDirectory(prefix="edl-try-", ignore_cleanup_errors=True) as folder:
        path = lay_out(lab, Path(folder), solved=solved)
        program = Path(sys.executable).with_name(f"edl-labs{SUFFIX}")
        command = [str(program), "check", path.name, "--json"]
        done = subprocess.run(
            command, cwd=folder, env=without_checkout(), capture_output=True, text=True, check=False, timeout=1800
        )
    if not done.stdout:
        return f"edl-labs check printed no report: {done.stderr[-2000:]}"
    return problems(lab, json.loads(done.stdout), solved=solved)


def problems(lab: Any, report: dict[str, Any], *, solved: bool) -> str:
    """Cells that raised, and exercises that came to something else than they should."""
    wanted = {
        e.name: "marked by hand" if e.kind == "explain" else "passed" if solved else "not attempted"
        for e in lab.exercises
    }
    found = [f"{one}" for one in report["failures"]]
    found += [f"{e['name']}: {e['state']}" for e in report["exercises"] if e["state"] != wanted[e["name"]]]
    return "; ".join(found)


def lay_out(lab: Any, folder: Path, *, solved: bool) -> Path:
    """The notebook in `folder`, and with a solved one the files that are handed in next to it."""
    import nbformat

    path = folder / f"{lab.name}.ipynb"
    path.write_text(nbformat.writes(notebook_of(lab, solved=solved)), encoding="utf-8")
    for name, content in lab.handed_in.items() if solved else ():
        (folder / name).write_bytes(content)
    return path


def notebook_of(lab: Any, *, solved: bool) -> Any:
    """The released notebook with the parameters of a quick run; `solved`: with the solutions in their cells."""
    import nbformat

    path = ROOT / "labs" / lab.name / f"{lab.name}.ipynb"
    notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    solutions = {f"solve-{e.name.replace('_', '-')}": e.name for e in lab.exercises if e.kind == "code"}
    cells = []
    for cell in notebook.cells:
        if solved and cell["id"] in solutions:
            cell["source"] = lab.solution_cell(solutions[cell["id"]])
        cells.append(cell)
        if "parameters" in cell.metadata.get("tags", []):
            text = "\n".join(f"{key} = {value!r}" for key, value in lab.parameters["smoke"].items())
            cells.append(nbformat.v4.new_code_cell(text, id="quick-parameters"))
    notebook["cells"] = cells
    return notebook


if __name__ == "__main__":
    sys.exit(main())
