"""Known mistakes by some values of what each would give: a case carries the values, so that students get no rules."""

from __future__ import annotations

from typing import Any

from edl_labs.errors import Wrong

PLACES = 16  # of the output that are compared: two mistakes that agree in all of them are one
_CLOSE = 2e-3  # of the largest value: fp16 outputs round to half of that, and mistakes differ by more

_PART = (
    "Your output contains only the last part of K.",
    "your accumulator starts again in each iteration of the loop",
    "create the accumulator before the loop, and add to it: acc = tl.dot(a, b, acc, …)",
)
_WHOLE = (
    "Your kernel leaves out the ragged end of K.",
    "your output includes only the complete blocks of K",
    "round the number of iterations up, tl.cdiv(K, BK), and mask what is out of bounds",
)
_AGAIN = (
    "Your kernel adds the bias in each iteration of the loop.",
    "the output includes the bias once for each block of K",
    "add the bias once, after the loop",
)
_KEPT = "the weights of earlier tiles were computed with an earlier maximum, which was smaller"

SENTENCES: dict[str, tuple[str, str, str]] = {
    "by_columns": (
        "Your kernel reads b by columns.",
        "b is stored row by row: it has K rows of N elements",
        "compute the address of row k and column n as b_ptr + k * N + n",
    ),
    "no_bias": (
        "Your kernel leaves out the bias.",
        "your output is the epilogue of A·B, without the bias",
        "add the bias of the tile's columns before the epilogue",
    ),
    "bias_after": (
        "Your kernel adds the bias after the epilogue.",
        "expected f(A·B + bias), not f(A·B) + bias",
        "add the bias to the accumulator first, then apply the epilogue",
    ),
    **{f"last_part_{part}": _PART for part in (16, 32, 64, 128)},
    **{f"whole_parts_{part}": _WHOLE for part in (16, 32, 64, 128)},
    **{f"bias_in_each_part_{part}": _AGAIN for part in (16, 32, 64, 128)},
    "no_rescale": (
        "When the maximum grows, your kernel rescales neither the sum nor the output.",
        _KEPT,
        "multiply both by exp(old maximum - new maximum)",
    ),
    "output_not_rescaled": (
        "When the maximum grows, your kernel does not rescale the output.",
        _KEPT,
        "multiply the accumulator by exp(old maximum - new maximum) too",
    ),
    "sum_not_rescaled": (
        "When the maximum grows, your kernel does not rescale the sum.",
        _KEPT,
        "multiply the sum by exp(old maximum - new maximum) too",
    ),
    "missing_keys_count": (
        "In the last tile, your kernel counts keys that do not exist.",
        "a key that does not exist gets the score 0, so its weight is not 0",
        "give these keys the score -inf before you take the maximum",
    ),
    "last_tile_dropped": (
        "Your kernel leaves out the last tile of keys.",
        "your output includes only the complete tiles",
        "round the number of iterations up, tl.cdiv(keys, BN), and mask what is out of bounds",
    ),
    "behind_the_end": (
        "Your kernel counts keys beyond the end.",
        "k and v have more rows than there are keys",
        "mask with `keys`, the number that the function receives, not with k.shape[0]",
    ),
    "diagonal": (
        "Your kernel masks the diagonal.",
        "query i sees the keys 0 to i, including key i",
        "compare with columns[None, :] <= rows[:, None]",
    ),
    "later_keys": (
        "Your kernel counts keys that come after the query.",
        "a tile of keys can also contain keys that some queries must not see",
        "mask each score whose key comes after its query",
    ),
    "no_delta": (
        "In the gradient of the softmax, your kernel does not subtract delta.",
        "the weights of a row sum to 1: when one grows, the others shrink",
        "subtract the row's (o_grad * o).sum() from o_grad·vᵀ before you multiply by the weights",
    ),
    "delta_added": (
        "In the gradient of the softmax, your kernel adds delta.",
        "the gradient of a score is weight · (o_grad·v − delta)",
        "subtract delta instead of adding it",
    ),
    "gradient_not_scaled": (
        "Your kernel does not scale the gradient.",
        "scores are q·k / sqrt(d), so the gradient of q has the factor 1 / sqrt(d) too",
        "multiply the sum by d**-0.5",
    ),
    "scaled_gradient_alone": (
        "Your kernel does not scale the scores before the exponential.",
        "lse was computed from the scaled scores, q·k / sqrt(d)",
        "multiply q·kᵀ by d**-0.5, then subtract lse",
    ),
    "values_for_keys": (
        "Your kernel multiplies the gradient of the scores by v.",
        "a score is q·k, so its gradient with respect to q is k",
        "multiply the gradient of the scores by k",
    ),
    "relu": ("Your epilogue is relu.", "expected gelu", "compute x · (1 + erf(x / sqrt(2))) / 2"),
    "sigmoid": (
        "Your epilogue is x·sigmoid(1.702·x).",
        "this is only an approximation of gelu",
        "compute the exact gelu with tl.erf",
    ),
    "no_root": (
        "Your kernel computes erf(x) instead of erf(x / sqrt(2)).",
        "erf(x) belongs to a normal distribution with a different width",
        "multiply the argument of erf by 0.7071…",
    ),
    "no_scale": (
        "Your kernel does not scale the scores.",
        "scores are q·k / sqrt(d)",
        "multiply the scores by d**-0.5",
    ),
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
