"""What a decoder keeps and computes for a token, and the machine that serves it: a step's time from the roofline."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from edl_labs.hardware import Accelerator, accelerator
from edl_labs.virtual.errors import VirtualServerError, shown
from edl_labs.virtual.quantities import PER_SECOND, is_number

_MAX_COUNT, _MAX_RATE = 10**15, 1e24  # beyond any model and any machine
_FREE_FOR_CACHE = 0.9  # a tenth stays for activations (vLLM: nine tenths of all memory, less the weights)


@dataclass(frozen=True)
class DecoderShape:
    """A decoder as serving sees it: its parameters, and the heads whose keys and values stay for every token.

    `heads` ask, `kv_heads` are kept: fewer of them with grouped queries. A number takes `number_bytes`.

    >>> DecoderShape("7B", layers=32, heads=32, kv_heads=32, head_size=128, parameters=6_738_000_000).kv_token_bytes
    524288
    """

    name: str = "decoder"
    layers: int = 32
    heads: int = 32
    kv_heads: int = 32
    head_size: int = 128
    parameters: int = 6_738_000_000
    number_bytes: int = 2

    def __post_init__(self) -> None:
        for name, given in vars(self).items():
            if name != "name":
                _require(type(given) is int and 1 <= given <= _MAX_COUNT, name, given, "a whole number of 1 or more")
        if self.heads % self.kv_heads:
            raise VirtualServerError(
                f"{self.heads} heads cannot share {self.kv_heads} key-value heads",
                why="each key-value head must serve the same number of query heads",
                next="use a kv_heads that divides heads",
            )

    @property
    def kv_token_bytes(self) -> int:
        """Bytes of keys and values that a token leaves in the cache: in every layer, for every kv head."""
        return 2 * self.layers * self.kv_heads * self.head_size * self.number_bytes

    @property
    def weight_bytes(self) -> int:
        """What a step reads of the weights, however many tokens it has."""
        return self.parameters * self.number_bytes

    @property
    def token_flops(self) -> int:
        """A token's products with the weights: a multiply and an add for each parameter."""
        return 2 * self.parameters

    @property
    def attended_flops(self) -> int:
        """What each token that a token looks back at adds: its score, and its part of the sum, in every layer."""
        return 4 * self.layers * self.heads * self.head_size


class StepWork(NamedTuple):
    """What a step does: new tokens of each prompt, and for each sequence that decodes the tokens that it reads."""

    prompts: tuple[int, ...]
    contexts: tuple[int, ...]


