"""chunked_loss: the loss of a language model's head in chunks of positions, its gradients made in the forward pass."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.device import torch_threads
from edl_labs.errors import Wrong
from edl_labs.exercises.slip_digests import Sentence
from edl_labs.units import byte_count

IGNORED = -100  # torch's own
_LIKE = 1e-5  # relative: sums in fp32 are nearer than that
_KEPT_TWICE = 0.6  # the memory is saved, a third more is computed: as the text says, 3 of 5 points
_PER_GRADIENT = 4  # operators on each gradient in the backward pass: one is needed to scale it
_PRODUCTS = ("mm", "bmm", "addmm", "mv")  # what makes logits
_PER_CHUNK = 6  # tensors of a chunk's logits that a plain way to write it holds at once


@exercise("chunked_loss")
class ChunkedLoss(Exercise):
    """`chunked_loss(hidden, weight, targets, rows, smoothing, mean)`, as a program that the judge plays.

    The evidence is what the function does, on stand-in values; the judge plays it on values of its own, and counts
    memory and products itself.
    """

    answers = ("program",)

    answer_form: ClassVar[Any] = {"program": "", "returned": ""}

    def probe(self, student: Any, given: Any) -> Any:
        import torch

        from edl_labs.graph.tensor_programs import Recorder

        inputs = drawn_inputs(given, seed=0)
        hidden, weight, targets, factor = inputs.values()
        recorder = Recorder(inputs)
        with torch_threads(1), recorder.recording():
            leaves = [one.detach().requires_grad_() for one in (hidden, weight)]
            loss = student.chunked_loss(*leaves, targets, given["rows"], given["smoothing"], given["mean"])
            if not isinstance(loss, torch.Tensor):
                return {"program": "", "returned": type(loss).__name__}
            if loss.requires_grad:
                (loss * factor).sum().backward()
        found = {"loss": loss, "hidden": leaves[0].grad, "weight": leaves[1].grad}
        given_back = {name: one for name, one in found.items() if one is not None}
        return {"program": recorder.text(given_back), "returned": str(list(loss.shape))}

    def public_want(self, case: Any, want: Any) -> Any:
        """What the reference's program gives, as sums of rows: not the program itself."""
        return {"sums": _sums(_played(case, want["program"]).outputs)}

    def student_inputs(self, case: Any) -> Any:
        """By the names that the function has for them."""
        inputs = drawn_inputs(case, seed=0)
        inputs.pop("factor")
        return {**inputs, "rows": case["rows"], "smoothing": case["smoothing"], "mean": case["mean"]}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got["returned"] != "[]":
            why = f"got {got['returned']}, expected a tensor with a single number"
            raise Wrong("Your loss is not a single number.", why=why, next="return a tensor without dimensions")
        played = _played(case, got["program"])
        right = want["sums"] if "sums" in want else self.public_want(case, want)["sums"]
        _judge_values(case, played, right)
        _judge_memory(case, played)
        _judge_products(case, played)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """A rule for the sum or the mean that gives the losses of all cases."""
        try:
            losses = [
                float(_played(case, one["program"]).outputs["loss"]) for case, one in zip(cases, got, strict=True)
            ]
        except Exception:  # the case itself says what is wrong
            return None
        return loss_symptom(cases, losses)

    def format_case(self, case: Any) -> str:
        """Sizes and the kind of loss."""
        kind = "mean" if case["mean"] else "sum"
        large = f", hidden multiplied by {case['scale']}" * (case["scale"] > 1)
        return (
            f"{case['positions']} positions, {case['words']} words, width {case['width']}, chunks of {case['rows']}, "
            f"{kind}, smoothing {case['smoothing']:g}, {case['dtype']}, {case['ignored']} targets ignored"
            f"{large}"
        )

    def format_answer(self, case: Any, got: Any) -> str:
        """What it gave and took on the judge's values."""
        try:
            played = _played(case, got["program"])
        except Exception as error:
            return str(error).partition("\n")[0]
        return f"loss {float(played.outputs['loss']):.6f}, {byte_count(played.peak_live_bytes)} at the peak"


