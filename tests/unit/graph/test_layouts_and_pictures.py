"""Layouts of a graph's tensors, inductor's kernels beside ours, and the pictures."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")

from edl_labs.errors import EdlError  # noqa: E402
from edl_labs.graph import (  # noqa: E402
    Graph,
    InductorRun,
    Partition,
    as_traced,
    fusions,
    inductor_kernels,
    inductor_run,
    layer_by_layer,
    memory_format,
)
from edl_labs.graph.graph_parts import TensorFacts  # noqa: E402


def convolutions(layout) -> Graph:
    """Three convolutions, the first with a kernel of 3 x 3, and a flattened end, given in a layout."""
    layers = [torch.nn.Conv2d(8, 16, 3), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 1), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Conv2d(16, 8, 1)).eval().to(memory_format=layout)
    return Graph.of(model, torch.ones(2, 8, 10, 10).to(memory_format=layout))


@pytest.mark.parametrize(
    ("shape", "stride"),
    [
        ((2, 3, 4, 5), (60, 20, 5, 1)),
        ((2, 3, 4, 5), (60, 1, 15, 3)),
        ((2, 1, 4, 5), (20, 7, 5, 1)),
        ((2, 3, 1, 1), (3, 1, 9, 9)),
        ((2, 3, 4, 5), (120, 20, 5, 1)),
        ((1, 3, 4, 5), (99, 20, 5, 1)),
    ],
)
def test_layouts_are_what_torch_says(shape, stride):
    tensor = torch.empty_strided(shape, stride)
    fits = (tensor.is_contiguous(), tensor.is_contiguous(memory_format=torch.channels_last))
    said = {(True, False): "NCHW", (False, True): "NHWC", (True, True): "both", (False, False): "neither"}[fits]

    assert said == memory_format(TensorFacts("x", shape, stride, "float32", 4, "x"))


def test_a_model_in_one_layout_copies_nothing_and_one_in_the_other_its_input_and_its_weight():
    turned, plain = convolutions(torch.channels_last), convolutions(torch.contiguous_format)
    image, weight = 4 * 2 * 8 * 10 * 10, 4 * 16 * 8 * 9
    one, results = 4 * 2 * 8 * 8, (16, 16, 16, 16)

    assert {} == as_traced(turned).copies
    # Behind each convolution its result goes back, and before the next it is turned again; nobody reads the last one.
    assert 2 * (image + weight) + 2 * one * sum(results) == layer_by_layer(plain).copied_bytes
    # As it is, every convolution would have to run in NCHW.
    assert 3 == len(as_traced(plain).problems)


def test_a_recording_is_shown_where_nothing_compiles(monkeypatch):
    def fails(*_):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(inductor_kernels, "_compiled", fails)
    run = inductor_run(None, recorded="encoder_layer")

    assert run.is_recorded
    assert (4, 7, 11) == (len(run.generated), len(run.library), run.launches)
    assert str(run).startswith("recorded, torch 2.")
    with pytest.raises(EdlError, match="cannot be compiled here") as told:
        inductor_run(None, recorded="another")
    assert "no compiler" in str(told.value)
    known = json.loads(inductor_kernels.RECORDINGS.read_text(encoding="utf-8"))
    assert run.generated == InductorRun.from_json(known["encoder_layer"]).generated


def test_calls_of_generated_code_are_found():
    code = """
def call(self, args):
    buf0 = extern_kernels.mm(arg0, arg1, out=buf0)
    cpp_fused_add_relu_0(buf0, arg2)
    buf3 = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(buf0, buf1)
    stream0 = get_raw_stream(0)
    triton_per_fused_native_layer_norm_1.run(buf0, 4, stream=stream0)
    return (buf0, )
def after():
    cpp_fused_never_2(x)
"""
    lines = inductor_kernels._calls_of(code)
    generated = [found[1] for line in lines if (found := inductor_kernels._GENERATED.match(line))]
    library = [found[1] or found[2] for line in lines if (found := inductor_kernels._LIBRARY.match(line))]

    assert ["cpp_fused_add_relu_0", "triton_per_fused_native_layer_norm_1"] == generated
    assert ["mm", "_scaled_dot_product_flash_attention_for_cpu"] == library


@pytest.mark.slow  # compiles: half a minute and more
def test_inductor_makes_about_as_many_kernels():
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.LayerNorm(64), torch.nn.GELU(), torch.nn.Linear(64, 8)
    )
    x = torch.randn(16, 64)
    try:
        run = inductor_run(model.eval(), x)
    except EdlError as error:
        pytest.skip(str(error))

    assert fusions(Graph.of(model, x), epilogues=False).launches == run.launches == 3


def test_pictures_name_kernels_and_bytes():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    graph = Graph.of(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Softmax(1)), torch.ones(4, 8))
    plan = fusions(graph)
    axes = plan.plot()
    texts = [text.get_text() for text in axes.texts]

    assert {"addmm", "gelu", "softmax"} <= set(texts)
    assert str(plan) == axes.get_title()
    assert plan.launches == sum(text.endswith("B") for text in texts)
    assert "live bytes" in graph.plot().get_title()
    many = Partition.one_each(Graph.of(lambda x: [x := x.sin() for _ in range(60)][-1], torch.ones(4)))
    assert "the first 48 of 60 kernels" in many.plot().get_title()
    pyplot.close("all")
