"""The exercises of lab11_tiles: kernels for a vector, rows, a matrix product and attention."""

from __future__ import annotations

from edl_labs.exercises.lab11_tiles.attention_kernels import Attention, Causal
from edl_labs.exercises.lab11_tiles.backward_kernels import AttentionBackward
from edl_labs.exercises.lab11_tiles.column_kernels import ColumnSums
from edl_labs.exercises.lab11_tiles.first_kernels import ScaleShiftRelu
from edl_labs.exercises.lab11_tiles.product_kernels import GeluProduct, TiledProduct
from edl_labs.exercises.lab11_tiles.sdpa_choice import WhichSdpa
from edl_labs.exercises.lab11_tiles.softmax_kernels import LongRows, RowSoftmax
from edl_labs.exercises.lab11_tiles.tile_orders import TileOrder

EXERCISES = (
    *(ScaleShiftRelu, RowSoftmax, TiledProduct, Attention),
    *(LongRows, Causal, AttentionBackward, GeluProduct, ColumnSums, TileOrder, WhichSdpa),
)
