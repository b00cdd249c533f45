"""Known mistakes by some values of what each would give: a case carries the values, so that students get no rules."""

from __future__ import annotations

from typing import Any

from edl_labs.errors import Wrong

PLACES = 16  # of the output that are compared: two mistakes that agree in all of them are one
_CLOSE = 2e-3  # of the largest value: fp16 outputs round to half of that, and mistakes differ by more

_PART = (
    "The output holds only the last part of K.",
    "the accumulator begins again in each turn of the loop",
    "make the accumulator before the loop, and add to it: acc = tl.dot(a, b, acc, …)",
)
_WHOLE = (
    "The ragged end of K is left out.",
    "the output is that of the whole parts of K",
    "round the number of turns up, tl.cdiv(K, BK), and mask what is out of bounds",
)
_AGAIN = (
    "The bias is added in each turn of the loop.",
    "the output has it as many times as K has parts",
    "add it once, after the loop",
)
_KEPT = "a tile's weights are relative to the maximum when it came, and that has grown since"

SENTENCES: dict[str, tuple[str, str, str]] = {
    "by_columns": (
        "b is read by columns.",
        "b has K rows of N elements, one after the other",
        "the element in row k and column n is at b_ptr + k * N + n",
    ),
    "no_bias": (
        "The bias is missing.",
        "the output is only the product with the epilogue",
        "add the bias of the tile's columns before the epilogue",
    ),
    "bias_after": (
        "The bias is added after the epilogue.",
        "compute f(A·B + bias), not f(A·B) + bias",
        "add the bias to the accumulator first",
    ),
    **{f"last_part_{part}": _PART for part in (16, 32, 64, 128)},
    **{f"whole_parts_{part}": _WHOLE for part in (16, 32, 64, 128)},
    **{f"bias_in_each_part_{part}": _AGAIN for part in (16, 32, 64, 128)},
    "no_rescale": (
        "When the maximum grows, neither sum nor output is rescaled.",
        _KEPT,
        "multiply both by exp(old maximum - new maximum)",
    ),
    "output_not_rescaled": (
        "When the maximum grows, the output is not rescaled.",
        _KEPT,
        "multiply the accumulator by exp(old maximum - new maximum) too",
    ),
    "sum_not_rescaled": (
        "When the maximum grows, the sum is not rescaled.",
        _KEPT,
        "multiply the sum by exp(old maximum - new maximum) too",
    ),
    "missing_keys_count": (
        "In the last tile, missing keys count.",
        "their score is 0, and exp(0) is not a small weight",
        "give them the score -inf before the maximum",
    ),
    "last_tile_dropped": (
        "The last tile of keys is left out.",
        "the output is that of the whole tiles",
        "round the number of turns up, tl.cdiv(keys, BN), and mask what is out of bounds",
    ),
    "behind_the_end": (
        "Keys beyond the end count.",
        "k and v have more rows than there are keys",
        "mask with `keys`, the number that the function receives, and not with k.shape[0]",
    ),
    "diagonal": (
        "The diagonal is masked.",
        "query i sees the keys 0 to i, its own included",
        "compare with columns[None, :] <= rows[:, None]",
    ),
    "later_keys": (
        "Later keys count.",
        "a tile of keys reaches beyond some of its queries",
        "mask each score where the key comes after the query",
    ),
    "no_delta": (
        "The row's part of the softmax's gradient is missing.",
        "the weights of a row sum to 1: when one grows, the others shrink",
        "subtract (o_grad * o).sum() of the row from o_grad·vᵀ before you multiply by the weights",
    ),
    "delta_added": (
        "The row's part of the softmax's gradient is added.",
        "the gradient of a score is weight · (o_grad·v − delta)",
        "subtract delta",
    ),
    "gradient_not_scaled": (
        "The gradient is not scaled.",
        "scores are q·k / sqrt(d), so the gradient of q has the factor 1 / sqrt(d) too",
        "multiply the sum by d**-0.5",
    ),
    "scaled_gradient_alone": (
        "The scores are not scaled before the exponential.",
        "lse is that of q·k / sqrt(d)",
        "multiply q·kᵀ by d**-0.5, then subtract lse",
    ),
    "values_for_keys": (
        "The gradient of the scores meets the values.",
        "a score is q·k: its gradient by q is k",
        "multiply by k",
    ),
    "relu": ("The epilogue is relu.", "expected gelu", "x · (1 + erf(x / sqrt(2))) / 2"),
    "sigmoid": ("The epilogue is x·sigmoid(1.702·x).", "that is an approximation of gelu", "use tl.erf"),
    "no_root": ("erf takes x / sqrt(2), not x.", "erf(x) is the normal distribution of another width", "x * 0.7071…"),
    "no_scale": ("The scores are not scaled.", "scores are q·k / sqrt(d)", "multiply the scores by d**-0.5"),
}


def sampled(values: Any) -> list[Any]:
    """Some values of an output, spread evenly over it; NaN as text, which a case can hold and compare."""
    import numpy as np

    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    at = np.linspace(0, flat.size - 1, min(PLACES, flat.size)).astype(int)
    return [float(value) if np.isfinite(value) else str(value) for value in flat[at]]


def named_slip(case: Any, out: Any) -> Wrong | None:
    """The known mistake that gives these values, or None."""
    import numpy as np

    mine = np.asarray(sampled(out), dtype=np.float64)
    for name, (what, why, then) in SENTENCES.items():
        theirs = np.asarray(case.get("slips", {}).get(name, []), dtype=np.float64)
        if theirs.shape == mine.shape and _is_close(mine, theirs):
            return Wrong(what, why=why, next=then)
    return None


def _is_close(mine: Any, theirs: Any) -> bool:
    import numpy as np

    finite = np.abs(theirs[np.isfinite(theirs)])
    return bool(np.allclose(mine, theirs, rtol=0, atol=_CLOSE * finite.max(initial=0.0), equal_nan=True))
