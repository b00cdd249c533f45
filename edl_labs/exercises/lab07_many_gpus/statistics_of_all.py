"""sync_batch_norm: a batch norm over the rows of all ranks, forward and backward, with one collective each."""

from __future__ import annotations

import inspect
from typing import Any

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab07_many_gpus import batch_norm_slips as slips
from edl_labs.exercises.ranks_in_turn import UNEQUAL_PARTS, distance, listed, run_in_turn, unreadable

_SAME = 1e-7  # of the length: float64, of values that agree in seven digits
_WORDS = ("running mean", "running variance")


@exercise("sync_batch_norm", trusting=True, digits=13)
class SyncBatchNorm(Exercise):
    """A batch norm whose batch lies on several ranks, in unequal parts.

    `normalise(x, running, comm, momentum=, eps=)` gives (y, running, kept), `go_back(gradient, kept, comm)` the
    gradient of x. Trusting: the calls of `comm` are counted in the student's process.
    """

    answers = ("outputs", "running", "gradients")

    def probe(self, student: Any, given: Any) -> Any:
        parts, running, upstream = drawn_rows(given)
        options = {name: given[name] for name in ("momentum", "eps")}

        def program(comm: Any) -> Any:
            before = tuple(one.clone() for one in running)
            # What is kept is the student's own affair, and goes back as it came.
            y, after, kept = inspect.unwrap(student.normalise)(parts[comm.rank].clone(), before, comm, **options)
            comm.phase = "backward"
            return y, after, student.go_back(upstream[comm.rank].clone(), kept, comm)

        done, comms, stuck = run_in_turn(len(parts), program)
        return {
            "stuck": stuck,
            "forward": [comm.phases.count("forward") for comm in comms],
            "sums_forward": [_sums(comm) for comm in comms],
            "dtypes": sorted({dtype for comm in comms for dtype in comm.dtypes}),
            "backward": [comm.phases.count("backward") for comm in comms],
            "outputs": [listed(one[0]) for one in done],
            "running": [[listed(value) for value in one[1]] for one in done],
            "gradients": [listed(one[2]) for one in done],
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if UNEQUAL_PARTS in got["stuck"]:
            then = "send only a few numbers per channel, such as count, mean and variance: ranks have unequal numbers "
            then += "of rows, but tensors that meet in a call must have the same shape"
            raise Wrong("your ranks send tensors of different shapes", why=got["stuck"], next=then)
        if got["stuck"]:
            then = "let all ranks make the same calls, in the same order"
            raise Wrong("your ranks' collective calls do not all finish", why=got["stuck"], next=then)
        if short := [dtype for dtype in got["dtypes"] if dtype != "float64"]:
            why = f"comm was given a {short[0]} tensor, but x is float64"
            then = "create tensors with dtype=x.dtype: torch.zeros and torch.tensor make float32 by default"
            raise Wrong("your ranks send tensors of lower precision than x", why=why, next=then)
        _judge_outputs(case, got, want)
        _judge_sums(got)
        _judge_calls("forward", got)
        _judge_running(case, got, want)
        _judge_gradients(case, got, want)
        _judge_calls("backward", got)

    def student_inputs(self, case: Any) -> Any:
        """The rows of all ranks, and what else the functions are given, as tensors."""
        parts, running, upstream = drawn_rows(case)
        given = {name: case[name] for name in ("momentum", "eps")}
        return {"x_of_ranks": parts, "running": running, **given, "gradient_of_ranks": upstream}

    def format_answer(self, case: Any, got: Any) -> str:
        """The first numbers of rank 0: all are too many to read."""
        found = {"y": got["outputs"][0], "gradient of x": got["gradients"][0]} if not got["stuck"] else {}
        lines = [f"{name} {', '.join(f'{one:.4g}' for one in values[:4])}, …" for name, values in found.items()]
        return f"rank 0: {'; '.join(lines)}" if lines else got["stuck"]

    def format_case(self, case: Any) -> str:
        """The ranks' rows, and where their values lie."""
        rows = ", ".join(map(str, case["rows"]))
        told = f"{case['channels']} channels, {rows} rows on {len(case['rows'])} ranks, values near {case['centre']:g}"
        return f"{told}; momentum {case['momentum']:g}, eps {case['eps']:g}"


def drawn_rows(case: Any) -> tuple[list[Any], tuple[Any, Any], list[Any]]:
    """Each rank's rows, the running mean and variance from before, and the gradients of what comes out."""
    import torch

    drawn = torch.Generator().manual_seed(case["seed"])

    def make(rows: int) -> Any:
        return torch.randn(rows, case["channels"], generator=drawn, dtype=torch.float64)

    parts = [
        case["centre"] + case["spread"] * (make(rows) * (1 + rank) + rank) for rank, rows in enumerate(case["rows"])
    ]
    running = make(2)
    return parts, (running[0], running[1].abs() + 0.5), [make(rows) + 0.5 for rows in case["rows"]]


def _judge_outputs(case: Any, got: Any, want: Any) -> None:
    for rank, (mine, right) in enumerate(zip(got["outputs"], want["outputs"], strict=True)):
        if len(mine) != len(right):
            why = (
                f"rank {rank} has {case['rows'][rank]} rows, but your function returned {len(mine) // case['channels']}"
            )
            raise Wrong(
                "your function returns the wrong number of rows on a rank",
                why=why,
                next="return only the rank's own rows, normalised",
            )
        if odd := unreadable(mine, len(right)):
            then = "does any rank have a single row? A single row has no unbiased variance: var(0) divides by zero"
            why = f"rank {rank}'s output (rows: {case['rows'][rank]}) {odd}"
            raise Wrong("your output contains a value that is not finite", why=why, next=then)
    off = [distance(mine, right) for mine, right in zip(got["outputs"], want["outputs"], strict=True)]
    if max(off) <= _SAME:
        return
    rank = off.index(max(off))
    why = f"rank {rank}'s output has a relative error of {off[rank]:.2g}"
    if not any(got["forward"]):
        then = "get the batch's mean and variance with one call of comm: the batch's rows are spread over all ranks"
        raise Wrong(
            "in your code, each rank normalises with only its own rows",
            why=f"{why}, and comm is never called",
            next=then,
        )
    parts, before, _ = drawn_rows(case)
    told = slips.of_outputs(case, parts, got["outputs"], slips.fresh(case, before, want["running"][0]), _SAME)
    if told:
        raise Wrong(told[0], why=why, next=told[1])
    if case["centre"] > 100 * case["spread"]:
        then = "add up squares of deviations from a mean: squares of such large values differ only in their last digits"
        raise Wrong(
            "your function loses too many digits to rounding",
            why=f"{why}; the values are near {case['centre']:g}",
            next=then,
        )
    then = (
        "compare your mean and variance with those of torch.cat(all rows). If you shift values before you sum them, "
        "shift them by the same number on all ranks"
    )
    raise Wrong("your function normalises rows with the wrong mean or variance", why=why, next=then)


def _sums(comm: Any) -> int:
    """How many of a rank's calls forward were sums."""
    return sum(pair == ("all_reduce", "forward") for pair in zip(comm.names, comm.phases, strict=True))


def _judge_sums(got: Any) -> None:
    if max(got["sums_forward"]) > 1:
        why = f"the outputs are right, but a rank's forward pass calls all_reduce {max(got['sums_forward'])} times"
        then = (
            "send each rank's count, mean and variance as one tensor: you do not need the overall mean first, "
            "since you can correct the ranks' variances afterwards"
        )
        raise Wrong("your function calls all_reduce several times where one collective is enough", why=why, next=then)


def _judge_calls(phase: str, got: Any) -> None:
    most = max(got[phase])
    if most > 1:
        right = "the outputs are right" if phase == "forward" else "all results are right"
        why = f"{right}, but a rank's {phase} pass makes {most} calls of comm"
        then = "put everything that you send into one tensor, with torch.stack"
        raise Wrong(f"your {phase} pass uses more than one collective", why=why, next=then)


def _judge_running(case: Any, got: Any, want: Any) -> None:
    parts, before, _ = drawn_rows(case)
    right = want["running"][0]
    for rank, pair in enumerate(got["running"]):
        if len(pair) != 2:
            why = f"rank {rank} returned {len(pair)} tensors"
            then = "return (mean, variance), each with one value per channel"
            raise Wrong("your running statistics are not a pair", why=why, next=then)
        for at, (mine, true) in enumerate(zip(pair, right, strict=True)):
            off = distance(mine, true)
            if off <= _SAME:
                continue
            if odd := unreadable(mine, len(true)):
                then = "return one finite value per channel, in both running statistics"
                what = f"your {_WORDS[at]} does not have one finite value per channel"
                raise Wrong(what, why=f"rank {rank}'s tensor {odd}", next=then)
            told = slips.of_running(case, parts, before, got["running"], want["running"][0], at, _SAME)
            why = f"the outputs are right, but rank {rank}'s {_WORDS[at]} has a relative error of {off:.2g}"
            what, then = told or (
                f"your {_WORDS[at]} is updated to a wrong value",
                "add (1 - momentum) times the old value and momentum times the value of the whole batch",
            )
            raise Wrong(what, why=why, next=then)


def _judge_gradients(case: Any, got: Any, want: Any) -> None:
    pairs = list(zip(got["gradients"], want["gradients"], strict=True))
    for rank, (mine, right) in enumerate(pairs):
        if odd := unreadable(mine, len(right)):
            then = "return one row for each of the rank's rows, with one finite number per channel"
            what = "your gradient of x does not have one finite number per element"
            raise Wrong(what, why=f"rank {rank}'s gradient {odd}", next=then)
    for rank, (mine, right) in enumerate(pairs):
        off = distance(mine, right)
        if off <= _SAME:
            continue
        why = f"the outputs are right, but rank {rank}'s gradient of x has a relative error of {off:.2g}"
        _, _, upstream = drawn_rows(case)
        told = slips.of_gradients(case, upstream, got["gradients"], want)
        if not told and not any(got["backward"]):
            told = (
                "in your code, each rank's backward pass uses only the rank's own rows",
                "get the sums over all ranks' rows with one call of comm: every row affects the mean",
            )
        what, then = told or (
            "your gradient of x is not that of the whole batch",
            "test your backward pass with a single rank first",
        )
        raise Wrong(what, why=why, next=then)
