"""The cases of fold_batch_norm: batch norms behind convolutions of every kind, in front of them, and in between."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("fold_batch_norm")
def chains(rng: Any) -> list[Case]:
    def conv(inputs: int, outputs: int, **own: Any) -> dict[str, Any]:
        size, stride = int(rng.integers(1, 3)) + 1, int(rng.integers(1, 3))
        usual = {"kind": "conv", "size": size, "stride": stride, "padding": 1, "groups": 1, "has_bias": True}
        return {**usual, "inputs": inputs, "outputs": outputs, **own}

    def norm(channels: int) -> dict[str, Any]:
        return {"kind": "batch_norm", "channels": channels, "eps": float(rng.choice([1e-2, 3e-3, 1e-3]))}

    def case(*layers: Any) -> dict[str, Any]:
        return {"seed": int(rng.integers(1, 10**6)), "layers": list(layers)}

    relu, half = {"kind": "relu"}, int(rng.integers(2, 4))
    a, b = 2 * half, int(rng.integers(2, 6))
    grouped = {"groups": 2}
    cases = [
        case(conv(3, b), norm(b), relu),
        case(conv(b, a, has_bias=False), norm(a), relu, conv(a, 2 * a, **grouped), norm(2 * a)),
        case(conv(a, a, kind="transposed"), norm(a), relu),
        case(norm(a), conv(a, 4, padding=0, **grouped), relu),
        case(norm(b), conv(b, a, padding=1, size=3), relu, conv(a, 2, padding=0, has_bias=False)),
        case(conv(a, a, kind="transposed", has_bias=False, **grouped), norm(a), relu, conv(a, a, groups=a), norm(a)),
        case(conv(2, a), relu, norm(a), conv(a, b, padding=0, size=1, has_bias=False), norm(b)),
        case(norm(3), conv(3, b, kind="transposed", padding=0, size=3), norm(b), norm(b), relu),
        case(norm(b), relu, conv(b, a, padding=0)),
        case(norm(b), norm(b), conv(b, a, padding=0), relu),
    ]
    return [Case(given=one, hidden={"check_seed": int(rng.integers(1, 10**6))}) for one in cases]
