"""How many FLOPs other arithmetic takes per element: one table for the formulas and for what is counted in a run.

An addition, a comparison, a product, and each transcendental function are one FLOP each. The figures are conventions,
as every count of such FLOPs is: they say how much arithmetic the definition has, not how many instructions a kernel
issues.
"""

from __future__ import annotations

# Maximum, difference, exponential, sum, quotient.
SOFTMAX = 5
# Mean 1, variance 3 (difference, square, sum), normalise 2, scale and shift 2.
LAYER_NORM = 8
BATCH_NORM = 8  # as layer norm, over another axis
# Square and sum 2, normalise 1, scale 1.
RMS_NORM = 4

# FLOPs per element with scale and shift, passes for statistics when not fused, parameter vectors.
NORMS = {"layer": (LAYER_NORM, 2, 2), "rms": (RMS_NORM, 1, 1), "batch": (BATCH_NORM, 2, 2)}

# 0.5 · x · (1 + erf(x / √2)).
GELU = 5
# 1 / (1 + exp(-x)); times x for SiLU.
SIGMOID = 4
SILU = SIGMOID + 1
