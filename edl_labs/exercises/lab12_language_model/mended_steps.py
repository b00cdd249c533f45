"""mend_the_step: a training step without five costs that change nothing of what it computes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.device import torch_threads
from edl_labs.errors import Wrong
from edl_labs.units import counted

STEPS, EVERY = 6, 3  # accuracies are wanted at steps 0 and 3
_SAME = 1e-4  # of a loss or a weight's length: orders of adding differ by 1e-6
# What one parameter's update takes one of, without foreach or fused, however Adam is written.
_OF_AN_OPTIMIZER = ("addcdiv", "addcmul", "lerp", "sqrt", "rsqrt")
_FINDS_LARGEST = ("argmax", "topk", "max", "amax", "aminmax", "sort", "argsort")
_COPIES = ("clone", "copy", "_to_copy")  # their results are their arguments
_NOT_KEPT = 2  # kernels of a step from which nothing follows: the least that an accuracy takes; a slip of one is none
_HEADS = 4  # of the given model
_NOISE = "qkv.bias"  # of all keys changes no attention: its gradient is rounding, which Adam makes large


@exercise("mend_the_step")
class MendTheStep(Exercise):
    """`Training(model)` whose `step(text)` trains like `SlowTraining`'s, as a program that the judge plays.

    A point for each of five costs that is gone: reads by the host, a mask, conversions, a separate update of every
    parameter, a metric in every step.
    """

    answers = ("program",)

    answer_form: ClassVar[Any] = {"program": "", "floats": [""]}

    def probe(self, student: Any, given: Any) -> Any:
        import torch

        from edl_labs.graph.tensor_programs import Recorder

        model = student.SmallModel(given["words"], given["width"], given["blocks"], given["tokens"])
        inputs = drawn_step_inputs(given, seed=0)
        tensors = dict(model.named_parameters()) | dict(model.named_buffers())
        with torch.no_grad():
            for name, tensor in tensors.items():
                tensor.data = inputs[name]
        recorder = Recorder(inputs)
        with torch_threads(1), recorder.recording():
            training = student.Training(model)
            for number in range(STEPS):
                recorder.section(f"step {number}")
                training.step(inputs[f"text {number}"])
            recorder.section("end")
        found = {f"loss {at}": one for at, one in enumerate(training.losses)}
        found |= {f"accuracy {at}": one for at, one in enumerate(training.accuracies)}
        floats = [name for name, one in found.items() if not isinstance(one, torch.Tensor)]
        trained = {name: one.detach() for name, one in model.named_parameters()}
        outputs = {name: one for name, one in found.items() if name not in floats} | trained
        return {"program": recorder.text(outputs), "floats": floats}

    def public_want(self, case: Any, want: Any) -> Any:
        """Losses, accuracies and lengths of the weights that the reference's program gives: not the program itself."""
        facts = _facts(_played(case, want["program"]).outputs)
        return {"facts": {name: one for name, one in facts.items() if not name.endswith(_NOISE)}}

    def student_inputs(self, case: Any) -> Any:
        """Sizes of the model, and the texts of all steps."""
        inputs = drawn_step_inputs(case, seed=0)
        sizes = {name: case[name] for name in ("words", "width", "blocks", "tokens")}
        return {**sizes, "texts": [inputs[f"text {number}"] for number in range(STEPS)]}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        played = _played(case, got["program"])
        right = want["facts"] if "facts" in want else self.public_want(case, want)["facts"]
        if [one.name for one in played.sections] != ["", *(f"step {number}" for number in range(STEPS)), "end"]:
            why = "the recorded sections are not the steps of a training run"
            raise Wrong("This is not a recorded training run.", why=why, next="run the cell again, then check again")
        _judge_order(played.sections)
        _judge_values(_facts(played.outputs), right, got["floats"], played)
        left = _costs_left(case, played, got["floats"], list(right))
        if left:
            what, why, then = next(iter(left.values()))
            also = f"; other costs that remain: {', '.join(list(left)[1:])}" if len(left) > 1 else ""
            raise Wrong(what, why=f"{why}{also}", next=then, keeps=1 - len(left) / 5)

    def format_case(self, case: Any) -> str:
        """The sizes of the model and of a step."""
        return (
            f"{case['blocks']} blocks of width {case['width']}, {case['words']} words, "
            f"{STEPS} steps of {case['batch']} sentences of {case['tokens'] + 1} words"
        )

    def format_answer(self, case: Any, got: Any) -> str:
        """What a step takes."""
        try:
            step = _played(case, got["program"]).sections[3]
        except Exception as error:
            return str(error).partition("\n")[0]
        return f"step 2: {step.operators.total()} kernels, {step.host_reads} host reads"


