"""Bytes per parameter: weights, gradients and optimiser state of a training recipe, and who holds them.

>>> from edl_labs.numerics import bytes_per_parameter
>>> bytes_per_parameter("amp adam").resident, bytes_per_parameter("amp adam").transient
(16.0, 2.0)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.values import Value

if TYPE_CHECKING:
    import torch

PARTS = ("weights", "master", "gradients", "optimizer")

# Bytes of weights, of a master copy beside them, of gradients, and of a copy that lives only during a step.
_PRECISIONS: dict[str, tuple[float, float, float, float]] = {
    "fp32": (4, 0, 4, 0),
    # torch.autocast: fp32 weights and gradients; the cast cache holds a 16-bit copy of what the forward pass uses.
    "amp": (4, 0, 4, 2),
    # Deck [000], apex O2, DeepSpeed's fp16: 16-bit weights and gradients beside fp32 master weights.
    "half+master": (2, 4, 2, 0),
    # Deck [002]: both copies of the weights stay, gradients are always fp32.
    "both+fp32grad": (2, 4, 4, 0),
    "bf16": (2, 0, 2, 0),
}
# State per parameter of each optimiser in fp32, in bytes; a pure 16-bit recipe keeps it in 16 bits.
_OPTIMIZERS = {"adam": 8.0, "adamw": 8.0, "adam8bit": 2.0, "sgd-momentum": 4.0, "sgd": 0.0, "none": 0.0}
_ALIASES = {
    "amp-000": "half+master",
    "amp-002": "both+fp32grad",
    "bf16-pure": "bf16",
    "8bit-adam": "adam8bit",
    "adam-8bit": "adam8bit",
    "adamw8bit": "adam8bit",
    "sgdm": "sgd-momentum",
    "momentum": "sgd-momentum",
}
# What each ZeRO stage shards over the GPUs: the stage before it, and one part more (Rajbhandari et al. 2020).
_SHARDED = ((), ("optimizer", "master"), ("optimizer", "master", "gradients"), PARTS)


@dataclass(frozen=True)
class Recipe:
    """How a model is trained, as far as memory goes.

    `precision`: 'fp32', 'amp' (torch.autocast), 'half+master' (deck [000]), 'both+fp32grad' (deck [002]), 'bf16' (all
    of it). `optimizer`: 'adam', 'adamw', 'adam8bit', 'sgd', 'sgd-momentum', 'none'. `zero_stage` shards over `gpus`;
    `offload` names what lives in the host's memory: 'weights', 'master', 'gradients', 'optimizer'.
    """

    precision: str = "fp32"
    optimizer: str = "adam"
    zero_stage: int = 0
    gpus: int = 1
    offload: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, known in (("precision", _PRECISIONS), ("optimizer", _OPTIMIZERS)):
            given = str(getattr(self, name)).lower()
            object.__setattr__(self, name, _ALIASES.get(given, given))
            if getattr(self, name) not in known:
                raise UsageError(
                    f"there is no {name} {given[:40]!r}",
                    why=f"the known ones are {', '.join(known)}",
                    next="use one of these",
                )
        if self.zero_stage not in (0, 1, 2, 3) or isinstance(self.zero_stage, bool):
            raise UsageError(
                f"there is no ZeRO stage {self.zero_stage!r}",
                why="ZeRO has stages 1, 2 and 3",
                next="use one of these stages, or 0 to shard nothing",
            )
        if type(self.gpus) is not int or self.gpus < 1:
            raise UsageError(
                f"gpus is {self.gpus!r}",
                why="state is sharded over a whole number of GPUs",
                next="pass a number such as gpus=8",
            )
        object.__setattr__(self, "offload", (self.offload,) if isinstance(self.offload, str) else tuple(self.offload))
        if not set(self.offload) <= set(PARTS):
            raise UsageError(
                f"cannot offload {self.offload!r}",
                why=f"only {', '.join(PARTS)} can be offloaded",
                next="choose from these",
            )


@dataclass(frozen=True, repr=False)
class ParameterBytes(Value):
    """Bytes per parameter on each GPU, part by part; `transient` comes and goes in a step, `host` is offloaded."""

    DERIVED = ("resident",)

    recipe: Recipe
    weights: float
    master: float
    gradients: float
    optimizer: float
    transient: float
    host: float

    @property
    def resident(self) -> float:
        """The bytes that stay on the GPU from step to step."""
        return sum(getattr(self, part) for part in PARTS)

    @property
    def peak(self) -> float:
        """What a step needs at most: what stays and what comes and goes."""
        return self.resident + self.transient

    def of(self, parameters: int) -> float:
        """Resident bytes of a model with this number of parameters."""
        return self.resident * parameters

    def __repr__(self) -> str:
        parts = [(part, getattr(self, part)) for part in PARTS]
        text = " + ".join(f"{value:g} {part}" for part, value in parts if value) or "0"
        extra = "".join(
            f", {word} {value:g}" for word, value in (("transient up to", self.transient), ("host", self.host)) if value
        )
        return f"{self.recipe.precision} {self.recipe.optimizer}: {self.resident:g} B a parameter = {text}{extra}"


@checked_arguments()
def bytes_per_parameter(recipe: Recipe | str, **changes: Any) -> ParameterBytes:
    """Bytes per parameter that a recipe keeps on each GPU. A text such as 'amp adam' names precision and optimiser.

    >>> bytes_per_parameter("half+master adam", zero_stage=1, gpus=8).resident
    5.5
    >>> bytes_per_parameter("fp32 adam", offload="optimizer")
    fp32 adam: 8 B a parameter = 4 weights + 4 gradients, host 8
    """
    recipe = _recipe(recipe, changes)
    weights, master, gradients, transient = _PRECISIONS[recipe.precision]
    state = _OPTIMIZERS[recipe.optimizer]
    # torch's optimisers make their state like the parameters: 16-bit ones get 16-bit moments.
    state = state / 2 if recipe.precision == "bf16" and recipe.optimizer != "adam8bit" else state
    full = dict(zip(PARTS, (weights, master, gradients, state), strict=True))
    share = {part: value / (recipe.gpus if part in _SHARDED[recipe.zero_stage] else 1) for part, value in full.items()}
    kept = {part: 0.0 if part in recipe.offload else float(value) for part, value in share.items()}
    host = sum(value for part, value in share.items() if part in recipe.offload)
    return ParameterBytes(recipe=recipe, **kept, transient=float(transient), host=float(host))


@checked_arguments()
def training_state(model: torch.nn.Module, optimizer: Any = None) -> dict[str, int]:
    """Bytes that a torch model and its optimiser hold right now, counted: weights, gradients, optimizer, buffers.

    Storages that are shared (tied weights) count once.
    """
    import torch

    def held(tensors: Any) -> int:
        # Not data_ptr(): meta tensors have no address.
        storages = [t.untyped_storage() for t in tensors if t is not None]
        return sum({storage._cdata: storage.nbytes() for storage in storages}.values())

    parameters = list(model.parameters())
    state = [] if optimizer is None else [v for s in optimizer.state.values() for v in s.values()]
    # Adam's step counters are tensors of one number each: bookkeeping, not state per parameter.
    return {
        "weights": held(parameters),
        "gradients": held([p.grad for p in parameters]),
        "optimizer": held([t for t in state if isinstance(t, torch.Tensor) and t.dim() > 0]),
        "buffers": held(model.buffers()),
    }


def _recipe(recipe: Recipe | str, changes: dict[str, Any]) -> Recipe:
    known = {field.name for field in fields(Recipe)}
    if not set(changes) <= known:
        raise UsageError(
            f"a recipe has no {', '.join(sorted(set(changes) - known))}",
            why=f"its fields are {', '.join(sorted(known))}",
            next="change only these fields",
        )
    if isinstance(recipe, Recipe):
        return Recipe(**{**asdict(recipe), **changes})
    words = str(recipe).lower().split()
    if len(words) not in (1, 2):
        raise UsageError(
            f"{str(recipe)[:60]!r} is not a recipe",
            why="a recipe names a precision and an optimiser",
            next="use 'amp adam', or pass a Recipe(...)",
        )
    named = dict(zip(("precision", "optimizer"), words, strict=False))
    return Recipe(**{**named, **changes})
