"""Numbers in few bits: formats, underflow, autocast, memory per parameter, and whether AMP can help.

Memory of a training step is recorded (`memory_plan`, `saved_activations`) or in closed form (`bytes_per_parameter`,
`checkpointed_peak`) here, and simulated in `virtual.memory`.

>>> from edl_labs.numerics import FP16, underflow_report
>>> FP16.round(1e-8), underflow_report([1e-8], FP16, scale=65536).normal
(0.0, 1.0)
"""

from __future__ import annotations

from edl_labs.arguments import lazy_facade

_HOMES = {
    "FloatFormat": "_float_format",
    **dict.fromkeys(("FP64", "FP32", "TF32", "BF16", "FP16", "E4M3FN", "E5M2", "E4M3FNUZ"), "_float_format"),
    **dict.fromkeys(("E5M2FNUZ", "E8M0FNU", "E2M1FN", "FORMATS", "float_format", "torch_dtype"), "_float_format"),
    **dict.fromkeys(("BlockFormat", "QuantizedBlocks", "MXFP8", "MXFP4", "NVFP4"), "block_formats"),
    **dict.fromkeys(("autocast_table", "autocast_differences", "AutocastTable", "AutocastRow"), "_autocast_table"),
    **dict.fromkeys(("Recipe", "ParameterBytes", "bytes_per_parameter", "training_state"), "_bytes_per_parameter"),
    **dict.fromkeys(("saved_activations", "SavedActivations", "SavedTensors"), "_saved_activations"),
    **dict.fromkeys(("memory_plan", "MemoryPlan", "MemoryMoment"), "_memory_plan"),
    **dict.fromkeys(("checkpointed_peak", "checkpointing_slots"), "_checkpoint_counts"),
    **dict.fromkeys(("alignment", "alignment_multiple"), "_alignment"),
    **dict.fromkeys(("Alignment", "AlignedSize"), "_alignment"),
    **dict.fromkeys(("tensor_core_kernel", "KernelKind"), "kernel_names"),
    **dict.fromkeys(("tf32_state", "TF32State"), "_rates_here"),
    **dict.fromkeys(("amp_report", "AmpReport", "training_step"), "_amp_report"),
    **dict.fromkeys(("predict_amp", "AmpPrediction"), "_predict_amp"),
    **dict.fromkeys(("Rates", "rates_here"), "_rates_here"),
    **dict.fromkeys(("training_gradients", "recorded_gradients"), "gradients"),
    **dict.fromkeys(("underflow_report", "UnderflowReport", "Fate", "log2_histogram"), "_underflow_report"),
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_facade(__name__, _HOMES)
