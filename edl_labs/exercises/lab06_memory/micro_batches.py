"""mend_accumulation: one step of the optimizer from several micro-batches, as one large batch would make it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.device import torch_threads
from edl_labs.errors import Wrong
from edl_labs.exercises.lab06_memory.noticing_networks import make_noticing
from edl_labs.units import counted

IGNORED = -100  # the label of positions that do not count: torch's default for ignore_index
FEATURES, HIDDEN, CLASSES = 4, 5, 3  # small: a training takes milliseconds
ASPECTS = ("order", "last window", "tokens")
_RATE, _MOMENTUM = 0.2, 0.9  # momentum, so that an empty or a doubled step is seen in those after it
_SAME = 1e-6  # orders of adding differ by 1e-15 in float64, mistakes by percents


@exercise("mend_accumulation")
class MendAccumulation(Exercise):
    """One step of the optimizer for each window of micro-batches, as if the window had been one batch.

    `train_accumulated(model, batches, optimizer, window=)` gives the mean loss of each window. A third of the points
    for each of ASPECTS.
    """

    answers: ClassVar[tuple[str, ...]] = ("weights", "losses", "met")
    answer_form: ClassVar[Any] = {
        "weights": [[0.0]],
        "rows": [0],
        "losses": [0.0],
        "held": 0,
        "cleared": 0,
        "sums": [0.0],
        "met": [[0.0]],
    }

    def probe(self, student: Any, given: Any) -> Any:
        from edl_labs.numerics import SavedTensors

        model, optimizer = _training(given)
        saved = SavedTensors(model.parameters())
        with torch_threads(1), saved.watching():
            losses = student.train_accumulated(model, _batches(given), optimizer, window=given["window"])
        return {
            "weights": optimizer.seen,
            "rows": model.rows,
            "losses": losses,
            "held": saved.peak_count,
            "cleared": optimizer.cleared,
            "sums": _sums(given, model.scores),
            "met": _met(student, given),
        }

    def public_want(self, case: Any, want: Any) -> Any:
        """All but the weights of the second training, which a notebook's check does not compare."""
        return {name: want[name] for name in want if name != "met"}

    def student_inputs(self, case: Any) -> Any:
        """By the names that the function has for them."""
        model, optimizer = _training(case)
        return {"model": model, "batches": _batches(case), "optimizer": optimizer, "window": case["window"]}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        mine, right = _gradients(got["weights"]), _gradients(want["weights"])
        _judge_passes(case, got["rows"], mine, right)
        _judge_steps(case, len(mine), len(right))
        for step, (said, wanted) in enumerate(zip(mine, right, strict=True)):
            if not _equal(said, wanted):
                differs = _differing_weight(got["weights"][step + 1], want["weights"][step + 1])
                raise _gradient_symptom(case, step, mine, right, got, differs)
        _judge_losses(case, got, want["losses"])
        _judge_graphs(got["held"], want["held"])
        if "met" in want:
            _judge_met(got["met"], want["met"])

    def combine(self, fractions: list[float]) -> float:
        """The share of ASPECTS that are right in all of their cases."""
        if len(fractions) != len(_DRAWN):
            return 0.0
        return sum(min(f for f, at in zip(fractions, _DRAWN, strict=True) if at == one) for one in ASPECTS) / 3

    def format_answer(self, case: Any, got: Any) -> str:
        """Steps and losses: dozens of weights are nothing to read."""
        said = ", ".join(f"{float(one):.4g}" for one in got["losses"])
        return f"{counted(len(got['weights']) - 1, 'step')} of the optimizer, losses [{said}]"

    def format_case(self, case: Any) -> str:
        """The micro-batches, and what the gradients hold before."""
        counted = [sum(label != IGNORED for label in labels) for labels in case["labels"]]
        before = f"; every gradient already contains {case['before']}" if case["before"] else ""
        return f"windows of {case['window']}; positions that count in each micro-batch: {counted}{before}"


_DRAWN = ("order",) * 2 + ("last window",) * 3 + ("tokens",) * 3  # the aspect of each case, in order


