"""A prediction is kept, and the truth waits for it; without a page both are text."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from edl_labs.errors import UsageError
from edl_labs.ui import predictions
from edl_labs.ui.number_entry import apart, number_text, typed_number
from edl_labs.ui.predictions import Instead, predict, reveal_prediction


class Page:
    """What a notebook shows: outputs in order, each of which can be replaced."""

    def __init__(self) -> None:
        self.outputs: list[dict[str, Any]] = []

    def display(self, bundle: dict[str, Any], *, raw: bool, display_id: bool) -> Output:
        assert (True, True) == (raw, display_id)
        self.outputs.append(bundle)
        return Output(self, len(self.outputs) - 1)

    @property
    def last(self) -> dict[str, Any]:
        """The last output that is text, and not empty."""
        return next(bundle for bundle in reversed(self.outputs) if bundle.get("text/html"))

    @property
    def html(self) -> str:
        return "\n".join(bundle.get("text/html", "") for bundle in self.outputs)


class Output:
    def __init__(self, page: Page, place: int) -> None:
        self.page, self.place = page, place

    def update(self, bundle: dict[str, Any], *, raw: bool) -> None:
        assert raw
        self.page.outputs[self.place] = bundle


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    restart(monkeypatch)


def restart(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_ASKED", "_SAID", "_REASONS", "_REVEALED"):
        monkeypatch.setattr(predictions, name, {})


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Page:
    shown = Page()
    monkeypatch.setattr(predictions, "is_notebook", lambda: True)
    monkeypatch.setattr(predictions, "_display", lambda: shown.display)
    return shown


@pytest.fixture
def boxes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The boxes that were made, in order."""
    made: list[Any] = []

    def noted(original: Any) -> Any:
        def making(*given: Any, **more: Any) -> Any:
            widget, connect = original(*given, **more)
            made.append(widget)
            return widget, connect

        return making

    for name in ("line_box", "choice_box"):
        monkeypatch.setattr(predictions, name, noted(getattr(predictions, name)))
    return made


def show_answer() -> None:
    with reveal_prediction("pan") as truth:
        print("never half empty")
        truth(180.0)


def test_the_truth_waits_for_the_box_and_then_stands_beside_it(page: Page, boxes: list[Any], tmp_path: Path) -> None:
    predict("pan", "Three slices take at least", unit="min")
    show_answer()

    assert "Predict first." in page.last["text/html"]
    assert "<details>" in page.html, "what is hidden opens by hand, without a kernel too"
    boxes[0].children[0].value = "4"

    assert "Three slices take at least … 3 min (you predicted 4 min: 33 % too much)" in page.last["text/html"]
    assert "never half empty" in page.last["text/html"]
    assert "<details" not in page.html
    assert "you predicted 4 min" in page.outputs[0]["text/html"], "the notebook keeps it as text"
    assert {"text/plain": "", "text/html": ""} == page.outputs[1], "the box is gone"
    kept = json.loads((tmp_path / ".edl_labs" / "predictions.json").read_text())
    assert {"pan: Three slices take at least": {"question": "Three slices take at least", "said": "4"}} == kept


