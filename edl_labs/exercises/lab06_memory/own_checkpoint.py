"""own_checkpoint: a function that keeps its inputs alone and runs again in the backward pass, just as it ran before."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab06_memory.checkpoint_programs import facts, judge_program, recorded
from edl_labs.exercises.lab06_memory.checkpointed_blocks import (
    WIDTH,
    CheckpointedBlock,
    ShiftedTensors,
    autocast_of,
    block_inputs,
)
from edl_labs.exercises.plain_then_record import plain_before_record
from edl_labs.units import counted

_SAME, _SAME_SHORT = 1e-6, 2e-2  # float64 against another order of adding; bf16 has 8 bits
_MOST_TEXT = 300  # characters of an exception: its first sentence
_OTHER_MASK = 0.2  # of a gradient's length: a mask drawn anew changes far more than rounding
_UNRECORDED = "not recorded: "
_NEXT_DROPOUT = 0.5  # of the block that runs after the backward pass: its mask shows where the generator stands


@exercise("own_checkpoint")
class OwnCheckpoint(Exercise):
    """A torch.autograd.Function that saves its inputs alone and gives the outputs and gradients of a plain run.

    `Checkpoint.apply(run, *inputs)`. The block's factor grows with each run and with what the first one left in
    memory, and saved tensors come back shifted by their number: what ran and what was saved is in the gradients, and
    in the output of the next run. Counts only say why those are wrong. Since a student's process may know how all this
    is measured, a second run is recorded, and the judge plays it on values of its own.
    """

    answers: ClassVar[tuple[str, ...]] = ("output", "input_gradient", "weight_gradient", "next_output", "program")

    answer_form: ClassVar[Any] = {
        **{name: [0.0] for name in ("output", "input_gradient", "weight_gradient", "next_output")},
        "runs": [["", True, True, "", True]],
        "random": [True],
        "saved": 0,
        "raised": "",
        "program": "",
    }

    def probe(self, student: Any, given: Any) -> Any:
        import torch

        block = CheckpointedBlock(given)
        first, inputs = block_inputs(given)
        saved = ShiftedTensors(block.weight)
        torch.manual_seed(given["seed"])
        fresh = torch.get_rng_state()
        torch.rand(7)  # what layers before it draw: the seed alone no longer gives the generator's state
        found, raised = torch.get_rng_state(), ""
        with saved.watching(), autocast_of(given):
            output = student.Checkpoint.apply(block, *inputs)
        after = torch.get_rng_state()
        torch.rand(5)  # what other layers draw before the backward pass comes
        try:
            output.double().square().sum().backward(inputs=[first])
        except Exception as error:
            raised = str(error)[:_MOST_TEXT] or type(error).__name__
            if raised_symptom(block.runs, raised) is None:
                raise
        runs, block.dropout = list(block.runs), _NEXT_DROPOUT
        with autocast_of(given):
            then = [] if raised else _listed(student.Checkpoint.apply(block, *inputs))
        return {
            "output": _listed(output),
            "input_gradient": _listed(first.grad),
            "weight_gradient": _listed(block.weight.grad),
            "runs": runs,
            "random": _moments(block.states, found, after, fresh),
            "saved": saved.after_forward,
            "next_output": then,
            "raised": raised,
            "program": "" if raised else _recorded(student.Checkpoint, given),
        }

    def public_want(self, case: Any, want: Any) -> Any:
        """What the reference gives; of its program, what that gives on the judge's values."""
        return {**want, "program": "", "facts": facts(case, want["program"])}

    def student_inputs(self, case: Any) -> Any:
        """What `apply` is given, and whether that happens under autocast: `Checkpoint.apply(run, *inputs)`."""
        return {"run": CheckpointedBlock(case), "inputs": block_inputs(case)[1], "autocast": case["autocast"]}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        _judge_plain_run(case, got, want)
        _judge_record(case, got, want)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What a plain run shows in a later case, where the first cases fail by their records alone."""
        return plain_before_record(_judge_plain_run, _judge_record, zip(cases, got, want, strict=True))

    def format_answer(self, case: Any, got: Any) -> str:
        """How it ran and what it kept, and the first numbers of what came: all of them are nothing to read."""
        lines = [f"run {counted(len(got['runs']), 'time')}, {counted(got['saved'], 'tensor')} saved"]
        for name in ("output", "input_gradient", "weight_gradient"):
            first = ", ".join(f"{value:.4f}" for value in got[name][:4])
            lines.append(f"{name.replace('_', ' ')} [0, :4]: {first or 'None'}")
        return "\n       ".join(lines)

    def format_case(self, case: Any) -> str:
        """What the block does."""
        parts = ["a linear layer, a tanh and a sine", f"dropout of {case['dropout']}" if case["dropout"] else ""]
        parts += [f"in {case['autocast']} with autocast" if case["autocast"] else ""]
        offset = "with an offset that needs a gradient" if case["is_attached"] else "with an offset"
        parts += [offset if case["offset"] else ""]
        parts += ["and a factor that is a plain number" if case["factor"] else ""]
        parts += ["(the number before the offset)" if case["is_between"] else ""]
        return ", ".join(part for part in parts if part)


def _within(case: Any) -> float:
    return _SAME_SHORT if case["autocast"] else _SAME


def _judge_plain_run(case: Any, got: Any, want: Any) -> None:
    within = _within(case)
    if got["random"] and not got["random"][0]:
        why = "before the block's first run, the generator's state differs from that before a plain run"
        then = "only save the generator's state, and leave it unchanged: a new seed gives different masks"
        raise Wrong("your code changes the random numbers before the first run", why=why, next=then)
    if _distance(got["output"], want["output"]) > within:
        why = "the checkpointed block's forward pass returns something different from the block itself: "
        why += _differing(got["output"], want["output"])
        raise Wrong("your output differs from a plain run", why=why, next="return what run(*inputs) returns")
    if got["saved"] > want["saved"]:
        why = f"after the forward pass, {got['saved']} tensors are saved; number of input tensors: {want['saved']}"
        raise Wrong(
            "your code keeps more than the inputs", why=why, next="run the block without a graph in the forward pass"
        )
    if got["saved"] < want["saved"]:
        why = f"only {got['saved']} of {want['saved']} were saved with it; hooks cannot count or move other tensors"
        then = "use save_for_backward for tensors, and attributes of ctx only for everything else"
        raise Wrong("your code keeps input tensors without save_for_backward", why=why, next=then)
    _judge_runs(case, got["runs"], want["runs"])
    if got["raised"]:
        raise raised_symptom(got["runs"], got["raised"]) or Wrong("your code raised an exception in backward")
    _judge_gradients(case, got, want, within)
    if _distance(got["next_output"], want["next_output"]) > within:
        why = "after the backward pass, the next random number differs from the one after a plain run"
        then = "restore the generator's state after the second run"
        raise Wrong("your second run changes all later random numbers", why=why, next=then)


def _judge_record(case: Any, got: Any, want: Any) -> None:
    if got["program"].startswith(_UNRECORDED):
        then = "make `apply()` work for every `run`, with PyTorch's functions for products, sums, elements and indices"
        raise Wrong("your Checkpoint cannot be recorded", why=got["program"].removeprefix(_UNRECORDED), next=then)
    right = want["facts"] if "facts" in want else facts(case, want["program"])
    judge_program(facts(case, got["program"]), right, _within(case))


def _recorded(checkpoint: Any, given: Any) -> str:
    """The program, or what was raised instead: what a plain run says of the student's mistake comes first."""
    try:
        return recorded(checkpoint, given)
    except Exception as error:
        return f"{_UNRECORDED}{type(error).__name__}: {str(error)[:_MOST_TEXT]}"


