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
            why = f"got {got[:30]!r}; the answers are {', '.join(ANSWERS)}"
            raise Wrong("your answer is not one of the four words", why=why, next="return one of these words")
        if got == want:
            return
        if want == "update":
            raise _update_symptom(case)
        if got == "update":
            why = "everything that is done to the gradients is done once per window, as with one large batch"
            raise Wrong(
                "your answer is `update`, but nothing here changes the update itself",
                why=why,
                next="what is done to each micro-batch?",
            )
        if want == "statistics" and got == "noise only" and _has(case, "dropout"):
            why = "this job has both a dropout and a layer that normalises with different means"
            then = "return the first word of the table that applies to any layer, not the word of the first layer"
            raise Wrong("your answer overlooks a batch norm next to a dropout", why=why, next=then)
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
            why = "if several words apply, your answer is the lower one in the table"
            then = "return the first word of the table that applies"
            return Wrong("your code checks the words in a different order", why=why, next=then)
        unkept = [case for case, _, right in wrong if right == "statistics" and _is_unkept(case)]
        if len(unkept) == len(wrong) and any(layer["training"] for case in unkept for layer in case["layers"]):
            why = (
                "without running statistics, this layer normalises with the statistics of the current batch, as it "
                "does "
                "in training"
            )
            then = "which statistics does this layer use in training? Running statistics are only kept for later"
            return Wrong("your answer treats a batch norm without running statistics as harmless", why=why, next=then)
        return None

    def combine(self, fractions: list[float]) -> float:
        """The share of right answers beyond those that luck can bring."""
        return score_above_chance(fractions, answers=len(ANSWERS))

    def format_case(self, case: Any) -> str:
        """The layers, and what is done how often."""
        lines = [f"  {', '.join(f'{name} {value}' for name, value in layer.items())}" for layer in case["layers"]]
        done = ", ".join(f"{name}: once per {case[name]}" for name in _ONCE if case[name])
        return "\n".join([f"{case['optimizer']}; {done or 'no clipping, scaler or scheduler'}", *lines])


def _update_symptom(case: Any) -> Wrong:
    done = [name for name in _ONCE if case[name] == "micro-batch"]
    if done == ["clip"]:
        why = "the sum of clipped gradients is not the clipped sum: it may be longer, and have a different direction"
        then = "compare with clipping once, after all gradients of the window have been added up"
        return Wrong("your answer treats clipping each micro-batch as harmless", why=why, next=then)
    if done == ["scaler"]:
        why = "if the scale changes within a window, gradients with different scales are added up"
        then = "compare with updating the scale once per window"
        return Wrong("your answer overlooks a scale that changes within the window", why=why, next=then)
    if done == ["scheduler"]:
        why = "the scheduler makes a step for each micro-batch instead of one for each update"
        return Wrong(
            "your answer overlooks a schedule that runs ahead",
            why=why,
            next="compare with a scheduler that makes one step per update",
        )
    why = "something is done for each micro-batch that is done only once for one large batch"
    return Wrong("your answer overlooks that the update differs", why=why, next="go through clip, scaler and scheduler")


def _has(case: Any, kind: str) -> bool:
    return any(layer["kind"] == kind for layer in case["layers"])


def _is_unkept(case: Any) -> bool:
    return any(layer.get("running_statistics") is False for layer in case["layers"])


_TAKEN_FOR_UPDATES = (
    (
        lambda case: case["optimizer"] == "adam",
        "your code treats Adam as a different update",
        "your answer is `update` for every job with Adam, but Adam gets the window's gradient in both cases",
        "what does the optimizer get, and how often?",
    ),
    (
        lambda case: case["clip"] == "window",
        "your code treats clipping once per window as a different update",
        "the window's gradient equals that of the large batch, and so does its norm",
        "what is clipped, and how often?",
    ),
    (
        lambda case: any(case[name] != "window" for name in _ONCE),
        "your code treats something that is never done as a different update",
        "an empty text means that the job never does this, neither with one large batch nor with micro-batches",
        "look for things that are done once per micro-batch",
    ),
)


def _overlooked_norm(case: Any) -> Wrong:
    norms = [layer for layer in case["layers"] if layer["kind"].endswith("batch_norm")]
    if all(layer["kind"] == "sync_batch_norm" or not layer["training"] for layer in norms):
        if any(layer["kind"] == "sync_batch_norm" and layer["training"] for layer in norms):
            why = (
                "sync_batch_norm gathers statistics of other ranks in the same pass; micro-batches run one after "
                "the other"
            )
            return Wrong(
                "your answer treats micro-batches like ranks", why=why, next="which passes does this layer combine?"
            )
        why = "a batch norm that keeps no running statistics uses the statistics of the batch in eval mode as well"
        return Wrong(
            "your answer assumes that eval mode always means running statistics",
            why=why,
            next="what does this layer normalise with?",
        )
    why = "in training, batch norm normalises with the mean and variance of only one micro-batch at a time"
    return Wrong("your answer overlooks a batch norm in training", why=why, next="look for layers that mix examples")


def _harmless_norm(case: Any) -> Wrong:
    if any(layer["kind"].endswith("batch_norm") for layer in case["layers"]):
        why = "in eval mode, this layer normalises with its running statistics, whatever is in the batch"
        return Wrong(
            "your answer treats a batch norm in eval mode like one in training",
            why=why,
            next="check the mode of the layer",
        )
    why = "this norm computes its mean over the features of one example, however many examples there are"
    then = "over what does this layer compute its mean?"
    return Wrong("your answer treats a norm within each example like one over the batch", why=why, next=then)


def _mask_symptom(case: Any, want: str) -> Wrong:
    if want == "noise only":
        why = (
            "each pass draws its own mask, so the gradient is right on average but differs from that of one large batch"
        )
        then = "look for layers that draw random numbers"
        return Wrong("your answer overlooks a dropout in training", why=why, next=then)
    if any(layer["kind"] == "dropout" and layer["training"] for layer in case["layers"]):
        why = "with p = 0, nothing is dropped"
        return Wrong(
            "your answer treats a dropout that drops nothing as noise",
            why=why,
            next="check the p of each dropout: how much does it drop?",
        )
    why = "in eval mode, dropout returns its input unchanged, whatever its p is"
    return Wrong("your answer treats a dropout in eval mode as noise", why=why, next="check the mode of the layer")