@dataclass(frozen=True)
class ServerMachine:
    """A device that serves one decoder, in SI, with a pool of blocks for keys and values.

    At most `most_sequences` run at a time, and no answer is longer than `most_output_tokens`.
    A step reads the weights once and each decoding sequence's keys and values, and does `token_flops` for each token
    and `attended_flops` for each that it looks back at; it takes the larger of the two times, and `step_s`, and
    `sequence_s` for each sequence in it (launches, sampling, text). `padded` prompts are as long as the step's longest.

    >>> machine = ServerMachine.of("A100-80GB", DecoderShape())
    >>> machine.blocks, round(machine.work_s(StepWork((), (1000,))), 6)
    (7137, 0.006866)
    """

    name: str = "ideal"
    shape: DecoderShape = field(default_factory=DecoderShape)
    flop_per_s: float = 312e12
    memory_byte_per_s: float = 2.039e12
    blocks: int = 1024
    block_tokens: int = 16
    most_sequences: int = 256
    most_output_tokens: int = 4096
    step_s: float = 0.0
    sequence_s: float = 0.0
    padded: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.shape, DecoderShape):
            object.__setattr__(self, "shape", DecoderShape(**self.shape))
        for name in ("flop_per_s", "memory_byte_per_s"):
            _require(is_number(getattr(self, name), 1e-9, _MAX_RATE), name, getattr(self, name), "a positive rate")
        for name in ("blocks", "block_tokens", "most_sequences", "most_output_tokens"):
            given = getattr(self, name)
            _require(type(given) is int and 1 <= given <= 10**9, name, given, "a whole number of 1 or more")
        for name in ("step_s", "sequence_s"):
            _require(is_number(getattr(self, name), 0.0, 1e3), name, getattr(self, name), "0 seconds or more")
        _require(type(self.padded) is bool, "padded", self.padded, "True or False")
        _require(
            type(self.name) is str and 0 < len(self.name) <= 200, "name", self.name, "a string of 1 to 200 characters"
        )

    @classmethod
    def of(cls, entry: str | Accelerator, shape: DecoderShape, **parameters: Any) -> ServerMachine:
        """A server around an accelerator of the hardware table: nine tenths of what the weights leave become blocks."""
        chip = accelerator(entry) if isinstance(entry, str) else entry
        block_tokens = parameters.pop("block_tokens", cls.block_tokens)
        room = _FREE_FOR_CACHE * (chip.memory_bytes - shape.weight_bytes)
        blocks = int(room // (block_tokens * shape.kv_token_bytes))
        if blocks < 1 and "blocks" not in parameters:
            raise VirtualServerError(
                f"{shape.name} leaves no room for keys and values on {chip.key}",
                why=f"the weights take {shape.weight_bytes:,} bytes, and the memory has {chip.memory_bytes:,}",
                next="use a smaller decoder, numbers with fewer bytes, or a larger accelerator",
            )
        rates = {"flop_per_s": chip.peak_flop_per_s("fp16"), "memory_byte_per_s": chip.memory_bandwidth_byte_per_s}
        given = {"blocks": blocks, "block_tokens": block_tokens, **rates, **parameters}
        return cls(name=chip.key, shape=shape, **given)

    def blocks_for(self, tokens: int) -> int:
        """The number of blocks that hold this number of tokens."""
        return -(-tokens // self.block_tokens)

    def work_s(self, work: StepWork) -> float:
        """Seconds of a step, from the roofline."""
        prompts, contexts = work
        if not prompts and not contexts:
            return 0.0
        shape, asked = self.shape, prompts
        if self.padded and prompts:
            asked = (max(prompts),) * len(prompts)
        # Token i of a prompt looks back at i tokens, itself among them.
        looked = sum(n * (n + 1) // 2 for n in asked) + sum(contexts)
        flops = shape.token_flops * (sum(asked) + len(contexts)) + shape.attended_flops * looked
        moved = shape.weight_bytes + shape.kv_token_bytes * (sum(asked) + sum(contexts))
        fastest_s = max(flops / self.flop_per_s, moved / self.memory_byte_per_s)
        return fastest_s + self.step_s + self.sequence_s * (len(prompts) + len(contexts))

    def batch_s(self, prompts: Sequence[int]) -> float:
        """Seconds of a step of prompts alone: what a request for one answer takes in such a batch."""
        return self.work_s(StepWork(tuple(prompts), ()))

    def work_ps(self, work: StepWork) -> int:
        """The same in whole picoseconds, at least one."""
        return max(1, round(self.work_s(work) * PER_SECOND))

    def replace(self, **parameters: Any) -> ServerMachine:
        """The same machine with some parameters changed."""
        return server_machine(self, **parameters)

    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain data; `server_machine` reads them back."""
        return dataclasses.asdict(self)


def server_machine(model: ServerMachine | Mapping[str, Any], **parameters: Any) -> ServerMachine:
    """The machine that `model` or its plain form says, with `parameters` instead of its own."""
    try:
        base = model if isinstance(model, ServerMachine) else ServerMachine(**dict(model))
        return dataclasses.replace(base, **parameters) if parameters else base
    except (TypeError, ValueError) as error:
        raise VirtualServerError(
            "these are not the parameters of a server",
            why=str(error),
            next=f"use only these parameters: {', '.join(one.name for one in dataclasses.fields(ServerMachine))}",
        ) from None


def _require(fits: bool, name: str, given: object, form: str) -> None:
    if not fits:
        raise VirtualServerError(
            f"{name} is {shown(given)}", why=f"it must be {form}", next="use SI units: bytes, seconds, B/s"
        )