def drawn_inputs(case: Any, *, seed: int) -> dict[str, Any]:
    """The tensors of a case; `seed` draws what a program is played on. Targets are the case's own."""
    import torch

    drawn = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, case["dtype"])

    def normal(*shape: int) -> Any:
        return torch.randn(shape, generator=drawn, dtype=torch.float64).to(dtype)

    hidden = case["scale"] * normal(case["positions"], case["width"])
    weight = normal(case["words"], case["width"])
    factor = (1 + torch.rand((), generator=drawn, dtype=torch.float64)).to(dtype)
    return {"hidden": hidden, "weight": weight, "targets": torch.tensor(case["targets"]), "factor": factor}


def _played(case: Any, program: str) -> Any:
    return _once(program, json.dumps(_entries(case), sort_keys=True))


@lru_cache(maxsize=16)  # the cases of two submissions: a symptom of all cases looks at each once more
def _once(program: str, case: str) -> Any:
    from edl_labs.graph.tensor_programs import ProgramError, play

    entries = json.loads(case)
    try:
        with torch_threads(1):
            return play(program, drawn_inputs(entries, seed=entries["seed"]))
    except ProgramError as error:
        raise Wrong(error.what, why=error.why, next=error.next) from None


def _entries(case: Any) -> dict[str, Any]:
    """What the tensors of a case follow from."""
    return {name: case[name] for name in ("positions", "words", "width", "dtype", "scale", "targets", "seed")}


def _sums(outputs: Mapping[str, Any]) -> dict[str, list[float]]:
    """The loss, and of each gradient the sum of every row, weighted so that no two columns can be exchanged."""
    import torch

    found = {"loss": [float(outputs["loss"].sum())]} if "loss" in outputs else {}
    for name in ("hidden", "weight"):
        if name in outputs and outputs[name].dim() == 2:
            weights = torch.arange(1, outputs[name].shape[1] + 1, dtype=torch.float64).sqrt()
            found[name] = (outputs[name].double() @ weights).tolist()
    return found


def _judge_values(case: Any, played: Any, right: Mapping[str, list[float]]) -> None:
    # Of the largest: orders of adding differ, and an integer divided by another one is fp32 in PyTorch.
    within = 1e-6 if case["dtype"] == "float64" else 2e-5
    mine = _sums(played.outputs)
    for name, words in (("loss", "loss"), ("hidden", "gradient of `hidden`"), ("weight", "gradient of `weight`")):
        wanted, found = right[name], mine.get(name)
        if found is None:
            why = (
                f"the gradient of `{name}` is None after loss.backward()" if name != "loss" else "no loss was returned"
            )
            raise Wrong(
                f"Your function gives no {words}.",
                why=why,
                next="in backward, return one gradient for each input of forward",
            )
        if len(found) != len(wanted):
            raise Wrong(
                f"Your {words} has the wrong shape.", why=f"got {len(found)} rows, expected {len(wanted)}", next=_SHAPE
            )
        largest = max(map(abs, wanted)) or 1.0
        at = max(range(len(wanted)), key=lambda row: _apart(found[row], wanted[row]))
        if _apart(found[at], wanted[at]) > within * largest:
            if name == "loss" and not math.isfinite(found[0]):
                raise _not_finite(case, found[0], wanted[0], played)
            if name == "loss":
                why = f"got {found[0]:.9g}, expected {wanted[0]:.9g}{_stale(played)}"
                raise Wrong("Your loss is wrong.", why=why, next="compare the loss with F.cross_entropy on all logits")
            raise _gradient_symptom(case, words, found, wanted, at, played)


def _not_finite(case: Any, loss: float, wanted: float, played: Any) -> Wrong:
    """What made the loss so, where the operators and the case's own logits show it."""
    import torch

    drawn = drawn_inputs(case, seed=case["seed"])
    logits = drawn["hidden"] @ drawn["weight"].T
    most, limit = float(logits.max()), math.log(torch.finfo(logits.dtype).max)
    what = "Your loss is not finite."
    if most > limit and _runs_on(played.trace, "exp", _PRODUCTS):
        why = f"got {loss}; the largest logit of this case is {most:.0f}, and exp is inf above {limit:.0f}"
        return Wrong(what, why=why, next="subtract each row's largest logit first, as log_softmax does")
    shares = logits.softmax(1)
    zeros = int((shares == 0).sum())
    if zeros and _runs_on(played.trace, "log", ("_softmax",)):
        why = f"got {loss}; {zeros} of {shares.numel()} results of softmax are 0, and the log of 0 is -inf"
        return Wrong(what, why=why, next="use log_softmax instead of softmax and log: it avoids these zeros")
    why = f"got {loss}, expected {wanted:.9g}{_stale(played)}"
    return Wrong(what, why=why, next="compare each chunk with F.cross_entropy on the logits of that chunk")


