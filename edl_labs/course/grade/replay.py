"""The steps of a plan through as many kernels as it takes.

A mark once settled stays, whatever happens to the kernel afterwards. When a kernel dies, another one runs the earlier
cells again without the cell or probe that killed it, so that later exercises count.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from edl_labs.checks import Exercise
from edl_labs.course.grade.graded_run import Event, Run, keep
from edl_labs.course.grade.judge_process import unjudged
from edl_labs.course.grade.plan import Plan
from edl_labs.course.sandbox.kernel.errors import KernelDied, Violation
from edl_labs.errors import EdlError

if TYPE_CHECKING:
    from edl_labs.course.grade.session import Session
    from edl_labs.course.sandbox.kernel.client import SandboxKernel

SETUP = """
import os
os.environ["EDL_LABS_EXERCISES"] = os.path.abspath(".edl/exercises")
answer(b"ready")
"""

# What runs beside the student's code. Its names may all be patched there: evidence is not a verdict.
PROBE = """
def _evidence():
    from edl_labs.checks import plain_data
    from edl_labs.checks.evidence import collect
    from edl_labs.checks.lab_exercises import load_lab
    from edl_labs.checks.caught_output import caught_output
    from edl_labs.errors import PlainDataError
    asked = plain_data.decode(payload)
    exercise = next(e for e in load_lab(asked["lab"]) if e.name == asked["name"])
    with caught_output():
        records = collect(exercise, student, asked["cases"])
    try:
        return plain_data.encode(records, max_bytes=asked["max_bytes"])
    except PlainDataError as error:
        return plain_data.encode([{"unplain": str(error.what)[:2000]}])