def _moments(states: list[Any], found: Any, after: Any, fresh: Any) -> list[bool]:
    """Whether the first run found the generator as it was; the second as the first did, as it left it, or as seeded."""
    if len(states) < 2:
        return []
    pairs = ((states[0], found), (states[1], states[0]), (states[1], after), (states[1], fresh))
    return [bool((one == other).all()) for one, other in pairs]


def raised_symptom(runs: list[Any], text: str) -> Wrong | None:
    """What the second run shows of a backward pass that raised `text`; None where it shows nothing."""
    if len(runs) != 2:
        return None
    (_, _, _, before, _), (_, makes_graph, _, kinds, is_attached) = runs
    if kinds != before:
        return _other_inputs(before, kinds)
    if not makes_graph:
        why = "the second run's output had no graph, since autograd is off in a backward pass unless you switch it on"
        return Wrong(
            "your second run does not record a graph", why=why, next="run the block again under torch.enable_grad()"
        )
    if is_attached:
        why = "these inputs still have the graph that produced them, so backward runs through that graph a second time"
        then = "detach each tensor, and let it require a gradient if the input did"
        return Wrong("the inputs of your second run are not detached", why=why, next=then)
    if "gradient different than None" in text:  # torch's words for a gradient at the place of a number
        why = f"torch says: {text[:160]}"
        then = "return one gradient for each argument of `apply()`, in the same order: None for run and for each number"
        return Wrong("your backward returns a gradient for an argument that is not a tensor", why=why, next=then)
    if "does not require grad" not in text:  # torch's words for a tensor without a graph
        return None
    why = "the second run recorded a graph, but backward() was called on a tensor that was made outside of enable_grad"
    then = "call backward on the run's own output, with the incoming gradient, not on a sum or a loss of it"
    return Wrong("your code does not call backward on the output of the second run", why=why, next=then)