def _training(case: Any) -> tuple[Any, Any]:
    """A small network in float64 that notes the rows it is given, and an optimizer that notes weights at each step."""
    import torch

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows: list[int] = []
            self.scores: list[Any] = []
            self.first = torch.nn.Linear(FEATURES, HIDDEN, dtype=torch.float64)
            self.last = torch.nn.Linear(HIDDEN, CLASSES, dtype=torch.float64)

        def forward(self, inputs: Any) -> Any:
            self.rows.append(len(inputs))
            scores = self.last(torch.tanh(self.first(inputs)))
            self.scores.append(scores.detach())
            return scores

    class Optimizer(torch.optim.SGD):
        seen: list[list[float]]
        cleared = 0

        def zero_grad(self, set_to_none: bool = True) -> None:
            super().zero_grad(set_to_none)
            self.cleared += 1

        def step(self, closure: Any = None) -> Any:
            result = super().step(closure)
            self.seen.append(_weights(model))
            return result

    model = Network()
    generator = torch.Generator().manual_seed(case["seed"])
    with torch.no_grad():
        for one in model.parameters():
            one.copy_(torch.empty_like(one).normal_(0, 0.6, generator=generator))
            one.grad = torch.full_like(one, case["before"]) if case["before"] else None
    optimizer = Optimizer(model.parameters(), lr=_RATE, momentum=_MOMENTUM)
    optimizer.seen = [_weights(model)]
    return model, optimizer


def _met(student: Any, given: Any) -> list[list[float]]:
    """The weights after each step of the same training on a network that notices what goes through it, and when."""
    model, optimizer = _training(given)
    with torch_threads(1):
        student.train_accumulated(make_noticing(model), _batches(given), optimizer, window=given["window"])
    return [*optimizer.seen]


def _batches(case: Any) -> list[Any]:
    import torch

    generator = torch.Generator().manual_seed(case["seed"] + 1)
    sizes = [len(labels) for labels in case["labels"]]
    inputs = [torch.empty(rows, FEATURES, dtype=torch.float64).normal_(generator=generator) for rows in sizes]
    return [(x, torch.tensor(labels)) for x, labels in zip(inputs, case["labels"], strict=True)]


def _sums(case: Any, scores: list[Any]) -> list[float]:
    """The sum of losses of each forward pass, where they went through the micro-batches in their order; else none."""
    import torch

    if [len(one) for one in scores] != [len(labels) for labels in case["labels"]]:
        return []
    loss = torch.nn.CrossEntropyLoss(ignore_index=IGNORED, reduction="sum")
    return [float(loss(one, torch.tensor(labels))) for one, labels in zip(scores, case["labels"], strict=True)]


def _weights(model: Any) -> list[float]:
    return [float(value) for one in model.parameters() for value in one.detach().flatten()]


def _gradients(weights: list[list[float]]) -> list[list[float]]:
    """The gradient of each step, from the weights after it: SGD's velocity less what momentum kept of the last one."""
    found, velocity = [], [0.0] * len(weights[0])
    for before, after in pairwise(weights):
        now = [(old - new) / _RATE for old, new in zip(before, after, strict=True)]
        found.append([v - _MOMENTUM * last for v, last in zip(now, velocity, strict=True)])
        velocity = now
    return found


def _judge_passes(case: Any, rows: list[int], mine: list[list[float]], right: list[list[float]]) -> None:
    sizes = [len(labels) for labels in case["labels"]]
    why = f"got {len(rows)} forward passes of up to {max(rows, default=0)} rows, for {len(sizes)} micro-batches"
    if max(rows, default=0) > max(sizes):
        then = "run one micro-batch at a time, as memory has room for only one, and add up only gradients"
        raise Wrong("your code runs several micro-batches through the model at once", why=why, next=then)
    whole = len(sizes) // case["window"]
    if rows == sizes[: whole * case["window"]] and rows != sizes and len(mine) == whole:
        why = (
            f"only {len(rows)} of {len(sizes)} micro-batches went through the model: the full windows of "
            f"{case['window']}"
        )
        raise _tail_lost(why)
    empty = [number for number, labels in enumerate(case["labels"], 1) if not _counted([labels])]
    if len(sizes) - len(rows) == len(empty) > 0 and len(mine) == len(right) and all(map(_equal, mine, right)):
        why = f"{why}; all gradients are right, so it must be micro-batch {empty[0]}, in which no position counts"
        then = "run each micro-batch forward and backward once, whatever its labels are"
        raise Wrong("your code never runs one of the micro-batches through the model", why=why, next=then)
    if sorted(rows) != sorted(sizes):
        then = "run one forward pass and one backward pass for each micro-batch"
        raise Wrong("your code does not run every micro-batch through the model exactly once", why=why, next=then)


