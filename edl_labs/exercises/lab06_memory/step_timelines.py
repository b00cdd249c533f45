"""memory_timeline: the bytes that are live after every part of a training step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.units import byte_count

STATES = {"sgd": 0, "momentum": 1, "adam": 2}  # values of optimizer state for each parameter
WORD = 4  # bytes of parameters, gradients and states; activations come in bytes


@exercise("memory_timeline")
class MemoryTimeline(Exercise):
    """Live bytes after each forward and backward pass of the layers, after the step and after zero_grad.

    `timeline(layers, optimizer=, first=, set_to_none=)` gives the list, `peak(live)` the largest with its moment.
    """

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"timeline": list[Any]}

    def probe(self, student: Any, given: Any) -> Any:
        options = {name: given[name] for name in ("optimizer", "first", "set_to_none")}
        live = student.timeline([{**layer} for layer in given["layers"]], **options)
        return {"live": live, "peak": student.peak([*live])}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        moments = _moments(case)
        if len(got["live"]) != len(moments):
            why = f"{len(got['live'])} came back for {len(case['layers'])} layers"
            then = "forward of each layer, backward of each from the last one on, step, zero_grad"
            raise Wrong("there is not one number for each moment", why=why, next=then)
        for place, (said, right) in enumerate(zip(got["live"], want["live"], strict=True)):
            if said != right:
                raise _habit(case, place, got["live"], want["live"]) or _live_symptom(case, place, said, want["live"])
        if got["peak"] != want["peak"] and got["peak"] == want["peak"][::-1]:
            why = "every number of the list is right, and so are the peak's two, in the other order"
            raise Wrong("the place of the peak came first, and its bytes second", why=why, next="return bytes, place")
        if len(got["peak"]) != 2 or got["peak"][0] != want["peak"][0]:
            why = "every number of the list is right"
            raise Wrong("the peak is not the largest of them", why=why, next="return its bytes, then its place")
        if got["peak"][1] != want["peak"][1]:
            why = f"the list is right, and its largest number is at {want['peak'][1]}, not at {got['peak'][1]}"
            raise Wrong(
                "the moment of the peak is another one", why=why, next="the first place in the list that has it"
            )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Zeros that are there too early fit an optimizer's state in one case alone."""
        wrong = [(case, one, right) for case, one, right in zip(cases, got, want, strict=True) if one != right]
        if all(
            case["first"] and not case["set_to_none"] and one["live"][0] - right["live"][0] == _parameter_bytes(case)
            for case, one, right in wrong
        ):
            why = "only a first step whose zero_grad fills with zeros is wrong, from its first number on"
            then = "before the first backward pass there is nothing to fill with zeros"
            return Wrong("zeroed gradients are there before any were made", why=why, next=then)
        return None

    def format_case(self, case: Any) -> str:
        """The layers and the recipe."""
        first = "first step" if case["first"] else "a later step"
        cleared = "set to None" if case["set_to_none"] else "set to zero"
        lines = [
            f"  layer {number}: {layer['parameters']} parameters, {byte_count(layer['activation_bytes'])} saved"
            f"{', in place: adds nothing' if layer['inplace'] else ''}"
            for number, layer in enumerate(case["layers"])
        ]
        return "\n".join([f"{case['optimizer']}, {first}; zero_grad: gradients {cleared}", *lines])


def _moments(case: Any) -> list[str]:
    count = len(case["layers"])
    forward = [f"forward of layer {i}" for i in range(count)]
    return [*forward, *(f"backward of layer {i}" for i in reversed(range(count))), "step", "zero_grad"]


def _parameter_bytes(case: Any) -> int:
    return WORD * sum(int(layer["parameters"]) for layer in case["layers"])


def _habit(case: Any, place: int, got: list[int], want: list[int]) -> Wrong | None:
    """What is wrong with the whole list, or with the way through it."""
    count = len(case["layers"])
    if place == 1 and all(got[i] == want[i] - want[i - 1] for i in range(1, len(want))):
        why = "from the second number on, each is what a moment adds or lets go of"
        return Wrong("the list holds changes, not what is live", why=why, next="add them up as you go")
    saved = 0 if case["layers"][0]["inplace"] else case["layers"][0]["activation_bytes"]
    if place == 0 and WORD * (got[0] - saved) == want[0] - saved:
        why = "without what layer 0 saves, the bytes are a quarter of the right number"
        return Wrong("a parameter was counted as one byte", why=why, next="fp32 has how many bytes each?")
    if place != count:
        return None
    made = not (case["set_to_none"] or case["first"])
    gradients = [0 if made else WORD * layer["parameters"] for layer in case["layers"]]
    if sum(gradients[:-1]) and got[count] - want[count] == sum(gradients[:-1]):
        why = "after the backward pass of the last layer, the gradients of all layers are there"
        then = "each layer's gradients come with its own backward pass"
        return Wrong("all gradients are made at once", why=why, next=then)
    if got[count] == want[count - 1] - saved + gradients[0] and got[count] != want[count]:
        why = "what comes and goes first is that of layer 0"
        return Wrong("the backward pass begins at the first layer", why=why, next="from the last layer to the first")
    return None


