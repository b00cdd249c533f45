"""Each rank's part as a program that the judge plays on values of its own, with one sum forward and one backward."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from edl_labs.device import torch_threads
from edl_labs.errors import Wrong
from edl_labs.exercises.lab07b_models_that_do_not_fit.block_parts import AXES, BIASES, SAME, drawn_block, whole_pass
from edl_labs.exercises.ranks_in_turn import distance, listed

SUMS = 2  # one forward, and one backward
_UNRECORDED = "not recorded: "
_MOST_TEXT = 300  # characters of an exception: its first sentence
_WHOLE = "block's "  # before the name of an input from which tensors besides the block's are made
_ENTRIES = ("kind", "ranks", "tokens", "width", "heads", "hidden", "values_seed")


class _RecordedComm:
    """A rank's side of collectives whose sums are inputs of the program."""

    def __init__(self, rank: int, size: int, sums: list[Any]) -> None:
        self.rank, self.size, self.parts = rank, size, list[Any]()
        self._sums = sums

    def all_reduce(self, tensor: Any) -> Any:
        """The next of the sums, in the form of `tensor`."""
        self.parts.append(tensor.detach())
        if len(self.parts) > SUMS:
            raise ValueError(f"there are more than {SUMS} sums; only one forward and one backward are allowed")
        known = self._sums[len(self.parts) - 1]
        return (known if known.shape == tensor.shape else known.T.reshape(tensor.shape)).clone()


def recorded_ranks(student: Any, given: Any) -> list[str]:
    """The programs of all ranks, or why one has none: what a plain run says of the student's mistake comes first."""
    try:
        return [_recorded(student, given, rank) for rank in range(given["ranks"])]
    except Exception as error:
        return [f"{_UNRECORDED}{type(error).__name__}: {str(error)[:_MOST_TEXT]}"]


def _recorded(student: Any, given: Any, rank: int) -> str:
    import torch

    from edl_labs.graph.tensor_programs import Recorder

    block, x, upstream = drawn_block({**given, "seed": 0})
    shard = student.shards(block, rank, given["ranks"])
    tensors = {name: one for name, one in block.items() if isinstance(one, torch.Tensor)}
    parts = {name: shard[name].detach().clone() for name in tensors if isinstance(shard.get(name), torch.Tensor)}
    has_more = any(isinstance(one, torch.Tensor) for name, one in shard.items() if name not in parts)
    whole = {_WHOLE + name: one for name, one in tensors.items() if has_more}
    sums = [torch.randn_like(x) for _ in range(SUMS)]
    inputs = {"x": x, "upstream": upstream, **{f"sum {at}": one for at, one in enumerate(sums)}, **parts, **whole}
    recorder = Recorder(inputs)
    with torch_threads(1), recorder.recording():
        again = student.shards(block, rank, given["ranks"]) if has_more else shard
        more = {name: _besides(one) for name, one in again.items() if name not in parts}
        leaves = {name: one.detach().requires_grad_() for name, one in parts.items()}
        entered, comm = x.detach().requires_grad_(), _RecordedComm(rank, given["ranks"], sums)
        output = student.forward({**shard, **more, **leaves}, entered, comm)
        (output * upstream).sum().backward()
    found = {f"part {at}": one for at, one in enumerate(comm.parts)}
    found |= {"output": output, "x": entered.grad, **{name: one.grad for name, one in leaves.items()}}
    return recorder.text({name: one for name, one in found.items() if one is not None})


def _besides(one: Any) -> Any:
    """What a shard has besides the block's tensors, as in a plain run: it follows from the block, or from nothing."""
    import torch

    if not isinstance(one, torch.Tensor):
        return one
    return one.detach().clone().requires_grad_(one.is_floating_point())


