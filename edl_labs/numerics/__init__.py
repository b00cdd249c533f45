"""Numbers in few bits: formats, underflow, autocast, memory per parameter, and whether AMP can help.

>>> from edl_labs.numerics import FP16, underflow_report
>>> FP16.round(1e-8), underflow_report([1e-8], FP16, scale=65536).normal
(0.0, 1.0)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "FloatFormat": "format_class",
    **dict.fromkeys(("FP64", "FP32", "TF32", "BF16", "FP16", "E4M3FN", "E5M2", "E4M3FNUZ", "E5M2FNUZ"), "formats"),
    **dict.fromkeys(("E8M0FNU", "E2M1FN", "FORMATS", "float_format", "torch_dtype"), "formats"),
    **dict.fromkeys(("autocast_table", "autocast_differences", "AutocastTable", "AutocastRow"), "autocast"),
    **dict.fromkeys(("Recipe", "ParameterBytes", "bytes_per_parameter", "reconcile_amp", "training_state"), "memory"),
    **dict.fromkeys(("saved_activations", "SavedActivations", "SavedTensors", "LiveTensors"), "activations"),
    **dict.fromkeys(("checkpointed_peak", "checkpointing_slots"), "activations"),
    **dict.fromkeys(("alignment", "alignment_multiple", "alignment_table", "model_alignment"), "aligning"),
    **dict.fromkeys(("Alignment", "AlignedSize"), "aligning"),
    **dict.fromkeys(("tensor_core_kernel", "kernel_report", "KernelKind", "KernelReport"), "kernel_names"),
    **dict.fromkeys(("tf32_state", "TF32State"), "tf32_setting"),
    **dict.fromkeys(("amp_report", "AmpReport", "training_step"), "amp"),
    **dict.fromkeys(("predict_amp", "Prediction"), "prediction"),
    **dict.fromkeys(("Rates", "rates_here"), "rates"),
    **dict.fromkeys(("training_gradients", "recorded_gradients"), "gradients"),
    **dict.fromkeys(("underflow_report", "UnderflowReport", "Fate", "log2_histogram"), "underflow"),
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"edl_labs.numerics.{_HOMES[name]}"), name)
    raise AttributeError(f"edl_labs.numerics has no {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
