"""The two files of a student's own loop: what they hold, what they leave out, and that no share changes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from edl_labs.errors import UsageError
from edl_labs.trace import TorchLoop, attribute, diagnose, hand_in, packed_trace, read_trace
from edl_labs.trace.loops import recorded_by_profiler
from edl_labs.trace.packed_trace import scrubber
from edl_labs.trace.recorded_flop import contraction_flop
from tests.fake_cuda import fake_cuda

H200 = Path(__file__).parents[2] / "data" / "traces" / "h200"


def tree_of(path: Path) -> dict[str, Any]:
    return dict(json.loads(gzip.decompress(path.read_bytes())))


def unchanged(text: str) -> str:
    return text


def product_step() -> None:
    torch.ones(8, 16) @ torch.ones(16, 4)


def test_a_cpu_loop_is_recorded_with_its_stamp_its_source_and_its_shapes(tmp_path: Path) -> None:
    def step(batch: torch.Tensor) -> None:
        batch @ torch.ones(16, 4)

    loop = TorchLoop(step, data=[torch.ones(8, 16)])
    found = hand_in(loop, product_step, name="mine", steps=5, folder=tmp_path)
    before, after = (tree_of(tmp_path / file) for file in found.files)
    about = before["edl_labs"]

    assert ("own_before.json.gz", "own_after.json.gz") == found.files
    assert (5, 5) == found.steps
    assert ("mine", "before", 3) == (about["name"], about["which"], about["warm_up"])
    assert [[[8, 16]]] == about["input_shapes"]
    assert "batch @ torch.ones(16, 4)" in about["source"]
    assert str(torch.__version__) == about["stamp"]["torch"]
    assert before["edl_labs"]["pair"] == after["edl_labs"]["pair"]
    assert 5 * 2 * 8 * 16 * 4 == contraction_flop(after["traceEvents"])
    assert 5 == len(read_trace(tmp_path / found.files[0]).steps)


def test_of_three_recordings_in_turn_each_sides_quietest_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edl_labs.trace import _hand_in

    medians_s = iter([5.0, 2.0, 3.0, 4.0, 6.0, 1.0])  # before, after, before, after, before, after
    taken: list[str] = []
    real = _hand_in._recorded

    def recorded(loop: TorchLoop, steps: int, which: str, name: str, pair: str) -> tuple[bytes, int, float]:
        taken.append(which)
        _, kept, step_s = real(loop, steps, which, name, pair)
        assert step_s > 0
        return f"{which} {len(taken)}".encode(), kept, next(medians_s)

    monkeypatch.setattr(_hand_in, "_recorded", recorded)
    hand_in(product_step, product_step, steps=4, folder=tmp_path)

    assert ["before", "after"] * 3 == taken
    assert [b"before 3", b"after 6"] == [(tmp_path / file).read_bytes() for file in packed_trace.FILES]


def test_nothing_of_the_user_or_the_host_is_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "annlee")
    monkeypatch.setenv("LOGNAME", "annlee")
    monkeypatch.setattr("socket.gethostname", lambda: "gpu-box-7")

    def step() -> None:  # of annlee, in /home/annlee/work on gpu-box-7
        with torch.profiler.record_function("/home/annlee/data"):
            torch.ones(4).sum()

    hand_in(step, step, steps=4, folder=tmp_path)
    for file in packed_trace.FILES:
        text = gzip.decompress((tmp_path / file).read_bytes()).decode()

        assert "annlee" not in text
        assert "gpu-box-7" not in text
        assert "host_name" not in text
        assert "of user, in ~/work on host" in text


@pytest.mark.parametrize("name", ["small_kernels", "host_reads", "slow_loader", "pageable_copies"])
def test_thinning_changes_no_share_of_a_real_trace(name: str) -> None:
    tree = tree_of(H200 / f"{name}.json.gz")
    data, steps = packed_trace.packed(tree, {}, (), scrub=unchanged)
    thinned = json.loads(gzip.decompress(data))

    assert len(data) < (H200 / f"{name}.json.gz").stat().st_size
    assert steps == len(read_trace(tree).steps)
    assert attribute(read_trace(tree), skip=1).shares == attribute(read_trace(thinned), skip=1).shares
    assert diagnose(read_trace(tree)).gains == diagnose(read_trace(thinned)).gains


def test_a_trace_above_the_limit_keeps_its_first_steps_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tree_of(H200 / "small_kernels.json.gz")
    whole, steps = packed_trace.packed(tree, {}, (), scrub=unchanged)
    monkeypatch.setattr(packed_trace, "MOST_BYTES", len(whole) - 1)
    data, kept = packed_trace.packed(tree, {}, (), scrub=unchanged)
    cut = read_trace(json.loads(gzip.decompress(data)))
    device = cut.select("kernel", "copy")
    links = set(cut.link[cut.select("launch", "copy call")].tolist())

    assert 4 <= kept < steps
    assert kept == len(cut.steps)
    assert set(cut.link[device].tolist()) <= links
    assert attribute(read_trace(tree)).dominant == attribute(cut).dominant


def test_a_step_too_large_for_any_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_trace, "MOST_BYTES", 100)
    with pytest.raises(UsageError, match="may have at most 0 MB"):
        packed_trace.packed(tree_of(H200 / "small_kernels.json.gz"), {}, (), scrub=unchanged)


def test_a_loop_of_a_cuda_device_is_stamped_as_that(tmp_path: Path) -> None:
    with fake_cuda():
        weight = torch.ones(16, 4, device="cuda")

        def step(batch: torch.Tensor) -> None:
            batch.to("cuda") @ weight

        loop = TorchLoop(step, data=[torch.ones(8, 16)], device="cuda")
        hand_in(loop, loop, steps=4, folder=tmp_path)
    about = tree_of(tmp_path / "own_before.json.gz")["edl_labs"]

    assert ("cuda", "NVIDIA A100-SXM4-80GB") == (about["stamp"]["kind"], about["stamp"]["device_name"])
    # Where the profiler cannot see the device, a synchronised clock has timed the steps.
    assert ("cuda" in recorded_by_profiler()) == (about["timed_step_s"] is None)


def test_what_the_profiler_records_is_read_from_its_capabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    activity = torch.profiler.ProfilerActivity
    monkeypatch.setattr("torch.profiler.supported_activities", lambda: {activity.CPU, activity.XPU})

    assert {"cpu": activity.CPU, "xpu": activity.XPU} == recorded_by_profiler()
    assert "mps" not in recorded_by_profiler()


def test_too_few_steps_and_what_is_no_loop_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least 4, got 3"):
        hand_in(product_step, product_step, steps=3, folder=tmp_path)
    with pytest.raises(UsageError, match="cannot record function as a loop"):
        hand_in(lambda batch: None, product_step, folder=tmp_path)


def test_short_and_common_names_are_left_as_they_are() -> None:
    assert "an aten::add of data" == scrubber(home="/root", user="data", host="an")("an aten::add of data")


def test_flops_are_those_of_torchs_counter(tmp_path: Path) -> None:
    from torch.profiler import ProfilerActivity, profile
    from torch.utils.flop_counter import FlopCounterMode

    net = torch.nn.Sequential(
        torch.nn.Conv2d(4, 8, 3, stride=2, padding=1),
        torch.nn.ConvTranspose2d(8, 4, 2, stride=2),
        torch.nn.Flatten(2),
        torch.nn.Linear(64, 10),
    )
    given = torch.randn(2, 4, 8, 8)
    with FlopCounterMode(display=False) as counter:
        net(given).sum().backward()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
        net(given).sum().backward()
    seen.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]

    assert counter.get_total_flops() == contraction_flop(events)
