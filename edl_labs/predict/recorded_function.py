"""A function that does a whole step, recorded with the models and optimizers that it sees."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch

from edl_labs.predict.prepared_models import on_meta
from edl_labs.predict.recorded_step import StepRecording, recorded


def record_function(step: Callable[..., Any], example: Any, *, dtype: str | None = None) -> StepRecording:
    """One call of `step(*example)`, which may go back and update: models and optimizers are found where it sees them.

    Everything that it holds as a module (closure, globals, `self`) lies on meta meanwhile, and is afterwards as before.
    """
    seen = _seen_by(step)
    model = torch.nn.ModuleDict(
        {str(i): one for i, one in enumerate(s for s in seen if isinstance(s, torch.nn.Module))}
    )
    updates = [one for one in seen if isinstance(one, torch.optim.Optimizer)]
    places = {id(p): (module, name) for module in model.modules() for name, p in module._parameters.items()}
    before = [(group, list(group["params"])) for one in updates for group in one.param_groups]
    states = [(one, one.state) for one in updates]
    options = [(group, {k: v for k, v in group.items() if k != "params"}) for group, _ in before]
    for one in updates:
        one.state = defaultdict(dict)

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = model

        def forward(self, *inputs: Any, **keywords: Any) -> Any:
            for group, params in before:
                found = [places.get(id(p)) for p in params]
                group["params"] = [m._parameters[n] for m, n in (one for one in found if one is not None)]
                if group.get("fused") is None and group.get("foreach", 1) is None:
                    group["foreach"] = True  # what torch chooses for CUDA tensors
            return step(*inputs, **keywords)

    whole = Whole()
    try:
        recording = recorded(whole, example, dtype, None, None, on_meta, checkpoint=False, whole=updates)
        recording.name = getattr(step, "__name__", "step")
        recording.is_training = any(one.phase == "backward" for one in recording.kernels)
        return recording
    finally:
        for (group, params), (_, kept) in zip(before, options, strict=True):
            group["params"] = params
            group.update(kept)
        for one, state in states:
            one.state = state


def _seen_by(step: Any) -> list[Any]:
    """Modules and optimizers in a function's closure, the globals that it names, its defaults and its object."""
    inner = getattr(step, "__func__", step)
    code = getattr(inner, "__code__", None)
    found = (
        [getattr(step, "__self__", None), *vars(getattr(step, "__self__", object())).values()]
        if hasattr(step, "__self__")
        else []
    )
    for cell in getattr(inner, "__closure__", None) or ():
        with contextlib.suppress(ValueError):
            found.append(cell.cell_contents)
    if code is not None:
        found += [inner.__globals__[name] for name in code.co_names if name in inner.__globals__]
    found += list(getattr(inner, "__defaults__", None) or ())
    kinds = (torch.nn.Module, torch.optim.Optimizer)
    return list({id(one): one for one in found if isinstance(one, kinds)}.values())
