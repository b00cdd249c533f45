"""`predict`: time, memory, limiter and reasons of a step, and what changes them."""

from __future__ import annotations

import json
import math
import pickle

import pytest
import torch
from torch import nn

from edl_labs.errors import EdlError, UsageError
from edl_labs.hardware import accelerator
from edl_labs.numerics import autocast_table, memory_plan
from edl_labs.predict import MachineCard, MachineComparison, Prediction, compare_machines, predict_step
from edl_labs.predict.recorded_step import record_step
from edl_labs.roofline import Machine
from edl_labs.units import seconds


def mlp(width=1024, depth=2):
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.GELU())]
    with torch.device("meta"):
        return nn.Sequential(*layers)


def empty(*shape, dtype=torch.float32):
    return torch.empty(*shape, device="meta", dtype=dtype)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.out = nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Linear(16, 10)

    def forward(self, x):
        return self.out(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.norm = nn.Linear(64, 192), nn.LayerNorm(64)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (4, 16)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        weights = torch.softmax(q @ k.transpose(-1, -2), -1)
        return (weights @ v).transpose(1, 2).flatten(2)


def test_large_products_are_compute_small_ones_launch_and_pointwise_memory():
    large = predict_step(mlp(8192).eval(), empty(8192, 8192), "A100-80GB", dtype="bf16")
    small = predict_step(mlp(64, 8).eval(), empty(1, 64), "A100-80GB", dtype="bf16")
    pointwise = predict_step(nn.GELU().eval(), empty(4096, 65536), "A100-80GB")

    assert ("compute", "launch", "memory") == (large.limiter, small.limiter, pointwise.limiter)


def test_no_step_is_faster_than_the_datasheets_roofline_and_intervals_hold_it():
    for machine in ("T4", "A10", "A100-80GB", "H100", "B200"):
        for dtype in ("fp32", "amp_fp16"):
            found = predict_step(mlp(4096).train(), empty(4096, 4096), machine, dtype=dtype, optimizer="momentum")

            assert 0 < found.roofline_efficiency <= 1, (machine, dtype)
            assert 0 < found.mfu <= 1, (machine, dtype)
            assert found.low_s < found.step_s < found.high_s


def test_a_card_at_its_power_limit_does_not_hold_its_printed_rate():
    t4, limited = (
        predict_step(mlp(4096).eval(), empty(8192, 4096), name, dtype="fp16") for name in ("T4", "A100-80GB-150W")
    )
    free = predict_step(mlp(4096).eval(), empty(8192, 4096), "A100-80GB", dtype="fp16")

    assert t4.mfu < 0.45, "24 of 65 TFLOP/s at 70 W, as published"
    assert free.mfu > 0.6
    assert limited.step_s > 1.3 * free.step_s


def test_products_off_sixteen_bytes_and_tile_sized_leftovers_cost():
    aligned, odd = (
        predict_step(nn.Linear(4096, n).eval(), empty(4096, 4096), "A100-80GB", dtype="fp16") for n in (4096, 4095)
    )

    assert odd.step_s > 1.5 * aligned.step_s
    assert any("16 bytes" in one.reason for one in odd.most_expensive)


def test_dtypes_are_those_of_cudas_autocast():
    for model, x in ((Net(), torch.empty(2, 8, 16, 16)), (Attends(), torch.empty(2, 8, 64))):
        wanted = autocast_table(model, x, device_type="cuda").rows
        products = [row.ran_in for row in wanted if row.operator in ("conv2d", "linear", "matmul")]
        kernels = record_step(model.eval(), x, dtype="amp_fp16").kernels

        assert products == [one.dtype for one in kernels if one.kind == "product"]
        for name in ("softmax", "layer_norm"):
            ours = [one.dtype for one in kernels if name in one.name]
            assert [row.out for row in wanted if row.operator == name] == ours


def test_a_convolution_is_its_implicit_product_and_its_gradients_too():
    kernels = record_step(Net(), empty(4, 8, 32, 32), dtype="fp16").kernels
    forward, to_weight = (
        next(one for one in kernels if one.product and one.product.way == way) for way in ("conv", "wgrad")
    )

    assert (4 * 16 * 16, 16, 8 * 9) == (forward.product.m, forward.product.n, forward.product.k)
    assert (16, 8 * 9, 4 * 16 * 16) == (to_weight.product.m, to_weight.product.n, to_weight.product.k)
    assert forward.flops == to_weight.flops == 2 * 4 * 16 * 16 * 16 * 8 * 9


def test_layout_follows_the_tensors():
    model = Net().to("meta").to(memory_format=torch.channels_last)
    kernels = record_step(model, empty(4, 8, 32, 32).to(memory_format=torch.channels_last), dtype="fp16").kernels

    assert all(one.product.nhwc for one in kernels if one.product and one.product.way != "gemm")


def test_views_cost_nothing_and_a_cast_into_softmax_is_no_kernel():
    names = [one.name for one in record_step(Attends().eval(), empty(2, 8, 64), dtype="amp_fp16").kernels]

    assert not {"view", "transpose", "t", "chunk", "split"} & set(names)
    assert names[names.index("_softmax") - 1] == "bmm"


def test_the_peak_is_that_of_the_memory_plan():
    model, x = Net(), torch.zeros(4, 8, 32, 32)
    plan = memory_plan(
        model,
        x,
        Machine.simple("any", peak_flop_per_s=1e12, bandwidth_byte_per_s=1e11),
        device="cuda",
        optimizer="momentum",
    )
    found = predict_step(model, x, "T4", optimizer="momentum")

    # The plan knows nothing of what cuBLAS works in.
    assert plan.peak_bytes == pytest.approx(found.peak_bytes - found.held["workspaces"], rel=0.05)


def test_what_if_changes_one_choice_and_leaves_the_rest():
    found = predict_step(mlp().train(), empty(64, 1024), "T4", dtype="fp32", optimizer="adamw")

    assert 256 == found.what_if(batch=256).batch
    assert "amp_fp16" == found.what_if(dtype="amp_fp16").dtype
    assert "H100-SXM" == found.what_if(machine="H100").machine
    assert found.what_if(compiled=True).step_s < found.step_s
    assert found == found.what_if(batch=64)


def test_compiled_steps_have_fewer_kernels_and_move_less():
    model, x = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.GELU(), nn.Sigmoid()).eval(), empty(1024, 65536)
    eager = predict_step(model, x, "A100-80GB")
    compiled = eager.what_if(compiled=True)

    assert 4 == sum(one.calls for one in eager.most_expensive)
    assert 1 == sum(one.calls for one in compiled.most_expensive)
    assert 3 < eager.step_s / compiled.step_s < 5


