"""One submission in a sandboxed kernel: its cells in order, a probe at each check, each mark settled when earned.

A mark once settled stays, whatever happens to the kernel afterwards. When a kernel dies, another one runs the earlier
cells again without the cell or probe that killed it, so that later exercises count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from edl_labs.checks import plain
from edl_labs.checks.exercise import Exercise
from edl_labs.checks.judge import Outcome
from edl_labs.grading.assignment import Assignment
from edl_labs.grading.judge_process import Judge, unjudged
from edl_labs.grading.kernel.errors import KernelDied, Violation
from edl_labs.grading.plan import Plan, with_references
from edl_labs.grading.timed import is_timed, timed_outcome

if TYPE_CHECKING:
    from edl_labs.grading.kernel.client import SandboxKernel

MAX_EVIDENCE_BYTES = 32 << 20

SETUP = """
import os
os.environ["EDL_LABS_EXERCISES"] = os.path.abspath(".edl/exercises")
answer(b"ready")
"""

# What runs beside the student's code. Its names may all be patched there: evidence is not a verdict.
PROBE = """
def _evidence():
    from edl_labs.checks import plain
    from edl_labs.checks.evidence import collect
    from edl_labs.checks.exercise import load_lab
    from edl_labs.checks.quiet import quiet
    from edl_labs.errors import PlainDataError
    asked = plain.decode(payload)
    exercise = next(e for e in load_lab(asked["lab"]) if e.name == asked["name"])
    with quiet():
        records = collect(exercise, student, asked["cases"])
    try:
        return plain.encode(records, max_bytes=asked["max_bytes"])
    except PlainDataError as error:
        return plain.encode([{"unplain": str(error.what)[:2000]}])
answer(_evidence())
"""


@dataclass(frozen=True)
class Budget:
    """How long a submission may take and how often its kernel may die."""

    cell_s: float = 120.0
    notebook_s: float = 900.0
    deaths: int = 12


@dataclass(frozen=True)
class Secret:
    """The cases of one exercise and the reference's evidence for them, encoded."""

    cases: bytes
    wants: bytes


@dataclass(frozen=True)
class Event:
    """Something that happened: `kind` is timeout, killed or skipped; `where` the exercise or cell."""

    kind: str
    where: str
    why: str = ""


@dataclass
class Run:
    """What came of a submission. `outputs` are by the index of the plan's cell."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    own_s: float = 0.0
    """Seconds spent in the notebook's own cells and probes."""
    cpu_s: float = 0.0
    """CPU seconds of all its kernels."""
    own_cpu_s: float = 0.0
    """The same without the kernels' start."""
    peak_bytes: int = 0


