"""same_or_not: whether a window of micro-batches trains as one large batch does, and if not, what differs."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, exercise, score_above_chance
from edl_labs.errors import Wrong

ANSWERS = ("no", "noise only", "statistics", "update")
_ONCE = ("clip", "scaler", "scheduler")


@exercise("same_or_not")
class SameOrNot(Exercise):
    """What differs between a step on one large batch and one on its micro-batches: one of ANSWERS.

    `what_differs(job)` gives the word for a job of layers and of what is done once a window or once a micro-batch.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        return student.what_differs({**given, "layers": [{**layer} for layer in given["layers"]]})

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got not in ANSWERS:
            why = f"{got[:30]!r} came back; they are {', '.join(ANSWERS)}"
            raise Wrong("that is none of the four answers", why=why, next="return one of these words")
        if got == want:
            return
        if want == "update":
            raise _update_symptom(case)
        if got == "update":
            why = "all that is done to gradients and to the step is done once a window, as with one large batch"
            raise Wrong("nothing here changes the update itself", why=why, next="what is done to each micro-batch?")
        if want == "statistics" and got == "noise only" and _has(case, "dropout"):
            why = "a layer normalises with other means here, and a dropout in the same case hid that"
            then = "the first word of the table that applies to any layer, not the word of the first layer"
            raise Wrong("a dropout hid a batch norm", why=why, next=then)
        if want == "statistics":
            raise _overlooked_norm(case)
        if got == "statistics":
            raise _harmless_norm(case)
        raise _mask_symptom(case, want)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """A habit that all answers show, where one case alone fits several."""
        both = list(zip(cases, got, want, strict=True))
        wrong = [(case, said, right) for case, said, right in both if said != right]
        for is_so, what, why, then in _TAKEN_FOR_UPDATES:
            if all((said == "update") == (right == "update" or is_so(case)) for case, said, right in both):
                return Wrong(what, why=why, next=then)
        hidden = {right for case, said, right in wrong if said == "noise only" and _has(case, "dropout")}
        if hidden == {"update", "statistics"} and all(said != "no" for _, said, _ in wrong):
            why = "where several words apply, the answer is the lower one in the table"
            return Wrong("the words are asked in another order", why=why, next="the table's first word that applies")
        unkept = [case for case, _, right in wrong if right == "statistics" and _is_unkept(case)]
        if len(unkept) == len(wrong) and any(layer["training"] for case in unkept for layer in case["layers"]):
            why = "without running statistics, in training too, it has only the batch in front of it to measure"
            then = "running statistics are kept for later: in training, nothing is normalised with them"
            return Wrong("a batch norm that keeps nothing was taken for one that measures nothing", why=why, next=then)
        return None

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that luck can bring."""
        return score_above_chance(fractions, answers=len(ANSWERS))

    def format_case(self, case: Any) -> str:
        """The layers, and what is done how often."""
        lines = [f"  {', '.join(f'{name} {value}' for name, value in layer.items())}" for layer in case["layers"]]
        done = ", ".join(f"{name}: once a {case[name]}" for name in _ONCE if case[name])
        return "\n".join([f"{case['optimizer']}; {done or 'no clipping, scaler or scheduler'}", *lines])


def _update_symptom(case: Any) -> Wrong:
    done = [name for name in _ONCE if case[name] == "micro-batch"]
    if done == ["clip"]:
        why = "the sum of clipped gradients is not the clipped sum: it may be longer, and point elsewhere"
        then = "clip once, when all gradients of the window are added up"
        return Wrong("clipping each micro-batch was taken for harmless", why=why, next=then)
    if done == ["scaler"]:
        why = "when the scale changes within a window, its gradients are added up in different units"
        return Wrong("a scale that moves within the window was overlooked", why=why, next="update it once a window")
    if done == ["scheduler"]:
        why = "the learning rate then falls as many times as there are micro-batches"
        return Wrong(
            "a schedule that runs ahead was overlooked", why=why, next="a step of the schedule for each update"
        )
    why = "something is done once a micro-batch that one large batch does once"
    return Wrong("the update is another one", why=why, next="go through clip, scaler and scheduler")


def _has(case: Any, kind: str) -> bool:
    return any(layer["kind"] == kind for layer in case["layers"])


def _is_unkept(case: Any) -> bool:
    return any(layer.get("running_statistics") is False for layer in case["layers"])


_TAKEN_FOR_UPDATES = (
    (
        lambda case: case["optimizer"] == "adam",
        "Adam was taken for another update",
        "every job with Adam is called one; it divides by roots of squares, of the window's gradient in both cases",
        "what does the optimizer see, and how often?",
    ),
    (
        lambda case: case["clip"] == "window",
        "clipping once a window was taken for another update",
        "the window's gradient is that of the large batch, and so is its norm",
        "what is clipped, and how often?",
    ),
    (
        lambda case: any(case[name] != "window" for name in _ONCE),
        "what is never done was taken for another update",
        "an empty text says that it is done neither with one large batch nor with micro-batches",
        "look for what is done once a micro-batch",
    ),
)


def _overlooked_norm(case: Any) -> Wrong:
    norms = [layer for layer in case["layers"] if layer["kind"].endswith("batch_norm")]
    if all(layer["kind"] == "sync_batch_norm" or not layer["training"] for layer in norms):
        if any(layer["kind"] == "sync_batch_norm" and layer["training"] for layer in norms):
            why = "it gathers what other ranks see in the same pass; micro-batches come one after the other"
            return Wrong("ranks were taken for micro-batches", why=why, next="which passes does it see at once?")
        why = "where it keeps no running statistics, it measures in eval mode as well"
        return Wrong("eval mode was taken for running statistics", why=why, next="what would it normalise with?")
    why = "in training it normalises with the mean and variance of what it sees at once: one micro-batch"
    return Wrong("batch norm sees one micro-batch at a time", why=why, next="look for layers that mix examples")


def _harmless_norm(case: Any) -> Wrong:
    if any(layer["kind"].endswith("batch_norm") for layer in case["layers"]):
        why = "in eval mode it normalises with its running statistics, whatever the batch is"
        return Wrong("a batch norm in eval mode was treated as one that measures", why=why, next="read its mode")
    why = "it takes its mean over the features of one example, however many there are"
    return Wrong("a norm over single examples was taken for one over the batch", why=why, next="over what is its mean?")


def _mask_symptom(case: Any, want: str) -> Wrong:
    if want == "noise only":
        why = "the same number of elements is dropped, and each pass draws its own mask"
        then = "the gradient is right on average, and differs from step to step"
        return Wrong("dropout draws other masks", why=why, next=then)
    if any(layer["kind"] == "dropout" and layer["training"] for layer in case["layers"]):
        return Wrong("a dropout of nothing was taken for noise", why="with p = 0 nothing is dropped", next="read its p")
    why = "in eval mode it hands on what it gets, whatever its p is"
    return Wrong("a dropout in eval mode was taken for noise", why=why, next="read its mode")