def drawn_step_inputs(case: Any, *, seed: int) -> dict[str, Any]:
    """Weights, the table of positions and the texts of all steps; `seed` draws what a program is played on."""
    import torch

    drawn = torch.Generator().manual_seed(seed)
    words, width, hidden = case["words"], case["width"], 4 * case["width"]
    shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (words, width)}
    for block in range(case["blocks"]):
        of_block = {"norm": (width, width), "qkv": (3 * width, width), "out": (width, width)}
        of_block |= {"up": (hidden, width), "down": (width, hidden)}
        for name, (rows, columns) in of_block.items():
            shapes[f"blocks.{block}.{name}.weight"] = (width,) if name == "norm" else (rows, columns)
            shapes[f"blocks.{block}.{name}.bias"] = (rows,)
    shapes["head.weight"] = (words, width)
    found = {name: 0.3 * torch.randn(shape, generator=drawn) for name, shape in shapes.items()}
    found["positions"] = torch.randn(case["tokens"], width, generator=drawn, dtype=torch.float64)
    for number in range(STEPS):
        found[f"text {number}"] = torch.randint(words, (case["batch"], case["tokens"] + 1), generator=drawn)
    return found


def _played(case: Any, program: str) -> Any:
    sizes = {name: case[name] for name in ("words", "width", "blocks", "tokens", "batch", "seed")}
    return _once(program, json.dumps(sizes))


@lru_cache(maxsize=8)  # what a student reads is made of it once more
def _once(program: str, case: str) -> Any:
    from edl_labs.graph.tensor_programs import ProgramError, play

    sizes = json.loads(case)
    try:
        with torch_threads(1):
            return play(program, drawn_step_inputs(sizes, seed=sizes["seed"]))
    except ProgramError as error:
        raise Wrong(error.what, why=error.why, next=error.next) from None


def _facts(outputs: Mapping[str, Any]) -> dict[str, float]:
    """A number for each output: the value of a lone one, else its length."""
    return {name: float(one.double().norm()) if one.numel() > 1 else float(one.sum()) for name, one in outputs.items()}


def _judge_order(sections: list[Any]) -> None:
    """Wrong where a step's text is used before that step: what follows from it would not count as the step's."""
    for number in range(STEPS):
        early = [one.name for one in sections[: number + 1] if f"text {number}" in one.inputs]
        if early:
            why = f"text {number} is used {f'in {early[0]}' if early[0] else 'before the first step'}"
            raise Wrong(
                "The steps of the record are not in order.", why=why, next="run the cell again, then check again"
            )


def _judge_values(mine: Mapping[str, float], right: Mapping[str, float], floats: list[str], played: Any) -> None:
    for kind, words in (("loss", "losses"), ("accuracy", "accuracies")):
        counts = [sum(name.partition(" ")[0] == kind for name in names) for names in ([*mine, *floats], list(right))]
        if counts[0] != counts[1]:
            why = f"after {STEPS} steps, Training has {counts[0]} {words}, but SlowTraining has {counts[1]}"
            then = f"append {words} in the same steps as SlowTraining"
            raise Wrong(f"Your number of {words} is wrong.", why=why, next=then)
    for name, wanted in right.items():
        found = _read_value(name, wanted, played.sections) if name in floats else mine.get(name, math.nan)
        if not _is_same(found, wanted):
            shown = f"got {found:.7g}, expected {wanted:.7g} as in SlowTraining"
            raise _other_value(name, shown, stale=played.has_changed_reads)


def _read_value(name: str, wanted: float, sections: list[Any]) -> float:
    """Of a loss or accuracy that is a float: the value that its step brought to the host, the right one if it did."""
    kind, _, number = name.partition(" ")
    step = int(number) * (EVERY if kind == "accuracy" else 1)
    read: list[float] = next((one.read_values for one in sections if one.name == f"step {step}"), [])
    return next((value for value in read if _is_same(value, wanted)), read[-1] if read else math.nan)


def _is_same(found: float, wanted: float) -> bool:
    return abs(found - wanted) <= _SAME * max(abs(wanted), 1e-3)


