"""dynamic_scale: a loss scaler driven step by step by scripted gradients, which pass through fp16."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong

_LEARNING_RATE = 0.25  # a power of two: weights stay exact
_UPDATED = (
    "but update() was called between these two calls of unscale_(), and each update() must clear the record that "
    "gradients were unscaled; this update() came after"
)
_TORCHS = "_amp_"  # how the names of the operators of torch's scaler begin
_LARGEST_FP32 = 2.0**128  # from here on fp32 has only infinity


@exercise("dynamic_scale")
class DynamicScale(Exercise):
    """A loss scaler that backs off at once, grows after clean steps, skips bad ones and unscales once.

    `student.LossScaler(init_scale=, growth_factor=, backoff_factor=, growth_interval=)`, driven as torch's is.
    """

    answers: ClassVar[tuple[str, ...]] = ("before", "reached", "after", "moved", "seen")

    def probe(self, student: Any, given: Any) -> Any:
        import torch

        torchs_class = torch.amp.GradScaler
        scaler = student.LossScaler(**given["settings"])
        is_torchs = isinstance(scaler, torchs_class)
        parameters = [torch.nn.Parameter(torch.zeros(size)) for size in given["sizes"]]
        idle = torch.nn.Parameter(torch.zeros(2))
        groups = [{"params": [idle, parameters[0]]}, {"params": parameters[1:]}]
        optimizer = _remembering_optimizer(groups)
        through = getattr(torch, given["through"])
        done: list[dict[str, Any]] = []
        with _without_torchs_scaler(is_refusing=not is_torchs) as torchs:
            for step in given["steps"]:
                earlier = done[-1] if done else None
                found = _step(scaler, optimizer, parameters, step, earlier=earlier, through=through)
                done.append({**found, "borrowed": is_torchs})
                if torchs.refusal is not None:
                    raise torchs.refusal
        return done

    def stand_in(self) -> dict[str, Any]:
        """What takes a wrong scaler's place in what builds on it: torch's own, which anybody has."""
        import torch

        return {"LossScaler": partial(torch.amp.GradScaler, "cpu")}

    def explain_exception(self, case: Any, kind: str) -> Wrong | None:
        """What an operator of torch's scaler is for, which `_without_torchs_scaler` refuses."""
        if not kind.startswith(_TORCHS):
            return None
        called, then = "was called", "use operators that are not part of it"
        if "unscale" in kind:
            called += " to unscale the gradients and to look for infinity and NaN"
            then = "divide each gradient yourself, and find infinity and NaN with operators such as torch.isfinite"
        elif "update" in kind:
            called += " to change the scale"
            then = "count clean steps yourself, and multiply the scale by growth_factor or backoff_factor"
        why = "it is part of torch's GradScaler, but the exercise asks for your own scaler"
        return Wrong(f"torch's operator {kind} {called}", why=why, next=then)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if len(got) != len(want):
            raise Wrong("there is not one result for each step", why="", next="restart the kernel and run all cells")
        clean = 0
        for number, (step, mine, right) in enumerate(zip(case["steps"], got, want, strict=True), 1):
            problem = _mistake(mine, right, case=case, step=step, clean=clean)
            if problem:
                what, then = problem
                is_missed = right["skipped"] and not mine["skipped"] and not all(map(math.isfinite, mine["moved"]))
                if is_missed and _bad_value(step) == "NaN":
                    then = (
                        "NaN is not infinite, so isinf returns False: use torch.isfinite(grad).all(), which finds both"
                    )
                elif is_missed and _only_nan_is_seen(case, got, want):
                    then = (
                        "look for infinity, too: your code skips steps with NaN, but not those with infinity, "
                        "which isnan does not find"
                    )
                raise Wrong(what, why=_told(number, step, mine, right, case), next=then)
            clean = 0 if right["skipped"] or right["after"] > right["before"] else clean + 1

    def format_case(self, case: Any) -> str:
        """The scaler's settings and the script's length."""
        named = ", ".join(f"{name}={value:g}" for name, value in case["settings"].items())
        return f'LossScaler({named}), {len(case["steps"])} steps of SGD, whose gradients are the case\'s "steps"'

    def format_answer(self, case: Any, got: Any) -> str:
        """Nothing: of all steps the message shows the first that is wrong."""
        return ""