def test_checkpoints_run_blocks_again_and_hold_less():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)

        def forward(self, x):
            return x + self.down(torch.relu(self.up(x)))

    model = nn.Sequential(*(Block() for _ in range(8)))
    found = predict_step(model, empty(4096, 256), "A100-80GB", dtype="amp_bf16")
    kept = found.what_if(checkpoint=True)

    assert kept.peak_bytes < 0.75 * found.peak_bytes
    assert kept.step_s > found.step_s
    assert kept.flops == pytest.approx(4 / 3 * found.flops, rel=0.15)


def test_a_function_is_a_whole_step_and_nothing_of_it_changes():
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.AdamW(net.parameters())
    before = [p.clone() for p in net.parameters()]

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    found = predict_step(step, (torch.zeros(8, 32), torch.zeros(8, dtype=torch.long)), "H100")

    assert "step" == found.model
    assert found.is_training
    assert {"forward", "backward", "optimizer"} == set(found.phases)
    assert found.held["optimizer"] >= 2 * 4 * sum(p.numel() for p in net.parameters())
    assert all(torch.equal(old, new) for old, new in zip(before, net.parameters(), strict=True))
    assert not optimizer.state
    assert optimizer.param_groups[0]["params"][0] is net[0].weight
    assert optimizer.param_groups[0]["foreach"] is None


def test_json_holds_the_result_and_reads_back():
    found = predict_step(mlp().eval(), empty(8, 1024), "T4")
    again = Prediction.from_json(json.dumps(found.to_json()))

    assert found == again
    with pytest.raises(UsageError, match="loaded from JSON"):
        again.what_if(batch=2)


def test_the_timeline_is_as_long_as_the_step():
    found = predict_step(mlp(4096).eval(), empty(4096, 4096), "A100-80GB", dtype="bf16")

    assert found.step_s == pytest.approx(found.timeline.makespan_s, rel=0.1)
    assert json.dumps(found.timeline.to_chrome_trace())


