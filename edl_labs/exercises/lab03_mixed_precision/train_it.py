"""train_it: a small network whose activations and gradients pass through fp16, judged by its loss in fp32."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.checks.evidence_form import Misfit, plain_lists
from edl_labs.checks.plain_data import plain_copy
from edl_labs.device import torch_threads
from edl_labs.errors import PlainDataError, Wrong

_STEPS = 160  # batches: enough to tell a network that learns from one that does not
_NOISE = 0.7  # of the targets, so that the loss stays well above zero and a ratio of losses means something
_INPUTS, _HIDDEN, _OUTPUTS, _BATCH = 6, 16, 4, 32  # small: a training takes a fraction of a second
_UPDATE = "u"
_NOTED = {"step": "s", "update": _UPDATE}
# Calls of model, optimizer and backward(), and the end of scaler.step().
_LOSS, _BACKWARD, _ZEROED, _STEPPED, _DONE = "l", "b", "z", "o", "d"
_NO_LOSSES: dict[str, Any] = {"returned": "list", "losses": [], "seen": [], "calls": ""}
_LAZY, _GRAPHS = "a generator", "tensors that require grad"  # kinds of what came back, beside those of Python
_ALLOWED = 1.02  # promised in the lab's text


@exercise("train_it", uses=("dynamic_scale",), trusting=True, trains=True)
class TrainIt(Exercise):
    """A network whose gradients pass through fp16, trained to fp32's loss with the student's own scaler.

    `student.train_in_half(model, batches, optimizer, scaler)` trains; the evidence is the weights it leaves.

    Trusting: whether the student's code sent its gradients through the model that it was given cannot be seen in them.
    """

    answers = ("weights", "scale", "losses")

    answer_form: ClassVar[Any] = {
        "weights": [0.0],
        "scale": 0.0,
        "zeroed": 0,
        "returned": "",
        "losses": [0.0],
        "seen": [0.0],
        "calls": "",
    }

    def probe(self, student: Any, given: Any) -> Any:
        own = student.LossScaler(init_scale=given["init_scale"], growth_interval=given["growth_interval"])
        scaler = _Watched(own)
        model, optimizer = _model(given, short=True)
        model.calls = optimizer.calls = scaler.calls
        with torch_threads(1):
            kind, losses = _trained(student.train_in_half, model, _batches(given), optimizer, scaler, given)
        return {
            "weights": _weights(model),
            "scale": _scale(scaler),
            "zeroed": model.zeroed + optimizer.zeroed,
            "returned": kind,
            "losses": losses,
            "seen": model.seen,
            "calls": "".join(scaler.calls),
        }

    def public_want(self, case: Any, want: Any) -> Any:
        """The scale alone: trained weights differ from one processor to the next."""
        return {"weights": [], "scale": want["scale"], "zeroed": 0, **_NO_LOSSES}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        with torch_threads(1):
            start, light = _reference(case)
            loss = _loss(case, got["weights"])
        why = f"the loss is {loss:.4g} after training; in fp32 it falls from {start:.4g} to {light:.4g}"
        left_out = _left_out(case, got)
        if loss != loss or loss > _ALLOWED * light:
            _refuse_known(got, loss, start, why, left_out)
        if not math.isfinite(loss):
            then = left_out or "make sure that no step is taken with infinite gradients"
            raise Wrong("the weights are no longer finite numbers", why=why, next=then)
        if start - loss < 0.5 * (start - light):
            then = left_out or "are the gradients scaled and unscaled, and does the scale fall when they overflow?"
            raise Wrong("the network did not learn", why=why, next=then)
        if loss > _ALLOWED * light:
            then = left_out or "zero the gradients for every batch, and use every batch once"
            raise Wrong("the loss is more than 2 % above that of fp32", why=why, next=then)
        if "".join(call for call in got["calls"] if call in _NOTED.values()).startswith(_UPDATE):
            why = (
                "update() may change the scale while gradients still have "
                "the old one, and it forgets infinities that were found"
            )
            raise Wrong(
                "your loop calls update() before step()", why=why, next="call step(), then update(), in every batch"
            )
        if not want["scale"] / 4 <= got["scale"] <= want["scale"] * 4:
            why = f"the scale of its scaler ended at {got['scale']:g}, expected about {want['scale']:g}"
            raise Wrong(
                "your loop does not keep the scaler up to date", why=why, next="call update() once after every step()"
            )
        problem = _losses_mistake(case, got)
        if problem:
            what, why, then = problem
            raise Wrong(what, why=why, next=then)

    def format_case(self, case: Any) -> str:
        """The settings."""
        return f"loss weight {case['loss_weight']:g}, first scale {case['init_scale']:g}, {_STEPS} batches"


class _Watched:
    """The student's scaler, which notes the order in which steps and updates are asked for."""

    def __init__(self, scaler: Any) -> None:
        self.scaler = scaler
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.scaler, name)
        if name in _NOTED:
            self.calls.append(_NOTED[name])
        return self._ended(found) if name == "step" else found

    def _ended(self, step: Any) -> Any:
        def stepped(*arguments: Any, **named: Any) -> Any:
            result = step(*arguments, **named)
            self.calls.append(_DONE)
            return result

        return stepped