def _remembering_optimizer(groups: list[dict[str, Any]]) -> Any:
    """SGD that never forgets a bad gradient, as averages of gradients do not: who puts weights back is seen later."""
    import torch

    class Remembering(torch.optim.SGD):
        def __init__(self) -> None:
            super().__init__(groups, lr=_LEARNING_RATE)
            self.spoiled = torch.zeros(())  # NaN after one
            self.took_bad = False

        def step(self, closure: Any = None) -> Any:
            result = super().step(closure)
            with torch.no_grad():
                weights = [one for group in self.param_groups for one in group["params"] if one.grad is not None]
                now = sum([(0 * one.grad).sum() for one in weights], torch.zeros(()))
                self.spoiled += now
                self.took_bad |= bool(torch.isnan(now))
                for one in weights:
                    one.add_(self.spoiled)
            return result

    return Remembering()


def _without_torchs_scaler(*, is_refusing: bool) -> Any:
    """A mode in which the operators of torch's own scaler do nothing, whoever calls them.

    Refusing, it raises an exception whose type has the operator's name, and keeps it: who catches it hides nothing.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    class Without(TorchDispatchMode):
        refusal: Exception | None = None

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func._schema.name.removeprefix("aten::")
            if name.startswith(_TORCHS):
                if is_refusing:
                    self.refusal = self.refusal or type(name, (Exception,), {})("it belongs to torch's GradScaler")
                    raise self.refusal
                return args[0] if func._schema.returns else None
            return func(*args, **(kwargs or {}))

    return Without()


def _only_nan_is_seen(case: Any, got: Any, want: Any) -> bool:
    """Whether each step with NaN was skipped, and none of those that have infinity alone."""
    rows = [
        (_bad_value(step), mine["skipped"])
        for step, mine, right in zip(case["steps"], got, want, strict=True)
        if right["skipped"]
    ]
    return ("NaN", True) in rows and all(skipped is (bad == "NaN") for bad, skipped in rows if bad)


def _step(
    scaler: Any,
    optimizer: Any,
    parameters: list[Any],
    step: dict[str, Any],
    *,
    earlier: dict[str, Any] | None,
    through: Any,
) -> dict[str, Any]:
    """One training step with the script's gradients, as plain data; `earlier` is the step before, if there was one."""
    import torch

    for one in parameters:
        # From zero, a move is the gradient to the last bit, however small.
        one.data.zero_()
    factor, reached = _scaled_loss(scaler)
    for one, gradient in zip(parameters, step["gradients"], strict=True):
        one.grad = (torch.tensor(gradient, dtype=torch.float64) * factor).to(through).float()
    seen, refused, in_place = [], False, True
    if step["unscale"]:
        before = [one.grad.detach() for one in parameters]
        _unscale_once(scaler, optimizer, earlier)
        in_place = all(one.grad.data_ptr() == own.data_ptr() for one, own in zip(parameters, before, strict=True))
        seen = [value for one in parameters for value in one.grad.tolist()]
    if step["unscale"] == "twice":
        refused = _refuses(scaler, optimizer)
    optimizer.took_bad = False
    scaler.step(optimizer)
    scaler.update()
    moved = [-float(value) for one in parameters for value in one.detach().flatten()]
    skipped = all(value == 0 for value in moved) and not optimizer.took_bad
    after = float(scaler.scale(torch.tensor(1.0)))
    return {
        "before": factor,
        "reached": reached,
        "after": after,
        "moved": moved,
        "skipped": skipped,
        "seen": seen,
        "refused": refused,
        "in_place": in_place,
    }


