"""place_checkpoints: where to checkpoint unequal layers under a budget."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab06_memory.placement_habits import Placed, placement_habit, summed_symptom
from edl_labs.exercises.lab06_memory.stretch_symptoms import (
    TRIED,
    gone_symptom,
    placed_mistake,
    raised_text,
    step_mistake,
    stretches_text,
)
from edl_labs.units import byte_count, seconds
from edl_labs.virtual import ReplayError
from edl_labs.virtual.memory import Tape, TapeLayer, TapeReplay, VirtualTape, replay_tape, stepped

MOST_TIME = 1.02  # of the best placement's, promised in the lab's text
MAX_OPERATIONS = 10_000  # a step of nine layers has some forty
_UNWRITTEN = "unwritten"  # the stretches of a `place` that is a stub still
_FIELDS = ("name", "activation_bytes", "output_bytes", "forward_s", "backward_s")


def _read_once(text: str, placed: Any) -> Any:
    """The stretches as `run_step` gets them: plain ones, since what came may be readable only once."""
    plain = json.loads(text or "null")
    pairs = isinstance(plain, list) and all(isinstance(one, list) and len(one) == 2 for one in plain)
    return [tuple(one) for one in plain] if pairs else placed


@exercise("place_checkpoints")
class PlaceCheckpoints(Exercise):
    """A training step on a chain of unequal layers that stays within its memory and takes the least time.

    `place(layers, budget_bytes)` gives the stretches to run again, `run_step(step, stretches)` does the step on a
    VirtualTape. The evidence is the program; of a `run_step` whose `place` is a stub still, that of a trial.
    """

    answers = ("program", "stretches")

    answer_form: ClassVar[Any] = {"program": "", "stretches": "", "trial": "", "stopped": "", "raised": ""}

    def probe(self, student: Any, given: Any) -> Any:
        step, trial = VirtualTape(tape_of_case(given)), VirtualTape(tape_of_case(given))
        layers, stopped, raised = [{**layer} for layer in given["layers"]], "", ""
        try:  # what it did until then says what is wrong with it
            student.run_step(trial, list(TRIED))
        except Exception as error:
            stopped = raised_text(error)
        try:
            placed = student.place(layers, given["budget_bytes"])
        except NotImplementedError:
            if not trial.program:
                raise
            return _evidence(step, trial, _UNWRITTEN, stopped, raised)
        stretches = stretches_text(placed)
        try:
            student.run_step(step, _read_once(stretches, placed))
        except Exception as error:
            raised = raised_text(error)
            known = placed_mistake(stretches, len(given["layers"])) or _step_symptom(trial.program, stopped)
            if known is None and gone_symptom(step.program, raised, json.loads(stretches)) is None:
                raise
        return _evidence(step, trial, stretches, stopped, raised)

    def public_want(self, case: Any, want: Any) -> Any:
        """The time that the best placement takes, and its second runs: its program would be the answer."""
        return _times(case, want)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got["stretches"] == _UNWRITTEN:
            raise _alone(case, got)
        try:
            self._judge(case, got, want)
        except Wrong as wrong:
            found = _step_symptom(_entries(got["trial"]), got["stopped"]) or placed_mistake(
                got["stretches"], len(case["layers"])
            )
            raise found or wrong from None

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What the stretches of all cases have in common, where the step itself is done rightly."""
        if any(one["stretches"] == _UNWRITTEN or _step_symptom(_entries(one["trial"]), one["stopped"]) for one in got):
            return None
        if any(one["raised"] and one["stretches"] != "null" for one in got):
            return None
        return placement_habit([self._placed(*one) for one in zip(cases, got, want, strict=True)])

    def _placed(self, case: Any, got: Any, want: Any) -> Placed:
        best = _times(case, want)
        try:
            run = self._fitting(case, got)
        except Wrong:
            run = None
        is_right = run is not None and run.makespan_s <= MOST_TIME * best["makespan_s"]
        return Placed(
            case=case,
            stretches=json.loads(got["stretches"] or "null") or [],
            is_right=is_right,
            is_late=run is not None and not is_right,
            peak_bytes=run.peak_bytes if run else 0,
            fewer_again=best["again"] - run.counts.get("recompute", 0) if run else 0,
            again_s=run.recomputed_s if run else -1.0,
            summed_again_s=_summed(case),
        )

    def _judge(self, case: Any, got: Any, want: Any) -> None:
        run = self._fitting(case, got)
        best = _times(case, want)
        if run.makespan_s > MOST_TIME * best["makespan_s"]:
            raise _time_symptom(case, run, best) or summed_symptom(run, _summed(case)) or _slow(run, best)

    def _fitting(self, case: Any, got: Any) -> TapeReplay:
        """The step, whole and within the budget; Wrong where it is not."""
        if got["raised"]:
            gone = gone_symptom(_entries(got["program"]), got["raised"], json.loads(got["stretches"] or "null"))
            raise gone or _raised(got["raised"])
        run = _replayed(case, got["program"])
        if run.missing:
            raise _not_whole(run)
        _judge_repeats(case, run)
        if run.peak_bytes > case["budget_bytes"]:
            raise _peak_symptom(case, run)
        return run

    def format_case(self, case: Any) -> str:
        """The layers and the budget."""
        lines = [
            f"  {layer['name']}: {byte_count(layer['activation_bytes'])} of activations, "
            f"{byte_count(layer['output_bytes'])} of output, {seconds(layer['forward_s'])} forward"
            f"{', may run only once' if layer['once'] else ''}"
            for layer in case["layers"]
        ]
        return "\n".join([f"a budget of {byte_count(case['budget_bytes'])}", *lines])