def _judge_graphs(held: int, wanted: int) -> None:
    """Twice as many are let pass: who skips backward() where nothing counts holds that graph a little longer."""
    if held > 2 * wanted:
        raise Wrong(
            "your code holds the graphs of several micro-batches at once",
            why=f"the training is right, but {held} saved tensors were held at once; one micro-batch saves {wanted}",
            next="call backward() on each micro-batch's loss before the next one goes through the model",
        )


def _judge_met(met: list[list[float]], wanted: list[list[float]]) -> None:
    """What the counters say of passes has to be true of the weights, too."""
    if len(met) != len(wanted) or not all(map(_equal, met, wanted)):
        why = (
            "on a second network, whose weights depend on what ran forward together and what ran backward before, the "
            "weights differ"
        )
        then = "run each micro-batch forward on its own, and backward before the next one; leave the model as it is"
        raise Wrong("your weights do not follow from these micro-batches", why=why, next=then)


def _judge_steps(case: Any, steps: int, wanted: int) -> None:
    batches = len(case["labels"])
    if steps == wanted:
        return
    why = f"{batches} micro-batches in windows of {case['window']} need {wanted} steps of the optimizer, not {steps}"
    if steps == batches:
        raise Wrong(
            "your code steps the optimizer after every micro-batch",
            why=why,
            next="add up gradients until a window is complete",
        )
    if steps == batches // case["window"]:
        raise _tail_lost(why)
    raise Wrong("your code does not step the optimizer once per window", why=why, next="when is a window complete?")


def _tail_lost(why: str) -> Wrong:
    then = "treat the micro-batches that are left over at the end as a shorter window"
    return Wrong("your code makes no step after the last micro-batches", why=why, next=then)


def _differing_weight(got: list[float], want: list[float]) -> str:
    """The weight that differs most, as an index into the network's tensors, with what it is and what it should be."""
    at = max(range(len(want)), key=lambda i: abs(got[i] - want[i]))
    sizes = {"first.weight": (HIDDEN, FEATURES), "first.bias": (HIDDEN,)}
    sizes |= {"last.weight": (CLASSES, HIDDEN), "last.bias": (CLASSES,)}
    place = at
    for name, shape in sizes.items():
        if place < math.prod(shape):
            index = divmod(place, shape[-1]) if len(shape) > 1 else (place,)
            return f"{name}{[*index]} is {got[at]:.4f} after it, but should be {want[at]:.4f}"
        place -= math.prod(shape)
    return ""


