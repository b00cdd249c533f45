"""Why a fixed script has other losses: what its program does before the step at which they change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from edl_labs.errors import Wrong
from edl_labs.virtual.training import JobPlan


@dataclass
class TakenSteps:
    """The forward passes of a program: the batch of each, and what was updated how often before it."""

    batches: list[int | None] = field(default_factory=list)
    updates: list[dict[str, int]] = field(default_factory=list)
    backwards: list[int] = field(default_factory=list)
    final: dict[str, int] = field(default_factory=dict)
    both: bool = False  # update_all and update, for the same step


def taken_steps(program: Any, plan: JobPlan) -> TakenSteps:
    """What a program's copies and launches say of its steps, whatever its losses are."""
    steps, now, backwards = TakenSteps(), dict.fromkeys(plan.parameters, 0), 0
    inside: dict[int, int | None] = {}
    names: dict[int, str] = {}
    kinds: set[str] = set()
    for entry in program:
        what, _, which = str(entry.get("name", "")).partition(" ")
        if entry["op"] == "alloc":
            names[entry["buffer"]] = str(entry["name"])
        elif entry["op"] == "copy":
            inside[entry["dst"][0]] = _number(names.get(entry["src"][0], ""))
        elif entry["op"] == "launch" and (what, which) == ("forward", "0"):
            read = [inside[part[0]] for part in entry.get("reads", ()) if part[0] in inside]
            steps.batches.append(read[0] if read else None)
            steps.updates.append(dict(now))
            steps.backwards.append(backwards)
            kinds = set()
        elif entry["op"] == "launch" and what == "backward":
            backwards += which == "0"
        elif entry["op"] == "launch" and what == "update":
            for name in plan.parameters if which == "all" else (which,):
                now[name] = now.get(name, 0) + 1
            kinds.add("all" if which == "all" else "one")
            steps.both |= len(kinds) > 1
    steps.final = now
    return steps


def _number(name: str) -> int | None:
    digits = name.removeprefix("batch").partition(" ")[0]
    return int(digits) if name.startswith("batch") and digits.isdecimal() else None


def cause_of_change(program: Any, plan: JobPlan, step: int) -> tuple[str, str] | None:
    """What is wrong before the forward pass of a step, and what to do instead; None where nothing is seen."""
    steps = taken_steps(program, plan)
    for number in range(min(step + 1, len(steps.batches))):
        batch, asked = steps.batches[number], plan.order[number]
        if batch is not None and batch != asked:
            return (
                f"step {number} trains on batch {batch}, but job.order has batch {asked} there",
                "go through job.order: step i trains on the batch with the number job.order[i]",
            )
    if not 0 < step < len(steps.updates):
        return None
    return _cause_of_weights(steps, plan, step)


def _cause_of_weights(steps: TakenSteps, plan: JobPlan, step: int) -> tuple[str, str] | None:
    """Other updates before a step than one of each parameter for each step before it."""
    before = steps.updates[step]
    last = max(steps.updates[-1].values())
    if not any(steps.final.values()):
        return "the weights are never updated", "in each step, call forward, backward, and then job.update_all()"
    if last == 0:
        return (
            "the weights are updated only after the last forward pass, so every step uses the initial weights",
            "update in each step, after its backward pass: move job.update_all() into the loop",
        )
    if set(before.values()) == {2 * step}:
        how = "by job.update_all() and by job.update(name)" if steps.both else "twice in each step"
        return (
            f"each parameter is updated twice per step, {how}: {2 * step} times before step {step}, not {step}",
            "update only once per step: job.update_all() does the same as job.update(name) for all parameters",
        )
    if len(set(before.values())) > 1:
        least = min(before, key=lambda name: before[name])
        return (
            f"not all parameters are updated equally often before step {step}: {least} has {before[least]} updates",
            "update every parameter once per step, for example with job.update_all()",
        )
    count = min(before.values())
    if count != step:
        return (
            f"each parameter has {count} updates before step {step}; expected {step}, one for each earlier step",
            "update once per step, after its backward pass",
        )
    if steps.backwards[step] != step:
        return (
            f"the program has {steps.backwards[step]} backward passes before step {step}; expected {step}",
            "in each step, run one backward pass with that step's loss, and then the update",
        )
    return None


def trained(train: Any, job: Any) -> tuple[Any, int]:
    """What `train(job)` returns, and -1; nothing and the number where a dict did not hold a batch of that number."""
    try:
        return train(job), -1
    except KeyError as error:
        key = error.args[0] if error.args else None
        if type(key) is not int or not 0 <= key < job.plan.batches:
            raise
        return [], key


def batch_is_lacking(number: int, program: Any, plan: JobPlan) -> Wrong:
    """The message about a batch that a dict did not hold, by whether it was ever read."""
    if any(entry["op"] == "alloc" and entry["name"] == f"batch{number}" for entry in program):
        return Wrong(
            f"your code raised KeyError: {number}",
            why=f"your code looked up the key {number} in a dict that does not contain it, although batch {number} was "
            "read",
            next="under which key do you store batches, and under which key do you look them up?",
        )
    return Wrong(
        f"KeyError: {number}: your code looked up batch {number}, which was never read",
        why=f"the batches are numbered from 0 to {plan.batches - 1}, inclusive",
        next="check your range, since range(n) ends at n - 1; or read a batch when it is needed for the first time",
    )
