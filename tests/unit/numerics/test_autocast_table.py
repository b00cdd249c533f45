"""Autocast's choices on CPU and CUDA, followed on fake tensors."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from edl_labs.errors import UsageError
from edl_labs.numerics import autocast_differences, autocast_table


class Mixed(nn.Module):
    """Operators of every kind that autocast knows, and a few that it leaves alone."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.norm, self.conv = nn.Linear(8, 8), nn.LayerNorm(8), nn.Conv1d(4, 4, 3, padding=1)
        self.batch_norm, self.relu, self.softmax = nn.BatchNorm1d(4), nn.ReLU(), nn.Softmax(-1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.fc(x))
        y = self.relu(self.batch_norm(self.conv(y)))
        y = self.softmax(y @ y.transpose(1, 2)) @ y
        return torch.exp(y).sum() + nn.functional.mse_loss(y, x)


X = torch.zeros(2, 4, 8)


def observed_on_cpu(model: nn.Module, x: torch.Tensor, dtype: torch.dtype) -> dict[str, str]:
    """The output dtype of each leaf module in a real run under torch's own autocast."""
    seen: dict[str, str] = {}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda _m, _i, out, name=name: seen.__setitem__(name, str(out.dtype)))
    with torch.autocast("cpu", dtype=dtype):
        model(x)
    return {name: {"torch.bfloat16": "bf16", "torch.float16": "fp16"}.get(text, "fp32") for name, text in seen.items()}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_on_cpu_the_table_is_what_a_real_run_shows(dtype: torch.dtype) -> None:
    table = autocast_table(Mixed(), X, device_type="cpu", dtype=dtype)
    real = observed_on_cpu(Mixed(), X, dtype)
    leaves = {row.module: row.out for row in table.rows if row.module}

    assert leaves == {name: real[name] for name in leaves}
    assert {"fc", "norm", "conv", "batch_norm", "relu", "softmax"} == set(leaves)


def test_on_cuda_matmuls_run_low_and_reductions_in_fp32_without_a_gpu() -> None:
    table = autocast_table(Mixed(), X)
    ran = {row.operator: (row.ran_in, row.out) for row in table.rows}

    low, high = ("fp16", "fp16"), ("fp32", "fp32")
    expected = dict.fromkeys(("linear", "conv1d", "matmul", "relu", "batch_norm"), low)
    expected |= dict.fromkeys(("layer_norm", "softmax", "exp", "sum", "mse_loss", "add"), high)
    assert expected == ran


def test_layer_norm_is_where_cpu_and_cuda_part() -> None:
    differences = autocast_differences(Mixed(), X)
    first = differences[0]

    assert ("layer_norm", "bf16", "fp32") == (first.cpu.operator, first.cpu.out, first.cuda.out)
    assert {"layer_norm", "softmax", "exp"} == {d.cpu.operator for d in differences if d.begins_here}
    assert "on CPU it follows its input" in str(first)


def test_layer_norm_on_cpu_follows_an_fp32_input_too() -> None:
    assert "fp32" == autocast_table(nn.LayerNorm(8), X, device_type="cpu")["layer_norm"].out


def test_what_only_inherits_a_difference_is_told_apart() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU())

    assert [("layer_norm", True), ("gelu", False)] == [
        (d.cpu.operator, d.begins_here) for d in autocast_differences(model, X)
    ]


def test_a_weight_from_autocasts_cache_counts_as_cast() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(8, 8, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(self.fc(x))

    rows = autocast_table(Twice(), X).rows

    assert [("cast to fp16", "fp16")] * 2 == [(row.policy, row.out) for row in rows]


def test_pointwise_work_on_mixed_inputs_runs_in_the_wider_dtype() -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x) + x

    row = autocast_table(Residual(), X)["add"]

    assert ("fp16+fp32", "fp32", "fp32") == (row.given, row.ran_in, row.out)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(*self.qkv(x).chunk(3, dim=-1))


@pytest.mark.parametrize("device_type", ["cpu", "cuda"])
def test_attention_runs_low_as_a_gpus_fused_kernel_does(device_type: str) -> None:
    row = autocast_table(Attention(), X, device_type=device_type)["scaled_dot_product_attention"]

    assert row.given == row.ran_in == row.out
    assert row.out in ("fp16", "bf16")


@pytest.mark.parametrize("device_type", ["cpu", "cuda"])
def test_recurrent_layers_are_followed_too(device_type: str) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.lstm(x)[0]

    enabled = torch.backends.cudnn.enabled
    row = autocast_table(Recurrent(), X, device_type=device_type, dtype=torch.bfloat16)["lstm"]

    assert "bf16" == row.ran_in
    assert enabled == torch.backends.cudnn.enabled


def test_neither_the_model_nor_autocast_is_changed() -> None:
    model = Mixed()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    states = [torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")]
    dtypes = [torch.get_autocast_dtype(kind) for kind in ("cpu", "cuda")]

    autocast_table(model, X, dtype=torch.bfloat16)

    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(str(value.device) == "cpu" for value in model.state_dict().values())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert states == [torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")]
    assert dtypes == [torch.get_autocast_dtype(kind) for kind in ("cpu", "cuda")]


def test_a_table_is_plain_data_and_aligned_text() -> None:
    table = autocast_table(nn.Linear(8, 8), X, dtype="bf16")

    assert "bf16" == json.loads(json.dumps(table.to_json()))["rows"][0]["out"]
    assert "autocast to bf16 on cuda:" == repr(table).splitlines()[0]


class Peeks(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum().item() > 0 else -x


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: autocast_table(Peeks(), X), "other reads of tensor values"),
        (lambda: autocast_table(nn.Linear(3, 3), X), "cannot be traced"),
        (lambda: autocast_table(lambda x: x, X), "not a torch.nn.Module"),
        (lambda: autocast_table(nn.ReLU(), X, device_type="tpu"), "cpu and cuda"),
        (lambda: autocast_table(nn.ReLU(), X, dtype=torch.float32), "does not lower"),
        (lambda: autocast_table(nn.Linear(8, 8), X)["conv2d"], "these operators ran: linear"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_the_reason(make, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()

    assert text in str(caught.value)


def test_after_a_refusal_hooks_and_autocast_are_gone() -> None:
    model = nn.Sequential(Peeks())
    with pytest.raises(UsageError):
        autocast_table(model, X)

    assert not model[0]._forward_hooks
    assert not torch.is_autocast_enabled("cuda")


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_fourier_transforms_have_rows_and_complex_numbers_their_names() -> None:
    class Spectral(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.fft.irfft(torch.fft.rfft(self.linear(x)) * 2)

    on_cuda, on_cpu = (autocast_table(Spectral(), torch.zeros(2, 8), device_type=kind) for kind in ("cuda", "cpu"))

    assert ("fp16", "complex32") == (on_cuda["fft_rfft"].given, on_cuda["fft_rfft"].out)
    assert ("bf16", "fp32", "complex64") == (
        on_cpu["fft_rfft"].given,
        on_cpu["fft_rfft"].ran_in,
        on_cpu["fft_rfft"].out,
    )
    assert "fp32" == on_cpu["fft_irfft"].out