def _gradient_symptom(
    case: Any, step: int, mine: list[list[float]], right: list[list[float]], said: Any, differs: str
) -> Wrong:
    got, want = mine[step], right[step]
    place = f"step {step + 1} of {len(right)} is the first to differ from that of one large batch ({differs})"
    until = case["labels"][: (step + 1) * case["window"]]
    if not all(map(math.isfinite, got)) and all(_counted([labels]) for labels in until):
        why = f"{place}: its gradient has entries that are not finite"
        return Wrong("a gradient is not finite", why=why, next="by what is the sum of losses divided?")
    if not all(map(math.isfinite, got)):
        return _nothing_counted("after a micro-batch in which no position counts, the weights are not finite")
    if not any(abs(value) > 1e-12 for value in got):
        why = f"{place}: there was no gradient when step() was called"
        return Wrong(
            "your step does not change the weights", why=why, next="in which order are gradients used and cleared?"
        )
    if step == 0 and case["before"] and _equal([a - case["before"] for a in got], want):
        why = f"{place}; the difference is the value that every gradient had when your function was called"
        then = "clear the gradients before you start adding"
        return Wrong("your code does not clear gradients from before the first window", why=why, next=then)
    if step and _equal([a - b for a, b in zip(got, want, strict=True)], mine[step - 1]):
        why = f"{place}; the difference is the gradient of the previous step"
        then = "clear the gradients after each step"
        return Wrong("your code does not clear the gradients of the previous window", why=why, next=then)
    ratio = _ratio(got, want)
    sums = _gradients_of_sums(case, step, said["weights"][step]) if ratio is None else []
    if ratio is None and _ratio(got, sums[-1]) is not None:
        why = f"{place}; its gradient has the direction of the window's last micro-batch only"
        if said["cleared"] >= len(case["labels"]):
            why = f"{why}, and zero_grad was called {said['cleared']} times for {len(case['labels'])} micro-batches"
        return Wrong(
            "your code clears the gradients for every micro-batch",
            why=why,
            next="clear once per window, and add up gradients within it",
        )
    means = [
        [value / max(1, _counted([labels])) for value in one]
        for one, labels in zip(sums, _window(case, step), strict=False)
    ]
    if ratio is None and _ratio(got, [sum(values) for values in zip(*means, strict=True)]) is None:
        why = f"{place}; its direction differs too, and it is not that of the sum of the micro-batches' means either"
        then = "divide the sum of the losses of all positions that count in the window by the number of these positions"
        return Wrong("in your code, a step's gradient is not that of its window's mean loss", why=why, next=then)
    if ratio is None:
        why = f"{place}; its direction differs too: it is that of the sum of the micro-batches' means"
        return Wrong(
            "your code gives every micro-batch the same weight, however many of its positions count",
            why=why,
            next="by what must each sum be divided? A mean of means is not the mean of all positions",
        )
    return _scale_symptom(case, step, _ratios(case, mine, said["weights"]), place)


def _window(case: Any, step: int) -> list[list[int]]:
    labels: list[list[int]] = case["labels"]
    return labels[step * case["window"] : (step + 1) * case["window"]]


def _gradients_of_sums(case: Any, step: int, weights: list[float]) -> list[list[float]]:
    """The gradient of the sum of losses of each micro-batch of a window, with these weights."""
    import torch

    model, _ = _training(case)
    torch.nn.utils.vector_to_parameters(torch.tensor(weights, dtype=torch.float64), model.parameters())
    loss = torch.nn.CrossEntropyLoss(ignore_index=IGNORED, reduction="sum")
    found = []
    for x, labels in _batches(case)[step * case["window"] : (step + 1) * case["window"]]:
        gradients = torch.autograd.grad(loss(model(x), labels), [*model.parameters()])
        found.append([float(value) for one in gradients for value in one.flatten()])
    return found


def _ratios(case: Any, mine: list[list[float]], weights: list[list[float]]) -> list[float | None]:
    """How many times as long each step's gradient is as that of its window's mean, with the weights before it."""
    found = []
    for step, gradient in enumerate(mine):
        sums = _gradients_of_sums(case, step, weights[step])
        count = max(1, _counted(_window(case, step)))
        found.append(_ratio(gradient, [sum(values) / count for values in zip(*sums, strict=True)]))
    return found


# Each is (the ratio that a mistake gives in a step, by its number and the windows; what is wrong; next).
_Windows = list[list[list[int]]]
_SCALES: tuple[tuple[Callable[[int, _Windows], float], str, str], ...] = (
    (
        lambda step, windows: len(windows[step]) / len(windows[0]),
        "your code divides a shorter window as if it were a full one",
        "how many micro-batches does this window have?",
    ),
    (
        lambda step, windows: _counted(windows[step]) / sum(map(len, windows[step])),
        "your divisor includes positions that are ignored",
        "which label does padding have, and does padding count in the divisor?",
    ),
    (
        lambda step, windows: _counted(windows[step]) / sum(map(_counted, windows)),
        "your divisor of each window includes the positions of all windows",
        "divide each window by the number of its own positions",
    ),
    (
        lambda step, windows: _counted(windows[step]) / sum(map(_counted, windows[: step + 1])),
        "your divisor still includes positions of earlier windows",
        "start counting again for each window",
    ),
    (
        lambda step, windows: _counted(windows[step]),
        "your code adds up the losses of a window instead of averaging them",
        "divide the sum as well: the loss of one large batch is a mean",
    ),
    (
        lambda step, windows: len(windows[step]),
        "your code adds up the means of a window's micro-batches",
        "divide the sum as well: the sum of several means is larger than their mean",
    ),
)


