"""What a PyTorch function does, as a program of operators that another process can run on other inputs.

>>> import torch
>>> from edl_labs.graph.tensor_programs import play, record
>>> text = record(lambda x: {"y": x.exp().sum()}, {"x": torch.zeros(3)})
>>> played = play(text, {"x": torch.tensor([0.0, 1.0, 2.0])})
>>> round(float(played.outputs["y"]), 3), played.kernels
(11.107, 2)
"""

from __future__ import annotations

from edl_labs.graph.tensor_programs.played_program import Played, Section
from edl_labs.graph.tensor_programs.program_player import play
from edl_labs.graph.tensor_programs.program_recorder import Recorder, record
from edl_labs.graph.tensor_programs.program_text import ProgramError

__all__ = ["Played", "ProgramError", "Recorder", "Section", "play", "record"]
