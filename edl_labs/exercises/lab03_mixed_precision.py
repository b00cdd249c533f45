"""The exercises of lab03_mixed_precision: formats, sums, autocast, loss scaling, memory and alignment."""

from __future__ import annotations

from edl_labs.checks.exercise import exercise
from edl_labs.exercises import (
    _lab03_autocast,
    _lab03_budget,
    _lab03_formats,
    _lab03_limits,
    _lab03_loops,
    _lab03_scaler,
    _lab03_shapes,
    _lab03_sums,
    _lab03_training,
)


@exercise("encode_decode", digits=17)
class EncodeDecode(_lab03_formats.EncodeDecode):
    """Codes to numbers and numbers to codes, in any format of sign, exponent and mantissa."""


@exercise("where_it_breaks", uses=("encode_decode",), digits=17)
class WhereItBreaks(_lab03_limits.WhereItBreaks):
    """The last number that flushes, the largest, the first that overflows, the first whole number that is rounded."""


@exercise("accumulate_sum")
class AccumulateSum(_lab03_sums.AccumulateSum):
    """A sum that stays right although every intermediate result is rounded to a short format."""


@exercise("autocast_dtype")
class AutocastDtype(_lab03_autocast.AutocastDtype):
    """In which dtype an operator's result comes out of autocast, on CPU and on CUDA."""


@exercise("static_scale", uses=("where_it_breaks",), digits=17)
class StaticScale(_lab03_limits.StaticScale):
    """The smallest loss scale that saves 99 % of a histogram of gradients, or a refusal."""


@exercise("dynamic_scale")
class DynamicScale(_lab03_scaler.DynamicScale):
    """A loss scaler that backs off at once, grows after clean steps, skips bad ones and unscales once."""


@exercise("bug_hunt")
class BugHunt(_lab03_loops.BugHunt):
    """Five training loops with one fault each, mended."""


@exercise("train_it", uses=("dynamic_scale",), trusting=True, trains=True)
class TrainIt(_lab03_training.TrainIt):
    """A network whose gradients pass through fp16, trained to fp32's loss with the student's own scaler."""


@exercise("bytes_per_parameter")
class BytesPerParameter(_lab03_budget.BytesPerParameter):
    """Bytes that a parameter costs on each GPU, resident and at the peak, for drawn recipes."""


@exercise("aligned_shapes")
class AlignedShapes(_lab03_shapes.AlignedShapes):
    """How well a matrix product is aligned, and the padding that makes it fastest."""
