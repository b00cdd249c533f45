"""How fast would my step be on that GPU? Time, memory, limiter and reasons, from the model alone, with an interval.

>>> import torch
>>> from edl_labs.predict import predict_step
>>> step = predict_step(torch.nn.Linear(1024, 1024).eval(), torch.empty(64, 1024, device="meta"), "T4", dtype="fp16")
>>> step.machine, step.limiter
('T4', 'launch')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edl_labs.arguments import lazy_facade

if TYPE_CHECKING:
    from edl_labs.predict.calibration import calibrate
    from edl_labs.predict.efficiencies import Efficiencies
    from edl_labs.predict.forecast import ExpensiveOperator, Prediction
    from edl_labs.predict.launch_prediction import LaunchPrediction, predict_launch
    from edl_labs.predict.machine_card import MachineCard
    from edl_labs.predict.machine_comparison import MachineComparison, compare_machines
    from edl_labs.predict.many_gpus import ParallelLayout
    from edl_labs.predict.step_predictor import predict_step

_HOMES = {
    "ExpensiveOperator": "forecast",
    "Efficiencies": "efficiencies",
    "LaunchPrediction": "launch_prediction",
    "MachineCard": "machine_card",
    "MachineComparison": "machine_comparison",
    "Prediction": "forecast",
    "ParallelLayout": "many_gpus",
    "calibrate": "calibration",
    "compare_machines": "machine_comparison",
    "predict_launch": "launch_prediction",
    "predict_step": "step_predictor",
}
__all__ = [
    "Efficiencies",
    "ExpensiveOperator",
    "LaunchPrediction",
    "MachineCard",
    "MachineComparison",
    "ParallelLayout",
    "Prediction",
    "calibrate",
    "compare_machines",
    "predict_launch",
    "predict_step",
]
__getattr__, __dir__ = lazy_facade(__name__, _HOMES)
