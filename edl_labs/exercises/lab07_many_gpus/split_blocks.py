"""split_a_block: attention and MLP by columns and rows over ranks, with one all-reduce forward and one backward."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab07_many_gpus.ranks_in_turn import run_in_turn

_SAME = 1e-9  # of the length: float64, added in another order
_AXES = {"up": 1, "up_bias": 0, "down": 0, "query": 1, "key": 1, "value": 1, "out": 0}
_BIASES = {"mlp": "down_bias", "attention": "out_bias"}
_LAST = {"mlp": "down", "attention": "out"}


@exercise("split_a_block", trusting=True, digits=13)
class SplitABlock:
    """A transformer's two blocks over the ranks of a group, with what the whole ones give.

    `shards(block, rank, ranks)` gives a rank's part, `forward(shard, x, comm)` its output. Trusting: the calls of
    `comm` are counted in the student's process.
    """

    def probe(self, student: Any, case: Any) -> Any:
        import torch

        block, x, upstream = drawn_block(case)

        def program(comm: Any) -> Any:
            made = student.shards({**block}, comm.rank, comm.size)
            shard = {name: _leaf(part) for name, part in made.items()}
            mine = x.clone().requires_grad_()
            output = student.forward({**shard}, mine, comm)
            comm.phase = "backward"
            if output.requires_grad:
                (output * upstream).sum().backward()
            return shard, mine, output

        done, comms, stuck = run_in_turn(case["ranks"], program)
        parts = [one[0] for one in done]
        tensors = [name for name, part in block.items() if isinstance(part, torch.Tensor)]
        return {
            "stuck": stuck,
            "attached": [bool(one[2].requires_grad) for one in done],
            "forward": [comm.phases.count("forward") for comm in comms],
            "backward": [comm.phases.count("backward") for comm in comms],
            "outputs": [_listed(one[2]) for one in done],
            "input_gradients": [_listed(one[1].grad) for one in done],
            "shapes": {name: [list(part[name].shape) if name in part else [] for part in parts] for name in tensors},
            "gradients": {name: _assembled(name, parts) for name in tensors},
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got["stuck"]:
            then = "all ranks make the same calls, with parts of one shape"
            raise Wrong("the ranks do not call together", why=got["stuck"], next=then)
        _judge_shapes(case, got["shapes"])
        if not all(got["attached"]):
            why = "what all_reduce gives back is a new tensor, and autograd does not know where it came from"
            then = "put it into the forward of a torch.autograd.Function, and say in its backward what comes back"
            raise Wrong("no gradient comes through the sum", why=why, next=then)
        _judge_output(case, got, want)
        if any(count != 1 for count in got["forward"]):
            why = f"the output is right, with {max(got['forward'])} all-reduces in the forward pass of a rank"
            raise Wrong("one sum forward is enough", why=why, next="columns first, then rows: what has to be summed?")
        _judge_gradients(case, got, want)
        if any(count != 1 for count in got["backward"]):
            why = f"everything is right, with {max(got['backward'])} all-reduces in the backward pass of a rank"
            raise Wrong("one sum backward is enough", why=why, next="where do the ranks' paths part?")

    def raised(self, case: Any, error: str) -> Wrong | None:
        """What a shape that does not fit means where heads do not divide by the ranks."""
        if case["kind"] == "attention" and case["heads"] % case["ranks"] and error == "RuntimeError":
            why = f"{case['heads']} heads on {case['ranks']} ranks, and torch refuses a shape"
            then = "give rank r the heads from r * heads // ranks to (r + 1) * heads // ranks"
            return Wrong("heads do not divide evenly", why=why, next=then)
        return None

    def show(self, case: Any) -> str:
        """The block and the ranks."""
        inner = f"{case['heads']} heads" if case["kind"] == "attention" else f"{case['hidden']} hidden channels"
        return f"{case['kind']} of {case['width']} channels, {inner}, on {case['ranks']} ranks"


def drawn_block(case: Any) -> tuple[dict[str, Any], Any, Any]:
    """The whole block, its input and the gradient of its output."""
    import torch

    drawn = torch.Generator().manual_seed(case["seed"])

    def make(*shape: int) -> Any:
        return torch.randn(*shape, generator=drawn, dtype=torch.float64) / math.sqrt(shape[0])

    width, tokens = case["width"], case["tokens"]
    if case["kind"] == "mlp":
        block: dict[str, Any] = {"kind": "mlp", "up": make(width, case["hidden"]), "up_bias": make(case["hidden"])}
        block |= {"down": make(case["hidden"], width), "down_bias": 1 + make(width)}
    else:
        block = {"kind": "attention", "heads": case["heads"]}
        block |= {name: make(width, width) for name in ("query", "key", "value", "out")}
        block["out_bias"] = 1 + make(width)
    return block, make(tokens, width) * tokens, make(tokens, width) * tokens


def _leaf(part: Any) -> Any:
    import torch

    return part.detach().clone().requires_grad_() if isinstance(part, torch.Tensor) else part


def _listed(tensor: Any) -> list[float]:
    return [] if tensor is None else [float(value) for value in tensor.detach().double().flatten()]


def _assembled(name: str, parts: list[Any]) -> list[list[float]]:
    """The gradient of the whole from those of the parts; of an output's bias, that of each rank."""
    import torch

    found = [part[name].grad for part in parts if name in part]
    if name not in _AXES or any(one is None for one in found):
        return [_listed(one) for one in found]
    try:
        return [_listed(torch.cat(found, dim=_AXES[name]))]
    except (RuntimeError, IndexError):
        return [_listed(one) for one in found]


