"""A trained network made smaller: batch norms folded, numbers on a grid of integers, half of the weights left out.

And served over HTTP: `http_service` and `http_load`, with the extra `serve`.

>>> from edl_labs.inference import integer_grid
>>> grid = integer_grid([0.0, 1.0, 2.55])
>>> grid.zero_point, grid.integers([0.0, 2.55]).tolist()
(-128, [-128, 127])
"""

from __future__ import annotations

from edl_labs.inference.activation_histogram import ActivationHistogram
from edl_labs.inference.batch_norm_folding import fold_batch_norms
from edl_labs.inference.integer_grids import IntegerGrid, integer_grid, sqnr_db
from edl_labs.inference.rounded_network import rounded_network
from edl_labs.inference.two_of_four import TwoOfFour, pack_two_of_four, two_of_four_mask

__all__ = [
    "ActivationHistogram",
    "IntegerGrid",
    "TwoOfFour",
    "fold_batch_norms",
    "integer_grid",
    "pack_two_of_four",
    "rounded_network",
    "sqnr_db",
    "two_of_four_mask",
]