answer(_evidence())
"""


class Replay:
    """The steps of a plan through as many kernels as it takes."""

    def __init__(self, session: Session, plan: Plan, *, only: str = "") -> None:
        self.session, self.plan, self.only = session, plan, only
        self.run_value = Run()
        self.skipped: set[int] = set()
        self.deaths = 0
        self.deadline = time.monotonic() + session.limits.notebook_s
        self.last = self._last_step()

    def run(self) -> Run:
        """Go through all steps; a dead kernel is followed by another while the budget lasts."""
        done = 0
        while done <= self.last:
            if self.deaths > self.session.limits.deaths or time.monotonic() > self.deadline:
                self._give_up(done)
                break
            done = self._through_one_kernel(done)
        return self.run_value

    def _last_step(self) -> int:
        wanted = [i for i, cell in enumerate(self.plan.cells) if cell.probes == self.only] if self.only else []
        return wanted[-1] if wanted else len(self.plan.cells) - 1

    def _through_one_kernel(self, done: int) -> int:
        """Run all cells before `done` again and go on from there; the first step that is not done."""
        index = 0
        with self.session.new_kernel() as kernel:
            started_cpu_s = kernel.stats().cpu_s
            if self.session.assignment.own_exercises:
                self._set_up(kernel)
            try:
                for index in range(self.last + 1):
                    if time.monotonic() > self.deadline:
                        return index if index > done else done
                    self._step(kernel, index, again=index < done)
                return self.last + 1
            except (KernelDied, Violation) as end:
                self._died(index, end)
                # A cell that killed its kernel is not run again; what came before it is, and what comes after goes on.
                return max(done, index + 1)
            finally:
                self._account(kernel, started_cpu_s)

    def _set_up(self, kernel: SandboxKernel) -> None:
        """Show the kernel the course's exercises. No student's code has run yet, so what fails here is not theirs."""
        try:
            kernel.ask(SETUP, b"", timeout_s=self.session.limits.cell_s)
        except (KernelDied, Violation) as end:
            raise EdlError("a kernel ended before it was given the notebook", why=str(end), next="grade again") from end

    def _step(self, kernel: SandboxKernel, index: int, *, again: bool) -> None:
        cell = self.plan.cells[index]
        if index in self.skipped:
            return
        if cell.runs:
            self._run_cell(kernel, index, again=again)
        if cell.probes and not again and self.only in ("", cell.probes):
            self._probe(kernel, cell.probes)

    def _run_cell(self, kernel: SandboxKernel, index: int, *, again: bool) -> None:
        began = time.monotonic()
        source = self.plan.cells[index].source
        try:
            result = kernel.run(source, timeout_s=self._cell_s())
        finally:
            self.run_value.own_s += time.monotonic() - began
        if again:
            return
        self.run_value.outputs[index] = result.outputs
        if result.execution_count is not None:
            self.run_value.counts[index] = result.execution_count
        if result.status == "timeout":
            self.run_value.events.append(Event("timeout", self._called(index)))

    def _probe(self, kernel: SandboxKernel, name: str) -> None:
        exercise = self.session.assignment.exercise(name)
        request = self._request(exercise)
        began = time.monotonic()
        try:
            evidence = kernel.ask(
                PROBE,
                request,
                timeout_s=min(exercise.timeout_s, self.session.limits.probe_s, self._left_s()),
                max_bytes=self.session.limits.evidence_bytes,
            )
        except Violation as broken:
            if not broken.alive:
                raise
            self._refused(exercise, broken)
        else:
            self.session.settle(self.run_value, exercise, evidence)
        finally:
            self.run_value.own_s += time.monotonic() - began

    def _request(self, exercise: Exercise) -> bytes:
        """The probe's payload. Waiting until the class's cases are drawn is not the student's time."""
        began = time.monotonic()
        try:
            return self.session.request(exercise)
        finally:
            self.deadline += time.monotonic() - began

    def _refused(self, exercise: Exercise, broken: Violation) -> None:
        """The kernel lives but its answer does not count."""
        if broken.kind == "deadline":
            self.run_value.events.append(Event("timeout", exercise.name))
        what = _REFUSED.get(broken.kind, "the check got no result")
        points = self.session.points(exercise.name)
        keep(self.run_value, unjudged(exercise, points, what=what, why=broken.why[:500]))

    def _died(self, index: int, end: KernelDied | Violation) -> None:
        self.deaths += 1
        self.skipped.add(index)
        cell = self.plan.cells[index]
        kind = "timeout" if isinstance(end, Violation) and end.kind == "deadline" else "killed"
        why = end.why or end.kind if isinstance(end, Violation) else end.reason
        self.run_value.events.append(Event(kind, self._called(index), why))
        if cell.probes:
            exercise = self.session.assignment.exercise(cell.probes)
            what = "the check stopped your code" if kind == "timeout" else "your code ended its kernel"
            keep(self.run_value, unjudged(exercise, self.session.points(exercise.name), what=what, why=why))
        elif index not in self.run_value.outputs:
            self.run_value.outputs[index] = [*(end.result.outputs if end.result else []), _notice(kind, why)]

    def _give_up(self, done: int) -> None:
        late = time.monotonic() > self.deadline
        why = "the notebook was over its time" if late else f"its kernel died {self.deaths} times"
        for index in range(done, self.last + 1):
            name = self.plan.cells[index].probes
            if name and self.only in ("", name) and name not in self.run_value.outcomes:
                exercise = self.session.assignment.exercise(name)
                points = self.session.points(name)
                keep(self.run_value, unjudged(exercise, points, what="this was not reached", why=why))
        self.run_value.events.append(Event("timeout" if late else "killed", self._called(done), why))

    def _account(self, kernel: SandboxKernel, started_cpu_s: float) -> None:
        stats = kernel.stats()
        self.run_value.cpu_s += stats.cpu_s
        self.run_value.own_cpu_s += max(0.0, stats.cpu_s - started_cpu_s)
        self.run_value.peak_bytes = max(self.run_value.peak_bytes, stats.max_rss_bytes)

    def _cell_s(self) -> float:
        return min(self.session.limits.cell_s, self._left_s())

    def _left_s(self) -> float:
        return max(0.1, self.deadline - time.monotonic())

    def _called(self, index: int) -> str:
        cell = self.plan.cells[min(index, len(self.plan.cells) - 1)]
        return cell.probes or (cell.known.exercise if cell.known else "") or f"cell {index + 1}"


_REFUSED = {
    "deadline": "your code did not finish in time",
    "large answer": "the result is too large",
    "two answers": "the check was answered twice",
    "forged answer": "the check was answered by something else than the check",
}


def _notice(kind: str, why: str) -> dict[str, Any]:
    name = "CellTimeout" if kind == "timeout" else "KernelDied"
    return {"output_type": "error", "ename": name, "evalue": why, "traceback": [f"{name}: {why}"]}