def _trained(train: Any, model: Any, batches: Any, optimizer: Any, scaler: Any, case: Any) -> tuple[str, list[float]]:
    """What the student's loop returns, as a kind and losses; an error of a scaler that was never updated says so.

    All forms of finished numbers are a list. What trains only while it is read is none, nor are tensors with a graph:
    the lab's next cells would not train, and could not draw.
    """
    try:
        returned = train(model, batches, optimizer, scaler)
        is_lazy, has_graphs = isinstance(returned, Iterator) and not scaler.calls, _require_grad(returned)
        kind, losses = _plain_losses(returned)
        if kind != "list":
            return kind, losses
        return _LAZY if is_lazy and scaler.calls else _GRAPHS if has_graphs else kind, losses
    except NotImplementedError:
        raise
    except RuntimeError as error:
        if _scale(scaler) == case["init_scale"]:
            error.args = (f"{error} (is scaler.update() called after every scaler.step()?)",)
        raise


def _scale(scaler: Any) -> float:
    import torch

    return float(scaler.scale(torch.tensor(1.0)))


def _require_grad(returned: Any) -> bool:
    """Whether it is a tensor that keeps its graph, or a sequence with one; what can be read once is not read."""
    parts = returned if isinstance(returned, Sequence) else [returned]
    return any(getattr(one, "requires_grad", False) is True for one in parts)


def _plain_losses(returned: Any) -> tuple[str, list[float]]:
    """ "list" and the losses, NaN for what is not a number; of what is not a list in any form, its type and nothing."""
    try:
        plain = plain_lists(plain_copy(returned))
    except (PlainDataError, Misfit):
        plain = None
    if not isinstance(plain, list):
        return type(returned).__name__, []
    return "list", [float(one) if type(one) in (int, float) else math.nan for one in plain]


def _left_out(case: Any, got: Any) -> str:
    """What the loop did not call, as advice; empty when nothing is missing."""
    if got["zeroed"] < _STEPS:
        called = f"call zero_grad() for every batch, not {got['zeroed']} times for {_STEPS} batches"
        return f"{called}: old gradients, even infinite ones, stay, and new ones are added to them"
    if got["scale"] == case["init_scale"]:
        return "the scale never changed: call scaler.update() after every scaler.step()"
    return ""


