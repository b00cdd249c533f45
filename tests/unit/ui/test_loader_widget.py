"""The loader explorer: values first, then a still picture for pages, and sliders where there is a kernel."""

from __future__ import annotations

import base64

import pytest

from edl_labs.errors import UsageError
from edl_labs.ui.loader_widget import SETTINGS, LoaderExplorer


@pytest.fixture(autouse=True)
def off_screen():
    import matplotlib

    matplotlib.use("Agg")


def test_more_workers_than_needed_leave_the_step_as_the_limit():
    one, two = (LoaderExplorer().replay(workers=n, decode_s=8e-3, step_s=4e-3).batch_per_s for n in (1, 3))

    assert 125 == pytest.approx(one, rel=0.06)
    assert 250 == pytest.approx(two, rel=0.1)


def test_text_and_picture_stand_in_for_the_sliders():
    explorer = LoaderExplorer()
    bundle, about = explorer._repr_mimebundle_()

    assert " ".join(bundle["text/plain"].split()) == about["image/png"]["alt"]
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert len(SETTINGS) + 1 == len(bundle["text/plain"].splitlines())


def test_a_slider_redraws_the_picture():
    box = LoaderExplorer(batches=6).widget()
    before = box.children[-1].value
    box.children[0].value = 5

    assert before != box.children[-1].value


def test_a_setting_in_which_no_time_passes_is_described_as_that():
    explorer = LoaderExplorer(batches=3)
    setting = {"workers": 2, "decode_s": 0.0, "step_s": 0.0}

    assert explorer.describe(explorer.replay(**setting), **setting).endswith("no time passes, so nothing waits")


@pytest.mark.parametrize("arguments", [{"cores": 0}, {"batches": 1}, {"batches": 10**6}])
def test_what_no_picture_holds_is_refused(arguments):
    with pytest.raises(UsageError):
        LoaderExplorer(**arguments)
