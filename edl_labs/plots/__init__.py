"""All matplotlib of the library: each function takes values and axes, and returns the axes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Which function draws a value of which class. A result's `plot()` ends here, by `presenters.present("plot", self, …)`.
_ON_AXES: dict[str, str] = {
    "AllocatorReplay": "memory_pictures:draw_segments",
    "Attribution": "trace_pictures:draw_shares",
    "ClusterTimeline": "cluster_picture:draw_cluster",
    "Comparison": "timings:forest",
    "Count": "roofs:draw_count",
    "DecoderRanks": "data_pipelines:draw_decoders",
    "Frontier": "data_pipelines:draw_frontier",
    "Graph": "graph_picture:draw_graph",
    "Ladder": "data_pipelines:draw_ladder",
    "LoadCurve": "serving_pictures:draw_load_curve",
    "LoaderModel": "data_pipelines:draw_model",
    "Measurement": "timings:strip",
    "MemoryPlan": "memory_pictures:draw_memory_plan",
    "Partition": "graph_picture:draw_partition",
    "Prediction": "prediction_pictures:draw_prediction",
    "ServerReplay": "serving_pictures:draw_requests",
    "Sweep": "timings:sweep",
    "TapeReplay": "memory_pictures:draw_tape",
    "Timeline": "timeline_picture:draw_timeline",
    "WarpReplay": "warp_picture:draw_warp",
}
# These make a figure of their own.
_AS_FIGURE: dict[str, str] = {
    "Diagnosis": "trace_pictures:draw_diagnosis",
    "MachineComparison": "prediction_pictures:draw_machines",
}


def draw(value: Any, axes: Any = None, **options: Any) -> Any:
    """The picture of a result, on new axes unless some are given: the axes, or the figure of what takes several."""
    kind = type(value).__name__
    if kind in _AS_FIGURE:
        return _function(_AS_FIGURE[kind])(value, **options)
    if axes is None:
        from edl_labs.plots.style import subplots

        axes = subplots()[1]
    return _function(_ON_AXES[kind])(axes, value, **options)


def _function(where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(import_module(f"edl_labs.plots.{module}"), name)
