"""A torch module whose passes take known time on a VirtualGPU: what a profiler of layers has to find."""

from __future__ import annotations

from typing import Any

from edl_labs.virtual import VirtualGPU


def timed_model(plan: dict[str, Any], gpu: VirtualGPU) -> Any:
    """A torch module from a plan; its work is launches on `gpu`, its result the input, differentiable.

    A plan is a dict with `forward_s` and `backward_s` (kernels of the module itself, run before its children's), and
    `children`, a list of `[name, plan]`, called one after another. `times` calls a child so many times, and
    `residual: True` adds the module's input to what its children return.

    >>> gpu = VirtualGPU(launch_overhead_s=1e-6)
    >>> model = timed_model({"forward_s": 2e-3, "backward_s": 4e-3, "children": []}, gpu)
    >>> import torch
    >>> out = model(torch.ones(3, requires_grad=True)).sum().backward()
    >>> [(entry["name"], entry["duration_s"]) for entry in gpu.program if entry["op"] == "launch"]
    [('forward', 0.002), ('backward', 0.004)]
    """
    import torch

    class Work(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, forward_s: float, backward_s: float) -> Any:
            ctx.backward_s = backward_s
            gpu.launch("forward", duration_s=forward_s)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            gpu.launch("backward", duration_s=ctx.backward_s)
            return gradient, None, None

    class Timed(torch.nn.Module):
        def __init__(self, plan: dict[str, Any]) -> None:
            super().__init__()
            self._costs = plan["forward_s"], plan["backward_s"]
            self._calls = [(name, int(child.get("times", 1))) for name, child in plan["children"]]
            self._residual = bool(plan.get("residual"))
            for name, child in plan["children"]:
                self.add_module(name, Timed(child))

        def forward(self, x: Any) -> Any:
            y = Work.apply(x, *self._costs)
            for name, times in self._calls:
                for _ in range(times):
                    y = getattr(self, name)(y)
            return x + y if self._residual else y

    return Timed(plan)