def tape_of_case(case: Any) -> Tape:
    """The layers of a case as a chain."""
    return Tape(tuple(TapeLayer(**{name: layer[name] for name in _FIELDS}) for layer in case["layers"]))


def _replayed(case: Any, text: Any) -> TapeReplay:
    try:
        return replay_tape(json.loads(text), tape_of_case(case), max_operations=MAX_OPERATIONS)
    except (TypeError, ValueError, RecursionError):
        why, then = "the record cannot be read", "use only the step's own methods, and do not change its record"
        raise Wrong("the recorded program does not come from a VirtualTape", why=why, next=then) from None
    except ReplayError as error:
        raise Wrong(
            "the recorded program is not possible on this tape", why=f"{error.what}: {error.why}", next=error.next
        ) from None


def _judge_repeats(case: Any, run: TapeReplay) -> None:
    again = [entry["layer"] for entry in run.program if entry["op"] == "recompute"]
    named = [layer["name"] for layer in case["layers"]]
    once = [named[i] for i in again if case["layers"][i]["once"]]
    if once:
        why = f"{once[0]} runs again, but it draws random numbers or updates statistics, and would do so twice"
        raise Wrong(
            "your step reruns a layer that may run only once", why=why, next="end a stretch before such a layer"
        )
    if any(entry["op"] in ("offload", "fetch") for entry in run.program):
        why = "the host's memory is not part of this exercise"
        raise Wrong("your code copies layers to the host", why=why, next="use only keep, drop and recompute")


def _peak_symptom(case: Any, run: TapeReplay) -> Wrong:
    why = (
        f"the peak is {byte_count(run.peak_bytes)} at {run.peak.operation}, most of it {run.peak_owner}; the budget is "
        f"{byte_count(case['budget_bytes'])}"
    )
    if not run.counts.get("recompute"):
        return Wrong(
            "your step keeps everything, but that does not fit", why=why, next="which stretches could run again?"
        )
    ops = [entry["op"] for entry in run.program]
    if "drop" not in ops and ("recompute", "recompute") in pairwise(ops):
        then = "drop the others: only the output of a stretch's last layer is needed before the stretch runs again"
        return Wrong("your code never drops the outputs inside a stretch", why=why, next=then)
    if run.peak.operation.startswith("forward"):
        return Wrong("your forward pass keeps too much", why=why, next="what is still held of the earlier layers?")
    then = (
        "add up what is in memory when a stretch runs again: everything that its layers save, and what is kept before "
        "it"
    )
    return Wrong("in your step, a stretch that runs again does not fit", why=why, next=then)


def _why_slow(run: TapeReplay, best: Any) -> str:
    return (
        f"second runs take {seconds(run.recomputed_s)}; the best step takes {seconds(best['makespan_s'])}, and this "
        f"one takes {seconds(run.makespan_s)}"
    )