def _other_inputs(before: str, kinds: str) -> Wrong:
    why = f"the first run got {before}; the second run got {kinds}"
    then = "put each input back in its own place"
    return Wrong("your second run gets its inputs in a different order", why=why, next=then)


def _judge_runs(case: Any, runs: list[Any], want: list[Any]) -> None:
    if len(runs) != len(want):
        why = f"number of runs: {len(runs)}; a checkpoint runs the block once in forward, and again in backward"
        raise Wrong(
            "your code does not run the block exactly twice",
            why=why,
            next="run the block once in forward, and once more in backward",
        )
    if runs[1][3] != runs[0][3]:
        raise _other_inputs(runs[0][3], runs[1][3])
    if runs[1][0] and runs[1][0] != want[1][0]:
        why = f"the first run computed in {runs[0][0]}, the second in {runs[1][0]}"
        then = (
            "save the autocast settings in the forward pass, and restore them: backward runs outside the autocast block"
        )
        if "float16" in runs[1][0]:
            then = "save the dtype of autocast in the first run, and pass it on"
            raise Wrong("your second run uses autocast with a different dtype", why=why, next=then)
        raise Wrong("your second run computes in a different dtype than the first", why=why, next=then)
    if want[1][2] and not runs[1][2]:
        why = "the offset requires a gradient in the first run, but not in the second"
        then = "let a detached input require a gradient exactly if the input itself does"
        raise Wrong("in your second run, an input does not require a gradient, but it should", why=why, next=then)
    if runs[1][2] != want[1][2]:
        why = "the offset requires no gradient in the first run, but it does in the second"
        then = "let a detached input require a gradient exactly if the input itself does"
        raise Wrong("in your second run, an input requires a gradient, but it should not", why=why, next=then)


def _judge_gradients(case: Any, got: Any, want: Any, within: float) -> None:
    for name, words in (("input_gradient", "the inputs"), ("weight_gradient", "the block's weights")):
        mine, right = got[name], want[name]
        off = _distance(mine, right)
        if off <= within:
            continue
        if not mine and name == "weight_gradient":
            why = "their .grad is None, although the gradient of the inputs is right"
            then = "use backward(), which fills the .grad of all leaves; autograd.grad only returns gradients"
            raise Wrong(f"no gradient reaches {words}", why=why, next=then)
        if not mine:
            then = "return one gradient for each input, and None for run and for anything that is not a tensor"
            raise Wrong(
                f"no gradient reaches {words}", why=f"after the backward pass, the .grad of {words} is None", next=then
            )
        if case["dropout"] and off > _OTHER_MASK and not got["random"][1]:
            why = f"the output is right, but the gradient of {words} is {off:.0%} off: different elements were dropped"
            if got["random"][3]:
                why = (
                    "the second run began with a freshly seeded generator, but earlier layers had already drawn from it"
                )
                then = "save torch.get_rng_state() before the first run, and set it for the second"
                raise Wrong("your code saves the seed instead of the generator's state", why=why, next=then)
            if got["random"][1:3] == [False, True]:
                then = "save the state before the first run, which changes it"
                raise Wrong("your code saves the generator's state after the first run", why=why, next=then)
            then = "save and restore the generator's state: the second run must draw the same numbers as the first"
            raise Wrong("your second run drops different elements than the first", why=why, next=then)
        if _distance(mine, [2 * value for value in right]) <= within:
            why = f"the gradient of {words} is twice as large as it should be"
            then = "detach the inputs of the second run, so that its graph begins at them"
            raise Wrong("in your code, gradients flow through the first run's inputs as well", why=why, next=then)
        why = f"the gradient of {words} is {off:.1%} off: {_differing(mine, right)}"
        then = "use the inputs as ctx.saved_tensors returns them, and the gradient of the output"
        raise Wrong("your gradient differs from a plain run", why=why, next=then)


def _differing(got: list[float], want: list[float]) -> str:
    """The entry of a matrix that differs most, by its index, with what it is and what it should be."""
    if len(got) != len(want):
        return f"it has {len(got)} numbers, but should have {len(want)}"
    at = max(range(len(want)), key=lambda i: abs(got[i] - want[i]) if math.isfinite(got[i]) else math.inf)
    return f"[{at // WIDTH}, {at % WIDTH}] is {got[at]:.4f}, but should be {want[at]:.4f}"


def _listed(tensor: Any) -> list[float]:
    return [] if tensor is None else [float(value) for value in tensor.detach().double().flatten()]


def _distance(got: list[float], want: list[float]) -> float:
    """How far `got` is from `want`, as a share of its length; infinite where the sizes differ."""
    if len(got) != len(want) or not all(map(math.isfinite, got)):
        return math.inf
    size = math.sqrt(sum(value * value for value in want))
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(got, want, strict=True))) / size if size else 0.0