class Session:
    """Grades plans of one assignment with kernels from `new_kernel`."""

    def __init__(
        self,
        assignment: Assignment,
        secrets: Mapping[str, Secret],
        *,
        new_kernel: Callable[[], SandboxKernel],
        judge: Judge,
        budget: Budget | None = None,
        seed: int = 0,
    ) -> None:
        self.assignment, self.secrets, self.judge, self.seed = assignment, secrets, judge, seed
        self.new_kernel, self.budget = new_kernel, budget or Budget()
        self._requests: dict[str, bytes] = {}

    def grade(self, plan: Plan) -> Run:
        """Every exercise's outcome, and the outputs of every cell."""
        run = _Replay(self, plan).run()
        for exercise in self.assignment.exercises:
            if exercise.name not in run.outcomes:
                run.outcomes[exercise.name] = _never_probed(exercise, self.points(exercise.name))
        self._stand_in(plan, run)
        for exercise in filter(is_timed, self.assignment.exercises):
            right = run.outcomes[exercise.name]
            if right.state == "passed":
                run.outcomes[exercise.name] = timed_outcome(self, plan, exercise, right)
        return run

    def request(self, exercise: Exercise) -> bytes:
        """What a probe of the secret cases is sent, encoded once for the class."""
        if exercise.name not in self._requests:
            cases = plain.decode(self.secrets[exercise.name].cases)
            what = {"lab": exercise.lab, "name": exercise.name, "cases": cases, "max_bytes": MAX_EVIDENCE_BYTES}
            self._requests[exercise.name] = plain.encode(what)
        return self._requests[exercise.name]

    def points(self, name: str) -> float:
        """The points of an exercise."""
        return self.assignment.points[name]

    def settle(self, run: Run, exercise: Exercise, evidence: bytes) -> None:
        """Judge evidence, and keep the better outcome where an exercise is probed at several copies of its check."""
        secret, points = self.secrets[exercise.name], self.points(exercise.name)
        keep(run, self.judge.judge(exercise, secret.cases, evidence, secret.wants, points=points))

    def _stand_in(self, plan: Plan, run: Run) -> None:
        """Judge again what builds on something wrong, with the reference in its place, in a kernel of its own.

        That kernel's outputs are dropped and nothing else is probed in it: a reference that a student's code gets hold
        of there leads nowhere.
        """
        untouched = plan.untouched()
        for exercise in self.assignment.exercises:
            wrong = {n for n in self.assignment.built_on(exercise.name) if run.outcomes[n].state != "passed"}
            if run.outcomes[exercise.name].state == "passed" or not wrong or exercise.name in untouched:
                continue
            replay = _Replay(self, with_references(plan, self.assignment, wrong), only=exercise.name)
            again = replay.run()
            run.own_s += again.own_s
            run.cpu_s += again.cpu_s
            run.own_cpu_s += again.own_cpu_s
            if exercise.name in again.outcomes:
                keep(run, again.outcomes[exercise.name])
            run.events += [event for event in again.events if event.where == exercise.name]


def keep(run: Run, outcome: Outcome) -> None:
    """Keep the better of two outcomes of one exercise; the later one when they are equal."""
    before = run.outcomes.get(outcome.name)
    if before is None or outcome.points >= before.points:
        run.outcomes[outcome.name] = outcome


class _Replay:
    """The steps of a plan through as many kernels as it takes."""

    def __init__(self, session: Session, plan: Plan, *, only: str = "") -> None:
        self.session, self.plan, self.only = session, plan, only
        self.run_value = Run()
        self.skipped: set[int] = set()
        self.deaths = 0
        self.deadline = time.monotonic() + session.budget.notebook_s
        self.last = self._last_step()

    def run(self) -> Run:
        """Go through all steps; a dead kernel is followed by another while the budget lasts."""
        done = 0
        while done <= self.last:
            if self.deaths > self.session.budget.deaths or time.monotonic() > self.deadline:
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
            try:
                if self.session.assignment.own_exercises:
                    kernel.ask(SETUP, b"", timeout_s=self.session.budget.cell_s)
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
        began = time.monotonic()
        try:
            evidence = kernel.ask(
                PROBE,
                self.session.request(exercise),
                timeout_s=min(exercise.timeout_s, self._left_s()),
                max_bytes=MAX_EVIDENCE_BYTES,
            )
        except Violation as broken:
            if not broken.alive:
                raise
            self._refused(exercise, broken)
        else:
            self.session.settle(self.run_value, exercise, evidence)
        finally:
            self.run_value.own_s += time.monotonic() - began

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
        return min(self.session.budget.cell_s, self._left_s())

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


def _never_probed(exercise: Exercise, points: float) -> Outcome:
    outcome = unjudged(
        exercise, points, what="there is no check of this exercise in the notebook", why="it was deleted"
    )
    return replace(outcome, state="not attempted")


def _notice(kind: str, why: str) -> dict[str, Any]:
    name = "CellTimeout" if kind == "timeout" else "KernelDied"
    return {"output_type": "error", "ename": name, "evalue": why, "traceback": [f"{name}: {why}"]}