def test_a_prediction_is_found_after_a_restart_and_one_to_another_question_is_not(
    page: Page, boxes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    predict("pan", "Three slices take at least", unit="min", mine="240 s")
    restart(monkeypatch)
    predict("pan", "Three slices take at least", unit="min")
    show_answer()

    assert ["Why was I off?"] == [box.children[0].description for box in boxes], "what is answered needs no box"
    assert "… 3 min (you predicted 4 min: " in page.last["text/html"]
    predict("pan", "Three slices take at least", unit="min")
    assert "240 s" == boxes[-1].children[0].value, "the cell once more: to change it"
    restart(monkeypatch)
    predict("pan", "Four slices take at least", unit="min")
    assert "not predicted yet" in page.outputs[-2]["text/html"]


def test_what_cannot_be_read_is_told_in_the_box_which_stays(page: Page, boxes: list[Any]) -> None:
    predict("pan", "Three slices take at least", unit="min")
    line, told = boxes[0].children
    line.value = "<b>soon"

    assert "&#x27;&lt;b&gt;soon&#x27; is not a number: expected a number. Write a number" in told.value
    assert "not predicted yet" in page.html
    line.value = "3 kB"
    assert "&#x27;kB&#x27; is not the unit of the question: the question asks for a number in min" in told.value
    line.value = "about 3.5"
    assert "you predicted 3.5 min" in page.html


def test_code_in_a_question_is_set_as_code_and_nothing_else_is_markup(page: Page, boxes: list[Any]) -> None:
    predict("pan", "`sum` of <b> takes", unit="min")
    show_answer()

    assert 3 == page.html.count("<code>sum</code> of &lt;b&gt; takes"), "asked, held back, and beside the truth"
    boxes[0].children[0].value = "4"
    assert "<code>sum</code> of &lt;b&gt; takes … 3 min" in page.last["text/html"]
    assert "`" not in page.html
    assert "sum of <b> takes …" == boxes[0].children[0].tooltip


def ask_and_miss() -> None:
    predict("pan", "Three slices take at least", unit="min", mine="4 min")
    show_answer()


def kept_data(page: Page) -> dict[str, Any]:
    return next(bundle[predictions.KEPT_AS] for bundle in page.outputs if predictions.KEPT_AS in bundle)


def test_who_was_off_is_asked_why_and_the_reason_is_kept(
    page: Page, boxes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_and_miss()
    (why,) = boxes
    said = {"name": "pan", "said": 240.0, "true": 180.0}

    assert {"predictions": [said], "why": ""} == kept_data(page)
    why.children[0].value = "  a pan <holds>\n two "
    assert "Why I was off: a pan &lt;holds&gt; two" in page.last["text/html"]
    assert "Why I was off: a pan <holds> two" in page.last["text/plain"]
    assert {"predictions": [said], "why": "a pan <holds> two"} == kept_data(page)
    restart(monkeypatch)
    ask_and_miss()
    assert "Why I was off: a pan" in page.last["text/html"]
    assert [why] == boxes, "it is known already"
    show_answer()
    assert "a pan <holds> two" == boxes[-1].children[0].value, "the cell once more: to change it"


def test_another_prediction_needs_another_reason(page: Page, boxes: list[Any]) -> None:
    ask_and_miss()
    boxes[0].children[0].value = "a guess"
    predict("pan", "Three slices take at least", unit="min", mine="5 min")

    assert "a guess" not in page.html
    assert [""] == [box.children[0].value for box in boxes[1:]]


def test_who_waited_for_the_answer_is_asked_why_below_it(page: Page, boxes: list[Any]) -> None:
    predict("pan", "Three slices take at least", unit="min")
    show_answer()
    assert {"text/plain": "", "text/html": ""} == page.outputs[-1]
    assert not any(predictions.KEPT_AS in bundle for bundle in page.outputs), "nothing was predicted yet"
    boxes[0].children[0].value = "4"

    assert "application/vnd.jupyter.widget-view+json" in page.outputs[-1]
    boxes[-1].children[0].value = "x" * 1000
    assert {"text/plain": "", "text/html": ""} == page.outputs[-1]
    assert 300 == len(kept_data(page)["why"])


@pytest.mark.parametrize("right", ["3", "180 s"])
def test_who_was_right_is_asked_nothing(page: Page, boxes: list[Any], right: str) -> None:
    predict("pan", "Three slices take at least", unit="min", mine=right)
    show_answer()

    assert [] == boxes
    assert 180.0 == kept_data(page)["predictions"][0]["said"]


def test_a_saved_box_whose_kernel_has_gone_says_to_run_the_cell_again(page: Page, boxes: list[Any]) -> None:
    predict("pan", "Three slices take at least", unit="min")

    assert "<style>.jp-OutputArea-output.jupyter-widgets:not(:has(*))" in page.outputs[0]["text/html"]
    assert "Run this cell again" in page.outputs[0]["text/html"]


def test_the_unit_stands_beside_the_box_and_not_in_what_could_be_cut_off(page: Page, boxes: list[Any]) -> None:
    predict("kept", "The weights are", unit="times as many numbers as lse")

    assert "I predict (times as many numbers as lse)" == boxes[0].children[0].description
    assert "such as 12 or 1.2e1, then Enter" == boxes[0].children[0].placeholder
    assert "43em" == boxes[0].children[0].layout.width


def test_a_figure_in_the_place_of_an_inconclusive_measurement_says_so(page: Page) -> None:
    predict("gain", "`sum` is faster", unit="times", mine="4")
    with reveal_prediction("gain") as truth:
        truth(Instead(2.0, "modelled"))

    told = "2 times, modelled, since the measurement here was inconclusive (you predicted 4 times: 2 times too much)"
    assert f"`sum` is faster … {told}" in page.last["text/plain"]
    assert 2.0 == kept_data(page)["predictions"][0]["true"]


def test_a_choice_is_one_press_and_words_need_no_truth(page: Page, boxes: list[Any]) -> None:
    predict("faster", "Faster is", choices=("the loop", "sum"))
    predict("why", "The reason is")
    with reveal_prediction("faster", "why") as truth:
        print("measured")
        truth(faster="sum")
    boxes[1].children[0].value = "Python\n  is  slow"
    next(button for button in boxes[0].children[0].children if button.description == "sum").click()

    assert "Faster is … sum (you predicted sum: right)" in page.last["text/html"]
    assert "The reason is … you predicted Python is slow" in page.last["text/html"]


def test_without_a_page_all_is_text_and_nothing_is_kept(capsys, tmp_path: Path) -> None:
    predict("pan", "Three slices take at least", unit="min")
    show_answer()

    assert (
        "○ Three slices take at least … not predicted yet\n"
        "never half empty\n"
        "Three slices take at least … 3 min (you made no prediction)\n"
    ) == capsys.readouterr().out
    assert [] == list(tmp_path.iterdir())


def test_where_no_box_can_be_made_the_cell_itself_takes_the_prediction(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    predict("pan", "Three slices take at least", unit="min")

    assert "Write predict(&quot;pan&quot;, …, mine=&quot;…&quot;) into this cell" in page.html
    predict("pan", "Three slices take at least", unit="min", mine="soon")
    assert "is not a number" in page.last["text/plain"]
    predict("pan", "Three slices take at least", unit="min", mine="3")
    show_answer()
    assert "(you predicted 3 min: right)" in page.last["text/plain"]


def test_a_block_that_breaks_shows_what_it_printed_and_raises_on(page: Page, capsys) -> None:
    def broken() -> None:
        with reveal_prediction("pan"):
            print("so far")
            raise NotImplementedError

    with pytest.raises(NotImplementedError):
        broken()

    assert ("so far\n", []) == (capsys.readouterr().out, page.outputs)


def test_an_authors_slip_is_told() -> None:
    with pytest.raises(UsageError, match="a number and a choice"):
        predict("pan", "What", unit="s", choices=("a",))
    with (
        pytest.raises(UsageError, match="toast is revealed but was never predicted"),
        reveal_prediction("pan") as truth,
    ):
        truth(toast=1.0)


def test_two_labs_in_a_folder_may_ask_under_one_name(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    predict("pan", "Three slices take at least", unit="min", mine=3)
    restart(monkeypatch)
    predict("pan", "The pan weighs", unit="kg", mine="2")
    restart(monkeypatch)
    predict("pan", "Three slices take at least", unit="min")
    show_answer()

    assert "you predicted 3 min" in page.last["text/html"]


@pytest.mark.parametrize("text", ["[]", "{", '{"pan": 3}', '{"pan: Q": {"question": "Q", "said": "soon"}}', "[" * 9000])
def test_a_file_that_anybody_wrote_is_no_prediction(text: str, page: Page, tmp_path: Path) -> None:
    (tmp_path / ".edl_labs").mkdir()
    (tmp_path / ".edl_labs" / "predictions.json").write_text(text)

    predict("pan", "Q", unit="min")
    assert "not predicted yet" in page.html
    predict("pan", "Q", unit="min", mine="3")
    assert "you predicted 3 min" in page.html


TYPED = [
    *(("3 ms", "s", 3e-3), ("3", "ms", 3e-3), ("3ms", "µs", 3e-3), ("50 us", "µs", 5e-5), ("2 minutes", "s", 120.0)),
    *(("1e9", "FLOP/s", 1e9), ("1,000", "calls", 1e3), ("1 000", "calls", 1e3), ("12,345.6", "calls", 12345.6)),
    *(("0,5", "s", 0.5), ("1,5", "s", 1.5), ("0,125", "s", 0.125), ("1'000'000", "calls", 1e6), (".5", "s", 0.5)),
    *(("2^16", "times", 65536.0), ("2**-2", "times", 0.25), ("10^9", "FLOP", 1e9), ("1/4", "times", 0.25)),
    *(("3·10^8", "calls", 3e8), ("3 x 10^8", "calls", 3e8), ("about 40 %", "%", 0.4), ("40", "%", 0.4)),
    *(("5x", "times", 5.0), ("5 times", "times", 5.0), ("~ 300 GFLOPS", "FLOP/s", 3e11), ("12 gb/s", "GB/s", 12e9)),
    *(("300 Gflop/s", "GFLOP/s", 3e11), ("4 KiB", "B", 4096.0), ("670 calls", "calls", 670.0)),
    *(
        ("500 mb/s", "MB/s", 5e8),
        ("100 mflops", "MFLOP/s", 1e8),
        ("250 mb", "MB", 2.5e8),
        ("134 mib", "MB", 134 * 2.0**20),
    ),
    *(("1 Gb/s", "GB/s", 1.25e8), ("10 gbps", "GB/s", 1.25e9), ("10 GBps", "GB/s", 1e10), ("80 Mbits/s", "MB/s", 1e7)),
    *(("8 Mib/s", "MB/s", 2.0**20), ("1 Gb/s", "Gbit/s", 1e9), ("6 Gbit/s", "Gbit/s", 6e9), ("8 b/s", "B/s", 1.0)),
    *(("1 call", "calls", 1.0), ("2049", "1", 2049.0), ("-3", "tiles", -3.0), ("\u22123", "tiles", -3.0)),
]


@pytest.mark.parametrize(("text", "unit", "value"), TYPED)
def test_numbers_are_read_as_people_type_them(text: str, unit: str, value: float) -> None:
    assert value == pytest.approx(typed_number(text, unit), rel=1e-12)


@pytest.mark.parametrize("text", ["", "soon", "3 4 potatoes", "1/0", "9" * 400, "2^99999", "1e999", "3 s", "--3", "1e"])
def test_what_is_no_number_is_refused_with_what_why_next(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        typed_number(text, "tiles")

    assert all((refused.value.what, refused.value.why, refused.value.next))


def test_numbers_read_back_and_distances_in_words() -> None:
    assert ["50 µs", "3.5 min", "12,500 tiles", "0.5 FLOP/B"] == [
        *(number_text(5e-5, "ms"), number_text(210.0, "min"), number_text(12500, "tiles"), number_text(0.5, "FLOP/B"))
    ]
    assert ["2,049", "9.953"] == [number_text(2049, "1"), number_text(9.953125, "1")]
    assert ["right", "right to within 5 %", "not right", "not right", "100 times too little", "20 % too little"] == [
        *(apart(3, 3), apart(3.1, 3), apart(0, 3), apart(-3, 3), apart(1, 100), apart(80, 100))
    ]
    assert apart(1e-323, 1.34e8).endswith("too little")
    with pytest.raises(UsageError, match="too large"):
        typed_number("1e308 GB", "MB")
    assert ("right", "not right") == (apart(float("inf"), float("inf")), apart(1, float("inf")))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        *((2.0**19, "KiB", "512 KiB"), (2.0**31, "GiB", "2 GiB"), (3 * 2.0**20, "GiB", "3 MiB"), (0.0, "KiB", "0 KiB")),
        *(
            (300.0, "s", "300 s"),
            (0.25, "s", "0.25 s"),
            (2.5e-3, "ms", "2.5 ms"),
            (3e6, "MB", "3 MB"),
            (5e9, "B", "5 GB"),
        ),
        *((1.0, "times", "1×"), (1.78, "times", "1.78 times"), (1.0, "calls", "1 calls")),
    ],
)
def test_a_number_is_shown_in_the_unit_that_its_box_asks_for(value: float, unit: str, text: str) -> None:
    assert text == number_text(value, unit)


def drawn(page: Page) -> str:
    """What a block shows that draws a figure."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")  # an earlier test's
    from edl_labs.plots import style

    with reveal_prediction("pan") as truth:
        print("three slices")
        _, axes = style.subplots(figsize=(1, 1))
        axes.plot([1, 2], label="slices")
        truth(180.0)
    return page.html


def test_a_figure_waits_for_the_prediction_too(page: Page) -> None:
    import matplotlib.pyplot as plt

    predict("pan", "Three slices take at least", unit="min")
    shown = drawn(page)

    assert [] == plt.get_fignums(), "the notebook would show it when the cell has ended"
    assert shown.index("<details>") < shown.index("<img") < shown.index("</details>")
    assert "slices from 1 to 2" in shown

    predict("pan", "Three slices take at least", unit="min", mine="3 min")
    assert "<details>" not in page.html
    assert "<img" in page.html


def test_a_figure_after_the_prediction_is_the_notebooks(page: Page) -> None:
    import matplotlib.pyplot as plt

    predict("pan", "Three slices take at least", unit="min", mine="3 min")

    assert "<img" not in drawn(page)
    assert len(plt.get_fignums()) == 1
    plt.close("all")


def test_without_a_page_a_figure_stays_where_it_is() -> None:
    import matplotlib.pyplot as plt

    predict("pan", "Three slices take at least", unit="min")
    drawn(Page())

    assert len(plt.get_fignums()) == 1
    plt.close("all")
