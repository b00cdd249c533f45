"""Results draw themselves: on axes of one's own, or on new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import pytest

from edl_labs import plots
from edl_labs.pipeline import LoaderModel, frontier
from edl_labs.plots import style
from edl_labs.trace import VirtualLoop, attribute, diagnose
from edl_labs.virtual import VirtualGPU

mpl.use("Agg")


def step(gpu: Any, state: Any) -> None:
    gpu.data_wait(1e-3)
    gpu.launch("gemm", duration_s=1e-3)


def timeline() -> Any:
    gpu = VirtualGPU("A100-80GB")
    gpu.launch("gemm", duration_s=1e-3)
    return gpu.timeline


RESULTS: dict[str, Callable[[], Any]] = {
    "Attribution": lambda: attribute(VirtualLoop(step).record(4)),
    "Frontier": lambda: frontier([3, 5, 8, 13, 21, 34], batch_size=2),
    "LoaderModel": lambda: LoaderModel(32, worker_s=0.1, step_s=0.05),
    "Timeline": timeline,
}


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_a_result_draws_itself_on_given_axes_and_on_new_ones(make: Callable[[], Any]) -> None:
    import matplotlib.pyplot as plt

    result, (figure, axes) = make(), style.subplots()
    given, fresh = result.plot(axes), result.plot()

    assert axes is given
    assert fresh is not given
    assert axes.has_data()
    plt.close(figure)
    plt.close(fresh.figure)


def test_a_diagnosis_draws_its_figure() -> None:
    import matplotlib.pyplot as plt

    figure = diagnose(VirtualLoop(step), steps=4).plot()

    assert 3 < len(figure.axes)
    plt.close(figure)


@pytest.mark.parametrize("where", [*plots._ON_AXES.values(), *plots._AS_FIGURE.values()])
def test_each_line_of_the_table_leads_to_a_function(where: str) -> None:
    assert callable(plots._function(where))


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_a_result_has_a_data_frame(make: Callable[[], Any]) -> None:
    pandas = pytest.importorskip("pandas", reason="to_frame() is for those who have pandas; it is not installed here")
    frame = make().to_frame()

    assert isinstance(frame, pandas.DataFrame)
    assert len(frame)