def _judge_shapes(case: Any, shapes: Any) -> None:
    width, ranks = case["width"], case["ranks"]
    inner = case["hidden"] if case["kind"] == "mlp" else width
    first, last = ("up", "down") if case["kind"] == "mlp" else ("query", "out")
    for name in (first, last):
        if [] in shapes[name]:
            why = f"a shard has no {name!r}"
            raise Wrong("a shard has other names than the block", why=why, next="keep the names, with a part each")
    if any(shape[0] < width for shape in shapes[first]):
        why = f"{first} of {width} x {inner} is cut into {shapes[first]}"
        then = "which cut leaves every rank with whole sums before the nonlinearity?"
        raise Wrong("the first matrix is cut by rows", why=why, next=then)
    if all(shape[1] == inner for shape in shapes[first]):
        why = f"each of {ranks} ranks has {first} as a whole"
        raise Wrong("every rank holds the whole block", why=why, next="a rank keeps its columns alone")
    if any(shape[1] < width for shape in shapes[last]):
        why = f"{last} of {inner} x {width} is cut into {shapes[last]}"
        then = "the inputs of this matrix lie on different ranks: which of its rows do they meet?"
        raise Wrong("the second matrix is cut by columns", why=why, next=then)
    for name in ("up", "query", "key", "value"):
        if name in shapes and sum(shape[1] for shape in shapes[name]) != inner:
            why = f"{name} of {inner} columns is cut into {[shape[1] for shape in shapes[name]]}"
            raise Wrong("columns are lost, or held twice", why=why, next="where does a rank's part end?")
    if case["kind"] == "attention":
        size = width // case["heads"]
        if any(shape[1] % size for shape in shapes["query"]):
            why = f"heads have {size} channels, and ranks have {[shape[1] for shape in shapes['query']]}"
            then = "a softmax belongs to one head: cut between heads, even if some ranks get one more"
            raise Wrong("a head lies on two ranks", why=why, next=then)
    most = -(-inner // ranks) if case["kind"] == "mlp" else -(-case["heads"] // ranks) * (width // case["heads"])
    if any(shape[1] > most for shape in shapes[first]):
        why = f"a rank has {max(shape[1] for shape in shapes[first])} columns; {most} would do"
        raise Wrong(
            "the parts are not as equal as they can be", why=why, next="from r * n // ranks to (r + 1) * n // ranks"
        )


def _judge_output(case: Any, got: Any, want: Any) -> None:
    right = want["outputs"][0]
    for rank, mine in enumerate(got["outputs"]):
        if _distance(mine, right) <= _SAME:
            continue
        why = f"rank {rank}'s output is {_distance(mine, right):.2g} of its length off"
        bias = _listed(drawn_block(case)[0][_BIASES[case["kind"]]]) * case["tokens"]
        if not any(got["forward"]):
            then = "each rank has a part of every sum; who adds the parts up?"
            raise Wrong("the outputs of the ranks are never summed", why=why, next=then)
        for times in (case["ranks"], 0):
            if _distance(mine, [a + (times - 1) * b for a, b in zip(right, bias, strict=True)]) <= _SAME:
                what = "every rank adds the bias before the sum" if times else "the output's bias is lost"
                raise Wrong(what, why=f"{why}: the bias is in it {times} times", next="add it once, after the sum")
        if _distance(mine, [(a - b) / case["ranks"] + b for a, b in zip(right, bias, strict=True)]) <= _SAME:
            raise Wrong("the parts were averaged", why=why, next="parts of a sum are added")
        if case["kind"] == "attention":
            then = "a head's width is the same on every rank: what does it say below the root?"
            raise Wrong("the heads give something else than in the whole block", why=why, next=then)
        raise Wrong("the output is not that of the whole block", why=why, next="run both with one rank first")


def _judge_gradients(case: Any, got: Any, want: Any) -> None:
    ranks, right = case["ranks"], want["input_gradients"][0]
    last = _LAST[case["kind"]]
    mine = got["gradients"][last][0] if got["gradients"][last] else []
    if _distance(mine, [ranks * value for value in want["gradients"][last][0]]) <= _SAME:
        why = f"the gradient of {last} is {ranks} times what it should be"
        then = "every rank has the output's whole gradient already: what is left to do for the sum's backward pass?"
        raise Wrong("the gradient of the sum is summed again", why=why, next=then)
    for rank, found in enumerate(got["input_gradients"]):
        if _distance(found, right) <= _SAME:
            continue
        why = f"outputs are right, and rank {rank}'s gradient of x is {_distance(found, right):.2g} of its length off"
        if not any(got["backward"]):
            then = "x goes into every rank's part, so its gradient is the sum over the ranks"
            raise Wrong("each rank has its own part of the input's gradient", why=why, next=then)
        raise Wrong("the input's gradient is wrong", why=why, next="sum it once, where x enters the rank's part")
    for name, rows in want["gradients"].items():
        parts = got["gradients"][name]
        for row in rows if name in _AXES else rows[:1]:
            if not parts or any(_distance(part, row) > _SAME for part in parts):
                why = f"the gradients of {name} from all ranks do not make that of the whole"
                raise Wrong("a weight's gradient is wrong", why=why, next="which path does it come along?")


def _distance(got: list[float], want: list[float]) -> float:
    """How far `got` is from `want`, as a share of its length; infinite where the sizes differ."""
    if len(got) != len(want) or not all(map(math.isfinite, got)):
        return math.inf
    size = math.sqrt(sum(value * value for value in want))
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(got, want, strict=True))) / size if size else 0.0
