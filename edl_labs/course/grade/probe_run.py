"""One run of a plan: its cells in order, a probe at each check, and a sink that turns evidence into outcomes.

A mark once settled stays, whatever happens to the kernel afterwards. When a kernel dies, another one runs the earlier
cells again without the cell or probe that killed it, so that later exercises count. A kernel may die of what an earlier
probe set off: a step is charged with a death only where no probe came before it, or when it dies a second time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from edl_labs.checks import Case, Outcome, RegisteredExercise, plain_data
from edl_labs.checks.spec import given_halves
from edl_labs.course.assignment import Assignment
from edl_labs.course.grade.known_timeouts import KnownTimeouts
from edl_labs.course.grade.plan import MarkingPlan
from edl_labs.course.grade.run_record import Incident, ProbedRun, Usage
from edl_labs.course.sandbox.kernel.client import Answer, SandboxKernel
from edl_labs.course.sandbox.kernel.exchange import KernelDied, Serve, Violation
from edl_labs.course.sandbox.kernel.spawned import OUTER_BOUND
from edl_labs.course.sandbox.limits import DEFAULTS, Limits
from edl_labs.errors import EdlError

_SETUP = """
import os
os.environ["EDL_LABS_EXERCISES"] = os.path.abspath(".edl/exercises")
answer(b"ready")
"""

# What hung once hangs again: a lab's slowest demonstration takes so long in a quick run.
AGAIN_S = 5.0
# What runs beside the student's code. Its names may all be patched there: evidence is not a verdict.
_PROBE = """
def _evidence():
    import os
    quick = os.environ.pop("EDL_LABS_QUICK", None)
    try:
        return _asked_for()
    finally:
        if quick is not None:
            os.environ["EDL_LABS_QUICK"] = quick
def _asked_for():
    from edl_labs.checks import plain_data
    from edl_labs.checks.evidence import collect
    from edl_labs.checks.lab_exercises import load_lab
    from edl_labs.checks.caught_output import caught_output
    from edl_labs.errors import PlainDataError
    asked = plain_data.decode(payload)
    known = {e.name: e for e in load_lab(asked["lab"])}
    references = {}
    for name in asked.get("objects", ()):
        references.update(known[name].spec.stand_in())
    if asked.get("functions"):
        from edl_labs.checks.reference_calls import Channel, RemoteFunction
        channel = Channel(shell.kernel.edl_calls)
        references.update({name: RemoteFunction(name, channel) for name in asked["functions"]})
    with caught_output():
        records = collect(known[asked["name"]], student, asked["givens"], references=references)
    try:
        return plain_data.encode(records, max_bytes=asked["max_bytes"])
    except PlainDataError as error:
        return plain_data.encode([{"not_plain_data": str(error.what)[:2000]}])