def _refuse_known(got: Any, loss: float, start: float, why: str, left_out: str) -> None:
    """Wrong for what the order of the calls and the size of the loss tell of a network that did not learn."""
    calls, step = got["calls"], _NOTED["step"]
    if _DONE + _STEPPED in calls:
        then = "leave optimizer.step() out: scaler.step(optimizer) calls it, unless gradients overflowed"
        raise Wrong("your loop calls optimizer.step() in addition to scaler.step()", why=why, next=then)
    if loss == start and calls.count(_BACKWARD + _ZEROED + step) == _STEPS:
        then = "call zero_grad() before backward(), or after the step"
        raise Wrong("your loop zeroes gradients between backward() and the step", why=why, next=then)
    if loss == start and not left_out and _BACKWARD in calls and _STEPPED in calls:
        then = "call backward() on scaler.scale(loss) itself: the gradients of a small loss become 0 in fp16"
        raise Wrong(
            "the network did not learn: you did not scale its loss, or you divided it again", why=why, next=then
        )
    if math.isfinite(loss) and loss > 1e3 * start:
        then = "train on what model.loss returns, including its loss_weight, and let scaler.step() divide by the scale"
        raise Wrong(
            "the steps are far too large: the gradients lack the loss_weight, or still have the scale",
            why=why,
            next=then,
        )


def _losses_mistake(case: Any, got: Any) -> tuple[str, str, str] | None:
    """What is wrong with the returned losses, why, and what to look at; None when they are right."""
    then = "append loss.item() / model.loss_weight for every batch, and return the list"
    if got["returned"] == _LAZY:
        then = "append to a list and return it, without `yield`"
        return "your function returned a generator, expected a list", "nothing is trained until it is iterated", then
    if got["returned"] == _GRAPHS:
        why = "the losses require grad, so keeping them keeps the graph of each batch"
        return "your function returned tensors with their graphs, expected floats", why, then
    if got["returned"] != "list" or len(got["losses"]) != _STEPS:
        came = f"{len(got['losses'])} losses" if got["returned"] == "list" else got["returned"]
        return (
            "the network learned, but your function did not return a list of one loss per batch",
            f"it returned {came} for {_STEPS} batches",
            then,
        )
    if not all(map(math.isfinite, got["losses"])):
        why = "one of the losses is infinite, NaN or not a plain number"
        return "the network learned, but not every returned loss is a finite float", why, then
    first = _first_loss(case)
    if close(got["losses"][0], first * case["loss_weight"], rtol=1e-2):
        why = f"the first loss is {got['losses'][0]:.3g}; without the weight it is {first:.4g}"
        return "the returned losses still include the model's loss_weight", why, then
    unseen = [
        (at, mine)
        for at, mine in enumerate(got["losses"])
        if not any(close(mine, seen, rtol=1e-3) for seen in got["seen"])
    ]
    if unseen or not close(got["losses"][0], first, rtol=1e-2):
        why = f"the first loss is {got['losses'][0]:.7g}; model.loss returned {first:.7g} on that batch before its step"
        if close(got["losses"][0], first, rtol=1e-3):
            at, mine = unseen[0]
            why = (
                f"loss number {at} (counting from 0) is {mine:.7g}, but model.loss did not return "
                "that value for any batch before its step"
            )
        return (
            "the returned losses are not those that your loop trained on",
            why,
            "do not scale or weight the losses: " + then,
        )
    return None