def _slow(run: TapeReplay, best: Any) -> Wrong:
    return Wrong(
        "your stretches are not the fastest ones that fit",
        why=_why_slow(run, best),
        next="try every set of stretches that fits",
    )


def _time_symptom(case: Any, run: TapeReplay, best: Any) -> Wrong | None:
    again, why = [entry["layer"] for entry in run.program if entry["op"] == "recompute"], _why_slow(run, best)
    everything = sum(layer["activation_bytes"] for layer in case["layers"])
    if everything <= case["budget_bytes"]:
        then = "how long does a step take if it keeps everything?"
        return Wrong("your step recomputes layers, but everything fits without that", why=why, next=then)
    if len(again) > len(set(again)):
        return Wrong(
            "in your step, a layer runs again more than once",
            why=why,
            next="run a stretch once, and keep what it saves",
        )
    if len(again) == sum(not layer["once"] for layer in case["layers"]):
        return Wrong(
            "in your step, every layer that may run again does so",
            why=why,
            next="keep as much as the budget has room for",
        )
    if len(again) < best["again"]:
        why += f"; {len(again)} layers run again here, but {best['again']} in the best step"
        return Wrong(
            "in your step, only a few layers run again, but they take long",
            why=why,
            next="add up their seconds instead of counting them",
        )
    return None


def _entries(text: str) -> list[Any]:
    """A recorded program; empty where it cannot be read."""
    with suppress(ValueError, RecursionError):
        found = json.loads(text)
        return found if isinstance(found, list) else []
    return []


def _evidence(step: VirtualTape, trial: VirtualTape, stretches: str, stopped: str, raised: str) -> dict[str, str]:
    texts = [json.dumps(one.program, separators=(",", ":")) for one in (step, trial)]
    return {"program": texts[0], "stretches": stretches, "trial": texts[1], "stopped": stopped, "raised": raised}


def _times(case: Any, want: Any) -> Any:
    """What `public` leaves of the reference's evidence, less what takes long to work out."""
    if "again" in want:
        return want
    run = _replayed(case, want["program"])
    return {"makespan_s": run.makespan_s, "again": run.counts.get("recompute", 0)}


def _summed(case: Any) -> list[float]:
    """The least seconds of second runs where the peak is taken for a sum, by either rule; -1 where nothing fits so."""
    return list(case.get("summed_again_s", (-1.0, -1.0)))


def _not_whole(run: TapeReplay) -> Wrong:
    why = f"{', '.join(run.missing[:3])} never ran"
    return Wrong("your step is incomplete", why=why, next="run every layer forward once and backward once")


def _step_symptom(program: list[Any], stopped: str) -> Wrong | None:
    """What `run_step` does wrongly with the stretches TRIED."""
    return step_mistake(program) or gone_symptom(program, stopped, TRIED)


def _raised(text: str) -> Wrong:
    return Wrong(f"your code raised {text}", why="in run_step", next="run it on the inputs shown")


def _alone(case: Any, got: Any) -> Wrong:
    """What a `run_step` comes to while `place` is not written."""
    program = _entries(got["trial"])
    found = _step_symptom(program, got["stopped"])
    if found or got["stopped"]:
        return found or _raised(got["stopped"])
    try:
        run = _replayed(case, got["trial"])
    except Wrong as wrong:
        return wrong
    right, tried = stepped(tape_of_case(case), TRIED).replay(), f"with the stretches {list(TRIED)}, "
    if run.missing:
        return _not_whole(run)
    if run.recomputed_s > right.recomputed_s:
        why = f"{tried}second runs take {seconds(run.recomputed_s)}"
        return Wrong("in your step, a layer runs again more than once", why=why)
    if run.peak_bytes > right.peak_bytes:
        why = f"{tried}the peak is {byte_count(run.peak_bytes)}, at {run.peak.operation}"
        then = f"find out what can be dropped earlier: a peak of {byte_count(right.peak_bytes)} is enough"
        return Wrong("`run_step()` holds more than necessary", why=why, next=then)
    why = f"{tried}the step is complete, and its peak is {byte_count(run.peak_bytes)}, as it should be"
    return Wrong(
        "`run_step()` is right, but `place()` is not written yet", why=why, next="write `place()`, then check again"
    )
