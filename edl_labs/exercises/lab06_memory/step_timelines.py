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
            why = f"got {len(got['live'])} numbers for {len(case['layers'])} layers, expected {len(moments)}"
            then = (
                "return one number after the forward pass of each layer, after the backward pass of each layer in "
                "reverse order, after the step, and after zero_grad"
            )
            raise Wrong("there must be one number for each moment", why=why, next=then)
        for place, (said, right) in enumerate(zip(got["live"], want["live"], strict=True)):
            if said != right:
                raise _habit(case, place, got["live"], want["live"]) or _live_symptom(case, place, said, want["live"])
        if got["peak"] != want["peak"] and got["peak"] == want["peak"][::-1]:
            why = "the list is right, and so are the two numbers of the peak, but they are swapped"
            raise Wrong(
                "your function returned the peak's place first, and its bytes second",
                why=why,
                next="return bytes, place",
            )
        if len(got["peak"]) != 2 or got["peak"][0] != want["peak"][0]:
            why = "every number in the list is right"
            then = "return the bytes of the peak, then its place"
            raise Wrong("your peak is not the largest number in your list", why=why, next=then)
        if got["peak"][1] != want["peak"][1]:
            why = f"the list is right, and its largest number is at {want['peak'][1]}, not at {got['peak'][1]}"
            raise Wrong(
                "your place of the peak is wrong",
                why=why,
                next="return the first place in the list with the largest number",
            )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Zeros that are there too early fit an optimizer's state in one case alone."""
        wrong = [(case, one, right) for case, one, right in zip(cases, got, want, strict=True) if one != right]
        if all(
            case["first"] and not case["set_to_none"] and one["live"][0] - right["live"][0] == _parameter_bytes(case)
            for case, one, right in wrong
        ):
            why = (
                "in your answers, only first steps with gradients set to zero are wrong, starting with their first "
                "number"
            )
            then = "count no gradients before the first backward pass: there is nothing to set to zero yet"
            return Wrong("your code counts zeroed gradients before they exist", why=why, next=then)
        return None

    def format_case(self, case: Any) -> str:
        """The layers and the recipe."""
        first = "first step" if case["first"] else "a later step"
        cleared = "set to None" if case["set_to_none"] else "set to zero"
        lines = [
            f"  layer {number}: {layer['parameters']} parameters, {byte_count(layer['activation_bytes'])} saved"
            f"{', in place, so it adds nothing' if layer['inplace'] else ''}"
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
        why = "starting with the second number, each is the change of the live bytes"
        return Wrong("your list contains changes instead of live bytes", why=why, next="add up the changes as you go")
    saved = 0 if case["layers"][0]["inplace"] else case["layers"][0]["activation_bytes"]
    if place == 0 and WORD * (got[0] - saved) == want[0] - saved:
        why = "apart from what layer 0 saves, your bytes are a quarter of the right number"
        return Wrong(
            "your code counts a parameter as one byte", why=why, next="how many bytes does an fp32 value have?"
        )
    if place != count:
        return None
    made = not (case["set_to_none"] or case["first"])
    gradients = [0 if made else WORD * layer["parameters"] for layer in case["layers"]]
    if sum(gradients[:-1]) and got[count] - want[count] == sum(gradients[:-1]):
        why = "after the backward pass of the last layer, you count the gradients of all layers"
        then = "add each layer's gradients in its own backward pass"
        return Wrong("your code adds all gradients at once", why=why, next=then)
    if got[count] == want[count - 1] - saved + gradients[0] and got[count] != want[count]:
        why = "the first gradients that you add, and the first activations that you free, are those of layer 0"
        then = "go from the last layer to the first"
        return Wrong("your backward pass begins at the first layer", why=why, next=then)
    return None


def _live_symptom(case: Any, place: int, said: Any, want: list[int]) -> Wrong:
    layers, count = case["layers"], len(case["layers"])
    moment, right = _moments(case)[place], want[place]
    parameters = _parameter_bytes(case)
    state = STATES[case["optimizer"]] * parameters
    why = (
        f"after {moment}, your number is {byte_count(abs(said - right))} too {'large' if said > right else 'small'}; "
        "all earlier numbers are right"
    )
    off = said - right
    if place == 0 and state and abs(off) == state:
        if case["first"]:
            then = "add the state when the optimizer first needs it"
            return Wrong("your code counts the optimizer's state before its first step", why=why, next=then)
        then = "count the state in every later step: it stays in memory"
        return Wrong("your code leaves out the optimizer's state", why=why, next=then)
    if place == (2 * count if case["first"] else 0) and state and off == state // WORD - state:
        then = f"count {WORD} bytes for each of its values, as for a parameter"
        return Wrong("your code counts the optimizer's state in values instead of bytes", why=why, next=then)
    if place < count and abs(off) == parameters:
        if case["set_to_none"] or case["first"]:
            return Wrong(
                "your code counts gradients before a backward pass has made them",
                why=why,
                next="when do gradients begin to exist?",
            )
        then = "count gradients that are set to zero: they stay in memory"
        return Wrong("your code leaves out the gradients of the previous step", why=why, next=then)
    if place < count:
        return _forward_symptom(layers, place, off, why)
    if place < 2 * count:
        return _backward_symptom(case, 2 * count - 1 - place, off, why)
    if place == 2 * count and case["first"] and state and off == -state:
        then = "add the state: the optimizer creates it in its first step, and keeps it"
        return Wrong("your code leaves out the optimizer's state after the first step", why=why, next=then)
    if place == 2 * count and off == -parameters:
        then = "keep the gradients until zero_grad has run"
        return Wrong("your code frees the gradients in the optimizer's step", why=why, next=then)
    if place == 2 * count:
        then = "what does the optimizer create in its first step, and what has been freed by now?"
        return Wrong("your number of bytes after the step is wrong", why=why, next=then)
    if abs(off) == parameters:
        then = "free the gradients only with set_to_none: otherwise they stay in memory as zeros"
        return Wrong("your code confuses the two kinds of zero_grad", why=why, next=then)
    then = "what does a training run keep in memory between two steps?"
    return Wrong("your number of bytes after zero_grad is wrong", why=why, next=then)


def _forward_symptom(layers: list[Any], place: int, off: int, why: str) -> Wrong:
    layer = layers[place]
    if layer["inplace"] and off == layer["activation_bytes"]:
        then = "add nothing for this layer: an in-place operation overwrites what the previous operation has saved"
        return Wrong("your code counts an in-place layer as if it had its own memory", why=why, next=then)
    if place and off == -sum(one["activation_bytes"] for one in layers[:place] if not one["inplace"]):
        then = "keep each layer's saved bytes until its own backward pass"
        return Wrong("your code frees activations of earlier layers in the forward pass", why=why, next=then)
    then = "add up parameters, optimizer state, gradients and what the layers save"
    return Wrong("your number of bytes after a forward pass is wrong", why=why, next=then)


def _backward_symptom(case: Any, index: int, off: int, why: str) -> Wrong:
    layer = case["layers"][index]
    kept = 0 if layer["inplace"] else layer["activation_bytes"]
    if kept and off == kept:
        then = "subtract the activations: after a layer has run backward, what it saved is no longer needed"
        return Wrong("your code keeps activations after their backward pass", why=why, next=then)
    if off == -WORD * layer["parameters"]:
        then = "add a gradient for every parameter in its layer's backward pass"
        return Wrong("your code leaves out the gradients of a backward pass", why=why, next=then)
    if off == WORD * layer["parameters"]:
        then = "add no bytes for existing gradients: new values are added to them in place"
        return Wrong("your code counts existing gradients twice", why=why, next=then)
    if layer["inplace"] and off == -layer["activation_bytes"]:
        then = "subtract nothing for an in-place layer: it added nothing in the forward pass"
        return Wrong("your code frees bytes that were never added", why=why, next=then)
    then = "which bytes does a layer's backward pass free, and which does it add?"
    return Wrong("your number of bytes after a backward pass is wrong", why=why, next=then)