def _scaled_loss(scaler: Any) -> tuple[float, float]:
    """What a loss of 1 becomes, and the gradient that reaches it from there."""
    import torch

    loss = torch.ones((), requires_grad=True)
    scaled = scaler.scale(loss)
    if isinstance(scaled, torch.Tensor) and scaled.requires_grad:
        scaled.backward()
    number = scaled.detach() if isinstance(scaled, torch.Tensor) else scaled
    return float(number), 0.0 if loss.grad is None else float(loss.grad)


def _unscale_once(scaler: Any, optimizer: Any, earlier: dict[str, Any] | None) -> None:
    """The first unscale_ since update(): a scaler that refuses it as a second one is told what it did not forget."""
    try:
        scaler.unscale_(optimizer)
    except NotImplementedError:
        raise
    except RuntimeError as error:
        if earlier and "unscale" in str(error):
            error.args = (f"{error} ({_UPDATED} {'an overflow' if earlier['skipped'] else 'a step'})",)
        raise


def _refuses(scaler: Any, optimizer: Any) -> bool:
    try:
        scaler.unscale_(optimizer)
    except NotImplementedError:
        raise
    except RuntimeError:
        return True
    return False


def _mistake(mine: Any, right: Any, *, case: Any, step: Any, clean: int) -> tuple[str, str] | None:
    """What is wrong with one step, and what to look at; None when it is right."""
    if mine["borrowed"]:
        return "your LossScaler is torch's GradScaler", "write the five methods in a class of your own"
    if not close(mine["before"], right["before"], rtol=1e-12):
        return (
            "scale(loss) is not the loss times the scale",
            "return the loss times the attribute that stores the scale",
        )
    if not close(mine["reached"], right["reached"], rtol=1e-12):
        return (
            "scale(loss) cuts the loss off from its graph",
            "multiply the loss itself: a number, as .item() returns it, has no graph",
        )
    if right["skipped"] and _is_put_back(mine):
        then = (
            "look at the gradients before optimizer.step(): this "
            "optimizer remembers them, so checking later is too late"
        )
        return (
            "your scaler calls optimizer.step() with infinity or NaN in a gradient, and then restores the weights",
            then,
        )
    if right["skipped"] and not mine["skipped"]:
        if all(map(math.isfinite, mine["moved"])):
            return (
                "your scaler replaces or leaves out bad values, and takes the step without them",
                "skip the whole step if any tensor has one infinite or NaN value",
            )
        return "your scaler let infinity or NaN reach the weights", "look at every gradient before optimizer.step()"
    if mine["skipped"] and not right["skipped"]:
        if not all(math.isfinite(_in_fp32(sum(part))) for part in step["gradients"]):
            what = "your scaler skips a clean step: its gradients are finite, and only their sum is not"
            return what, "check whether each value is finite: torch.isfinite(grad).all()"
        return "your scaler skips a clean step", "does update() forget what was found in an earlier step?"
    moves = list(zip(mine["moved"], right["moved"], strict=True))
    wrong = [index for index, (m, r) in enumerate(moves) if not _near(m, r)]
    if wrong:
        what, then = _wrong_move(*moves[wrong[0]], scale=right["before"])
        if wrong[0] >= case["sizes"][0] and case["sizes"][0]:
            what, then = f"{what}, but only in the second parameter group", "go through all of optimizer.param_groups"
        return what, then
    if not all(_near(m, r) for m, r in zip(mine["seen"], right["seen"], strict=False)) or len(mine["seen"]) != len(
        right["seen"]
    ):
        return (
            "after unscale_, the gradients are not the true ones",
            "divide each gradient in place: param.grad.div_(...)",
        )
    if not mine["in_place"]:
        what = "unscale_ replaces the gradients with new tensors instead of changing them"
        return what, "divide in place, with param.grad.div_(...): other code may still use the old tensors"
    if mine["refused"] != right["refused"]:
        return (
            "your scaler does not refuse a second unscale_ in one step",
            "raise RuntimeError if unscale_ has been called since the last update()",
        )
    if not close(mine["after"], right["after"], rtol=1e-12):
        return _wrong_scale(mine, right, clean=clean, limit=case["settings"]["max_scale"])
    return None


