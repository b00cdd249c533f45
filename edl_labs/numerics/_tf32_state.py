"""TF32: whether this torch lets fp32 products run in it, which is what AMP then has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class TF32State(Value):
    """Whether fp32 matrix products and convolutions may run in TF32 on a GPU that has it."""

    matmul: bool
    convolution: bool

    def __str__(self) -> str:
        def said(on: bool) -> str:
            return "TF32" if on else "fp32"

        return (
            f"fp32 matrix products run in {said(self.matmul)}, convolutions in {said(self.convolution)} "
            "where the GPU has TF32 (Ampere and later)"
        )


def tf32_state() -> TF32State:
    """What torch is set to. Unless changed, products run in fp32 and convolutions in TF32 (since torch 1.12).

    torch 2.9 and later answer by `fp32_precision`, whose own setting may be inherited; older ones by `allow_tf32`.
    """
    from torch import backends

    return TF32State(
        matmul=_may(backends.cuda.matmul, "allow_tf32"),
        convolution=_may(getattr(backends.cudnn, "conv", backends.cudnn), "allow_tf32", backends.cudnn),
    )


def _may(setting: Any, old_name: str, old_home: Any = None) -> bool:
    # The old flag raises once the new one was used, and the new one does not exist before 2.9.
    try:
        return str(setting.fp32_precision) == "tf32"
    except (AttributeError, RuntimeError):
        return bool(getattr(old_home or setting, old_name))
