"""offload_or_recompute: for each layer of a step, whether its activations are kept, copied away or worked out again."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab06_memory.plan_symptoms import (
    TRIED,
    issue_mistake,
    plan_habit,
    plan_of,
    raise_mistake,
)
from edl_labs.units import byte_count, byte_rate, seconds
from edl_labs.virtual import ReplayError
from edl_labs.virtual.memory import Tape, TapeLayer, TapeReplay, VirtualTape, replay_tape

MOST_TIME = 1.05  # of the best plan's, promised in the lab's text
_MAX_OPERATIONS = 10_000  # a step of five layers has some twenty


@exercise("offload_or_recompute")
class OffloadOrRecompute(Exercise):
    """A training step that stays within its memory by copies to the host and second runs, in nearly the least time.

    `do_step(step, budget_bytes)` does the whole step on a VirtualTape. The evidence is the program.
    """

    answers = ("program",)

    answer_form: ClassVar[Any] = {"program": "", "issued": "", "raised": ""}

    def probe(self, student: Any, given: Any) -> Any:
        step, raised = VirtualTape(_tape_of(given)), ""
        issued = _issued(student, given)
        try:
            student.do_step(step, given["budget_bytes"])
        except Exception as error:
            raised = type(error).__name__
            if raise_mistake(step.program) is None and issue_mistake(issued) is None:
                raise
        return {
            "program": json.dumps(step.program, separators=(",", ":")),
            "issued": json.dumps(issued, separators=(",", ":")),
            "raised": raised,
        }

    def public_want(self, case: Any, want: Any) -> Any:
        """The time that the best plan takes: its program would be the answer."""
        return {"makespan_s": _replayed(case, want["program"]).makespan_s}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        try:
            self._judge(case, got, want)
        except Wrong as wrong:
            raise issue_mistake(_read(got["issued"])) or wrong from None

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What the plans of all cases have in common, where `issue` does what they say."""
        if any(one["raised"] or issue_mistake(_read(one["issued"])) for one in got):
            return None
        runs = [_replayed(case, one["program"]) for case, one in zip(cases, got, strict=True)]
        if any(run.missing for run in runs):
            return None
        plans = [plan_of(run.program, len(case["layers"])) for case, run in zip(cases, runs, strict=True)]
        right = [self._is_right(*one) for one in zip(cases, got, want, strict=True)]
        return plan_habit(cases, plans, [run.peak_bytes for run in runs], right)

    def _is_right(self, case: Any, got: Any, want: Any) -> bool:
        try:
            self._judge(case, got, want)
        except Wrong:
            return False
        return True

    def _judge(self, case: Any, got: Any, want: Any) -> None:
        run = _replayed(case, got["program"])
        if got["raised"]:
            known = raise_mistake(list(run.program))
            raise known or Wrong("your code raised an exception", why=got["raised"], next="run it on the inputs shown")
        if not run.program:
            why = "`do_step()` returned without issuing any operation on the step"
            raise Wrong(
                "your code did not do the step", why=why, next="after you have found a plan, issue it on `step`"
            )
        if run.missing:
            why = f"{', '.join(run.missing[:3])} never ran"
            raise Wrong("your step is incomplete", why=why, next="run every layer forward once and backward once")
        if run.peak_bytes > case["budget_bytes"]:
            why = (
                f"the peak is {byte_count(run.peak_bytes)} at {run.peak.operation}, most of it {run.peak_owner}; the "
                f"budget is {byte_count(case['budget_bytes'])}"
            )
            raise _peak_symptom(run, why)
        best_s = want["makespan_s"] if "makespan_s" in want else _replayed(case, want["program"]).makespan_s
        if run.makespan_s > MOST_TIME * best_s:
            raise _time_symptom(case, run, best_s)

    def format_case(self, case: Any) -> str:
        """The layers, the copy engines and the budget."""
        lines = [
            f"  {layer['name']}: {byte_count(layer['activation_bytes'])} of activations, "
            f"{byte_count(layer['output_bytes'])} of output, {seconds(layer['forward_s'])} forward, "
            f"{seconds(layer['backward_s'])} backward"
            for layer in case["layers"]
        ]
        head = f"a budget of {byte_count(case['budget_bytes'])}, copies at {byte_rate(case['copy_byte_per_s'])}"
        return "\n".join([head, *lines])