answer(_evidence())
"""


class Sink(Protocol):
    """What is done with the evidence of a run. Of two outcomes of one exercise the run keeps the better."""

    def take(self, exercise: RegisteredExercise, check: CheckPoint) -> Outcome | None:
        """The run has come to a check of `exercise`, where evidence can be collected. Its outcome, if it has one."""
        ...

    def miss(self, exercise: RegisteredExercise, *, what: str, why: str) -> Outcome | None:
        """The run got no evidence of `exercise`. Its outcome, if it has one."""
        ...


@dataclass(frozen=True)
class PlanRunner:
    """Runs plans of one assignment, in kernels from `new_kernel` that hold its files, and those it is called with."""

    assignment: Assignment
    new_kernel: Callable[..., SandboxKernel]
    limits: Limits = DEFAULTS
    watch: Callable[[str], None] = lambda where: None
    """Called at the beginning of each step, with the cell or the exercise."""
    asleep: Callable[[], AbstractContextManager[None]] = nullcontext
    """Active while a probe runs that mostly sleeps, and while a probe waits for a shared resource."""
    timeouts: KnownTimeouts | None = None
    """Checks that timed out earlier are not run again."""

    def probe_run(self, plan: MarkingPlan, sink: Sink, *, hung: bool = False) -> ProbedRun:
        """Go through all of `plan`; a dead kernel is followed by another while the limits allow.

        `hung` says that something timed out in another run of the same cells: demonstrations get little time.
        """
        return _Walk(self, plan, sink, hung=hung).run()

    def request(
        self,
        exercise: RegisteredExercise,
        cases: list[Case],
        *,
        functions: Sequence[str] = (),
        objects: Sequence[str] = (),
    ) -> bytes:
        """What a probe is sent to try `cases`: of each the half that is given.

        `functions` call the judge instead of the student's, `objects` are exercises whose `stand_in()` takes theirs.
        """
        what = {"lab": exercise.lab, "name": exercise.name, "givens": given_halves(cases)}
        how = {"functions": list(functions), "objects": list(objects), "max_bytes": self.limits.evidence_bytes}
        return plain_data.encode({**what, **how})


class CheckPoint:
    """A kernel that has come to a check, and may be asked there to give evidence. The time of that is the student's."""

    def __init__(self, walk: _Walk, kernel: SandboxKernel, exercise: RegisteredExercise, index: int) -> None:
        self._walk, self._kernel, self._exercise, self._index = walk, kernel, exercise, index
        self._came_s = time.monotonic()
        self._asked_s: float | None = None
        self._waited_s = 0.0

    def ask(self, request: bytes, *, serve: Serve | None = None) -> Answer:
        """The probe's answer to a `PlanRunner.request`; KernelDied or Violation is for the run to handle.

        `serve` answers the calls of the request's functions.

        Waiting until the first request can be made, for the class's cases to be drawn, is not the student's time.
        """
        known = self._walk.runner.timeouts
        if known is None:
            return self._answer(request, serve)
        key = known.key(self._walk.plan, self._index, self._exercise, request)
        if why := known.find(key):
            raise Violation("deadline", why=why, alive=True)
        had_all_its_time = self._walk.left_s() >= self._exercise.timeout_s
        try:
            return self._answer(request, serve)
        except Violation as broken:
            if broken.kind == "deadline" and had_all_its_time:
                known.add(key, broken.why)
            raise

    def _answer(self, request: bytes, serve: Serve | None) -> Answer:
        if self._asked_s is None:
            self._asked_s = time.monotonic()
            self._walk.deadline += self._asked_s - self._came_s
        limits = self._walk.runner.limits
        # The reference's time for its calls is the judge's, and bounded there.
        own_s, called_s = self._exercise.timeout_s, 0.0 if serve is None else limits.calls_s
        wall_s = min(OUTER_BOUND * (own_s + called_s), limits.probe_s, self._walk.left_s())
        ended_s = time.monotonic()
        try:
            with self._walk.runner.asleep() if self._exercise.sleeps else nullcontext():
                try:
                    return self._kernel.answer(
                        *(_PROBE, request),
                        timeout_s=min(own_s, wall_s),
                        wall_s=wall_s,
                        max_bytes=limits.evidence_bytes,
                        serve=serve,
                    )
                finally:
                    ended_s = time.monotonic()
        finally:
            # Until others have made room for it again: no time of the student's.
            waited_s = time.monotonic() - ended_s
            self._walk.deadline += waited_s
            self._waited_s += waited_s

    @property
    def source(self) -> list[str]:
        """The texts of the notebook's cells before the check, where they are evidence; otherwise none."""
        spec, name = self._exercise.spec, self._exercise.name
        return self._walk.plan.texts_until(name) if spec.source_is_evidence else []

    @property
    def files(self) -> dict[str, bytes]:
        """The files next to the notebook that the exercise's judge reads, as far as they are there."""
        wanted = self._exercise.spec.hand_ins
        return {name: data for name, data in self._walk.plan.files.items() if name in wanted}

    def keep(self, outcome: Outcome) -> None:
        """An outcome that stays, whatever comes of asking once more."""
        self._walk.found.keep(outcome)

    def judged(self, *, has_errors: bool, cpu_s: float) -> None:
        """Its evidence was judged: where it `has_errors`, something that did not run may be missing."""
        self._walk.found.usage += Usage(judge_cpu_s=cpu_s)
        if has_errors:
            self._walk.found.errors.add(self._exercise.name)

    @property
    def spent_s(self) -> float:
        """Seconds since the first request, without those that it waited for others."""
        return 0.0 if self._asked_s is None else time.monotonic() - self._asked_s - self._waited_s


