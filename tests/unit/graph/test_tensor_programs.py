"""Recorded programs: played on other inputs they give what the function gives, and hostile ones give a sentence."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from edl_labs.errors import EdlError
from edl_labs.graph.tensor_programs import ProgramError, Recorder, play, record

Tensors = dict[str, torch.Tensor]


def _inputs(seed: int) -> Tensors:
    drawn = torch.Generator().manual_seed(seed)
    return {
        "x": torch.randn(6, 8, generator=drawn),
        "w": torch.randn(8, 8, generator=drawn),
        "at": torch.randint(6, (5,), generator=drawn),
    }


def _trained(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor) -> Tensors:
    weight = w.clone().requires_grad_()
    functional.cross_entropy(functional.layer_norm(x @ weight, (8,))[at], at).backward()
    assert weight.grad is not None
    return {"y": weight.grad}


def _attended(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor) -> Tensors:
    rows = (x @ w).view(1, 2, 6, 4)
    rows.requires_grad_()
    functional.scaled_dot_product_attention(rows, rows, rows, is_causal=True).sum().backward()
    assert rows.grad is not None
    return {"y": rows.grad}


def _in_place(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor) -> Tensors:
    out = torch.empty(6, 8)
    torch.mul(x, 2, out=out)
    view = out.t()[2:4]
    view += w[:2, :6]
    out[at] = 0
    return {"y": out, "view": view}


def _stepped(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor) -> Tensors:
    layer = torch.nn.Parameter(w)
    optimizer = torch.optim.AdamW([layer], 0.1, fused=True)
    for _ in range(2):
        optimizer.zero_grad()
        functional.gelu(x @ layer).square().mean().backward()
        optimizer.step()
    return {"y": layer.detach()}


@pytest.mark.parametrize("function", [_trained, _attended, _in_place, _stepped])
def test_a_program_gives_what_the_function_gives_on_other_inputs(function: Callable[..., Tensors]) -> None:
    text = record(function, _inputs(0))

    played = play(text, _inputs(1))

    for name, wanted in function(**_inputs(1)).items():
        assert torch.equal(played.outputs[name], wanted), name
    assert not played.has_changed_reads


def test_kernels_bytes_and_flops_are_counted_by_hand() -> None:
    text = record(lambda x, w: {"y": (x @ w).relu().t()}, {"x": torch.ones(4, 8), "w": torch.ones(8, 2)})

    played = play(text, {"x": torch.ones(4, 8), "w": torch.ones(8, 2)})

    assert played.sections[0].operators == {"mm": 1, "relu": 1}
    assert played.contraction_flops == 2 * 4 * 8 * 2
    assert played.moved_bytes == 4 * ((4 * 8 + 8 * 2 + 4 * 2) + (4 * 2 + 4 * 2))
    assert played.peak_live_bytes == 4 * (4 * 2 + 4 * 2)


def test_memory_counts_until_the_recording_let_go_of_it() -> None:
    def kept(x: torch.Tensor) -> Tensors:
        parts = [x + number for number in range(10)]
        return {"y": sum((part.sum() for part in parts), torch.zeros(()))}

    def freed(x: torch.Tensor) -> Tensors:
        return {"y": sum(((x + number).sum() for number in range(10)), torch.zeros(()))}

    x = {"x": torch.ones(1000)}

    assert play(record(kept, x), x).peak_live_bytes >= 40_000
    assert play(record(freed, x), x).peak_live_bytes < 9_000


def test_reads_by_the_host_count_where_they_follow_from_inputs() -> None:
    def reads(x: torch.Tensor) -> Tensors:
        steps = torch.zeros(())
        steps += 1
        return {"y": x * x.max().item() * steps.item() + len(x.tolist())}

    played = play(record(reads, {"x": torch.tensor([1.0, 2.0])}), {"x": torch.tensor([3.0, 5.0])})

    assert played.host_reads == 2
    assert played.has_changed_reads
    assert played.outputs["y"].tolist() == [3 * 2 + 2, 5 * 2 + 2]


def test_what_waits_for_values_or_shows_them_is_a_read_by_the_host() -> None:
    def reads(x: torch.Tensor) -> Tensors:
        repr(x)
        return {"y": x[x > 3].sum() + x.nonzero().sum()}

    assert play(record(reads, {"x": torch.ones(2)}), {"x": torch.ones(2)}).host_reads == 3


COMPARED: dict[str, Callable[[torch.Tensor], object]] = {
    "equal": lambda x: torch.equal(x, x.clone()),
    "equal of other shapes": lambda x: not torch.equal(x, x[None]),
    "unequal": lambda x: not torch.equal(x, x + 1),
    "allclose": lambda x: torch.allclose(x, x + 1e-9),
    "allclose of broadcast shapes": lambda x: torch.allclose(x, x[None], rtol=1e-3, atol=0, equal_nan=True),
    "far": lambda x: not torch.allclose(x, x + 1),
    "not a number": lambda x: not torch.allclose(x / 0 * 0, x / 0 * 0) and not torch.equal(x / 0 * 0, x / 0),
    "by torch.testing": lambda x: torch.testing.assert_close(x, x.clone()) is None,
}


@pytest.mark.parametrize("kind", COMPARED)
def test_a_comparison_of_tensors_is_a_read_by_the_host(kind: str) -> None:
    def function(x: torch.Tensor) -> Tensors:
        assert COMPARED[kind](x)
        return {"y": x.exp()}

    x = {"x": torch.ones(2)}
    played = play(record(function, x), {"x": torch.zeros(2)})

    assert (1 if kind not in ("equal of other shapes", "not a number") else played.host_reads) == played.host_reads
    assert [1.0, 1.0] == played.outputs["y"].tolist()


def test_a_refusal_says_what_is_true_of_the_operator() -> None:
    x = {"x": torch.ones(3)}

    for function, why in (
        (lambda x: {"y": torch.rand(3)}, "draws random numbers"),
        (lambda x: {"y": functional.dropout(x)}, "draws random numbers"),
        (lambda x: {"y": x.histc(4)}, "is not among the operators"),
        (lambda x: {"y": torch.ops.prims.sin(x)}, "comes from 'prims'"),
    ):
        with pytest.raises(ProgramError) as caught:
            record(function, x)

        assert why in (caught.value.why or "")


def test_every_product_counts() -> None:
    def products(x: torch.Tensor, w: torch.Tensor) -> Tensors:
        zeros = torch.zeros(4, 2)
        return {"y": torch.addbmm(zeros, x[None], w[None]) + torch.mv(w.t(), x[0]) + x[0].dot(x[1])}

    inputs = {"x": torch.ones(4, 8), "w": torch.ones(8, 2)}

    assert play(record(products, inputs), inputs).contraction_flops == 2 * (4 * 8 * 2 + 8 * 2 + 8)


@pytest.mark.parametrize(
    ("convert", "count"),
    [
        (lambda x: x.double(), 1),
        (lambda x: torch.zeros(3, dtype=torch.float64).add_(x), 1),
        (lambda x: torch.empty(3, dtype=torch.float64).copy_(x), 1),
        (lambda x: x[None].sum(0, dtype=torch.float64), 1),
        (lambda x: x * torch.tensor(2.0, dtype=torch.float64), 0),
        (lambda x: x.exp(), 0),
    ],
)
def test_a_kernel_that_writes_another_dtype_converts(convert: Callable[..., torch.Tensor], count: int) -> None:
    x = {"x": torch.ones(3)}

    assert play(record(lambda x: {"y": convert(x)}, x), x).sections[0].conversions == count


def test_what_no_output_follows_from_is_dead_unless_the_host_reads_it() -> None:
    def function(x: torch.Tensor) -> Tensors:
        out = torch.zeros(3)
        x.sin()
        x.cos().sum().item()
        out += x.exp()
        return {"y": out.view(1, 3), "z": x.tan()}

    x = {"x": torch.ones(3)}
    played = play(record(function, x), x)

    assert [played.trace[at].name for at in sorted(played.dead(["y"]))] == ["sin", "tan"]
    unread = played.dead(["y"], reads_are_uses=False)
    assert [played.trace[at].name for at in sorted(unread)] == ["sin", "cos", "sum", "_local_scalar_dense", "tan"]


def test_memory_is_filled_where_constants_are_written_into_all_of_it() -> None:
    def function(x: torch.Tensor, **others: torch.Tensor) -> Tensors:
        made = x * 2
        made[0].zero_()
        made.zero_()
        made.fill_(x.sum())
        return {"y": made + torch.zeros_like(x)}

    played = play(record(function, _inputs(0)), _inputs(1))

    assert [(one.name, bool(one.fills)) for one in played.trace] == [
        *(("mul", False), ("zero", False), ("zero", True), ("sum", False), ("fill", False)),
        *(("zeros_like", True), ("add", False)),
    ]


def test_sections_are_counted_apart() -> None:
    x = {"x": torch.ones(3)}
    recorder = Recorder(x)
    with recorder.recording():
        x["x"].exp()
        recorder.section("second")
        y = x["x"].exp().sum()

    sections = play(recorder.text({"y": y}), x).sections

    assert [(one.name, one.operators.total()) for one in sections] == [("", 1), ("second", 2)]


def test_what_has_no_place_in_a_program_is_refused_when_it_is_recorded() -> None:
    x, outside = {"x": torch.ones(3)}, torch.ones(5000)

    for function, why in (
        (lambda x: {"y": x * torch.rand(3)}, "rand"),
        (lambda x: {"y": outside * 2}, "from outside"),
        (lambda x: {"y": x.sum().item()}, "not a tensor"),
        (lambda x: {"y": functional.dropout(x)}, "cannot be replayed"),
    ):
        with pytest.raises(ProgramError, match=why):
            record(function, x)


def _program(*steps: list[Any], outputs: dict[str, int] | None = None) -> str:
    inputs = [["x", "float32", [4]], ["at", "int64", [4]]]
    return json.dumps({"inputs": inputs, "constants": [], "steps": steps, "outputs": outputs or {}})


X, AT = {"tensor": 0}, {"tensor": 1}
HOSTILE = {
    "unknown operator": ["rand.default", [[3]], {}, [2], None],
    "another library": ["_reshape_alias.default", [X, [400], [1]], {}, [2], None],
    "memory of others": ["as_strided.default", [X, [400], [1], 0], {}, [2], None],
    "huge factory": ["zeros.default", [[10**6, 10**6]], {}, [2], None],
    "huge product of views": ["mul.Tensor", [{"tensor": 8}, {"tensor": 8}], {}, [2], None],
    "index out of range": ["index_select.default", [X, 0, AT], {}, [2], None],
    "target out of range": ["nll_loss_backward.default", [X, X, AT, None, 1, -100, X], {}, [2], None],
    "statistics of other rows": [
        "native_layer_norm_backward.default",
        [X, X, [1], X, {"tensor": 9}, None, None, [True, False, False]],
        {},
        [2, 3, 4],
        None,
    ],
    "states of another size": ["_fused_adamw_.default", [[X], [X], [AT], [X], [], [X]], {}, [], None],
    "tensor of nobody": ["neg.default", [{"tensor": 77}], {}, [2], None],
    "another number of results": ["neg.default", [X], {}, [2, 3], None],
    "no such argument": ["neg.default", [X], {"how": 3}, [2], None],
    "device": ["zeros.default", [[3]], {"device": "cuda"}, [2], None],
    "nested": ["neg.default", [[[[[[[[X]]]]]]]], {}, [2], None],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_programs_end_in_a_sentence(kind: str) -> None:
    wide = ["expand.default", [X, [10**9, 4]], {}, [8], None]
    one = ["sum.default", [X], {}, [9], None]
    inputs = {"x": torch.ones(4), "at": torch.full((4,), 99)}

    with pytest.raises(ProgramError) as caught:
        play(_program(wide, one, HOSTILE[kind]), inputs)

    assert caught.value.why
    assert caught.value.next


@pytest.mark.parametrize("text", ["", "[]", "null", "{}x", '{"steps": 3}', '{"inputs": [[1]]}', "[" * 5000, None, 7])
def test_texts_that_are_no_programs_end_in_a_sentence(text: Any) -> None:
    with pytest.raises(ProgramError, match="not a recorded program"):
        play(text, {})


def test_memory_that_nothing_filled_holds_no_values_of_the_judge() -> None:
    secret = torch.full((1 << 16,), 0.125)
    del secret
    text = _program(["empty.memory_format", [[1 << 16]], {}, [2], None], outputs={"y": 2})

    assert play(text, {"x": torch.ones(4), "at": torch.zeros(4, dtype=torch.int64)}).outputs["y"].isnan().all()


def test_inputs_of_another_shape_are_refused() -> None:
    text = record(lambda x: {"y": x.exp()}, {"x": torch.ones(3)})

    with pytest.raises(ProgramError, match="does not match the input of this case"):
        play(text, {"x": torch.ones(4)})


def test_mutated_programs_give_a_result_or_a_sentence() -> None:
    text = record(_trained, _inputs(0))
    drawn, played = random.Random(5), 0
    for _ in range(150):
        program = json.loads(text)
        for _ in range(drawn.randint(1, 3)):
            _mutate(program, drawn)
        try:
            play(json.dumps(program), _inputs(1))
            played += 1
        except EdlError:
            pass

    assert 0 < played < 150


def _mutate(program: Any, drawn: random.Random) -> None:
    """Change one place, wherever it is."""
    place = program
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        if not keys:
            return
        key = drawn.choice(list(keys))
        if not isinstance(place[key], dict | list) or drawn.random() < 0.1:
            break
        place = place[key]
    place[key] = drawn.choice([0, 1, -1, 2**40, 0.5, None, "x", [], {}, {"tensor": drawn.randint(0, 9)}, True])