def _scale_symptom(case: Any, step: int, ratios: list[float | None], place: str) -> Wrong:
    """The gradient has the right direction and the wrong length: a rule that gives the length in every step, if any."""
    windows = [_window(case, number) for number in range(len(ratios))]
    ratio, counted = ratios[step], _counted(windows[step])
    why = f"{place}: its gradient is {ratio:.4g} times as long as it should be"
    for rule, what, then in _SCALES:
        if all(one is not None and close(one, rule(at, windows), rtol=1e-4) for at, one in enumerate(ratios)):
            return Wrong(what, why=why, next=then)
    if ratio:
        why = f"{why}, as if it were divided by {counted / ratio:.4g}; {counted} positions count in its window"
    return Wrong("your gradient of a window has the wrong scale", why=why, next="by what is the sum of losses divided?")


def _counted(part: list[list[int]]) -> int:
    return sum(label != IGNORED for labels in part for label in labels)


def _judge_losses(case: Any, got: Any, want: list[float]) -> None:
    then = "divide the sum of the losses of all positions that count in a window by the number of these positions"
    losses = got["losses"]
    if len(losses) != len(want):
        why = f"got {len(losses)} losses for {len(want)} windows"
        raise Wrong("the training is right, but there is not one loss per window", why=why, next=then)
    for number, (said, right) in enumerate(zip(losses, want, strict=True)):
        if not math.isfinite(said):
            raise _nothing_counted(f"the weights are right, but the loss of window {number + 1} is not finite")
        if not close(said, right, rtol=_SAME):
            why = f"for window {number + 1}, expected a mean loss of {right:.4f}, got {float(said):.4f}"
            known = next((name for name, found in _other_losses(case, got["sums"]) if _are_close(losses, found)), "")
            what = f"the training is right, but a reported loss is not its window's mean{known and f': it is {known}'}"
            raise Wrong(what, why=why, next=then)


def _other_losses(case: Any, sums: list[float]) -> Iterator[tuple[str, list[float]]]:
    """What else may be reported, in words, with its value for each window."""
    if not sums:
        return
    counts = [_counted([labels]) for labels in case["labels"]]
    starts = range(0, len(sums), case["window"])
    parts = [[*zip(sums[i : i + case["window"]], counts[i : i + case["window"]], strict=True)] for i in starts]
    means = [[total / max(1, count) for total, count in part] for part in parts]
    yield "the mean of its last micro-batch", [part[-1] for part in means]
    whole = [sum(count for _, count in part) for part in parts]
    yield (
        "its last micro-batch's contribution to it",
        [part[-1][0] / count for part, count in zip(parts, whole, strict=True)],
    )
    yield "the mean of its micro-batches' means", [sum(part) / len(part) for part in means]
    yield "the sum of its micro-batches' means", [sum(part) for part in means]
    yield "a sum that is not divided", [sum(total for total, _ in part) for part in parts]


def _are_close(got: list[Any], want: list[float]) -> bool:
    return all(close(float(said), right, rtol=_SAME) for said, right in zip(got, want, strict=True))


def _nothing_counted(why: str) -> Wrong:
    return Wrong("your code computes a mean over no positions at all", why=why, next="where does 0 / 0 occur?")


def _ratio(got: list[float], want: list[float]) -> float | None:
    """How many times `want` `got` is; None where it is no multiple of it."""
    size = sum(b * b for b in want)
    if not size:
        return None
    ratio = sum(a * b for a, b in zip(got, want, strict=True)) / size
    return ratio if _equal(got, [ratio * b for b in want]) else None


def _equal(got: list[float], want: list[float]) -> bool:
    # The length of the whole gradient is the scale: single entries can be next to zero.
    size = math.sqrt(sum(b * b for b in want))
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(got, want, strict=True))) <= _SAME * size
