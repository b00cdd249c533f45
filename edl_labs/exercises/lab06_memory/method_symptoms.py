"""What is wrong with the costs that the signs of method_table come from, and what wrong signs have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import close
from edl_labs.errors import Wrong

Answer = tuple[Any, tuple[str, ...], tuple[str, ...]]  # a case, the signs that came and those that are right
FREE = "your code assumes that copies cost nothing"
_SWAPPED = {"+": "-", "-": "+", "0": "0"}


def cost_mistake(job: Any, got: Any, want: Any) -> Wrong | None:
    """What the costs of a plain step, of one in parts, one with a checkpoint and one with copies show, if anything."""
    if len(got) != len(want) or not want:
        return None
    found = _mistake_of_bytes(job, got, want)
    if found is not None:
        return found
    batch, once_s = job["batch"], job["reduce_s"] + job["update_s"]
    if all(
        close(mine[0], right[0] * batch * (job["parts"] if at == 1 else 1))
        for at, (mine, right) in enumerate(zip(got, want, strict=True))
    ):
        why = "a step with more examples takes longer, but that does not make it slower per example"
        return Wrong(
            "your code compares seconds per step, not per example",
            why=why,
            next="divide by the number of examples in the step",
        )
    passes_s = [[one[0] * batch - once_s for one in side] for side in (got, want)]
    return _mistake_of_passes(job, *passes_s) or _mistake_of_steps(job, got, want, once_s)


def _mistake_of_bytes(job: Any, got: Any, want: Any) -> Wrong | None:
    if close(got[0][1], want[0][1] / job["batch"]):
        why = "memory is limited by the bytes of a whole step, not by those of one example"
        return Wrong("your code compares bytes per example", why=why, next="compare the bytes that a step holds")
    fixed = job["fixed_bytes"]
    if close(got[1][1] - fixed, job["parts"] * (want[1][1] - fixed)) and close(got[0][1], want[0][1]):
        why = "each micro-batch's backward pass frees its activations before the next micro-batch begins"
        return Wrong(
            "your code counts the activations of all micro-batches at once",
            why=why,
            next="the activations of how many examples are held at once?",
        )
    return None


def _mistake_of_passes(job: Any, got: list[float], want: list[float]) -> Wrong | None:
    """Of seconds of the passes alone; `want` has three forward passes' worth in a plain step."""
    forward_s, needed_s = want[0] / 3, job["batch"] * job["example_s"]
    rest_bytes = (1 - job["kept_share"]) * job["batch"] * job["example_bytes"]
    copy_s = rest_bytes / job["copy_byte_per_s"]
    known: tuple[tuple[int, float, str, str, str], ...] = (
        (
            0,
            3 * needed_s,
            "your code ignores the least time of a pass",
            "a pass never takes less than this time, since a few examples do not fill the device",
            "for each pass, use the larger of this time and the time of its examples",
        ),
        (
            *(
                0,
                job["least_s"] + max(2 * needed_s, job["least_s"]),
                "your code uses a separate least time for the backward pass",
            ),
            *(
                "the backward pass takes twice as long as the forward pass, however long that is",
                "work out the forward pass first",
            ),
        ),
        (
            *(2, 2 * want[0], "your code counts the backward pass twice too"),
            *(
                "a checkpoint runs the forward pass twice, but the backward pass once",
                "count two forward passes and one backward pass, which takes as long as two forward passes",
            ),
        ),
        (
            *(3, want[0] + 2 * copy_s, "your code counts copies and passes one after the other"),
            *("copies overlap the passes", "count the longer one of a pass and the copy that overlaps it"),
        ),
        (
            3,
            want[0],
            FREE,
            "a pass cannot end before the copy that overlaps it",
            "count the longer one of a pass and the copy that overlaps it",
        ),
        (
            *(3, max(forward_s, copy_s) + 2 * forward_s, "your code counts only the copy out"),
            *("what is copied out must be copied back during the backward pass", "compare two copies with two passes"),
        ),
    )
    for at, seconds, what, why, then in known:
        if close(got[at], seconds) and not close(got[at], want[at]):
            return Wrong(what, why=why, next=then)
    return None


