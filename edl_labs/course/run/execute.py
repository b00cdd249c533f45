"""Runs labs without a browser, with papermill: a frozen report, and the same results as files for people and CI."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edl_labs import units
from edl_labs.course.run.process import Job, Stop, run
from edl_labs.course.run.run_plan import Plan, choose_device, plan_runs
from edl_labs.course.run.run_report import FAILED, NotebookResult, RanCell, RunFailure, RunLimits, RunReport, one_line
from edl_labs.course.run.verdict import exercise_results, run_failures
from edl_labs.errors import UsageError
from edl_labs.units import counted

if TYPE_CHECKING:
    from edl_labs.course.course_folder import Course

Progress = Callable[[int, int, str], None]
_ENVIRONMENT_SCHEMA = 1  # goes up when a key of env.json changes its meaning
# Settings that change what runs where; nothing else of the environment is anybody's business.
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF", "TORCH_LOGS")


def run_labs(
    labs: Sequence[str | Path] = (),
    *,
    mode: str = "smoke",
    device: str = "auto",
    out: Path | str | None = None,
    jobs: int = 1,
    limits: RunLimits | None = None,
    parameters: Mapping[str, Any] | None = None,
    course: Course | None = None,
    progress: Progress | None = None,
) -> RunReport:
    """Runs the solution notebooks of `labs` (names, or paths of notebooks; all labs when empty) and reports on each.

    Writes below `out` (default: the course's build/executed): for each lab the executed notebook, also after a
    failure, and an HTML page; and results.json, env.json and junit.xml of the whole run. `jobs` notebooks run at a
    time, each in a process of its own. An unknown lab, parameter or device is a UsageError before anything runs;
    whatever goes wrong later is a failure in the report. `progress(done, total, text)` counts code cells.
    """
    if jobs < 1:
        raise UsageError(f"cannot run {jobs} notebooks at the same time", next="use -j 1 or more")
    _need_papermill()
    course = course or _course_here(needed=not labs or any(not _is_path(lab) for lab in labs))
    chosen = choose_device(device)
    plans = plan_runs(labs, mode=mode, device=chosen, overrides=parameters or {}, course=course)
    folder = _fresh_folder(out, course)
    start_s = time.monotonic()
    ticker = _Ticker(sum(plan.cell_count for plan in plans), progress)
    results = _run_all(plans, folder, jobs=jobs, device=chosen, limits=limits or RunLimits(), ticker=ticker)
    report = RunReport(mode, chosen, time.monotonic() - start_s, tuple(results), str(folder))
    _write(report, folder, plans)
    return report


@dataclass
class _Ticker:
    """Adds up the cells of all notebooks, from several threads."""

    total: int
    progress: Progress | None
    done: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        if self.progress:
            self.progress(0, self.total, "starting")

    def cell(self, lab: str, number: int, count: int) -> None:
        """One more cell of `lab` is done."""
        with self._lock:
            self.done += 1
            if self.progress:
                # papermill adds a cell with the parameters, which no plan counts.
                self.total = max(self.total, self.done)
                self.progress(self.done, self.total, f"{lab}: {number} of {count} cells")

    def notebook(self, plan: Plan, result: NotebookResult) -> None:
        """One notebook is done; what it did not reach counts as done."""
        with self._lock:
            if self.progress:
                self.done = min(self.total, self.done + sum(c.state == "never" for c in result.cells))
                state = "done" if result.ok else "failed: " + one_line(result.failures[0].what, limit=100)
                self.progress(self.done, self.total, f"{plan.lab}: {state}")


def _run_all(
    plans: Sequence[Plan], folder: Path, *, jobs: int, device: str, limits: RunLimits, ticker: _Ticker
) -> list[NotebookResult]:
    stop = Stop()

    def one(plan: Plan) -> NotebookResult:
        return _run_one(plan, folder, device=device, limits=limits, ticker=ticker, stop=stop)

    with ThreadPoolExecutor(jobs) as pool:
        try:
            return list(pool.map(one, plans))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop.all()
            raise


def _run_one(
    plan: Plan, folder: Path, *, device: str, limits: RunLimits, ticker: _Ticker, stop: Stop
) -> NotebookResult:
    home = folder / plan.lab
    home.mkdir(parents=True, exist_ok=True)
    executed = home / f"{plan.lab}.ipynb"

    def on_cell(_cell: RanCell, number: int, count: int) -> None:
        ticker.cell(plan.lab, number, count)

    executed.unlink(missing_ok=True)
    job = Job(plan.path, output=executed, parameters=plan.parameters, limits=limits, env=plan.env, beside=plan.beside)
    finished = run(job, on_cell=on_cell, stop=stop)
    exercises = exercise_results(finished.cells, plan.expected)
    result = NotebookResult(
        lab=plan.lab,
        title=plan.title,
        device=str(plan.parameters.get("device", device)),
        parameters=dict(plan.parameters),
        cells=finished.cells,
        seconds=finished.seconds,
        exercises=exercises,
        failures=run_failures(finished, exercises, limits=limits),
    )
    result = _with_page(result, executed, plan)
    ticker.notebook(plan, result)
    return result


def _with_page(result: NotebookResult, executed: Path, plan: Plan) -> NotebookResult:
    from edl_labs.course.pages.notebook_page import write_page

    if not executed.is_file():
        shutil.copyfile(plan.path, executed)
    page = executed.with_suffix(".html")
    files = {"notebook": f"{plan.lab}/{executed.name}", "page": f"{plan.lab}/{page.name}"}
    summary = (
        f"{result.points:g} of {result.max_points:g} points, {result.cells_run} of "
        f"{counted(len(result.cells), 'cell')} on {result.device} in {units.seconds(result.seconds)}"
    )
    try:
        write_page(executed, page, title=plan.title, summary=summary, problems=[f.what for f in result.failures])
    except Exception as error:  # a page that cannot be made must not lose the run's result
        why = one_line(f"{type(error).__name__}: {error}")
        failure = RunFailure("page", f"the HTML page of {plan.lab} could not be created", why, "", FAILED)
        return replace(result, files={"notebook": files["notebook"]}, failures=(*result.failures, failure))
    return replace(result, files=files)


def _write(report: RunReport, folder: Path, plans: Sequence[Plan]) -> None:
    from edl_labs.course.run.run_report import junit_xml

    _write_json(folder / "results.json", report.to_json())
    _write_json(folder / "env.json", environment(report.device))
    (folder / "junit.xml").write_bytes(junit_xml(report))


def environment(device: str | None = None) -> dict[str, Any]:
    """The environment stamp of `device`, with package versions, as plain JSON."""
    from edl_labs import __version__
    from edl_labs.device import describe

    return {
        "schema": _ENVIRONMENT_SCHEMA,
        "edl_labs": __version__,
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": describe(device).to_dict(),
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        "packages": _packages(),
    }


def _packages() -> dict[str, str]:
    """The version of every installed package, by its name in lower case."""
    found = {str(d.metadata["Name"]).lower(): d.version for d in metadata.distributions() if d.metadata["Name"]}
    return dict(sorted(found.items()))


def _write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, default=str)
    path.write_text(text + "\n", encoding="utf-8")


def _fresh_folder(out: Path | str | None, course: Course | None) -> Path:
    if out is None and course is None:
        raise UsageError(
            "there is no output folder",
            why="the current folder is not in a course",
            next="choose a folder: --out FOLDER",
        )
    folder = Path(out) if out is not None else course.root / "build" / "executed"  # type: ignore[union-attr]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in ("results.json", "env.json", "junit.xml"):
            # A report of an earlier run must not be taken for this one's, should this one be killed.
            (folder / old).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot write to {folder}", why=error.strerror or str(error), next="choose a folder: --out FOLDER"
        ) from error
    return folder.resolve()


def _is_path(lab: str | Path) -> bool:
    return Path(lab).suffix == ".ipynb"


def _course_here(*, needed: bool) -> Course | None:
    from edl_labs.course.course_folder import Course

    try:
        return Course.find()
    except UsageError:
        if needed:
            raise
        return None


def _need_papermill() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("papermill", "nbconvert") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"{' and '.join(missing)} must be installed to run labs",
            why="only instructors and CI need it",
            next='run pip install "edl-labs[instructor]"',
        )
