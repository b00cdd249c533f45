"""The exercises of lab02_roofline: work, ceilings, bounds, and the network as one more roof."""

from __future__ import annotations

from edl_labs.checks.exercise import exercise
from edl_labs.exercises import (
    _lab02_bounds,
    _lab02_diagnosis,
    _lab02_fusion,
    _lab02_models,
    _lab02_network,
    _lab02_work,
)


@exercise("intensity")
class Intensity(_lab02_work.Intensity):
    """FLOPs and bytes of deck [002]'s operations, from their shapes."""


@exercise("ridge_and_bound")
class RidgeAndBound(_lab02_bounds.RidgeAndBound):
    """Ridge points of a machine with several roofs, and the shortest possible time of work on it."""


@exercise("minibatch_crossover")
class MinibatchCrossover(_lab02_bounds.MinibatchCrossover):
    """The batch at which a layer becomes compute-bound, and the width below which none does."""


@exercise("fused_or_not")
class FusedOrNot(_lab02_fusion.FusedOrNot):
    """Arithmetic intensity of a chain of operations, as kernels of their own and as one."""


@exercise("count_a_model")
class CountAModel(_lab02_models.CountAModel):
    """FLOPs of a transformer block's contractions, forward and backward, from its shapes."""


@exercise("amdahl")
class Amdahl(_lab02_bounds.Amdahl):
    """The speed-up of the whole when some classes of operations become faster."""


@exercise("diagnose", uses=("intensity",))
class Diagnose(_lab02_diagnosis.Diagnose):
    """Latency, math or memory: what limits a layer on a machine."""


@exercise("network_roofline")
class NetworkRoofline(_lab02_network.NetworkRoofline):
    """Intensity against the network, and the time of a data-parallel step with and without overlap."""


@exercise("scaling_plan", uses=("network_roofline",))
class ScalingPlan(_lab02_network.ScalingPlan):
    """Strong or weak scaling, and on how many nodes."""