def _runs_on(trace: list[Any], name: str, makers: tuple[str, ...]) -> bool:
    """Whether an operator gets what one of `makers` has made, as it was made."""
    last: dict[int, str] = {}
    for kernel in trace:
        if kernel.name == name and any(last.get(one) in makers for one in kernel.reads):
            return True
        last |= dict.fromkeys(kernel.writes, kernel.name)
    return False


def _gradient_symptom(case: Any, words: str, found: list[float], wanted: list[float], at: int, played: Any) -> Wrong:
    largest = max(map(abs, wanted)) or 1.0
    if not any(found):
        return Wrong(
            f"Your {words} is 0 everywhere.",
            why="the gradient is 0 in every row",
            next="return the gradients that forward has computed",
        )
    ratio = sum(a * b for a, b in zip(found, wanted, strict=True)) / sum(b * b for b in wanted)
    if all(_apart(a, ratio * b) <= 1e-5 * abs(ratio) * largest for a, b in zip(found, wanted, strict=True)):
        return _scaled(words, ratio, float(drawn_inputs(case, seed=case["seed"])["factor"]))
    if "hidden" in words:
        ignored = [row for row, target in enumerate(case["targets"]) if target == IGNORED and found[row]]
        if ignored:
            why = f"{len(ignored)} rows with target -100 have a gradient that is not 0, starting with row {ignored[0]}"
            then = "multiply the gradient by 0 in these rows"
            return Wrong("Your function gives ignored positions a gradient.", why=why, next=then)
    off = sum(_apart(a, b) > 1e-5 * largest for a, b in zip(found, wanted, strict=True))
    why = (
        f"{off} of {len(wanted)} rows are wrong; row {at}, summed with weights sqrt(column + 1), is {found[at]:.6g}, "
        f"expected {wanted[at]:.6g}{_stale(played)}"
    )
    what = f"Your {words} is wrong." if "hidden" in words else "Only your gradient of `weight` is wrong."
    return Wrong(what, why=why, next="compare each row with the gradient of F.cross_entropy from autograd")


def _scaled(words: str, ratio: float, factor: float) -> Wrong:
    if abs(ratio * factor - 1) < 1e-5:
        why = (
            f"the loss was multiplied by {factor:.4f} before backward(), but your gradients do not include this factor"
        )
        return Wrong(
            f"Your {words} ignores the incoming gradient.",
            why=why,
            next="in backward, multiply each gradient by the argument",
        )
    why = f"every row is {ratio:.6g} times the expected row"
    return Wrong(
        f"Your {words} is a multiple of the right gradient.",
        why=why,
        next="divide the gradients by the same number as the loss",
    )


def _stale(played: Any) -> str:
    return "; your function read a number on the host, so its result does not follow the inputs of the check" * bool(
        played.has_changed_reads
    )


def _judge_memory(case: Any, played: Any) -> None:
    import torch

    size = getattr(torch, case["dtype"]).itemsize
    positions, words, width, rows = (case[name] for name in ("positions", "words", "width", "rows"))
    full = positions * words
    large = [name for one in played.sections for name, shape in one.shapes if torch.Size(shape).numel() >= full]
    if large:
        why = f"{large[0]} creates a tensor of {full:,} elements: {positions} positions by {words} words"
        raise Wrong("Your function computes all logits at once.", why=why, next="process `rows` positions at a time")
    most = size * (2 * width * (positions + words) + _PER_CHUNK * rows * words) + 64 * positions
    if played.peak_live_bytes > most:
        why = (
            f"besides the inputs, your function has {byte_count(played.peak_live_bytes)} in memory at once; the limit "
            f"is {byte_count(most)}, "
            f"which is enough for two copies of both gradients and {_PER_CHUNK} tensors of the size of a chunk's logits"
        )
        raise Wrong(
            "Your function keeps tensors of earlier chunks.",
            why=why,
            next="from one chunk to the next, keep only both gradients and the loss",
        )


