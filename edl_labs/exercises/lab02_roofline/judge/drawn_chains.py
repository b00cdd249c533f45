"""The cases of fused_or_not: chains of operations."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("fused_or_not")
def chains(rng: Any) -> list[Case]:
    m, n, k = (int(rng.integers(3, 40)) * 64 for _ in range(3))
    deck = [_multiply_and_add(512, 512, 512), _multiply_and_add(m, n, k)]
    layers = [_gelu_layer(rng, keep=False), _gelu_layer(rng, keep=True), _softmax(rng)]
    return [Case(given=one) for one in [*deck, *layers, *(_chain(rng) for _ in range(8))]]


def _multiply_and_add(m: int, n: int, k: int) -> dict[str, Any]:
    """Deck [004]: C = C + A B; the product's M N (2 K - 1) operations and M N additions are 2 M N K."""
    shapes = {"A": m * k, "B": k * n, "AB": m * n, "C": m * n, "C new": m * n}
    return {
        "chain": [
            {"op": "multiply", "reads": ["A", "B"], "writes": "AB", "flop": m * n * (2 * k - 1)},
            {"op": "add", "reads": ["AB", "C"], "writes": "C new", "flop": m * n},
        ],
        "size_bytes": {name: 4 * count for name, count in shapes.items()},
        "keep": ["C new"],
    }


def _gelu_layer(rng: Any, *, keep: bool) -> dict[str, Any]:
    rows, into, out = (int(rng.integers(2, 60)) * 32 for _ in range(3))
    shapes = {"x": rows * into, "W": into * out, "xW": rows * out, "b": out, "z": rows * out, "gelu": rows * out}
    return {
        "chain": [
            {"op": "multiply", "reads": ["x", "W"], "writes": "xW", "flop": 2 * rows * into * out},
            {"op": "bias", "reads": ["xW", "b"], "writes": "z", "flop": rows * out},
            {"op": "gelu", "reads": ["z"], "writes": "gelu", "flop": 8 * rows * out},
        ],
        "size_bytes": {name: 2 * count for name, count in shapes.items()},
        "keep": ["z", "gelu"] if keep else ["gelu"],
    }


def _softmax(rng: Any) -> dict[str, Any]:
    """Four steps that use the input twice, beside intermediates of another size."""
    rows, features = int(rng.integers(50, 4000)), int(rng.integers(50, 4000))
    count = rows * features
    size = {"x": 2 * count, "max": 2 * rows, "e": 4 * count, "sum": 4 * rows, "y": 2 * count}
    return {
        "chain": [
            {"op": "maximum", "reads": ["x"], "writes": "max", "flop": count},
            {"op": "exp of difference", "reads": ["x", "max"], "writes": "e", "flop": 2 * count},
            {"op": "sum", "reads": ["e"], "writes": "sum", "flop": count},
            {"op": "divide", "reads": ["e", "sum"], "writes": "y", "flop": count},
        ],
        "size_bytes": size,
        "keep": ["y"],
    }


def _chain(rng: Any) -> dict[str, Any]:
    """Elementwise steps on tensors of several sizes: x is used twice, the square reads one tensor as both operands."""
    rows, features = int(rng.integers(50, 4000)), int(rng.integers(50, 4000))
    each = int(rng.choice([2, 4]))
    size = {"x": rows * features * each, "w": features * each, "square": rows * features * each}
    steps: list[dict[str, Any]] = [{"op": "square", "reads": ["x", "x"], "writes": "square", "flop": rows * features}]
    for number in range(1, int(rng.integers(3, 6))):
        other = str(rng.choice(["x", "w", f"mask {number}"]))
        name = f"t{number}"
        size[name] = rows * features * each
        size.setdefault(other, rows * features)
        flop = rows * features * int(rng.integers(1, 5))
        steps.append({"op": f"step {number}", "reads": [steps[-1]["writes"], other], "writes": name, "flop": flop})
    name, before = "y", steps[-1]["writes"]
    size[name] = rows * features * each
    steps.append({"op": "residual", "reads": [before, "x"], "writes": name, "flop": rows * features})
    kept = [step["writes"] for step in steps[:-1] if rng.random() < 0.35]
    used = {name for step in steps for name in (*step["reads"], step["writes"])}
    return {
        "chain": steps,
        "size_bytes": {name: nbytes for name, nbytes in size.items() if name in used},
        "keep": [*kept, "y"],
    }