def _other_value(name: str, shown: str, *, stale: bool) -> Wrong:
    kind, _, number = name.partition(" ")
    if stale:
        shown += "; your code read a number on the host, so the result does not follow the inputs of the check"
    if kind == "accuracy":
        then = "compute the share of positions whose target has the largest logit"
        return Wrong(f"Your accuracy {number} is wrong.", why=shown, next=then)
    if kind == "loss":
        first = "in step 0, before any weight has changed" if number == "0" else f"after {number} steps"
        then = "check attention and positions" if number == "0" else "check the optimizer, clipping and zero_grad"
        return Wrong(f"Your loss is wrong {first}.", why=shown, next=f"compare with SlowTraining: {then}")
    return Wrong(
        f"Your weights of {name} are wrong after training.",
        why=f"for the length of this tensor as a vector, {shown}",
        next=_ALL_OF_IT,
    )


def _costs_left(case: Any, played: Any, floats: list[str], outputs: list[str]) -> dict[str, tuple[str, str, str]]:
    """What, why and next of each cost that is still there, by its name; the dearest on a GPU first.

    Where a section ends is a claim. Nothing of a step comes before the step's text, so sums over this and all later
    sections hold, wherever their ends are. Names of kernels are not enough, either: each cost is looked for in what
    kernels read and write as well.
    """
    left: dict[str, tuple[str, str, str]] = {}
    sections = played.sections
    steps, later = sections[1:-1], sections[1:]
    reads = sum(step.host_reads for step in later)
    if reads or floats:
        why = f"there are {reads} reads in {STEPS} steps; each of them waits until the GPU has finished all its work"
        left["host reads"] = (
            "In your step, the host reads a value.",
            why,
            "keep losses and accuracies as tensors, and read them after training",
        )
    kernels = _in_steps(played)
    updates = max(_total(later, name) for name in _OF_AN_OPTIMIZER) // STEPS
    kept = _of_what_is_kept(played, kernels) // (STEPS - 1)
    if updates > case["blocks"] + 1 or kept > sum(name.endswith((".weight", ".bias")) for name in outputs):
        why = f"a step has {max(updates, kept)} updates, each of a single parameter"
        if updates <= case["blocks"] + 1:
            why = (
                f"a step runs {kept} kernels on single tensors that are kept from step to step, such as moving averages"
            )
        then = "use AdamW(…, fused=True) or AdamW(…, foreach=True)"
        left["the optimizer"] = ("Your optimizer updates each parameter separately.", why, then)
    masked = [(name, shape) for step in later for name, shape in step.shapes if _has_all_pairs(case, shape)]
    if masked:
        why = f"{masked[0][0]} creates a tensor of {' × '.join(map(str, masked[0][1]))}: one number for each pair of "
        why += f"{case['tokens']} positions"
        left["the mask"] = ("Your step stores a number for each pair of positions.", why, _SDPA)
    left |= _unused_left(played, kernels, outputs)
    is_larger = steps[EVERY].operators.total() > steps[EVERY - 1].operators.total()
    if not (is_larger or left.keys() & {"the metric", "unused kernels"}):
        why = f"step {EVERY - 1}, whose accuracy is not kept, runs at least as many kernels as step {EVERY}"
        left["unused kernels"] = (
            "In your code, a step that keeps no accuracy runs at least as many kernels as a step that keeps one.",
            why,
            _ITS_STEPS,
        )
    has_metric = bool(left.keys() & {"the metric", "unused kernels"})
    training = [step for number, step in enumerate(steps) if number % EVERY]
    casts = sum(step.conversions for step in training) - has_metric * len(training)  # of the metric itself
    casts = max(casts, sum(step.conversions for step in sections) - STEPS * (1 + has_metric))  # moved out of the steps
    if casts > 0:
        why = (
            f"{len(training)} steps run {counted(casts, 'conversion')}; the table of positions is the same in each step"
        )
        left["conversions"] = ("Your step converts tensors to another dtype.", why, "convert only once, in __init__")
    return left


def _in_steps(played: Any) -> list[int]:
    """The step of each kernel, by the texts that were read up to it; -1 before the first."""
    number_of = {played.inputs_at[f"text {number}"]: number for number in range(STEPS)}
    step, found = -1, []
    for kernel in played.trace:
        step = max([step, *(number_of[one] for one in kernel.reads if one in number_of)])
        found.append(step)
    return found


