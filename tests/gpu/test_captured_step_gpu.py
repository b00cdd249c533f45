"""A captured step on CUDA: its replay takes about what the profiler says of its kernels, and less than eager mode."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs CUDA: a graph of real kernels is captured and replayed", allow_module_level=True)

LAYERS = 40


def steps_s(run, *, count=50):
    """Seconds of a call by events, the host's time included where the device waits for it."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.current_stream().synchronize()
    start.record()
    for _ in range(count):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / count


def captured(step):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def test_a_replay_takes_what_its_kernels_take():
    x = torch.randn(64, 64, device="cuda")

    def step():
        for _ in range(LAYERS):
            x.mul_(0.999)

    graph = captured(step)
    graph.replay()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        graph.replay()
        torch.cuda.current_stream().synchronize()
    kernels_s = sum(event.device_time_total for event in profile.key_averages()) / 1e6
    replay_s, eager_s = steps_s(graph.replay), steps_s(step)

    # Between two kernels of a graph lies about a microsecond.
    assert kernels_s <= 1.1 * replay_s
    assert replay_s < kernels_s + 3e-6 * LAYERS
    assert replay_s < eager_s


def test_a_replay_reads_what_its_buffer_holds_now():
    static, out = torch.zeros(8, device="cuda"), torch.zeros(8, device="cuda")
    graph = captured(lambda: out.copy_(static * 2))
    static.fill_(3.0)
    graph.replay()

    assert [6.0] * 8 == out.tolist()