def _judge_products(case: Any, played: Any) -> None:
    least = 6 * case["positions"] * case["words"] * case["width"]
    # Weighted sums over the logits may be written as products (torch.dot, mv); two of them cost less than the logits.
    sums = 4 * case["positions"] * case["words"]
    if played.contraction_flops > least + sums:
        why = f"your function needs {played.contraction_flops / least:.2f} times the FLOPs of three matrix products"
        then = "compute the gradients in forward, from the probabilities of the chunk, and let backward only scale them"
        raise Wrong("Your function computes the logits twice.", why=why, next=then, keeps=_KEPT_TWICE)

    # Products can also be written with sums of elements; what is made again for the gradient needs elements anyhow.
    positions, words, width = (case[name] for name in ("positions", "words", "width"))
    made = played.made_since_input.get("factor", 0)
    if made > positions * words + _PER_GRADIENT * width * (positions + words):
        why = (
            f"the backward pass computes {made:,} elements, but both gradients together have only "
            f"{width * (positions + words):,}"
        )
        then = "compute the gradients in forward, from the probabilities of the chunk, and let backward only scale them"
        raise Wrong("Your function computes the logits twice.", why=why, next=then, keeps=_KEPT_TWICE)


def _apart(a: float, b: float) -> float:
    return abs(a - b) if a == a else float("inf")


def loss_symptom(cases: list[Any], losses: list[float]) -> Wrong | None:
    """The rule of `_SAID` that gives the losses of all cases and is another one than the right rule in some."""
    for name, (what, why, then) in _SAID.items():
        if all(close(loss, case["slips"][name], rtol=_LIKE) for case, loss in zip(cases, losses, strict=True)):
            return Wrong(what, why=why, next=then)
    return None


_SHAPE = "return each gradient in the shape of its tensor"
_SAID: dict[str, Sentence] = {
    "mean_of_means": (
        "Your function returns the mean of the chunks' means, not the mean of all positions.",
        "the last chunk may be shorter, and ignored targets are not spread evenly over the chunks",
        "add up sums, and divide once by the number of targets that count",
    ),
    "over_all": (
        "Your mean divides by the number of all positions, including ignored ones.",
        "in all cases, your loss is the right sum divided by the number of all positions",
        "divide by the number of targets that are not -100",
    ),
    "ignored_counted": (
        "Your function adds the loss of ignored targets.",
        "in all cases, your loss is the loss for target 0 instead of -100",
        "multiply a position's loss by 0 where its target is -100",
    ),
    "no_smoothing": (
        "Your function leaves out the smoothing.",
        "in all cases, your loss is the loss without smoothing",
        "add (1 - smoothing) · loss of the target and smoothing · mean loss over all words",
    ),
    "always_sum": (
        "Your function returns a sum; expected the mean.",
        "in all cases, your loss is a sum over positions",
        "divide by the number of targets that count if `mean` is true",
    ),
    "always_mean": (
        "Your function returns a mean; expected the sum.",
        "in all cases, your loss is a mean over positions",
        "divide only if `mean` is true",
    ),
    "smoothed_others": (
        "Your function spreads the smoothing over only the words that are not the target.",
        "in all cases, your loss has the weight smoothing / (words - 1) for each word except the target",
        "give the mean over all words, including the target, the weight `smoothing`",
    ),
    "smoothed_ignored": (
        "Your function adds the smoothing part of ignored positions.",
        "in all cases, your loss leaves out only the target's part where the target is -100",
        "multiply both parts by 0 where the target is -100: such a position adds nothing",
    ),
    "word_0_ignored": (
        "Your function also ignores word 0.",
        "in all cases, your loss includes only targets above 0",
        "ignore only -100: 0 is the number of a word",
    ),
    "last_chunk_unseen": (
        "Your function leaves out the last, shorter chunk.",
        "in all cases, your loss is the sum over complete chunks, divided by the number of all targets that count",
        "use range(0, positions, rows), which includes the last chunk; a slice may extend past the end",
    ),
    "last_chunk_lost": (
        "Your function leaves out the last, shorter chunk.",
        "in all cases, your loss includes only complete chunks",
        "use range(0, positions, rows), which includes the last chunk; a slice may extend past the end",
    ),
}
