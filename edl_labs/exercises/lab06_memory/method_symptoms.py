"""What is wrong with the costs that the signs of method_table come from, and what wrong signs have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import close
from edl_labs.errors import Wrong

Answer = tuple[Any, tuple[str, ...], tuple[str, ...]]  # a case, the signs that came and those that are right
FREE = "copies were assumed to cost nothing"
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
        why = "a step of more examples takes longer and is not slower for that"
        return Wrong(
            "seconds of a step were compared, not of an example", why=why, next="divide by the step's examples"
        )
    passes_s = [[one[0] * batch - once_s for one in side] for side in (got, want)]
    return _mistake_of_passes(job, *passes_s) or _mistake_of_steps(job, got, want, once_s)


def _mistake_of_bytes(job: Any, got: Any, want: Any) -> Wrong | None:
    if close(got[0][1], want[0][1] / job["batch"]):
        why = "a step needs the bytes that it holds, whatever a single example of it does"
        return Wrong("bytes an example were compared", why=why, next="compare what a step holds")
    fixed = job["fixed_bytes"]
    if close(got[1][1] - fixed, job["parts"] * (want[1][1] - fixed)) and close(got[0][1], want[0][1]):
        why = "each micro-batch's backward pass lets go of what its forward pass left, before the next one begins"
        return Wrong(
            "all micro-batches' activations were counted at once", why=why, next="how many examples are held at once?"
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
            "a pass never takes less than the least time",
            "few examples do not fill the device",
            "the larger one of the two",
        ),
        (
            *(0, job["least_s"] + max(2 * needed_s, job["least_s"]), "the backward pass has a least time of its own"),
            *("it takes twice as long as the forward pass, however long that is", "work out the forward pass first"),
        ),
        (
            *(2, 2 * want[0], "the backward pass was done twice as well"),
            *("a checkpoint does every forward pass twice, and each backward pass once", "three parts become four"),
        ),
        (
            *(3, want[0] + 2 * copy_s, "copies wait for the passes, or passes for them"),
            *("copies overlap the passes", "of a pass and the copy that overlaps it, the longer one counts"),
        ),
        (3, want[0], FREE, "a pass cannot end before the copy that overlaps it", "the longer one of the two counts"),
        (
            *(3, max(forward_s, copy_s) + 2 * forward_s, "only one way of the copies counts"),
            *("what is copied out must come back during the backward pass", "two copies, two passes"),
        ),
    )
    for at, seconds, what, why, then in known:
        if close(got[at], seconds) and not close(got[at], want[at]):
            return Wrong(what, why=why, next=then)
    return None


def both_hidden() -> Wrong:
    """Copies that are compared with the whole step."""
    why = "the copy out has the forward pass to hide behind, the one back the backward pass"
    then = "compare each copy with its own pass"
    return Wrong("both copies hide behind both passes together", why=why, next=then)


def _mistake_of_steps(job: Any, got: Any, want: Any, once_s: float) -> Wrong | None:
    more_s = (got[1][0] - want[1][0]) * job["parts"] * job["batch"]
    if once_s and close(more_s, (job["parts"] - 1) * once_s):
        why = "gradients are exchanged and applied once for all micro-batches of a step"
        return Wrong("each micro-batch pays for an update of its own", why=why, next="add it up once a step")
    return None


def sign_habit(answers: list[Answer]) -> Wrong | None:
    """What wrong signs have in common in all answers."""
    if all(got == tuple(_SWAPPED.get(one, "") for one in want) for _, got, want in answers):
        why = "every + is a -, and every - a +"
        return Wrong("plus was taken for more seconds and more bytes", why=why, next="+ is better: fewer of them")
    if _is_table(answers):
        why = "each method has the same signs in every job"
        return Wrong("a table of methods was read, not the job", why=why, next="work out seconds and bytes of this job")
    wrong = [
        (case["method"], at, got[at], want[at]) for case, got, want in answers for at in (0, 1) if got[at] != want[at]
    ]
    if _no_reduces(answers):
        why = "the speed of every job with an all-reduce is wrong, and of no other"
        then = "seconds an example: what is done once a step is shared by all of them"
        return Wrong("fewer all-reduces were not counted", why=why, next=then)
    if {right for *_, right in wrong} == {"0"} and len({method for method, *_ in wrong}) > 1:
        why = "only signs that should be 0 are wrong, of several methods"
        return Wrong("differences of up to 1 % were counted", why=why, next="at most 1 % more or less is 0")
    if ("checkpoint", 1, "+", "0") in wrong:
        why = "where nearly all is kept, a checkpoint wins nearly nothing, and your answer is +"
        return Wrong("kept_share was taken for what is let go of", why=why, next="multiply by the share that is kept")
    offloads = {(said, right) for method, at, said, right in wrong if method == "offload" and at == 0}
    if offloads == {("0", "-"), ("-", "0")}:
        why = "where little is kept, copies cost nothing in your answers; where much is kept, they cost time"
        return Wrong("the share that is kept was copied, not the rest", why=why, next="what waits on the host?")
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