def _of_what_is_kept(played: Any, steps: list[int]) -> int:
    """The kernels for single tensors that read or write what an earlier step made, but for inputs of the program.

    Memory that was filled with constants holds nothing of earlier steps: gradients that are set to 0, say.
    """
    inputs = set(played.inputs_at.values())  # texts, weights and positions are no averages
    made: dict[int, int] = {}
    count = 0
    for kernel, step in zip(played.trace, steps, strict=True):
        touched = (kernel.reads | kernel.writes) - inputs - kernel.fills
        is_single = not (kernel.takes_lists or kernel.is_read)
        count += step > 0 and is_single and any(made.get(one, step) < step for one in touched)
        for one in kernel.writes:
            made.setdefault(one, step)
        for one in kernel.fills:
            made.pop(one, None)
    return count


def _unused_left(played: Any, steps: list[int], outputs: list[str]) -> dict[str, tuple[str, str, str]]:
    """The metric, where a step without an accuracy compares the largest logits with the targets, or other waste."""
    outputs = [*outputs, *(name for name in played.outputs if name.endswith(_NOISE))]
    compared = _comparisons(played, steps, played.dead(outputs, reads_are_uses=False))
    if compared:
        which = (
            "every step" if len(compared) == sum(number % EVERY > 0 for number in range(STEPS)) else "too many steps"
        )
        step, name = next(iter(compared.items()))
        why = f"step {step} compares the largest logits with the targets ({name}), but its accuracy is not kept"
        return {
            "the metric": (
                f"Your code computes the accuracy in {which}.",
                why,
                "compute the accuracy only in the steps that keep it",
            )
        }
    found: dict[int, list[str]] = {}
    for at in sorted(played.dead(outputs)):
        if steps[at] >= 0 and steps[at] % EVERY:
            found.setdefault(steps[at], []).append(played.trace[at].name)
    found = {step: names for step, names in found.items() if len(names) >= _NOT_KEPT}
    if not found.keys() - {STEPS - 1}:  # the last step makes things ready for one that never comes
        return {}
    step, names = next(iter(found.items()))
    why = f"step {step} runs {', '.join(names[:4])}, but no loss, accuracy or weight depends on the results"
    return {"unused kernels": ("Your step computes values that are never used.", why, "remove this computation")}


def _comparisons(played: Any, steps: list[int], unused: set[int]) -> dict[int, str]:
    """The kernel of each step without an accuracy where the targets meet the largest logits.

    The maximum in a loss by hand meets the targets as well. So this is an equality, or the maximum has no other use.
    """
    texts = {played.inputs_at[f"text {number}"] for number in range(STEPS)}
    targets, largest, of_metric = set(texts), set[int](), set[int]()
    found: dict[int, str] = {}
    for at, kernel in enumerate(played.trace):
        has_targets, has_metric = not kernel.reads.isdisjoint(targets), not kernel.reads.isdisjoint(of_metric)
        is_equality = kernel.name in ("eq", "ne") and not kernel.reads.isdisjoint(largest)
        if has_targets and (is_equality or (has_metric and at in unused)) and steps[at] % EVERY and steps[at] > 0:
            found.setdefault(steps[at], kernel.name)
        if kernel.name in _FINDS_LARGEST and not has_targets:
            largest |= kernel.writes
            of_metric |= kernel.writes if at in unused else set()
        if at in unused and has_metric:
            of_metric |= kernel.writes
        if has_targets and (at in unused or kernel.name in _COPIES):
            targets |= kernel.writes
    return found


def _has_all_pairs(case: Any, shape: tuple[int, ...]) -> bool:
    """Whether a tensor has a number for each pair of positions: by two of its dimensions, or by one that holds both.

    Parameters and layers in one row have a multiple of the width or of the words, which may hold `tokens` twice as
    well; and one position more may be the width, or some rows of the batch.
    """
    tokens, batch, width = case["tokens"], case["batch"], case["width"]  # tokens are odd, and no other size
    pairs = [size for size in shape if size % tokens**2 == 0 and size % width and size % case["words"]]
    has_one_more = tokens in shape and tokens + 1 in shape
    if has_one_more and (tokens + 1 == width or (tokens + 1) % batch == 0):
        has_one_more = math.prod(shape) == _HEADS * batch * tokens * (tokens + 1)
    return shape.count(tokens) > 1 or has_one_more or bool(pairs)


def _total(sections: list[Any], name: str) -> int:
    return sum(one.operators[name] for one in sections)


_SDPA = "use F.scaled_dot_product_attention(q, k, v, is_causal=True), which does not need these numbers"
_ITS_STEPS = "compute the accuracy only in the steps that keep it"
_ALL_OF_IT = "use the same optimizer, learning rate and clipping, in the same order"