def judge_programs(case: Any, got: Any, want: Any) -> None:
    """Wrong where the ranks' programs give something else than the block on other values, with these two sums."""
    programs = got["programs"]
    if len(programs) != case["ranks"] or str(programs[0]).startswith(_UNRECORDED):
        why = str(programs[0]).removeprefix(_UNRECORDED) if programs else "there is no record of the ranks"
        then = "on each rank, pass to comm.all_reduce only one tensor in the forward pass and one in the backward pass"
        if why.startswith("ProgramError"):
            then = "use PyTorch's own functions for products and sums, and to select elements"
        raise Wrong("your ranks' programs cannot be recorded", why=why, next=then)
    entries = {name: case[name] for name in _ENTRIES}
    block, x, upstream = drawn_block({**entries, "seed": entries["values_seed"]})
    output, of_x, gradients = whole_pass(block, x, upstream)
    for rank, found in enumerate(_played_in_turn(json.dumps(entries), json.dumps(got["shapes"]), tuple(programs))):
        right = {"output": output, "x": of_x}
        right |= {name: _part(case, one, name, got["shapes"][name], rank) for name, one in gradients.items()}
        for name, wanted in right.items():
            if name in ("output", "x") or got["shapes"][name][rank]:
                off = distance(listed(found.get(name)), listed(wanted))
                if off > SAME:
                    what = "output" if name == "output" else f"gradient of `{name}`"
                    why = "the ranks were recorded, and their records were replayed on different values, with one sum "
                    why += f"forward and one backward: rank {rank}'s {what} has a relative error of {off:.2g}"
                    then = "use only the rank's shard, x, and the results of comm.all_reduce"
                    raise Wrong("on different values, your ranks do not give the block's results", why=why, next=then)


@lru_cache(maxsize=16)
def _played_in_turn(case: str, shapes: str, programs: tuple[str, ...]) -> list[dict[str, Any]]:
    """The outputs of all ranks: played once for each sum, whose parts nobody knows before, and then with both."""
    import torch

    from edl_labs.graph.tensor_programs import ProgramError, play

    entries, cut = json.loads(case), json.loads(shapes)
    block, x, upstream = drawn_block({**entries, "seed": entries["values_seed"]})
    sums, found = [torch.zeros_like(x) for _ in range(SUMS)], list[dict[str, Any]]()
    try:
        for at in range(SUMS + 1):
            found = []
            for rank, program in enumerate(programs):
                shard = {
                    name: _part(entries, one, name, cut[name], rank).clone()
                    for name, one in block.items()
                    if name in cut and cut[name][rank]
                }
                known = {f"sum {number}": one.clone() for number, one in enumerate(sums)}
                own = _own_alone(entries, block, cut, rank)
                inputs = {"x": x.clone(), "upstream": upstream.clone(), **known, **shard, **own}
                with torch_threads(1):
                    found.append(play(program, inputs).outputs)
            if at < SUMS:
                sums[at] = sum((_like(one.get(f"part {at}"), x) for one in found), torch.zeros_like(x))
    except ProgramError as error:
        raise Wrong(error.what, why=error.why, next=error.next) from None
    return found


def _own_alone(case: Any, block: dict[str, Any], cut: Any, rank: int) -> dict[str, Any]:
    """The block as a rank may know it: drawn numbers stand where other ranks' parts are."""
    import torch

    drawn, found = torch.Generator().manual_seed(case["values_seed"] + 1), {}
    for name, one in block.items():
        if name in cut:
            known = torch.randn(one.shape, generator=drawn, dtype=one.dtype)
            if cut[name][rank]:
                _part(case, known, name, cut[name], rank).copy_(_part(case, one, name, cut[name], rank))
            found[_WHOLE + name] = known
    return found


def _like(part: Any, x: Any) -> Any:
    """A part in the form of x; zeros where there is none."""
    if part is None or part.numel() != x.numel():
        return 0 * x
    return part if part.shape == x.shape else part.reshape(x.T.shape).T


def _part(case: Any, whole: Any, name: str, shapes: list[list[int]], rank: int) -> Any:
    """A rank's neighbouring part of a tensor of the block; an output's bias is whole."""
    if name not in AXES or name in BIASES.values():
        return whole
    sizes = [shape[AXES[name]] if shape else 0 for shape in shapes]
    return whole.narrow(AXES[name], sum(sizes[:rank]), sizes[rank])