def _is_put_back(mine: Any) -> bool:
    """Whether the optimizer took a step with infinity or NaN of which nothing is left in the weights."""
    return not mine["skipped"] and not any(mine["moved"])


def _wrong_move(mine: float, right: float, *, scale: float) -> tuple[str, str]:
    ratio = mine / right if right else math.inf
    if mine != mine:
        then = "print scale and gradients before and after unscale_ in this step: where does NaN appear first?"
        return "weights became NaN in a step whose true gradients are finite", then
    if scale != 1 and close(ratio, scale, rtol=1e-3):
        return "the weights moved by scaled gradients", "let step() unscale first if unscale_ was not called"
    if scale != 1 and close(ratio, 1 / scale, rtol=1e-3):
        return (
            "your scaler unscales the gradients twice",
            "do not let step() unscale what unscale_ has already unscaled",
        )
    return (
        "the weights moved by something other than the true gradients",
        "by which scale were the gradients multiplied?",
    )


def _wrong_scale(mine: Any, right: Any, *, clean: int, limit: float) -> tuple[str, str]:
    if mine["after"] > limit:
        return "your scale grew beyond max_scale", "limit the growth: use the smaller of the grown scale and max_scale"
    if right["after"] < right["before"]:
        if right["after"] < 1 <= mine["after"]:
            return "your scale does not fall below 1", "let it fall below 1: large gradients need such a scale"
        if mine["after"] == mine["before"]:
            return "your scale did not back off after an overflow", "back off in the first update() after the overflow"
        return "your scale backed off by the wrong factor", "multiply it by backoff_factor, once per step"
    if right["after"] > right["before"]:
        if mine["after"] == mine["before"]:
            return (
                "your scale did not grow when it should have",
                "count clean steps, including the one that completes the interval",
            )
        return "your scale grew by the wrong factor", "multiply it by growth_factor"
    if mine["after"] > mine["before"]:
        steps = "1 clean step" if clean == 0 else f"{clean + 1} clean steps in a row"
        return "your scale grew too early", f"it grew after {steps}: what resets your counter to 0?"
    return "your scale fell without an overflow", "when does your scaler forget that it found an overflow?"


def _told(number: int, step: Any, mine: Any, right: Any, case: Any) -> str:
    bad = f"with {_bad_value(step)}" if right["skipped"] else "clean"
    called = {"": "", "once": ", unscale_ called", "twice": ", unscale_ called twice"}[step["unscale"]]
    told = f"step {number} ({bad}{called}), growth_interval {case['settings']['growth_interval']}"
    if mine["refused"] != right["refused"]:
        return f"{told}: the second call did not raise RuntimeError" if right["refused"] else told
    if (mine["before"], mine["after"]) == (right["before"], right["after"]):
        return f"{told}, scale {mine['before']:g}"
    return (
        f"{told}: the scale was {mine['before']:g}, then {mine['after']:g}; "
        f"expected {right['before']:g}, then {right['after']:g}"
    )


def _bad_value(step: Any) -> str:
    """What the script has in a step that is skipped."""
    values = [value for part in step["gradients"] for value in part]
    return "NaN" if any(map(math.isnan, values)) else "infinity" if any(map(math.isinf, values)) else "an overflow"


def _in_fp32(value: float) -> float:
    return value if abs(value) < _LARGEST_FP32 else math.inf


def _near(mine: Any, right: float) -> bool:
    if not math.isfinite(right):
        return type(mine) in (int, float) and not math.isfinite(mine)
    return close(mine, right, rtol=1e-4, atol=1e-15)