def both_hidden() -> Wrong:
    """Copies that are compared with the whole step."""
    why = "only the forward pass can hide the copy out, and only the backward pass can hide the copy back"
    then = "compare each copy with its own pass"
    return Wrong("your code compares both copies together with both passes together", why=why, next=then)


def _mistake_of_steps(job: Any, got: Any, want: Any, once_s: float) -> Wrong | None:
    more_s = (got[1][0] - want[1][0]) * job["parts"] * job["batch"]
    if once_s and close(more_s, (job["parts"] - 1) * once_s):
        why = "gradients are exchanged and applied once for all micro-batches of a step"
        return Wrong("your code counts an update for each micro-batch", why=why, next="count the update once per step")
    return None


def sign_habit(answers: list[Answer]) -> Wrong | None:
    """What wrong signs have in common in all answers."""
    if all(got == tuple(_SWAPPED.get(one, "") for one in want) for _, got, want in answers):
        why = "you returned - for every +, and + for every -"
        return Wrong(
            "your code uses + for more seconds and more bytes",
            why=why,
            next="use + where a method is better, with fewer seconds or bytes",
        )
    if _is_table(answers):
        why = "your signs of each method are the same for every job"
        return Wrong(
            "your answers do not depend on the job", why=why, next="work out the seconds and bytes of each job"
        )
    wrong = [
        (case["method"], at, got[at], want[at]) for case, got, want in answers for at in (0, 1) if got[at] != want[at]
    ]
    if _no_reduces(answers):
        why = "the speed is wrong exactly for the jobs with an all-reduce"
        then = "compare seconds per example: all examples of a step share what is done once per step"
        return Wrong("your answer ignores that there are fewer all-reduces", why=why, next=then)
    if {right for *_, right in wrong} == {"0"} and len({method for method, *_ in wrong}) > 1:
        why = "only signs that should be 0 are wrong, for several methods"
        return Wrong(
            "your code counts differences of up to 1 %", why=why, next="return 0 for a difference of at most 1 %"
        )
    offloads = {(said, right) for method, at, said, right in wrong if method == "offload" and at == 0}
    copies = "copies cost nothing if little is kept, and they cost time if much is kept"
    if ("checkpoint", 1, "+", "0") in wrong and offloads == {("0", "-"), ("-", "0")}:
        kept = [
            case["job"]["kept_share"]
            for case, got, want in answers
            if (case["method"], got[1], want[1]) == ("checkpoint", "+", "0")
        ]
        why = (
            f"you returned + for the memory of a checkpoint that keeps a share of {kept[0]}; in your answers, {copies}"
        )
        return Wrong(
            "your code uses `kept_share` as the share that is dropped",
            why=why,
            next="multiply by the share that is kept",
        )
    if offloads == {("0", "-"), ("-", "0")}:
        why = f"in your answers, {copies}"
        return Wrong(
            "your code copies the share that is kept instead of the rest", why=why, next="what is moved to the host?"
        )
    return None


def _no_reduces(answers: list[Answer]) -> bool:
    reduces = [case["job"]["reduce_s"] > 0 for case, *_ in answers]
    slips = [got[0] != want[0] for _, got, want in answers]
    return any(reduces) and slips == reduces and all(got[1] == want[1] for _, got, want in answers)


def _is_table(answers: list[Answer]) -> bool:
    def signs(read: Callable[[Answer], Any]) -> dict[str, set[Any]]:
        found: dict[str, set[Any]] = {}
        for one in answers:
            found.setdefault(one[0]["method"], set()).add(read(one))
        return found

    given, right = signs(lambda one: one[1]), signs(lambda one: one[2])
    return all(len(one) == 1 for one in given.values()) and any(len(one) > 1 for one in right.values())
