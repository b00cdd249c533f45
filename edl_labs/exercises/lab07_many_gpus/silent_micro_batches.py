"""no_sync: accumulation on several ranks, with one all-reduce a window and each token weighing the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import counted

_CALLS: dict[str, list[type]] = {"forward": [int], "backward": [int, float]}
_CALLS |= {name: [] for name in ("enter", "exit", "zero_grad", "step")}


class RecordedLoss:
    """The sum of a micro-batch's token losses on this rank; it can be scaled and sent backward."""

    def __init__(self, log: list[Any], number: int, factor: float = 1.0) -> None:
        self._log, self._number, self._factor = log, number, factor

    def __mul__(self, factor: float) -> RecordedLoss:
        return RecordedLoss(self._log, self._number, self._factor * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> RecordedLoss:
        return RecordedLoss(self._log, self._number, self._factor / divisor)

    def backward(self) -> None:
        """Add this loss's gradients to the existing ones."""
        self._log.append(["backward", self._number, float(self._factor)])


class RecordedDDP:
    """A rank's model in DistributedDataParallel, and its optimizer: it notes what is called."""

    def __init__(self, world_size: int) -> None:
        self.world_size, self.log = world_size, list[Any]()

    def __call__(self, batch: Any) -> RecordedLoss:
        self.log.append(["forward", batch["number"]])
        return RecordedLoss(self.log, batch["number"])

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """What runs forward in here sends nothing when it runs backward."""
        self.log.append(["enter"])
        try:
            yield
        finally:
            self.log.append(["exit"])

    def zero_grad(self) -> None:
        """Clear the gradients."""
        self.log.append(["zero_grad"])

    def step(self) -> None:
        """Update the weights."""
        self.log.append(["step"])


@exercise("no_sync")
class NoSync(Exercise):
    """A training loop with micro-batches on several ranks: when gradients are sent, and what each token weighs.

    `train(ddp, batches, window)` is called on every rank. The evidence is what each rank called.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"logs": ""}

    def probe(self, student: Any, given: Any) -> Any:
        logs = []
        for tokens in given["tokens"]:
            ddp = RecordedDDP(len(given["tokens"]))
            everywhere = [sum(column) for column in zip(*given["tokens"], strict=True)]
            pairs = enumerate(zip(tokens, everywhere, strict=True))
            batches = [{"number": at, "tokens": own, "tokens_everywhere": every} for at, (own, every) in pairs]
            student.train(ddp, batches, given["window"])
            logs.append(ddp.log)
        return {"logs": json.dumps(logs)}

    def public_want(self, case: Any, want: Any) -> Any:
        """How often the weights are updated: the calls would be the answer."""
        return {"steps": want["logs"].count("step")}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        logs = _read(got["logs"])
        count, window = len(case["tokens"][0]), case["window"]
        if len({json.dumps([one[:2] for one in log]) for log in logs}) > 1 or len(logs) != len(case["tokens"]):
            then = "make the same calls on every rank: do not let an `if` depend on the number of tokens"
            raise Wrong(
                "your loop makes different calls on different ranks",
                why="with different calls, a rank would wait forever",
                next=then,
            )
        _judge_calls(logs[0], count, window)
        done = 0
        for found in _steps(logs):
            part = range(done, min(done + window, count))
            done += window
            _judge_step(case, found, part)

    def format_case(self, case: Any) -> str:
        """The ranks, the window and the tokens."""
        rows = [f"  rank {rank}: {', '.join(map(str, tokens))} tokens" for rank, tokens in enumerate(case["tokens"])]
        return "\n".join([f"windows of {case['window']} micro-batches", *rows])


def _read(text: Any) -> list[Any]:
    try:
        logs = json.loads(text)
        good = all(_is_call(one) for log in logs for one in log)
    except (TypeError, ValueError, RecursionError, IndexError, KeyError):
        good = False
    if not good or not logs:
        then = "use ddp only through its own methods"
        raise Wrong("the record of your calls is invalid", why="it does not contain calls of this model", next=then)
    return logs


def _is_call(one: Any) -> bool:
    wanted = _CALLS.get(one[0] if type(one[0]) is str else "")
    return wanted is not None and [type(value) for value in one[1:]] == wanted


def _judge_calls(log: Any, count: int, window: int) -> None:
    """Every micro-batch once, a step for each window, one all-reduce before each step."""
    for kind in ("forward", "backward"):
        numbers = [one[1] for one in log if one[0] == kind]
        if numbers != list(range(count)):
            why = f"the {kind} pass runs for the micro-batches {str(numbers)[:60]}, but there are {count}"
            then = "run each micro-batch forward and backward once, in order"
            raise Wrong("your loop does not use each micro-batch once, in order", why=why, next=then)
    steps = sum(one[0] == "step" for one in log)
    if steps != -(-count // window):
        why = f"your loop takes {counted(steps, 'step')} for {count} micro-batches in windows of {window}"
        if not steps:
            then = "call ddp.step() after each window's last backward()"
            raise Wrong("your loop never updates the weights", why=why, next=then)
        if steps > -(-count // window):
            then = "call ddp.step() once per window, after the backward pass of its last micro-batch"
            raise Wrong("your loop takes more steps than there are windows", why=why, next=then)
        then = "treat the micro-batches that are left over at the end as a window too"
        raise Wrong("your loop takes no step for some windows", why=why, next=then)
    sent = _sent(log)
    why = f"your loop makes {counted(len(sent), 'all-reduce')} in {counted(steps, 'step')}"
    ends = [min(at + window, count) - 1 for at in range(0, count, window)]
    if sent == ends:
        return
    inside, silent_backward = 0, False
    for one in log:
        inside += (one[0] == "enter") - (one[0] == "exit")
        silent_backward = silent_backward or (one[0] == "backward" and inside > 0 and one[1] in sent)
    if silent_backward:
        then = (
            "run the forward pass inside no_sync() as well: DDP decides in the forward pass whether to send gradients"
        )
        raise Wrong("your loop runs only the backward pass of a micro-batch inside no_sync()", why=why, next=then)
    if len(sent) > steps:
        then = "send gradients only once, right before each step: no other rank needs the gradients earlier"
        raise Wrong("your loop sends gradients more often than necessary", why=why, next=then)
    if sent == ends[:-1] and count % window:
        why = f"{why}; nothing is sent in the last window, which has {counted(count % window, 'micro-batch')}"
        then = "run the last micro-batch of the last window outside no_sync() as well, even if this window is shorter"
        raise Wrong(
            "in your loop, the last step uses gradients that were not summed over the ranks", why=why, next=then
        )
    then = "run the last micro-batch of each window outside no_sync()"
    why = f"{why}; the ranks' weights drift apart"
    raise Wrong("in your loop, a step uses gradients that were not all summed over the ranks", why=why, next=then)


def _sent(log: Any) -> list[int]:
    """The micro-batches whose backward pass ends in an all-reduce."""
    inside, sent = 0, []
    for one in log:
        inside += (one[0] == "enter") - (one[0] == "exit")
        if one[0] == "forward" and not inside:
            sent.append(one[1])
    return sent


def _steps(logs: list[Any]) -> Iterator[dict[tuple[int, int], float]]:
    """What each step's gradient consists of: the weight of (rank, micro-batch), the mean over ranks taken."""
    held: dict[tuple[int, int], float] = {}
    for at, one in enumerate(logs[0]):
        if one[0] == "zero_grad":
            held = {}
        elif one[0] == "backward":
            for rank, log in enumerate(logs):
                held[rank, one[1]] = held.get((rank, one[1]), 0.0) + log[at][2] / len(logs)
        elif one[0] == "step":
            yield dict(held)


def _judge_step(case: Any, found: dict[tuple[int, int], float], part: range) -> None:
    tokens, ranks = case["tokens"], range(len(case["tokens"]))
    if any(number not in part for _, number in found):
        why = f"the step of micro-batches {list(part)} also contains gradients of other micro-batches"
        then = "call ddp.zero_grad() before each window"
        raise Wrong("in your loop, a step still contains gradients of another window", why=why, next=then)
    total = sum(tokens[rank][number] for rank in ranks for number in part)
    shares = [found.get((rank, number), 0.0) * total for rank in ranks for number in part]
    if all(close(share, 1.0) for share in shares):
        return
    if not any(shares):
        raise Wrong(
            "in your loop, a step has no gradients",
            why=f"in the step of micro-batches {list(part)}, every token weighs nothing",
            next="clear gradients before a window, not before its step, and divide with /, not //",
        )
    span = f"{min(shares):.4g}" + (f" to {max(shares):.4g}" if not close(min(shares), max(shares)) else "")
    why = f"in the step of micro-batches {list(part)}, a token weighs {span} times what it should"
    if all(close(share, 1 / len(tokens)) for share in shares):
        then = "DDP's all-reduce gives the mean over ranks, but you need the sum: multiply the loss by ddp.world_size"
        raise Wrong("your loss does not undo DDP's division by the number of ranks", why=why, next=then)
    if all(close(share, 1 / len(tokens) ** 2) for share in shares):
        then = "multiply the loss by world_size instead of dividing by it: DDP already divides once"
        raise Wrong("your loop divides gradients by the wrong number", why=why, next=then)
    if _is_last_alone(found, part):
        then = "call zero_grad() once per window, before its first micro-batch"
        why = f"{why}; only the window's last micro-batch counts"
        raise Wrong("your loop clears gradients within a window", why=why, next=then)
    if close(min(shares), max(shares)):
        why = f"{why}: with DDP's division by {len(tokens)} ranks, gradients are divided by {total / shares[0]:.6g} in "
        why += f"all, but the window has {total} tokens on all ranks"
        then = "divide by the window's number of tokens, added up over all ranks"
        raise Wrong("your loop divides gradients by the wrong number", why=why, next=then)
    rows = [shares[at : at + len(part)] for at in range(0, len(shares), len(part))]
    if all(close(min(row), max(row)) for row in rows):
        then = "divide by the number of tokens on all ranks, `tokens_everywhere`"
        raise Wrong("in your loop, each rank divides by its own number of tokens", why=why, next=then)
    raise Wrong(
        "your loop gives tokens of the same window different weights",
        why=why,
        next="use one divisor for the whole window",
    )


def _is_last_alone(found: dict[tuple[int, int], float], part: range) -> bool:
    """Whether of a window's micro-batches only the last one's gradients have come into the step."""
    return len(part) > 1 and {number for _, number in found} == {part[-1]}