def test_operators_that_nobody_knows_make_it_at_least():
    @torch.library.custom_op("edl_labs_tests::secret", mutates_args=())
    def secret(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @secret.register_fake
    def _(x):
        return torch.empty_like(x)

    class Uses(nn.Module):
        def forward(self, x):
            return torch.ops.edl_labs_tests.secret(x)

    found = predict_step(Uses().eval(), empty(8, 8), "T4")

    assert ("secret",) == found.unknown
    assert f"at least {seconds(found.low_s)} ({seconds(found.step_s)} without secret)" in str(found)
    assert f"at most {found.samples_per_s * found.step_s / found.low_s:,.4g} samples/s" in str(found)
    assert math.inf == found.high_s


def test_bad_input_is_told_in_a_sentence():
    class Looks(nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x

    for call, said in (
        (lambda: predict_step(3, empty(1)), "needs a function, got int"),
        (lambda: predict_step(mlp(), empty(8, 1024), "L20"), "no accelerator"),
        (lambda: predict_step(mlp(), empty(8, 1024), dtype="fp12"), "no dtype"),
        (lambda: predict_step(mlp(), empty(8, 1024), optimizer="adan"), "no optimizer"),
        (lambda: predict_step(mlp(), empty(8, 1000)), "cannot be run on this example"),
        (lambda: predict_step(Looks().eval(), empty(8)), "reads tensor values"),
        (lambda: predict_step(mlp(), empty(8, 1024), cluster={"gpus": 8, "tp": 3}), "8 GPUs are not"),
        (lambda: predict_step(mlp(), empty(8, 1024), accumulate=0), "accumulate"),
    ):
        with pytest.raises(EdlError, match=said):
            call()


def test_machines_are_compared_with_memory_cost_and_doubt():
    found = compare_machines(
        mlp(4096).train(),
        empty(1024, 4096),
        ["T4", "A100-80GB", "H100"],
        dtype="amp_fp16",
        optimizer="adamw",
        price_per_hour={"H100": 2.0, "T4": 0.4},
    )

    assert ["T4", "A100-80GB", "H100-SXM"] == [one.machine for one in found.predictions]
    assert "costs least" in found.verdict
    assert all(word in repr(found) for word in ("80 % interval", "samples/s", "fits"))
    assert MachineComparison.from_json(json.dumps(found.to_json())) == found


def test_two_cards_of_one_speed_are_inconclusive():
    found = compare_machines(
        mlp().eval(), empty(4096, 1024), ["A100-80GB", MachineCard.of("A100-80GB", key="another")], dtype="bf16"
    )

    assert found.verdict.startswith("inconclusive")


def test_every_nvidia_card_of_the_table_has_its_boards_power():
    from edl_labs.hardware import table
    from edl_labs.predict.efficiencies import BOARD_POWER_W

    assert {one.key for one in table()} == set(BOARD_POWER_W)
    assert accelerator("T4").key in BOARD_POWER_W


def test_a_prediction_travels_between_processes_without_its_model():
    step = predict_step(mlp().eval(), empty(64, 1024), "T4")
    other = pickle.loads(pickle.dumps(step))

    assert step == other
    assert step.timeline == other.timeline
    with pytest.raises(UsageError, match="received from another process"):
        other.what_if(batch=2)


class Experts(nn.Module):
    def __init__(self, grouped):
        super().__init__()
        self.grouped, self.weight = grouped, nn.Parameter(torch.empty(8, 2048, 4096, dtype=torch.bfloat16))
        self.register_buffer("ends", torch.arange(1, 9, dtype=torch.int32) * 1024)

    def forward(self, x):
        rows = x.unflatten(0, (8, 1024))
        made = torch._grouped_mm(x, self.weight, offs=self.ends) if self.grouped else torch.bmm(rows, self.weight)
        return made.square()


def test_grouped_products_take_as_long_as_batched_ones_of_equal_groups():
    x = empty(8192, 2048, dtype=torch.bfloat16)
    with torch.device("meta"):
        grouped, batched = (predict_step(Experts(one), x, "H100", dtype="bf16") for one in (True, False))

    assert () == grouped.unknown
    assert pytest.approx(batched.step_s, rel=0.01) == grouped.step_s
    assert batched.flops == grouped.flops


def test_a_consumer_blackwell_has_the_tensor_cores_of_ada_and_a_server_its_own():
    families = [MachineCard.of(key).family for key in ("RTX-5090", "B200", "RTX-4090")]
    with torch.device("meta"):
        layer = nn.Linear(8192, 8192, bias=False).eval()
    old, new = (predict_step(layer, empty(8192, 8192), key, dtype="bf16") for key in ("RTX-4090", "RTX-5090"))
    peaks = [MachineCard.of(key).peak("bf16")[1] for key in ("RTX-4090", "RTX-5090")]

    assert ["gb20x", "blackwell", "ada"] == families
    assert pytest.approx(peaks[1] / peaks[0], rel=0.05) == old.step_s / new.step_s


def test_rows_off_16_bytes_cost_tensor_cores_that_narrow_loads_cannot_feed():
    def slower(key):
        with torch.device("meta"):
            layers = [nn.Linear(4096, width, bias=False).eval() for width in (8192, 8191)]
        aligned, off = (predict_step(layer, empty(8192, 4096), key, dtype="fp16").step_s for layer in layers)
        return off / aligned

    assert slower("A100-80GB") > 2.5
    assert 1.3 < slower("A6000") < 2.5
    assert slower("RTX-3090") < 1.1
