"""How long a redraw of the timeline explorer takes while a slider is dragged: the minimum processor time per setting.

Run it in a separate process: `python benchmarks/timeline_redraw.py`. The target is 100 ms on a quiet machine.
"""

from __future__ import annotations

import statistics
import time

import matplotlib

from edl_labs.ui.timeline_widget import TimelineExplorer

ROUNDS, STOPS = 4, (0, 7, 14, 21, 28, 35, 40)


def redraw_times_s() -> list[float]:
    """Seconds of processor time for each stop of each slider, from the middle: the least of some rounds."""
    *sliders, _ = TimelineExplorer("A100", total_bytes=16_000_000).widget().children
    least: dict[tuple[int, int], float] = {}
    for _ in range(ROUNDS):
        for place, slider in enumerate(sliders):
            middle = slider.index
            for stop in STOPS:
                begin_s = time.process_time()
                slider.index = stop
                spent_s = time.process_time() - begin_s
                least[place, stop] = min(least.get((place, stop), spent_s), spent_s)
            slider.index = middle
    return list(least.values())


if __name__ == "__main__":
    matplotlib.use("agg")
    times_ms = sorted(1e3 * time_s for time_s in redraw_times_s())
    print(f"redraw: median {statistics.median(times_ms):.0f} ms, range {times_ms[0]:.0f} to {times_ms[-1]:.0f} ms")
