"""Tape: the layers of a model as a training step sees them, in bytes and seconds, and the machine that runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from edl_labs.values import Value
from edl_labs.virtual.errors import VirtualMemoryError, shown
from edl_labs.virtual.quantities import MAX_BYTES, MAX_NAME, MAX_SECONDS

MAX_LAYERS = 10_000  # a graph of as many operations still replays in a second


@dataclass(frozen=True, repr=False)
class TapeLayer(Value):
    """One layer: what it holds, in bytes, and how long its passes take, in seconds.

    `activation_bytes` is all that a forward pass keeps for the backward pass, the layer's output (`output_bytes`)
    included; `gradient_bytes` is the gradient of the output, alive until the layer's own backward pass. `inputs` are
    the numbers of the layers that it reads, () for the batch; a tape that is given none of them is a chain.
    `recompute_s` is `forward_s` unless given.
    """

    name: str
    activation_bytes: int
    output_bytes: int
    forward_s: float = 0.0
    backward_s: float = 0.0
    recompute_s: float | None = None
    gradient_bytes: int = 0
    inputs: tuple[int, ...] | None = None

    @property
    def again_s(self) -> float:
        """Seconds of one more forward pass."""
        return self.forward_s if self.recompute_s is None else self.recompute_s

    def __post_init__(self) -> None:
        if type(self.name) is not str or not 0 < len(self.name) <= MAX_NAME:
            raise _refused(
                "a layer",
                "needs a name",
                f"a name must be a string of 1 to {MAX_NAME} characters",
                "use name='conv1', for example",
            )
        for part in ("activation_bytes", "output_bytes", "gradient_bytes"):
            if type(getattr(self, part)) is not int or not 0 <= getattr(self, part) <= MAX_BYTES:
                found = f"has the {part} {shown(getattr(self, part))}"
                raise _refused(
                    self.name,
                    found,
                    "sizes must be whole numbers of bytes, 0 or more",
                    "pass the number of elements times the itemsize",
                )
        for part in ("forward_s", "backward_s", "again_s"):
            value = getattr(self, part)
            if type(value) not in (int, float) or not 0 <= value <= MAX_SECONDS:
                raise _refused(
                    self.name,
                    f"has the {part} {shown(value)}",
                    "a duration must be 0 s or more",
                    f"use {part}=1e-3, for example",
                )
        if self.output_bytes > self.activation_bytes:
            why = "a layer that keeps its activations keeps its output too, so activation_bytes includes output_bytes"
            raise _refused(
                self.name, "has fewer activation_bytes than output_bytes", why, "pass activation_bytes >= output_bytes"
            )


@dataclass(frozen=True, repr=False)
class Tape(Value):
    """The layers of a step in the order of its forward pass, and the machine: copies of `copy_byte_per_s` each way.

    `resident_bytes` is there all the time: parameters, gradients, optimizer state, the batch.

    >>> tape = Tape.chain(4, activation_bytes=2, output_bytes=1, forward_s=1.0, backward_s=2.0)
    >>> tape.inputs, tape.consumers
    (((), (0,), (1,), (2,)), ((1,), (2,), (3,), ()))
    """

    layers: tuple[TapeLayer, ...]
    copy_byte_per_s: float = 25e9  # pinned copies over PCIe 4.0 ×16, as lab01 measures them
    resident_bytes: int = 0
    name: str = field(default="a tape")

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        if not 0 < len(self.layers) <= MAX_LAYERS or not all(type(one) is TapeLayer for one in self.layers):
            why = f"a tape consists of 1 to {MAX_LAYERS:,} TapeLayers"
            raise _refused(
                "a tape",
                f"cannot have {len(self.layers):,} entries of these types",
                why,
                "use Tape.chain(8, ...), for example",
            )
        if type(self.copy_byte_per_s) not in (int, float) or not 0 < self.copy_byte_per_s <= MAX_BYTES:
            found = f"has the copy_byte_per_s {shown(self.copy_byte_per_s)}"
            raise _refused(
                "a tape", found, "the rate of a copy engine must be positive", "use copy_byte_per_s=25e9, for example"
            )
        if type(self.resident_bytes) is not int or not 0 <= self.resident_bytes <= MAX_BYTES:
            found = f"has the resident_bytes {shown(self.resident_bytes)}"
            raise _refused(
                "a tape", found, "sizes must be whole numbers of bytes, 0 or more", "use resident_bytes=0, for example"
            )
        for index, read in enumerate(self.inputs):
            if not all(type(one) is int and 0 <= one < index for one in read) or len(set(read)) != len(read):
                why = "a layer can read only earlier layers, and each of them only once"
                raise _refused(
                    self.layers[index].name, f"reads the layers {read}", why, f"use different numbers below {index}"
                )

    @classmethod
    def chain(cls, count: int, *, resident_bytes: int = 0, copy_byte_per_s: float = 25e9, **layer: float) -> Tape:
        """`count` equal layers, one after the other; `layer` holds the fields of each TapeLayer."""
        layers = tuple(TapeLayer(f"layer{index}", **layer) for index in range(count))  # type: ignore[arg-type]
        return cls(layers, copy_byte_per_s=copy_byte_per_s, resident_bytes=resident_bytes)

    @cached_property
    def inputs(self) -> tuple[tuple[int, ...], ...]:
        """The layers that each layer reads."""
        chained = [(index - 1,) if index else () for index in range(len(self.layers))]
        found = zip(self.layers, chained, strict=True)
        return tuple(before if layer.inputs is None else tuple(layer.inputs) for layer, before in found)

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """The layers that read each layer's output."""
        readers: list[list[int]] = [[] for _ in self.layers]
        for index, read in enumerate(self.inputs):
            for one in read:
                readers[one].append(index)
        return tuple(map(tuple, readers))

    @property
    def is_chain(self) -> bool:
        """Whether each layer reads the one before it, and no other."""
        return self.inputs == tuple((index - 1,) if index else () for index in range(len(self.layers)))


def as_tape(given: Tape | Mapping[str, object] | Sequence[TapeLayer]) -> Tape:
    """A Tape from itself, from its JSON tree, or from its layers."""
    if isinstance(given, Tape):
        return given
    return Tape.from_json(given) if isinstance(given, Mapping) else Tape(tuple(given))


def _refused(who: str, found: str, why: str, example: str) -> VirtualMemoryError:
    return VirtualMemoryError(f"{who} {found}", why=why, next=example)