def _live_symptom(case: Any, place: int, said: Any, want: list[int]) -> Wrong:
    layers, count = case["layers"], len(case["layers"])
    moment, right = _moments(case)[place], want[place]
    parameters = _parameter_bytes(case)
    state = STATES[case["optimizer"]] * parameters
    why = f"{byte_count(abs(said - right))} too {'many' if said > right else 'few'} after {moment}; all before is right"
    off = said - right
    if place == 0 and state and abs(off) == state:
        if case["first"]:
            then = "the optimizer makes its state when it is first needed"
            return Wrong("the optimizer's state is there before its first step", why=why, next=then)
        return Wrong("the optimizer's state is missing", why=why, next="it stays from one step to the next")
    if place == (2 * count if case["first"] else 0) and state and off == state // WORD - state:
        then = f"each of its values has {WORD} bytes, as a parameter has"
        return Wrong("the optimizer's state was counted in values, not in bytes", why=why, next=then)
    if place < count and abs(off) == parameters:
        if case["set_to_none"] or case["first"]:
            return Wrong(
                "gradients are there before a backward pass has made them", why=why, next="when do they begin?"
            )
        then = "gradients that are set to zero are still there"
        return Wrong("gradients of the step before are missing", why=why, next=then)
    if place < count:
        return _forward_symptom(layers, place, off, why)
    if place < 2 * count:
        return _backward_symptom(case, 2 * count - 1 - place, off, why)
    if place == 2 * count and case["first"] and state and off == -state:
        then = "the optimizer makes it when it first steps, and it stays"
        return Wrong("the first step makes no optimizer state", why=why, next=then)
    if place == 2 * count and off == -parameters:
        return Wrong("the step lets go of the gradients", why=why, next="they are there until zero_grad has run")
    if place == 2 * count:
        then = "what does the optimizer make in its first step, and what has been let go by now?"
        return Wrong("the bytes after the step are wrong", why=why, next=then)
    if abs(off) == parameters:
        then = "set_to_none lets go of the gradients; otherwise they stay, as zeros"
        return Wrong("zero_grad was taken for the other kind", why=why, next=then)
    return Wrong("the bytes after zero_grad are wrong", why=why, next="what has a training run between two steps?")


def _forward_symptom(layers: list[Any], place: int, off: int, why: str) -> Wrong:
    layer = layers[place]
    if layer["inplace"] and off == layer["activation_bytes"]:
        then = "an operation in place writes over what the one before it has saved"
        return Wrong("what is done in place takes memory of its own", why=why, next=then)
    if place and off == -sum(one["activation_bytes"] for one in layers[:place] if not one["inplace"]):
        then = "each layer's saved bytes wait for its own backward pass"
        return Wrong("activations of earlier layers were let go in the forward pass", why=why, next=then)
    return Wrong("the forward pass leaves something else", why=why, next="parameters, states, gradients, what is saved")


def _backward_symptom(case: Any, index: int, off: int, why: str) -> Wrong:
    layer = case["layers"][index]
    kept = 0 if layer["inplace"] else layer["activation_bytes"]
    if kept and off == kept:
        then = "when a layer has run backward, what it saved is no longer needed"
        return Wrong("activations outlive their backward pass", why=why, next=then)
    if off == -WORD * layer["parameters"]:
        then = "each layer's backward pass leaves a gradient for every parameter"
        return Wrong("the backward pass makes no gradients", why=why, next=then)
    if off == WORD * layer["parameters"]:
        then = "a gradient that is there already is added to in place"
        return Wrong("gradients that were there are made a second time", why=why, next=then)
    if layer["inplace"] and off == -layer["activation_bytes"]:
        then = "an operation in place added nothing in the forward pass, so nothing of it can go"
        return Wrong("bytes were freed that were never added", why=why, next=then)
    return Wrong("the backward pass leaves something else", why=why, next="one thing goes and one thing comes")