def _tape_of(case: Any) -> Tape:
    return Tape(tuple(TapeLayer(**layer) for layer in case["layers"]), copy_byte_per_s=case["copy_byte_per_s"])


def _issued(student: Any, case: Any) -> list[Any]:
    """What `issue` does by the plans TRIED, as far as it comes."""
    programs = []
    for plan in TRIED:
        step = VirtualTape(_tape_of(case))
        with suppress(Exception):
            student.issue(step, list(plan))
        programs.append(step.program)
    return programs


def _read(text: str) -> list[Any]:
    with suppress(ValueError, RecursionError):
        found = json.loads(text)
        return found if isinstance(found, list) else []
    return []


def _replayed(case: Any, text: Any) -> TapeReplay:
    try:
        return replay_tape(json.loads(text), _tape_of(case), max_operations=_MAX_OPERATIONS)
    except (TypeError, ValueError, RecursionError):
        why, then = "the record cannot be read", "use only the step's own methods, and do not change its record"
        raise Wrong("the recorded program does not come from a VirtualTape", why=why, next=then) from None
    except ReplayError as error:
        raise Wrong(
            "the recorded program is not possible on this tape", why=f"{error.what}: {error.why}", next=error.next
        ) from None


def _peak_symptom(run: TapeReplay, why: str) -> Wrong:
    if run.counts.get("offload"):
        then = (
            "use replay() of a plan to find its peak, not a sum over layers: a copy frees its memory only when it ends"
        )
        return Wrong("your step exceeds its budget, even with layers copied out", why=why, next=then)
    if not run.counts.get("recompute"):
        return Wrong(
            "your step keeps everything, but that does not fit",
            why=why,
            next="which layers could be copied or run again?",
        )
    return Wrong(
        "your step keeps too much besides the layers that run again", why=why, next="recompute or copy more layers"
    )


def _time_symptom(case: Any, run: TapeReplay, best_s: float) -> Wrong:
    why = f"this step takes {seconds(run.makespan_s)}, and the best one takes {seconds(best_s)}"
    activations = sum(layer["activation_bytes"] for layer in case["layers"])
    if activations <= case["budget_bytes"]:
        return Wrong(
            "your step saves bytes, but everything fits without that",
            why=why,
            next="how long does a step take if it keeps everything?",
        )
    if _is_fetched_late(run):
        why += f"; passes wait {seconds(run.waited_s)} for copies"
        then = "start each fetch one pass earlier: that pass then hides the copy"
        return Wrong("your code starts fetches only when their data are needed", why=why, next=then)
    passes_s = sum(layer["forward_s"] for layer in case["layers"])
    if not run.counts.get("offload") and activations < passes_s * case["copy_byte_per_s"]:
        why += f"; second runs take {seconds(run.recomputed_s)}, and nothing is copied"
        then = "try copies: a copy costs no time while passes hide it"
        return Wrong("in your step, layers run again while the copy engines are idle", why=why, next=then)
    if not run.counts.get("recompute"):
        why += f"; passes wait {seconds(run.waited_s)} for copies, and nothing runs again"
        then = "for each layer, compare its bytes divided by the copy rate with the time of its forward pass"
        return Wrong("in your step, copies take longer than running layers again would", why=why, next=then)
    then = "choose the fastest of all plans that fit, not the first one: five layers have 243 plans"
    return Wrong("your plan is not the fastest one that fits", why=why, next=then)


def _is_fetched_late(run: TapeReplay) -> bool:
    """Whether the first pass after a copy back needs it, though other backward passes came before."""
    entries, begun = list(run.program), False
    for at, entry in enumerate(entries):
        if entry["op"] == "fetch" and begun:
            later = next((one for one in entries[at:] if one["op"] in ("recompute", "backward")), entry)
            if later["layer"] - entry["layer"] in (0, 1):
                return True
        begun = begun or entry["op"] == "backward"
    return False