class _Walk:
    """The steps of a plan through as many kernels as it takes."""

    def __init__(self, runner: PlanRunner, plan: MarkingPlan, sink: Sink, *, hung: bool) -> None:
        self.runner, self.plan, self.sink, self.hung = runner, plan, sink, hung
        self.found = ProbedRun()
        self.skipped: set[int] = set()
        self.doubted: set[int] = set()
        self.ended_well: set[int] = set()
        self.deaths = 0
        self.deadline = time.monotonic() + runner.limits.notebook_s

    def run(self) -> ProbedRun:
        """Go through all steps."""
        done = 0
        while done < len(self.plan.cells):
            if self.deaths > self.runner.limits.deaths or time.monotonic() > self.deadline:
                self._give_up(done)
                break
            done = self._through_one_kernel(done)
        return self.found

    def left_s(self) -> float:
        """Seconds left to the notebook; always a little, so that a kernel can say that it did not suffice."""
        return max(0.1, self.deadline - time.monotonic())

    def _through_one_kernel(self, done: int) -> int:
        """Run all cells before `done` again and go on from there; the first step that is not done."""
        index, began_s = 0, time.monotonic()
        modules = (self.plan.modules,) if self.plan.modules else ()
        with self.runner.new_kernel(*modules) as kernel:
            self.deadline += time.monotonic() - began_s  # what a kernel's start takes is ours
            started_cpu_s = kernel.stats().cpu_s
            if self.runner.assignment.own_exercises:
                self._set_up(kernel)
            try:
                for index in range(len(self.plan.cells)):
                    if time.monotonic() > self.deadline:
                        return max(done, index)
                    self._step(kernel, index, again=index < done)
                return len(self.plan.cells)
            except (KernelDied, Violation) as end:
                if self._doubtful(index, end, done):
                    self._doubt(index, end)
                    return max(done, index)
                self._died(index, end)
                # A cell that killed its kernel is not run again; what came before it is, and what comes after goes on.
                return max(done, index + 1)
            finally:
                self._account(kernel, started_cpu_s)

    def _set_up(self, kernel: SandboxKernel) -> None:
        """Show the kernel the course's exercises. No student's code has run yet, so what fails here is not theirs."""
        try:
            kernel.ask(_SETUP, b"", timeout_s=self.runner.limits.cell_s)
        except (KernelDied, Violation) as end:
            raise EdlError("a kernel ended before it received the notebook", why=str(end), next="grade again") from end

    def _step(self, kernel: SandboxKernel, index: int, *, again: bool) -> None:
        cell = self.plan.cells[index]
        if index in self.skipped:
            return
        if cell.runs or (cell.probes and not again):
            self.runner.watch(f"the check of {cell.probes}" if cell.probes else self._called(index))
        if cell.runs:
            self._run_cell(kernel, index, again=again)
        if cell.probes and not again:
            self._probe(kernel, self.runner.assignment.exercise(cell.probes), index)

    def _run_cell(self, kernel: SandboxKernel, index: int, *, again: bool) -> None:
        began, left_s, cell = time.monotonic(), self.left_s(), self.plan.cells[index]
        # A cell that ended in time has proved itself: run again by us, it may be slower on a machine that is busy.
        usual_s = self.runner.limits.cell_s
        if self.hung and cell.is_demonstration:
            usual_s = min(AGAIN_S, usual_s)
        timeout_s = left_s if index in self.ended_well else min(usual_s, left_s)
        try:
            result = kernel.run(cell.runs_as, timeout_s=timeout_s)
        finally:
            self.found.usage += Usage(own_s=time.monotonic() - began)
        if again:
            if result.status == "timeout" and index in self.ended_well:
                self.found.events.append(Incident("timeout", self._called(index), "when it was run a second time"))
            return
        if not result.ok:
            self.found.raised[index] = result.error_name
        if result.status != "timeout":
            self.ended_well.add(index)
        if not self.plan.is_secret(index):
            self.found.outputs[index] = result.outputs
            if result.execution_count is not None:
                self.found.counts[index] = result.execution_count
        if result.status == "timeout":
            self.hung = True
            self.found.events.append(Incident("timeout", self._called(index)))

    def _probe(self, kernel: SandboxKernel, exercise: RegisteredExercise, index: int) -> None:
        check = CheckPoint(self, kernel, exercise, index)
        try:
            self.found.keep(self.sink.take(exercise, check))
        except Violation as broken:
            if not broken.alive:
                raise
            self._refused(exercise, broken)
        finally:
            self.found.usage += Usage(own_s=check.spent_s)

    def _refused(self, exercise: RegisteredExercise, broken: Violation) -> None:
        """The kernel lives but its answer does not count."""
        if broken.kind == "deadline":
            self._late(exercise.name)
            self.found.events.append(Incident("timeout", exercise.name))
        else:
            self.found.errors.add(exercise.name)
        what = _REFUSED.get(broken.kind, "the check got no result")
        # Where there was no answer, the reason is an exception's text, which the student's code may have written.
        self.found.keep(self.sink.miss(exercise, what=what, why=broken.why if broken.kind in _REFUSED else ""))

    def _late(self, exercise: str) -> None:
        self.hung = True
        self.found.late.add(exercise)

    def _doubtful(self, index: int, end: KernelDied | Violation, done: int) -> bool:
        """Whether a kernel that had `done` steps to run again may have died of something else than the step `index`."""
        if index in self.doubted or _death(end)[0] == "timeout":
            return False
        return index < done or any(cell.probes for cell in self.plan.cells[done:index])

    def _doubt(self, index: int, end: KernelDied | Violation) -> None:
        """The step is tried once more, in a kernel that no probe has touched: the cause may lie before it."""
        self.doubted.add(index)
        kind, why = _death(end)
        self.found.events.append(Incident(kind, self._called(index), f"{why}; tried again in a fresh kernel"))

    def _died(self, index: int, end: KernelDied | Violation) -> None:
        self.deaths += 1
        self.skipped.add(index)
        cell = self.plan.cells[index]
        kind, why = _death(end)
        self.found.events.append(Incident(kind, self._called(index), why))
        if cell.probes:
            self._late(cell.probes) if kind == "timeout" else self.found.errors.add(cell.probes)
            what = "the check stopped your code" if kind == "timeout" else "your code ended its kernel"
            exercise = self.runner.assignment.exercise(cell.probes)
            self.found.keep(self.sink.miss(exercise, what=what, why=_without_number(why)))
        elif self.plan.is_secret(index):
            self.found.outputs[index] = [_notice(kind, _without_number(why))]
        elif index not in self.found.outputs:
            self.found.outputs[index] = [*(end.result.outputs if end.result else []), _notice(kind, why)]

    def _give_up(self, done: int) -> None:
        late = time.monotonic() > self.deadline
        times = "once" if self.deaths == 1 else f"{self.deaths} times"
        why = "the notebook ran out of time" if late else f"its kernel died {times}"
        for cell in self.plan.cells[done:]:
            if cell.probes and cell.probes not in self.found.outcomes:
                exercise = self.runner.assignment.exercise(cell.probes)
                self.found.keep(self.sink.miss(exercise, what="this check was not reached", why=why))
        self.found.events.append(Incident("timeout" if late else "killed", self._called(done), why))

    def _account(self, kernel: SandboxKernel, started_cpu_s: float) -> None:
        stats = kernel.stats()
        own_cpu_s = max(0.0, stats.cpu_s - started_cpu_s)
        self.found.usage += Usage(cpu_s=stats.cpu_s, own_cpu_s=own_cpu_s, peak_bytes=stats.max_rss_bytes)

    def _called(self, index: int) -> str:
        cell = self.plan.cells[index]
        return cell.probes or (cell.known.exercise if cell.known else "") or f"cell {index + 1}"


LATE = "your code did not finish in time"
_REFUSED = {
    "deadline": LATE,
    "large answer": "the result is too large",
    "two answers": "the check received two results",
    "forged answer": "the result did not come from the check itself",
}


def _death(end: KernelDied | Violation) -> tuple[str, str]:
    """The kind of mishap that ended a kernel, and why."""
    if isinstance(end, Violation):
        return "timeout" if end.kind == "deadline" else "killed", end.why or end.kind
    return "killed", end.reason


def _without_number(why: str) -> str:
    """The reason of a death without the code that the process chose for its end."""
    return "its process ended" if why.startswith(("exit", "signal")) else why


def _notice(kind: str, why: str) -> dict[str, Any]:
    name = "CellTimeout" if kind == "timeout" else "KernelDied"
    return {"output_type": "error", "ename": name, "evalue": why, "traceback": [f"{name}: {why}"]}
