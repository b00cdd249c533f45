"""fold_batch_norm: a chain of layers without the batch norms that a convolution can do on its way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.input_guard import asked_twice, explained_by_changes
from edl_labs.units import counted

_SAME = 1e-5  # of the outputs' length, promised in the text
_CONVOLUTIONS = ("conv", "transposed")
_STATISTICS = ("gain", "shift", "mean", "var", "eps", "batch_mean", "batch_var")


@exercise("fold_batch_norm", digits=13)
class FoldBatchNorm(Exercise):
    """Layers as dicts; what comes back gives the same outputs, with as few batch norms as can be.

    The evidence is the layers that came back. They are run here, on an input that no student has.
    """

    answers = ("layers",)

    returns: ClassVar[Mapping[str, Any]] = {"fold_batch_norm": list[dict[Literal["kind"], Any]]}

    def probe(self, student: Any, given: Any) -> Any:
        made, changed = asked_twice(lambda guard: student.fold_batch_norm(guard("layers", drawn_layers(given))))
        return {"layers": [_plain(layer) for layer in made], "changed": changed}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        with explained_by_changes(got["changed"]):
            self._judge_layers(case, got, want)

    def _judge_layers(self, case: Any, got: Any, want: Any) -> None:
        before = drawn_layers(case)
        made = [_layer(one) for one in got["layers"]]
        strange = [one["kind"] for one in made if one["kind"] not in (*_CONVOLUTIONS, "batch_norm", "relu")]
        if strange:
            then = "return dicts like the ones that you were given"
            raise Wrong("a layer of your chain has an unknown kind", why=f"got kind {strange[0][:30]!r}", next=then)
        _judge_settings(before, made)
        _judge_biases(got["layers"])
        right = [_layer(one) for one in want["layers"]]
        told = _told_of_pairs(before, made, right)
        told = told or _gone_in_front(made, right)
        kept, needed = _norms(made), _norms(right)
        off = _distance(before, made, case)
        if off > _SAME:
            if told:
                raise told
            if kept < needed:
                then = "what does a padded or a transposed convolution read besides the outputs of the batch norm?"
                due = counted(needed, "batch norm")
                why = f"the relative error of the outputs is {off:.2g}; {due} should have remained"
                raise Wrong("your code removed a batch norm that cannot be folded", why=why, next=then)
            raise _wrong_outputs(before, made, right, off)
        if kept > needed:
            why = f"the outputs are right, but your chain has {counted(kept, 'batch norm')}; {needed} would be enough"
            raise _left_over(before, made, why)

    def explain_exception(self, case: Any, error: str) -> Wrong | None:
        """What a shape that does not fit means where a convolution has groups, or is transposed."""
        if error != "RuntimeError":
            return None
        pairs = zip(case["layers"], case["layers"][1:], strict=False)
        if any(a["kind"] == "batch_norm" and b["kind"] == "conv" and b["groups"] > 1 for a, b in pairs):
            what = (
                "your code scales a grouped convolution's weight by one factor per input channel, but the shapes differ"
            )
            why = "torch rejects a shape: dimension 1 of the weight has only the inputs of one group"
            return Wrong(what, why=why, next="which channels does each group of outputs read?")
        if not any(one["kind"] == "transposed" for one in case["layers"]):
            return None
        what = "your code scales a transposed convolution's weight by one factor per channel, but the shapes differ"
        why = "torch rejects a shape: dimension 1 of the weight has the outputs of only one group"
        return Wrong(what, why=why, next="first split the inputs, dimension 0, into groups")

    def student_inputs(self, case: Any) -> Any:
        """The layers, with their tensors."""
        return {"layers": drawn_layers(case)}

    def format_answer(self, case: Any, got: Any) -> str:
        """The kinds of layers: weights are too many numbers to read."""
        return " → ".join(f"{one['kind']}{_shape_text(one)}" for one in got["layers"])

    def format_case(self, case: Any) -> str:
        """The chain."""
        return " → ".join(f"{one['kind']}{_shape_text(_plain(one))}{_settings(one)}" for one in drawn_layers(case))


def drawn_layers(case: Any) -> list[dict[str, Any]]:
    """The chain of a case, in float64."""
    import torch

    drawn = torch.Generator().manual_seed(case["seed"])

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, generator=drawn, dtype=torch.float64)

    def spread(count: int) -> Any:
        return 0.02 + torch.rand(count, generator=drawn, dtype=torch.float64)

    layers: list[dict[str, Any]] = []
    for one in case["layers"]:
        kind = one["kind"]
        if kind == "relu":
            layers.append({"kind": kind})
        elif kind == "batch_norm":
            count = one["channels"]
            norm = {"gain": 0.5 + spread(count), "shift": normal(count), "mean": normal(count), "var": spread(count)}
            last = {"batch_mean": norm["mean"] + 0.3 * normal(count), "batch_var": norm["var"] + spread(count)}
            layers.append({"kind": kind, **norm, "eps": one["eps"], **last})
        else:
            shape = [one["inputs"], one["outputs"]] if kind == "transposed" else [one["outputs"], one["inputs"]]
            shape[1] //= one["groups"]
            weight = normal(*shape, one["size"], one["size"]) / math.sqrt(shape[1])
            settings = {name: one[name] for name in ("stride", "padding", "groups")}
            bias = 2 * normal(one["outputs"]) if one["has_bias"] else None
            layers.append({"kind": kind, "weight": weight, "bias": bias, **settings})
    return layers


def outputs_of(layers: list[dict[str, Any]], x: Any) -> Any:
    """What the chain gives for x (batch × channels × height × width)."""
    from torch.nn import functional

    for one in layers:
        if one["kind"] == "relu":
            x = x.relu()
        elif one["kind"] == "batch_norm":
            x = functional.batch_norm(x, one["mean"], one["var"], one["gain"], one["shift"], False, 0.0, one["eps"])
        else:
            call = functional.conv2d if one["kind"] == "conv" else functional.conv_transpose2d
            settings = {name: one[name] for name in ("stride", "padding", "groups")}
            x = call(x, one["weight"], one["bias"], **settings)
    return x


def _plain(layer: Any) -> dict[str, Any]:
    """A layer as plain data of one form, whatever its kind: lists are empty where it has no such thing."""
    kind = str(getattr(layer["kind"], "value", layer["kind"]))  # of an enum, its text
    if kind in _CONVOLUTIONS:
        weight, bias = layer["weight"], layer["bias"]
        settings = [int(layer[name]) for name in ("stride", "padding", "groups")]
        numbers = [_listed(weight), [] if bias is None else _listed(bias)]
        shape, flat = [int(n) for n in weight.shape], [int(n) for n in getattr(bias, "shape", ())]
        return {"kind": kind, "shape": shape, "bias_shape": flat, "settings": settings, "numbers": numbers}
    numbers = [_listed(layer[name]) for name in _STATISTICS] if kind == "batch_norm" else []
    return {"kind": kind, "shape": [], "bias_shape": [], "settings": [], "numbers": numbers}


def _listed(value: Any) -> list[float]:
    import torch

    return [float(one) for one in torch.as_tensor(value).detach().to(torch.float64).flatten().tolist()]


def _layer(plain: Any) -> dict[str, Any]:
    """What `_plain` wrote, as a layer."""
    import torch

    numbers = [torch.tensor(one, dtype=torch.float64) for one in plain["numbers"]]
    if plain["kind"] == "batch_norm":
        found: dict[str, Any] = dict(zip(_STATISTICS, numbers, strict=True))
        return {"kind": "batch_norm", **found, "eps": float(found["eps"])}
    if plain["kind"] in _CONVOLUTIONS:
        settings = dict(zip(("stride", "padding", "groups"), plain["settings"], strict=True))
        weight = numbers[0].view(plain["shape"])
        return {"kind": plain["kind"], "weight": weight, "bias": numbers[1] if len(numbers[1]) else None, **settings}
    return {"kind": plain["kind"]}


def _norms(layers: list[dict[str, Any]]) -> int:
    return sum(one["kind"] == "batch_norm" for one in layers)


def _shape_text(plain: dict[str, Any]) -> str:
    return f" {'×'.join(map(str, plain['shape']))}" if plain["shape"] else ""


def _settings(layer: dict[str, Any]) -> str:
    if layer["kind"] not in _CONVOLUTIONS:
        return ""
    bias = "with a bias" if layer["bias"] is not None else "no bias"
    return f" (groups {layer['groups']}, stride {layer['stride']}, padding {layer['padding']}, {bias})"


def _distance(before: Any, made: Any, case: Any) -> float:
    """How far the outputs are from those before, as a share of their length; infinite where they cannot be had."""
    import torch

    drawn = torch.Generator().manual_seed(case["check_seed"])
    x = torch.randn(2, _channels(before), 9, 9, generator=drawn, dtype=torch.float64)
    right = outputs_of(before, x)
    try:
        found = outputs_of(made, x)
    except (RuntimeError, ValueError):
        return math.inf
    if found.shape != right.shape or not bool(found.isfinite().all()):
        return math.inf
    return float((found - right).norm() / right.norm())


def _channels(layers: Any) -> int:
    """Of the input."""
    for one in layers:
        if one["kind"] == "batch_norm":
            return len(one["mean"])
        if one["kind"] in _CONVOLUTIONS:
            return one["weight"].shape[0] if one["kind"] == "transposed" else one["weight"].shape[1] * one["groups"]
    return 1


def _judge_settings(before: Any, made: Any) -> None:
    """Convolutions and activations are those that came, in their order and shapes."""
    old, new = ([one for one in each if one["kind"] != "batch_norm"] for each in (before, made))
    if [one["kind"] for one in old] != [one["kind"] for one in new]:
        kinds = [", ".join(one["kind"] for one in each) or "no layers" for each in (new, old)]
        why = f"besides batch norms, got {kinds[0]}, expected {kinds[1]}"
        then = "keep all other layers, in their order"
        raise Wrong("your code moved or removed layers that are not batch norms", why=why, next=then)
    for first, second in zip(old, new, strict=True):
        if first["kind"] == "relu":
            continue
        if first["weight"].shape != second["weight"].shape:
            why = f"got the shape {list(second['weight'].shape)}, expected {list(first['weight'].shape)}"
            raise Wrong(
                "one of your weights has the wrong shape", why=why, next="multiply the numbers, but keep the shape"
            )
        if any(first[name] != second[name] for name in ("stride", "padding", "groups")):
            why = f"your convolution has{_settings(second)}, the original has{_settings(first)}"
            raise Wrong("your code changed stride, padding or groups", why=why, next="keep these settings")


def _judge_biases(layers: list[dict[str, Any]]) -> None:
    for one in layers:
        if len(one["bias_shape"]) > 1:
            why = f"got the shape {one['bias_shape']}; a convolution accepts {[len(one['numbers'][1])]}"
            raise Wrong(
                "one of your biases has a shape that a convolution does not accept", why=why, next="flatten the bias"
            )


def _gone_in_front(made: Any, right: Any) -> Wrong | None:
    """What to say where a batch norm is gone in front of a layer that it has to stay in front of."""
    for (had, layer), (has, _) in zip(_with_norms_in_front(right), _with_norms_in_front(made), strict=True):
        if had <= has:
            continue
        behind = layer["kind"]
        if behind == "relu":
            then = "is relu(factor * x + rest) the same as factor * relu(x) + rest?"
            why = "the batch norm is in front of a ReLU, and there is no convolution before it"
            what = "your code removed a batch norm that a ReLU separates from the convolution"
            return Wrong(what, why=why, next=then)
        if behind == "transposed":
            why = "outputs at the edges add up fewer inputs than others, so their shares of the shifts differ"
            then = "keep a batch norm in front of a transposed convolution"
            return Wrong("your code removed a batch norm in front of a transposed convolution", why=why, next=then)
    return None


def _with_norms_in_front(layers: Any) -> list[tuple[int, Any]]:
    """Each layer that is no batch norm, and how many batch norms are right in front of it."""
    found, norms = [], 0
    for one in layers:
        if one["kind"] == "batch_norm":
            norms += 1
        else:
            found.append((norms, one))
            norms = 0
    return found


def _left_over(before: Any, made: Any, why: str) -> Wrong:
    """Which batch norms could have been folded and were not."""
    kinds = [one["kind"] for one in made]
    for at, kind in enumerate(kinds):
        if kind == "batch_norm" and at and kinds[at - 1] in _CONVOLUTIONS:
            then = f"fold every batch norm that follows a convolution of kind {kinds[at - 1]!r}"
            return Wrong("your chain keeps a batch norm after a convolution", why=why, next=then)
    then = "scale the weights that read each channel; what do the shifts add to an output if there is no padding?"
    return Wrong("your chain keeps a batch norm in front of a convolution", why=why, next=then)


def _wrong_outputs(before: Any, made: Any, right: Any, off: float) -> Wrong:
    kinds = [one["kind"] for one in before if one["kind"] != "relu"]
    why = f"the relative error of the outputs is {off:.2g}"
    if kinds[0] == "batch_norm":
        return _wrong_in_front(before, made, right, why)
    after = ([one for one in each if one["kind"] in _CONVOLUTIONS] for each in (made, right))
    convolutions = zip(_after(before), *after, strict=True)
    for number, ((layer, norm), folded, aimed) in enumerate(convolutions):
        if norm and layer["kind"] == "transposed" and not _near(folded["weight"], aimed["weight"]):
            told = _told_of_transposed(layer, norm, folded["weight"], why)
            if told:
                return told
        for name in ("weight", "bias"):
            if folded[name] is not None and aimed[name] is not None and not _near(folded[name], aimed[name]):
                at = int((folded[name] - aimed[name]).abs().argmax())
                mine, due = (float(one[name].flatten()[at]) for one in (folded, aimed))
                why = f"{why}; {name}.flatten()[{at}] of convolution {number} is {mine:.6g}, but should be {due:.6g}"
                return Wrong(
                    "the outputs of your chain differ from those of the original chain", why=why, next=_SUBSTITUTE
                )
    return Wrong("the outputs of your chain differ from those of the original chain", why=why, next=_SUBSTITUTE)


def _after(before: Any) -> list[tuple[Any, Any]]:
    """Each convolution with the batch norm right after it, if there is one."""
    pairs = zip(before, [*before[1:], {"kind": ""}], strict=True)
    return [
        (one, norm if norm["kind"] == "batch_norm" else None) for one, norm in pairs if one["kind"] in _CONVOLUTIONS
    ]


def _told_of_transposed(layer: Any, norm: Any, found: Any, why: str) -> Wrong | None:
    """The slip that gives the weight of a transposed convolution; None where none of these does."""
    factor, weight = norm["gain"] / (norm["var"] + norm["eps"]).sqrt(), layer["weight"]
    if layer["groups"] > 1 and _near(found, weight * factor[: weight.shape[1]].view(1, -1, 1, 1)):
        then = "use only the first (outputs / groups) factors for the rows of the first group of inputs, and so on"
        what = "your code uses the first group's factors for all groups of a transposed convolution"
        return Wrong(what, why=f"{why}; each group has its own outputs", next=then)
    ratio = (found / weight).flatten(1)
    if not _near(found, weight) and _near(ratio, ratio[:, :1].expand_as(ratio)):
        then = "the shape of this weight is (inputs, outputs of one group, height, width): where is output channel c?"
        return Wrong("your code scales a transposed convolution's weight along the wrong channels", why=why, next=then)
    return None


def _wrong_in_front(before: Any, made: Any, right: Any, why: str) -> Wrong:
    own = next(one["bias"] for one in before if one["kind"] in _CONVOLUTIONS)
    for one, aimed in zip(made, right, strict=False):
        if one["kind"] == aimed["kind"] == "conv" and _near(one["weight"], aimed["weight"]):
            then = "if x = factor * y + rest in each input channel, what does `rest` add to each output?"
            lost = one["bias"] is None or not bool(one["bias"].any()) or (own is not None and _near(one["bias"], own))
            if not lost:
                what = "your bias is wrong after folding a batch norm in front of a convolution"
                return Wrong(what, why=f"{why}; the weights are right", next=then)
            what = "your code loses the shifts of a batch norm in front of a convolution"
            return Wrong(what, why=f"{why}; the weights are right", next=then)
    then = "the factors belong to the inputs of the convolution: which inputs does each group read?"
    return Wrong("your code folds a batch norm in front of a convolution wrongly", why=why, next=then)


def _told_of_pairs(before: Any, made: Any, right: Any) -> Wrong | None:
    """What went wrong in the first batch norm behind a plain convolution that was folded; None where nothing did."""
    new, wanted = (iter([one for one in each if one["kind"] in _CONVOLUTIONS]) for each in (made, right))
    for at, one in enumerate(before):
        if one["kind"] not in _CONVOLUTIONS:
            continue
        folded, aimed = next(new), next(wanted)
        alone = at + 2 >= len(before) or before[at + 2]["kind"] != "batch_norm"
        behind = at + 1 < len(before) and before[at + 1]["kind"] == "batch_norm"
        in_front = at > 0 and before[at - 1]["kind"] == "batch_norm"
        if one["kind"] == "conv" and behind and alone and not in_front:
            told = _told_of_pair(one, before[at + 1], folded, aimed)
            if told:
                return told
    return None


def _told_of_pair(layer: Any, norm: Any, folded: Any, aimed: Any) -> Wrong | None:
    """The slip that gives these weights, and where weights are right, this bias."""
    ratio = (folded["weight"] / layer["weight"]).flatten(1)
    factor = ratio[:, 0]
    if not _near(ratio, factor.view(-1, 1).expand_as(ratio)):
        return None
    root = norm["var"].sqrt()
    for slip, what, then in (
        (norm["gain"] / (root + norm["eps"]), "your code adds eps outside the root", "add eps to the variance first"),
        (
            norm["gain"] / root,
            "your code leaves out eps",
            "what does a batch norm divide by where a variance is near zero?",
        ),
        (
            norm["gain"] / (norm["var"] + norm["eps"]),
            "your code uses the variance instead of the standard deviation",
            "take the square root",
        ),
        (norm["gain"] / (norm["batch_var"] + norm["eps"]).sqrt(), _LAST_BATCH, _RUNNING),
        (
            norm["gain"] * 0 + 1,
            "your weights are unchanged",
            "multiply the weights by the factor: a bias cannot replace it",
        ),
        (
            norm["gain"] / norm["gain"] / (norm["var"] + norm["eps"]).sqrt(),
            "your code loses the gain",
            "start from y = gain * … + shift",
        ),
    ):
        if _near(factor, slip):
            return Wrong(what, why="this mistake gives exactly your weights", next=then)
    bias = layer["bias"] if layer["bias"] is not None else 0 * norm["mean"]
    if folded["bias"] is None:
        then = "put the batch norm's mean and shift into a new bias"
        why = "the folded convolution has bias None"
        return Wrong("in your chain, a convolution that now needs a bias has none", why=why, next=then)
    for slip, what, then in (
        (bias, "your bias is unchanged", "where do the batch norm's mean and shift go?"),
        (aimed["bias"] + 2 * factor * norm["mean"], "your code adds the mean", "subtract the mean, then scale"),
        (factor * bias + norm["shift"], "your code does not subtract the mean", "subtract the mean before you scale"),
        (norm["shift"] - factor * norm["mean"], "your code loses the convolution's own bias", _OWN_BIAS),
        (
            bias + norm["shift"] - factor * norm["mean"],
            "your code does not scale the convolution's own bias",
            _OWN_BIAS,
        ),
        (factor * bias - factor * norm["mean"], "your code loses the shift", "start from y = gain * … + shift"),
        (aimed["bias"] - factor * (norm["batch_mean"] - norm["mean"]), _LAST_BATCH, _RUNNING),
        (
            aimed["bias"] + (factor - 1) * norm["mean"],
            "your code does not scale the mean",
            "subtract the mean before you apply the factor",
        ),
    ):
        if _near(folded["bias"], slip) and not _near(aimed["bias"], slip):
            return Wrong(what, why="this mistake gives exactly your bias", next=then)
    return None


_SUBSTITUTE = "write the batch norm as y = factor * x + rest, for each channel, and substitute the convolution for x"
_LAST_BATCH = "your code uses the statistics of the last batch"
_RUNNING = "use the running statistics, `mean` and `var`, as a batch norm does in inference"
_OWN_BIAS = "include the convolution's own bias in x: the batch norm reads the convolution's output"


def _near(found: Any, right: Any) -> bool:
    return bool(((found - right).abs() <= 1e-7 * (right.abs() + 1e-3)).all())
