"""One report: of loops on a VirtualGPU, of loops on this machine, of files."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edl_labs.errors import UsageError
from edl_labs.trace import TorchLoop, TracedGPU, TraceError, VirtualLoop, attribute, diagnose, read_trace
from edl_labs.trace.loops import no_host_reads
from tests.unit.trace.loops import run


def step(gpu: TracedGPU, state: Any) -> None:
    gpu.data_wait(3e-3)
    for _ in range(20):
        gpu.launch("gemm", duration_s=5e-5)


def test_a_step_function_is_diagnosed() -> None:
    found = diagnose(step)

    assert "data-bound" == found.verdict
    assert pytest.approx(3.1, rel=0.01) == found.gains[0].speedup
    assert pytest.approx(found.gains[0].speedup) == found.ablations[0].speedup


def test_a_function_of_the_device_alone_is_a_step() -> None:
    assert "GPU-bound" == diagnose(lambda gpu: gpu.launch("gemm", duration_s=1e-3)).verdict


def test_a_file_is_diagnosed(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(run(kernel_s=1e-6).timeline.to_chrome_trace()), encoding="utf-8")

    assert "launch-bound" == diagnose(path).verdict


def test_the_text_names_verdict_shares_gains_and_lines() -> None:
    text = diagnose(VirtualLoop(step, name="my loop")).text()

    assert text.startswith("my loop: data-bound\n")
    for part in ("67.6 %", "test_diagnose.py", "3.10x; tried: 3.10x"):
        assert part in text


def test_the_report_is_plain_data() -> None:
    plain = diagnose(step).to_json()

    assert 1 == json.loads(json.dumps(plain))["schema"]
    assert "data" == plain["attribution"]["dominant"]


def test_the_page_escapes_what_the_trace_says() -> None:
    html = diagnose(VirtualLoop(step, name="<script>")).html()

    assert "<script>" not in html
    assert "data:image/png" in html


@pytest.mark.parametrize("strange", [3, None, lambda a, b, c: None])
def test_what_is_no_loop_is_refused(strange: Any) -> None:
    with pytest.raises(UsageError):
        diagnose(strange)


def test_waiting_for_data_is_told_on_a_cpu() -> None:
    import torch

    weights = torch.randn(16, 16)

    class Batches:
        def __iter__(self) -> Any:
            for _ in range(4):
                time.sleep(0.04)
                yield weights

    loop = TorchLoop(lambda batch: batch @ weights, Batches(), warm_up=1)
    found = attribute(loop.record(4), skip=1)

    assert "data" == found.dominant
    assert not found.on_device
    assert ("data",) == loop.ablations()


def cpu_step(duration_us: float) -> list[dict[str, Any]]:
    """A step of 1 ms with ten operators of a duration, as torch.profiler writes it."""
    place = {"ph": "X", "pid": 1, "tid": 1}
    step = {**place, "cat": "user_annotation", "name": "ProfilerStep#0", "ts": 0.0, "dur": 1000.0}
    operator = {**place, "cat": "cpu_op", "name": "aten::add", "dur": duration_us}
    return [step, *({**operator, "ts": 100.0 * number} for number in range(10))]


@pytest.mark.parametrize(("duration_us", "cause"), [(8.0, "launch"), (60.0, "compute")])
def test_small_operators_are_overhead_on_a_cpu(duration_us: float, cause: str) -> None:
    shares = attribute(read_trace(cpu_step(duration_us))).shares

    assert pytest.approx(duration_us / 100) == shares[cause]
    assert pytest.approx(1 - duration_us / 100) == shares["host"]


def test_the_way_between_small_operators_is_overhead_too() -> None:
    events = cpu_step(8.0)
    for number, event in enumerate(events[1:]):
        event["ts"] = 12.0 * number
    shares = attribute(read_trace(events)).shares

    # Ten operators of 8 µs with 4 µs between them, then code to the end of the step.
    assert pytest.approx(0.116) == shares["launch"]
    assert pytest.approx(0.884) == shares["host"]


def test_large_operators_are_computing_on_a_cpu() -> None:
    import torch

    large = torch.randn(600, 600)

    assert "compute" == attribute(TorchLoop(lambda: large @ large, warm_up=1).record(4), skip=1).dominant


@pytest.mark.slow
def test_python_lines_are_named_where_they_are_recorded() -> None:
    def slow() -> None:
        sum(i * i for i in range(20_000))

    found = attribute(TorchLoop(slow, warm_up=1, with_stack=True).record(4), skip=1)

    assert "host" == found.dominant
    assert "test_diagnose.py" in found.blames["host"][0].line


def test_data_that_are_used_up_are_told() -> None:
    with pytest.raises(UsageError, match="the data is exhausted"):
        TorchLoop(lambda batch: None, iter([1])).record(4)


def test_work_of_a_device_alone_is_diagnosed() -> None:
    kernels = [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 10.0 * i, "dur": 5.0} for i in range(10)]

    assert 0.5 < diagnose(read_trace(kernels)).shares["compute"]


def test_a_loop_that_takes_no_time_is_refused() -> None:
    with pytest.raises(TraceError, match="no time"):
        diagnose(lambda gpu: None)


def test_a_trace_of_no_time_is_refused() -> None:
    with pytest.raises(TraceError, match="no time"):
        attribute(read_trace([{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 5.0, "dur": 0.0}]))


def test_a_loop_of_one_cause_takes_no_time_without_it() -> None:
    assert 0.0 == VirtualLoop(lambda gpu, state: gpu.data_wait(1e-3)).times_s(3, ("data",))["data"]


def test_numbers_without_a_value_are_null_in_the_report() -> None:
    operators = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0.0, "dur": 5e3}]
    plain = json.loads(json.dumps(diagnose(read_trace(operators)).to_json(), allow_nan=False))

    assert plain["gains"][0]["speedup"] is None


def test_a_read_that_waits_for_nothing_gives_its_own_line_s_value(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def scalar(value: Any, dtype: torch.dtype) -> Any:
        return SimpleNamespace(device=torch.device("cuda"), shape=(), dtype=dtype, value=value)

    monkeypatch.setattr(torch.Tensor, "item", lambda tensor: tensor.value)
    read: list[Any] = []
    with no_host_reads():
        for loss in (0.5, 0.25):
            read.append(torch.Tensor.item(scalar(loss, torch.float32)))
            read.append(torch.Tensor.item(scalar(3, torch.int64)))

    assert [0.5, 3, 0.5, 3] == read
