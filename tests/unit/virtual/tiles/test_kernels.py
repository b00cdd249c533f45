"""Whole kernels: values and what is recorded."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from edl_labs.roofline import Machine, bound, count_tiles
from edl_labs.virtual.tiles import Budget, TileError, evaluate, jit, launches_of, parse_kernels, recorded_launches, tl


@jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)


PRODUCT = """
@jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, K, BK):
        inner = first + tl.arange(0, BK)
        a_mask = (rows[:, None] < M) & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (columns[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * N + columns[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    c_mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=c_mask)
"""


def run(text: str, arguments: dict[str, object], grid: tuple[int, ...] = (1,), **options: object):  # type: ignore[no-untyped-def]
    """Evaluate the kernel `f` with this body and these parameters."""
    body = "\n".join("    " + line for line in text.strip().splitlines())
    constants = {name for name, value in arguments.items() if name.isupper()}
    parameters = ", ".join(f"{one}: tl.constexpr" if one in constants else one for one in arguments)
    return evaluate(parse_kernels(f"@jit\ndef f({parameters}):\n{body}"), "f", grid, arguments, **options)  # type: ignore[arg-type]


def test_a_launch_changes_torch_tensors_and_records_bytes() -> None:
    x, y = torch.arange(1000.0), torch.zeros(1000)
    (record,) = launches_of(lambda: double[(4,)](x, y, 1000, BLOCK=256))

    assert torch.equal(2 * x, y)
    assert ({"x_ptr": 1000, "y_ptr": 0}, {"x_ptr": 0, "y_ptr": 1000}) == (record.read, record.written)
    assert (4, 8000, 125) == (record.programs, record.moved_bytes, record.tensors[0].read_sectors)


def test_ragged_product_reads_what_its_tiles_need() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-4, 5, (70, 40)).astype(np.float32), rng.integers(-4, 5, (40, 50)).astype(np.float32)
    c = np.zeros((70, 50), np.float32)
    sizes = {"M": 70, "N": 50, "K": 40, "BM": 32, "BN": 32, "BK": 16}
    record = evaluate(parse_kernels(PRODUCT), "product", (3, 2), {"a_ptr": a, "b_ptr": b, "c_ptr": c, **sizes})

    assert np.array_equal(a @ b, c)
    assert {"a_ptr": 70 * 40 * 2, "b_ptr": 40 * 50 * 3, "c_ptr": 0} == record.read
    assert ({"c_ptr": 3500}, 6 * 3 * 2 * 32 * 32 * 16) == ({"c_ptr": record.written["c_ptr"]}, record.dot_flops)


def test_an_access_outside_is_refused_before_it_happens() -> None:
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    with pytest.raises(TileError) as caught:
        run(
            "at = tl.program_id(0) * 8 + tl.arange(0, 8)\ntl.store(y + at, tl.load(x + at))",
            {"x": x, "y": y},
            grid=(2,),
        )

    said = caught.value
    assert ("read", "x", 8, 8, (1, 0, 0), 4) == (
        said.kind,
        said.tensor,
        said.element,
        said.size,
        said.program,
        said.line,
    )
    assert not y.any()


def test_an_undefined_lane_is_refused_where_it_is_stored() -> None:
    text = "at = tl.arange(0, 8)\nv = tl.load(x + at, mask=at < 5{})\ntl.store(y + at, v)"
    x, y = np.ones(5, np.float32), np.zeros(8, np.float32)
    with pytest.raises(TileError, match="stores an undefined value in `y`"):
        run(text.format(""), {"x": x, "y": y})
    run(text.format(", other=7.0"), {"x": x, "y": y})

    assert [1.0] * 5 + [7.0] * 3 == y.tolist()


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("tl.store(y + tl.arange(0, 4), tl.program_id(0))", {"programs"}),
        ("tl.store(y + tl.arange(0, 4) // 2 + 4 * tl.program_id(0), 1)", {"store"}),
        ("p = y + tl.program_id(0) * 4\nat = tl.arange(0, 4)\ntl.store(p + at, at)\ntl.store(y + 8 + at * 0 + "
         "tl.program_id(0) * 4 + at, tl.load(p + 3 - at))", {"lanes"}),
        ("tl.atomic_add(y + tl.arange(0, 4), 1)", set()),
        ("tl.store(y + tl.program_id(0) * 4 + tl.arange(0, 4), 1)", set()),
    ],
)  # fmt: skip
def test_races(text: str, kinds: set[str]) -> None:
    y = np.zeros(16, np.int32)

    assert kinds == {race.kind for race in run(text, {"y": y}, grid=(2,)).races}


def test_after_a_race_programs_have_run_in_order() -> None:
    y = np.zeros(1, np.int32)
    run("tl.store(y, tl.load(y) + 1)", {"y": y}, grid=(5,))

    assert [5] == y.tolist()


def test_loops_with_bounds_of_their_own() -> None:
    y = np.zeros(6, np.int32)
    text = "t = 0\nfor i in range(tl.program_id(0)):\n    if i % 2 == 0:\n        t += 10\n    else:\n        t += 1\n"
    run(text + "tl.store(y + tl.program_id(0), t)", {"y": y}, grid=(6,))

    assert [0, 10, 11, 21, 22, 32] == y.tolist()


def test_while_and_early_return() -> None:
    y = np.full(6, -1, np.int32)
    text = "p = tl.program_id(0)\nif p == 2:\n    return\nn = p\ns = 0\nwhile n > 1:\n    n = n // 2\n    s += 1\n"
    run(text + "tl.store(y + p, s)", {"y": y}, grid=(6,))

    assert [0, 0, -1, 1, 2, 2] == y.tolist()


def test_bfloat16_rounds_once_for_each_operation() -> None:
    x, y = torch.tensor([1.0, 3.0, 257.0]).bfloat16(), torch.zeros(4).bfloat16()
    source = "@jit\ndef f(x, y):\n    i = tl.program_id(0)\n    v = tl.load(x + i)\n    tl.store(y + i, v + v * 0.25)"
    evaluate(parse_kernels(source), "f", (3,), {"x": x, "y": y})

    assert torch.equal(x + x * 0.25, y[:3])


def test_integer_division_truncates_in_the_run_and_floors_when_known() -> None:
    y = np.zeros(2, np.int32)
    run("tl.store(y, n // 2)\ntl.store(y + 1, N // 2)", {"y": y, "n": -3, "N": -3})

    assert [-1, -2] == y.tolist()


def test_a_kernel_without_an_end_stops() -> None:
    with pytest.raises(TileError, match="did not finish in time"):
        run("i = 0\nwhile i >= 0:\n    i = i * 1", {"y": np.zeros(1, np.int32)}, budget=Budget(operations=1000))


@pytest.mark.timeout(60)  # without the budget they run for minutes, or for ever
@pytest.mark.parametrize(
    "text",
    [
        "for i in range(2000000000):\n    tl.store(y, i)",
        "for i in range(2000000000):\n    tl.atomic_add(y, 1)",
        "v = tl.zeros((1024, 1024), tl.float32)\nfor i in range(100000):\n    v = tl.erf(v)\ntl.store(y, tl.sum(v))",
        "v = tl.zeros((1024, 1024), tl.float32)\nfor i in range(100000):\n    w = tl.sum(v)\ntl.store(y, tl.sum(v))",
        "for a in tl.static_range(1000):\n    for b in tl.static_range(999):\n        for c in tl.static_range(999):\n"
        "            pass",
    ],
)
def test_costly_kernels_stop_within_the_budget(text: str) -> None:
    with pytest.raises(TileError) as caught:
        run(text, {"y": np.zeros(1, np.int32)})

    assert "budget" == caught.value.kind


def test_calling_a_kernel_is_refused() -> None:
    with pytest.raises(TileError, match="cannot be called"):
        double(1, 2, 3)


def test_host_code_can_be_recorded_instead() -> None:
    seen = []
    with recorded_launches(lambda kernel, grid, args, named: seen.append((kernel.__name__, grid, args, named))):
        double[(2,)]("x", "y", 8, BLOCK=4)

    assert [("double", (2,), ("x", "y", 8), {"BLOCK": 4})] == seen


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("for i in range(3):\n    break", "break is not part"),
        ("s = 4\nb = tl.arange(0, s)", "run-time value"),
        ("b = tl.arange(0, 12)", "not a power of two"),
        ("v = tl.exp(tl.load(h))", "computes in float32"),
        ("if tl.program_id(0) > 0:\n    v = 1\ntl.store(y, v)", "`v` is not defined"),
        ("v = 0\nfor i in range(3):\n    v = v + 0.5", "changes the type of `v`"),
        ("v = tl.tanh(1.0)", "no tl.tanh"),
        ("tl.store(n, 1)", "without a pointer"),
        ("v = 2 ** 10 ** 9", "64 bits"),
        ("v = 'a' * 1000", "text"),
        ("v = f'{n}'", "An f-string"),
        ("v = [i for i in (1, 2)]", "A comprehension"),
        ("tl = 3", "reserved"),
        ("v = n.__class__", "no `.__class__`"),
        ("v = tl.zeros((1024, 2048), tl.float32)", "at most 1,048,576 elements"),
        ("v = f(y, n, h)", "calls itself"),
        ("tl.static_assert(1 == 2)", "static_assert failed."),
        ("del n", "del is not part"),
        ("p = n.to(tl.pointer_type(tl.int32))", "no tl.pointer_type"),
        ("tl.store(y, y.to(tl.int64))", "A pointer is not a number"),
        ("print(n)", "`print` is not defined"),
        ("getattr(tl, 'store')(y, 1)", "`getattr` is not defined"),
        ("tl.store = 3", "Assigning to part"),
    ],
)
def test_what_is_refused_has_a_line_and_an_alternative(text: str, sentence: str) -> None:
    with pytest.raises(TileError, match=sentence.replace("(", r"\(").replace("*", r"\*")) as caught:
        run(text, {"y": np.zeros(4, np.int32), "n": 3, "h": np.zeros(1, np.float16)})

    assert caught.value.line > 1
    assert caught.value.next


@pytest.mark.parametrize("source", ["(" * 5000, "-" * 50_000 + "1", "x" * 70_000, "@jit\ndef f(x): pass\x00", "def"])
def test_sources_that_cannot_be_parsed(source: str) -> None:
    with pytest.raises(TileError):
        parse_kernels(source)


def test_a_launch_is_work_for_the_roofline() -> None:
    x, y = torch.arange(1000.0), torch.zeros(1000)
    (record,) = launches_of(lambda: double[(4,)](x, y, 1000, BLOCK=256))
    both = count_tiles(record, record)

    assert (0, 2 * 1024, 16_000, "fp32") == (both.contraction_flops, both.other_flops, both.moved_bytes, both.dtype)
    assert "memory" == bound(Machine.simple("GPU", peak_flop_per_s=1e12, bandwidth_byte_per_s=1e11), both).limiter


@pytest.mark.parametrize(("kinds", "dtype"), [(("float16", "float32"), "fp16"), (("float32", "float16"), "fp32")])
def test_the_dtype_of_a_launch_is_that_of_its_products_factors(kinds: tuple[str, str], dtype: str) -> None:
    text = "n = tl.arange(0, 16)\nat = n[:, None] * 16 + n[None, :]\nx = tl.load(a + at)"
    body = (text + "\ntl.store(y + at, tl.dot(x, x))").replace("\n", "\n    ")
    arrays = dict(zip("ay", (np.zeros((16, 16), kind) for kind in kinds), strict=True))

    assert dtype == evaluate(parse_kernels(f"@jit\ndef f(a, y):\n    {body}"), "f", (1,), arrays).dtype


def test_a_parameter_that_is_not_passed_has_its_default() -> None:
    y = np.zeros(1, np.int32)
    evaluate(parse_kernels("@jit\ndef f(y, n=3, N: tl.constexpr = 4):\n    tl.store(y, n + N)"), "f", (1,), {"y": y})

    assert [7] == y.tolist()


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("@jit\ndef f(y, n=__import__('os').getpid()):\n    tl.store(y, n)", "`__import__` is not defined"),
        ("@jit\n@open('x')\ndef f(y):\n    tl.store(y, 1)", "decorator"),
        ("@jit\ndef f(y, tl):\n    tl.store(y, 1)", "reserved"),
        ("@jit\ndef f(*y):\n    tl.store(y[0], 1)", r"\*args"),
        ("class A:\n    @jit\n    def f(y):\n        tl.store(y, 1)", "no kernel"),
        (
            "@jit\ndef g0(n):\n    return n\n"
            + "".join(f"@jit\ndef g{i}(n):\n    return g{i - 1}(n) + g{i - 1}(n)\n" for i in range(1, 40))
            + "@jit\ndef f(y):\n    tl.store(y, g39(1))",
            "deep",
        ),
    ],
)
def test_hostile_sources_get_a_sentence_and_nothing_runs(source: str, sentence: str) -> None:
    with pytest.raises(TileError, match=sentence):
        evaluate(
            parse_kernels(source), "f", (1,), {"y": np.zeros(1, np.int32)} | ({"tl": 1} if ", tl)" in source else {})
        )


def test_names_are_normalised_as_python_does() -> None:
    y = np.zeros(1, np.int32)
    evaluate(parse_kernels("@jit\ndef f(y):\n    \ufb01 = 3\n    \uff54l.store(y, fi)"), "f", (1,), {"y": y})

    assert [3] == y.tolist()
