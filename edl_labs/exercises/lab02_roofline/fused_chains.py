"""fused_or_not: what a chain of operations moves, as kernels of its own and as one."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab02_roofline.answer_forms import need, say, two_numbers


@exercise("fused_or_not")
class FusedOrNot:
    """Arithmetic intensity of a chain of operations, as kernels of their own and as one.

    `student.intensities(chain, size_bytes=, keep=)` gives `(unfused, fused)` FLOP per byte.
    """

    loose = True  # `two_numbers` names what is asked for

    def cases(self, rng: Any) -> list[Any]:
        m, n, k = (int(rng.integers(3, 40)) * 64 for _ in range(3))
        deck = [_multiply_and_add(512, 512, 512), _multiply_and_add(m, n, k)]
        layers = [_gelu_layer(rng, keep=False), _gelu_layer(rng, keep=True), _softmax(rng)]
        return [*deck, *layers, *(_chain(rng) for _ in range(8))]

    def probe(self, student: Any, case: Any) -> Any:
        chain = [{**step, "reads": list(step["reads"])} for step in case["chain"]]
        return student.intensities(chain, size_bytes=dict(case["size_bytes"]), keep=list(case["keep"]))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        two_numbers(got, "unfused, fused")
        same = [close(value, right, rtol=1e-6) for value, right in zip(got, want, strict=True)]
        if all(same):
            return
        if close(got[0], want[1]) and close(got[1], want[0]):
            raise Wrong("the two answers are swapped", why="unfused comes first", next="return unfused, fused")
        raise _unfused_mistake(case, got[0]) if not same[0] else _fused_mistake(case, got[1])

    def show(self, case: Any) -> str:
        steps = [f"  {s['op']}: {', '.join(s['reads'])} -> {s['writes']}  ({s['flop']} FLOP)" for s in case["chain"]]
        sizes = ", ".join(f"{name} {nbytes}" for name, nbytes in case["size_bytes"].items())
        return "\n".join([*steps, f"bytes: {sizes}", f"keep: {', '.join(case['keep'])}"])


def _moved(case: Any, got: float) -> float:
    flop = sum(step["flop"] for step in case["chain"])
    return flop / got if got else 0.0


def _unfused_mistake(case: Any, got: float) -> Wrong:
    need(got, "the unfused intensity")
    size, chain, moved = case["size_bytes"], case["chain"], _moved(case, got)
    names = {name for step in chain for name in (*step["reads"], step["writes"])}
    known = [
        (sum(size[n] for n in names), "unfused, every tensor was counted once", "a kernel reads what another wrote"),
        (
            sum(size[n] for s in chain for n in set(s["reads"])),
            "unfused, nothing was written",
            "where does a kernel leave its result?",
        ),
        (
            sum(size[n] for s in chain for n in (*s["reads"], s["writes"])),
            "a kernel read one tensor twice",
            "a kernel that needs a number twice reads it once",
        ),
    ]
    for nbytes, what, then in known:
        if close(moved, float(nbytes), rtol=1e-6):
            return Wrong(what, why="unfused, each step is a kernel of its own", next=then)
    return _intensity_mistake("unfused", got)


def _fused_mistake(case: Any, got: float) -> Wrong:
    need(got, "the fused intensity")
    size, chain, keep, moved = case["size_bytes"], case["chain"], set(case["keep"]), _moved(case, got)
    made = {step["writes"] for step in chain}
    outside = {name for step in chain for name in step["reads"]} - made
    into = sum(size[name] for name in outside)
    last = chain[-1]["writes"]
    kept = sum(size[name] for name in keep)
    known = [
        (into + sum(size[n] for n in made), "fused, an intermediate went through memory", "who needs it afterwards?"),
        (into + size[last], "a result that is kept was not written", "keep names what must be in memory at the end"),
        (into, "fused, nothing was written", "what must be in memory at the end?"),
        (into + 2 * kept - size[last], "a kept result was read back", "the fused kernel still has it at hand"),
        (
            sum(size[n] for s in chain for n in set(s["reads"]) - made) + kept,
            "an input was read for every step that uses it",
            "one kernel, one read",
        ),
    ]
    for nbytes, what, then in known:
        if close(moved, float(nbytes), rtol=1e-6):
            return Wrong(what, why="fused, there is one kernel for the whole chain", next=then)
    return _intensity_mistake("fused", got)


def _intensity_mistake(which: str, got: float) -> Wrong:
    return Wrong(
        f"the {which} intensity is wrong",
        why=f"{say(got)} FLOP/B came back",
        next="all FLOPs of the chain, over all bytes that move",
    )


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
