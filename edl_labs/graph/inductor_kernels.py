"""Which kernels torch.compile's inductor makes of a model: on this machine, or as they were recorded."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import EdlError
from edl_labs.values import Value

RECORDINGS = Path(__file__).with_name("inductor_recordings.json")
# Generated kernels are called after what they do: cpp_fused_add_relu_0, triton_per_fused_native_layer_norm_1.
_GENERATED = re.compile(r"^\s+(?:stream\d+\.)?((?:cpp|triton_\w+?)_fused_\w+?)(?:\.run)?\(")
_LIBRARY = re.compile(
    r"^\s+(?:\w+ = )?(?:extern_kernels\.(\w+)|torch\.ops\.(?:aten|mkldnn|onednn|mkl)\.(\w+)(?:\.\w+)?)\("
)


@dataclass(frozen=True, repr=False)
class InductorRun(Value):
    """What one compiled call runs: generated kernels by name, library calls by operator, both in their order."""

    DERIVED = ("launches",)

    generated: tuple[str, ...]
    library: tuple[str, ...]
    graph_breaks: int
    compile_s: float
    torch_version: str
    device: str
    is_recorded: bool = False

    @property
    def launches(self) -> int:
        """All kernels of a call."""
        return len(self.generated) + len(self.library)

    def __str__(self) -> str:
        how = "recorded" if self.is_recorded else "measured"
        return (
            f"{how}, torch {self.torch_version} on {self.device}: {self.launches} kernels, "
            f"{len(self.generated)} generated and {len(self.library)} from a library"
        )


@checked_arguments()
def inductor_run(model: Any, *example: Any, recorded: str = "", here: bool = True) -> InductorRun:
    """The kernels of `torch.compile(model)(*example)`, without gradients; compiles, so it takes seconds.

    Where nothing can be compiled (no C++ compiler or, on a GPU, no Triton), or with `here=False`, the recording of that
    name is given; EdlError where there is none.
    """
    why = "compiling was switched off with here=False"
    if here:
        try:
            return _compiled(model, example)
        except Exception as error:  # whatever a missing tool-chain raises
            why = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:120]}"
    known = json.loads(RECORDINGS.read_text(encoding="utf-8"))
    if recorded not in known:
        then = f"install a C++ compiler, or use one of the recordings {', '.join(known)}"
        raise EdlError("this model cannot be compiled here", why=why, next=then)
    return replace(InductorRun.from_json(known[recorded]), is_recorded=True)


def _compiled(model: Any, example: Any) -> InductorRun:
    import torch
    import torch._functorch.config
    import torch._inductor.config
    from torch._dynamo.utils import counters
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    counters.clear()
    began = time.perf_counter()
    # A cached result has no code to look at.
    uncached = torch._inductor.config.patch(fx_graph_cache=False)
    with torch.no_grad(), uncached, torch._functorch.config.patch(enable_autograd_cache=False):
        _, codes = run_and_get_code(torch.compile(model), *example)
    took_s = time.perf_counter() - began
    if not codes:
        raise RuntimeError("inductor generated no code")
    lines = [line for code in codes for line in _calls_of(code)]
    generated = [found[1] for line in lines if (found := _GENERATED.match(line))]
    library = [found[1] or found[2] for line in lines if (found := _LIBRARY.match(line))]
    breaks = sum(counters["graph_break"].values())
    device = next((one.device.type for one in example if isinstance(one, torch.Tensor)), "cpu")
    return InductorRun(tuple(generated), tuple(library), breaks, took_s, torch.__version__, device)


def _calls_of(code: str) -> list[str]:
    """The lines of the function that calls the kernels."""
    lines = code.splitlines()
    starts = [at for at, line in enumerate(lines) if re.match(r"\s*def call\(", line)]
    if not starts:
        return []
    indent = len(lines[starts[0]]) - len(lines[starts[0]].lstrip())
    body = lines[starts[0] + 1 :]
    ends = (at for at, line in enumerate(body) if line.strip() and len(line) - len(line.lstrip()) <= indent)
    return body[: next(ends, len(body))]