def _model(case: Any, *, short: bool) -> tuple[Any, Any]:
    """A network whose `loss(x, y)` is a mean square times a small weight, and the optimizer for it."""
    import torch

    generator = torch.Generator().manual_seed(case["seed"])
    through = _short() if short else (lambda x: x)

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.loss_weight = case["loss_weight"]
            self.seen: list[float] = []
            self.zeroed = 0
            self.calls: list[str] = []
            self.first, self.last = torch.nn.Linear(_INPUTS, _HIDDEN), torch.nn.Linear(_HIDDEN, _OUTPUTS)

        def forward(self, x: Any) -> Any:
            return through(self.last(through(torch.tanh(through(self.first(through(x)))))))

        def loss(self, x: Any, y: Any) -> Any:
            plain = (self(x) - y).square().mean()
            if plain.requires_grad:
                plain.register_hook(lambda _: self._went_back(float(plain.detach())))
            self.calls.append(_LOSS)
            return self.loss_weight * plain

        def _went_back(self, loss: float) -> None:
            self.seen.append(loss)  # one that was trained on: a loss after its step is none
            self.calls.append(_BACKWARD)

        def zero_grad(self, set_to_none: bool = True) -> None:
            self.zeroed += 1
            self.calls.append(_ZEROED)
            super().zero_grad(set_to_none)

    class Optimizer(torch.optim.SGD):
        zeroed = 0
        calls: ClassVar[list[str]] = []

        def step(self, closure: Any = None) -> Any:
            self.calls.append(_STEPPED)
            return super().step(closure)

        def zero_grad(self, set_to_none: bool = True) -> None:
            self.zeroed += 1
            self.calls.append(_ZEROED)
            super().zero_grad(set_to_none)

    model = Network()
    with torch.no_grad():
        for one in model.parameters():
            one.copy_(torch.empty_like(one).normal_(0, 0.4, generator=generator))
    return model, Optimizer(model.parameters(), lr=0.15 / case["loss_weight"])


def _short() -> Any:
    import torch

    class Short(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.half().float()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient.half().float()

    return Short.apply


def _batches(case: Any, *, count: int = _STEPS, seed: int | None = None) -> list[Any]:
    import torch

    generator = torch.Generator().manual_seed(case["seed"] + 1 if seed is None else seed)
    teacher = torch.empty(_INPUTS, _OUTPUTS).normal_(generator=torch.Generator().manual_seed(case["seed"] + 7))
    xs = [torch.empty(_BATCH, _INPUTS).normal_(generator=generator) for _ in range(count)]
    # Noise that no network can learn keeps the loss from falling for ever, so that a few skipped steps do not decide.
    noise = [torch.empty(_BATCH, _OUTPUTS).normal_(0, _NOISE, generator=generator) for _ in xs]
    return [(x, torch.sin(x @ teacher) + more) for x, more in zip(xs, noise, strict=True)]


def _weights(model: Any) -> list[float]:
    return [float(value) for one in model.parameters() for value in one.detach().flatten()]


def _loss(case: Any, weights: list[float]) -> float:
    """The fp32 loss of a network with these weights on batches that it was not trained with."""
    import torch

    model, _ = _model(case, short=False)
    flat, start = torch.tensor(weights, dtype=torch.float32), 0
    if flat.numel() != sum(one.numel() for one in model.parameters()):
        return math.nan
    with torch.no_grad():
        for one in model.parameters():
            one.copy_(flat[start : start + one.numel()].reshape(one.shape))
            start += one.numel()
        losses = [float(model.loss(x, y)) for x, y in _batches(case, count=8, seed=case["held_out_seed"])]
    return sum(losses) / len(losses) / case["loss_weight"]


def _first_loss(case: Any) -> float:
    """The unweighted loss of the untrained network on the first batch, with fp16 between its layers."""
    import torch

    model, _ = _model(case, short=True)
    with torch_threads(1), torch.no_grad():
        loss = model.loss(*_batches(case)[0])
    return float(loss) / float(case["loss_weight"])


def _reference(case: Any) -> tuple[float, float]:
    """The loss before training, and after training in fp32; worked out once for a class."""
    return _trained_in_fp32(tuple(sorted(case.items())))


@lru_cache(maxsize=32)
def _trained_in_fp32(settings: tuple[tuple[str, Any], ...]) -> tuple[float, float]:
    case = dict(settings)
    model, optimizer = _model(case, short=False)
    start = _loss(case, _weights(model))
    for x, y in _batches(case):
        optimizer.zero_grad()
        model.loss(x, y).backward()
        optimizer.step()
    return start, _loss(case, _weights(model))
