"""Calls of scaled_dot_product_attention, each with one feature; half of the features exclude the fused kernel."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_PLAIN = {
    "dtype": "float32", "mask": None, "mask_requires_grad": False, "requires_grad": False, "dropout_p": 0.0,
    "is_causal": False, "last_stride": 1,
}  # fmt: skip
_FEATURES = (
    *("plain", "mask", "causal", "gradient", "wide head", "double"),
    *("dropout", "two widths", "3-d mask", "mask gradient", "strided", "broadcast"),
)
_OF_EACH = 2  # so that 24 calls are asked, and one rule that is wrong shows twice


@case_source("which_sdpa")
def calls(rng: Any) -> list[Case]:
    """Two calls for each feature, in a drawn order."""
    features = [*_FEATURES] * _OF_EACH
    return [_call(rng, features[at]) for at in rng.permutation(len(features))]


def _call(rng: Any, feature: str) -> Case:
    batch, heads, queries, keys = (int(rng.integers(low, high)) for low, high in ((2, 5), (2, 9), (3, 65), (3, 65)))
    width = int(rng.choice([264, 320, 512] if feature == "wide head" else [16, 32, 64, 128]))
    dtype = "float64" if feature == "double" else str(rng.choice(["float32", "bfloat16", "float16"]))
    shapes = {
        "query": [1 if feature == "broadcast" else batch, heads, queries, width],
        "key": [batch, heads, keys, width],
        "value": [batch, heads, keys, 2 * width if feature == "two widths" else width],
    }
    masks = [[queries, keys], [1, keys], [batch, 1, queries, keys], [batch, heads, queries, keys]]
    changes: dict[str, dict[str, Any]] = {
        "mask": {"mask": masks[int(rng.integers(len(masks)))]},
        "causal": {"is_causal": True},
        "gradient": {"requires_grad": True},
        "dropout": {"dropout_p": float(rng.choice([0.1, 0.2, 0.5]))},
        "3-d mask": {"mask": [heads, queries, keys]},
        "mask gradient": {"mask": masks[int(rng.integers(len(masks)))], "mask_requires_grad": True},
        "strided": {"last_stride": max(queries, 2)},
    }
    given = {**shapes, **_PLAIN, "dtype": dtype, **changes.get(feature, {})}
    return Case(given={"call": given}, hidden={"feature": feature})
