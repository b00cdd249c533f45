"""`autocast_table`: which operator ran in which dtype, on CPU and on CUDA, with or without a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.numerics._float_format import torch_dtype
from edl_labs.numerics.autocast_trace import DEVICE_TYPES, TorchCall, trace
from edl_labs.roofline.operators.counted_call import short_dtype
from edl_labs.values import Value

_ASKED = ("to", "type", "float", "half", "bfloat16", "double")


@dataclass(frozen=True, repr=False)
class AutocastRow(Value):
    """One operator under autocast: the dtypes it was given, the one it ran in, and the one that came out."""

    operator: str
    module: str
    given: str
    ran_in: str
    out: str
    policy: str

    @property
    def casts(self) -> bool:
        """Whether autocast changed the dtype of an input."""
        return self.policy != "as given"


@dataclass(frozen=True, repr=False)
class Difference(Value):
    """The same operator on two kinds of device, where autocast treats it differently."""

    cpu: AutocastRow
    cuda: AutocastRow

    @property
    def begins_here(self) -> bool:
        """Whether autocast itself differs at this operator; otherwise it only inherits what came before."""
        return self.cpu.policy != self.cuda.policy

    def __str__(self) -> str:
        row = self.cpu
        where = f" in {row.module}" if row.module else ""
        why = "" if self.begins_here else " (its inputs already differ)"
        return f"{row.operator}{where}: on CPU it {_said(row)}, on CUDA it {_said(self.cuda)}{why}"


@dataclass(frozen=True, repr=False)
class AutocastTable(Value):
    """The operators of one forward pass under autocast, in order."""

    ROWS = "rows"

    device_type: str
    dtype: str
    rows: tuple[AutocastRow, ...]

    def __getitem__(self, operator: str) -> AutocastRow:
        """The first row of an operator."""
        for row in self.rows:
            if row.operator == operator:
                return row
        raise UsageError(
            f"the operator {str(operator)[:40]!r} did not run",
            why=f"these operators ran: {', '.join(dict.fromkeys(row.operator for row in self.rows))}",
            next="use one of these",
        )

    def __repr__(self) -> str:
        head = ("operator", "module", "given", "ran in", "out", "autocast")
        rows = [head, *((r.operator, r.module, r.given, r.ran_in, r.out, r.policy) for r in self.rows)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([f"autocast to {self.dtype} on {self.device_type}:", *lines])


@checked_arguments()
def autocast_table(model: Any, inputs: Any, *, device_type: str = "cuda", dtype: Any = None) -> AutocastTable:
    """Which operator of `model(*inputs)` runs in which dtype under autocast, and what comes out of it.

    `device_type` is 'cpu' or 'cuda'; no GPU is needed, as only shapes and dtypes flow. `dtype` is torch's default for
    the device unless given: fp16 on CUDA, bf16 on CPU. The model and its weights stay as they are.

    >>> table = autocast_table(torch.nn.Linear(8, 4), torch.zeros(2, 8), device_type="cuda")
    >>> table["linear"].given, table["linear"].ran_in, table["linear"].out
    ('fp32', 'fp16', 'fp16')
    """
    chosen = lower_dtype(device_type, dtype)
    calls = trace(model, inputs, device_type=device_type, autocast=chosen)
    rows = tuple(_row(call) for call in calls if call.ran_in and call.given)
    return AutocastTable(device_type, short_dtype(chosen), rows)


@checked_arguments()
def autocast_differences(model: Any, inputs: Any, *, dtype: Any = None) -> tuple[Difference, ...]:
    """The operators that autocast treats differently on CPU and on CUDA, in the order of the forward pass.

    LayerNorm is the one to know: on CPU it follows its input, on CUDA autocast runs it in fp32 and returns fp32.
    What comes after it then differs too: `begins_here` tells the two apart.
    `dtype` is bf16 unless given, which both devices offer.
    """
    chosen = torch.bfloat16 if dtype is None else dtype
    tables = [autocast_table(model, inputs, device_type=kind, dtype=chosen) for kind in DEVICE_TYPES]
    pairs = _aligned(*(table.rows for table in tables))
    return tuple(Difference(cpu, cuda) for cpu, cuda in pairs if (cpu.ran_in, cpu.out) != (cuda.ran_in, cuda.out))


def lower_dtype(device_type: str, dtype: Any) -> torch.dtype:
    """The dtype that autocast lowers to: the one given, or torch's default for the device; UsageError for others."""
    chosen = dtype
    if dtype is None:
        chosen = torch.float16 if device_type == "cuda" else torch.bfloat16
    elif not isinstance(dtype, torch.dtype):
        chosen = torch_dtype(dtype)
    if chosen not in (torch.float16, torch.bfloat16):
        raise UsageError(
            f"autocast to {chosen} does not lower the precision",
            why="autocast uses fp16 or bf16",
            next="pass torch.float16 or torch.bfloat16",
        )
    return chosen


def _row(call: TorchCall) -> AutocastRow:
    ran_in = call.ran_in or ""
    return AutocastRow(
        operator=call.operator,
        module=call.module,
        given=_words(call.given),
        ran_in=ran_in,
        out=_words(call.out),
        policy=_policy(call, ran_in),
    )


def _policy(call: TorchCall, ran_in: str) -> str:
    """What autocast did, read off the work: a cast before or in it, or a dtype that the kernel no longer sees."""
    if call.operator in _ASKED:
        return "as given"
    cast = any(kernel.is_cast for kernel in call.kernels) or ran_in not in call.given
    # A weight that was cast before comes from autocast's cache: no cast is seen then, but no fp32 either.
    cached = call.main is not None and not set(call.given) <= set(call.main.dtypes)
    return f"cast to {ran_in}" if cast or (cached and len(call.kernels) == 1) else "as given"


def _words(dtypes: tuple[str, ...]) -> str:
    return "+".join(dict.fromkeys(dtypes))


def _said(row: AutocastRow) -> str:
    how = f"is {row.policy}" if row.casts else "follows its input"
    return f"{how} ({row.given} in, {row.out} out)"


def _aligned(left: tuple[AutocastRow, ...], right: tuple[AutocastRow, ...]) -> list[tuple[AutocastRow, AutocastRow]]:
    """Rows of the same operator in the same module, the n-th with the n-th."""

    def keyed(rows: tuple[AutocastRow, ...]) -> dict[tuple[str, str, int], AutocastRow]:
        seen: dict[tuple[str, str], int] = {}
        found = {}
        for row in rows:
            key = row.operator, row.module
            seen[key] = seen.get(key, 0) + 1
            found[*key, seen[key]] = row
        return found

    first, second = keyed(left), keyed(right)
    return [(row, second[key]) for key, row in first.items() if key in second]
