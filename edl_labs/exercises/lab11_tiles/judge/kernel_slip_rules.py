"""What known mistakes give, in float64: a second, wrong way to each result, which only the judge has."""

from __future__ import annotations

from typing import Any

from edl_labs.exercises.lab11_tiles.kernel_slips import sampled
from edl_labs.exercises.lab11_tiles.product_kernels import erf

_PARTS = (16, 32, 64, 128)  # BK that a student may choose


def product_slips(exercise: Any, case: Any) -> dict[str, list[float]]:
    """Mistakes of a product in tiles, where they give something else than the product."""
    import numpy as np

    values = {name: value.astype(np.float64) for name, value in exercise.values(case).items()}
    a, b, bias = values["a"], values["b"], values["bias"]
    found = {
        "by_columns": exercise.epilogue(a @ b.reshape(b.shape[::-1]).T + bias),
        "no_bias": exercise.epilogue(a @ b),
        "bias_after": exercise.epilogue(a @ b) + bias,
    }
    if exercise.host == "gelu_product":
        found |= _gelu_slips(a @ b + bias)
    for part in _PARTS:
        first = (case["K"] - 1) // part * part
        if first:
            found[f"last_part_{part}"] = exercise.epilogue(a[:, first:] @ b[first:] + bias)
            found[f"bias_in_each_part_{part}"] = exercise.epilogue(a @ b + bias * -(-case["K"] // part))
        whole = case["K"] // part * part
        if 0 < whole < case["K"]:
            found[f"whole_parts_{part}"] = exercise.epilogue(a[:, :whole] @ b[:whole] + bias)
    return {name: sampled(value) for name, value in found.items()}


def _gelu_slips(x: Any) -> dict[str, Any]:
    """Other functions than the exact gelu."""
    import numpy as np

    sigmoid = 1 / (1 + np.exp(-1.702 * x))
    return {"relu": np.maximum(x, 0.0), "sigmoid": x * sigmoid, "no_root": 0.5 * x * (1 + erf(x))}


def attention_slips(exercise: Any, case: Any) -> dict[str, list[float]]:
    """Mistakes of attention in one pass, where they give something else than attention."""
    import numpy as np

    if not exercise.seen(case).any():
        return {}
    right = exercise.truth(case, exercise.values(case))[0]
    ways: dict[str, dict[str, Any]] = {
        "no_rescale": {"sum_shrinks": False, "output_shrinks": False},
        "output_not_rescaled": {"output_shrinks": False},
        "sum_not_rescaled": {"sum_shrinks": False},
        "missing_keys_count": {"masks": False},
        "no_scale": {"scale": 1.0},
    }
    found = {name: _streamed(exercise, case, **way) for name, way in ways.items()}
    found |= {name: _attended(exercise, case, seen) for name, seen in _wrongly_seen(exercise, case).items()}
    near = 0.01 * np.abs(right).max()
    return {name: sampled(out) for name, out in found.items() if not np.abs(out - right).max() <= near}


def backward_slips(exercise: Any, case: Any) -> dict[str, list[float]]:
    """Mistakes of the gradient of the queries, where they give something else than the gradient."""
    import numpy as np

    values = {name: value.astype(np.float64) for name, value in exercise.values(case).items()}
    right = exercise.truth(case, values)[0]
    scale, products = case["d"] ** -0.5, values["q"] @ values["k"].T
    lse, inner = values["lse"][:, None], values["o_grad"] @ values["v"].T
    delta = (values["o_grad"] * values["o"]).sum(axis=1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        weights, unscaled = np.exp(products * scale - lse), np.exp(products - lse)
        found = {
            "no_delta": (weights * inner) @ values["k"] * scale,
            "delta_added": (weights * (inner + delta)) @ values["k"] * scale,
            "gradient_not_scaled": right / scale,
            "scaled_gradient_alone": (unscaled * (inner - delta)) @ values["k"] * scale,
            "values_for_keys": (weights * (inner - delta)) @ values["v"] * scale,
        }
    near = 0.01 * np.abs(right).max()
    return {name: sampled(out) for name, out in found.items() if not np.abs(out - right).max() <= near}


def _streamed(
    exercise: Any,
    case: Any,
    *,
    scale: float | None = None,
    sum_shrinks: bool = True,
    output_shrinks: bool = True,
    masks: bool = True,
) -> Any:
    """Attention tile by tile, with a step left out. Without masks, keys that are not there have the score 0."""
    import numpy as np

    seen, width = exercise.seen(case), case["BN"]
    keys = int(seen.any(axis=0).sum())
    q, k, v = (value.astype(np.float64) for value in exercise.values(case).values())
    k, v, seen = (_padded(one, keys, width) for one in (k, v, seen.T))
    top, total, out = np.full((len(q), 1), -np.inf), np.zeros((len(q), 1)), np.zeros((len(q), v.shape[1]))
    with np.errstate(all="ignore"):
        for first in range(0, len(k), width):
            scores = q @ k[first : first + width].T * (scale or case["d"] ** -0.5)
            if masks:
                scores = np.where(seen[first : first + width].T, scores, -np.inf)
            new = np.maximum(top, scores.max(axis=1, keepdims=True))
            shrink, weights, top = np.exp(top - new), np.exp(scores - new), new
            total = total * (shrink if sum_shrinks else 1) + weights.sum(axis=1, keepdims=True)
            out = out * (shrink if output_shrinks else 1) + weights @ v[first : first + width]
    return out / total


def _wrongly_seen(exercise: Any, case: Any) -> dict[str, Any]:
    """Other keys than those that a query sees."""
    import numpy as np

    queries, keys = exercise.seen(case).shape
    if exercise.host == "attention":
        tiles = np.arange(keys) < case["keys"] // case["BN"] * case["BN"]
        dropped = {"last_tile_dropped": np.broadcast_to(tiles, (queries, keys))} if tiles.any() else {}
        return {"behind_the_end": np.ones((queries, keys), dtype=bool), **dropped}
    ends = np.minimum((np.arange(queries) // case["BM"] + 1) * case["BM"], keys)
    read = -(-ends // case["BN"]) * case["BN"]
    return {"diagonal": np.tri(queries, k=-1, dtype=bool), "later_keys": np.arange(keys) < read[:, None]}


def _attended(exercise: Any, case: Any, seen: Any) -> Any:
    """Attention in which other keys are seen; NaN in rows that see none."""
    import numpy as np

    q, k, v = (value.astype(np.float64) for value in exercise.values(case).values())
    with np.errstate(all="ignore"):
        scores = np.where(seen, q @ k.T / np.sqrt(case["d"]), -np.inf)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return weights @ v / weights.sum(axis=1, keepdims=True)


def _padded(rows: Any, count: int, width: int) -> Any:
    """The first `count` rows, and zeros up to a multiple of `width`."""
    import numpy as np

    return np.pad(rows[:count], ((0, -count % width), (0, 0)))
