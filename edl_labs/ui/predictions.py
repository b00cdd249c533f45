"""Boxes for predictions: what a student expects is kept, and the truth is shown next to it, not before it.

`predict` shows a box, and `revealed` holds back what its block prints until the box is filled:

    predict("pan", "Three slices take at least", unit="min")

    with reveal_prediction("pan") as truth:
        print("a pan that is never half empty:", ...)
        truth(180.0)

A student who was off is asked why, in one line. All of it only ever shows something: no points come from it,
nothing waits, and nothing is raised at a student. What was typed is stored
next to the notebook, so that it outlasts a restart, and in the notebook itself: as text, and as data for the report
on a class.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from edl_labs.checks.outcome_display import prose_html
from edl_labs.checks.progress_store import is_notebook, read_beside, write_beside
from edl_labs.errors import UsageError
from edl_labs.palette import GOOD, IDLE, NOTE
from edl_labs.ui.answer_boxes import REOPENED_STYLE, choice_box, empty_place, line_box, show_box
from edl_labs.ui.asked_question import MOST_LETTERS, Instead, Question
from edl_labs.ui.live_or_still import picture_html

__all__ = ["KEPT_AS", "Instead", "Truth", "predict", "reveal_prediction"]
KEPT_AS = "application/vnd.edl-labs.predictions+json"
"""The MIME type of the output that stores a cell's predictions, the true values, and why the student was off."""
_FILE = "predictions"
_ASKED: dict[str, Question] = {}
_SAID: dict[str, str] = {}
_REASONS: dict[tuple[str, ...], str] = {}
_REVEALED: dict[tuple[str, ...], _Revealed] = {}
_BOX = 'style="border-left:4px solid {};padding:.3em .8em;margin:.3em 0"'


def predict(name: str, question: str, *, unit: str = "", choices: Sequence[str] = (), mine: str | float = "") -> None:
    """Shows a box for a prediction: a number in `unit`, one of `choices`, or words. It is kept under `name`.

    Where no box can be shown, `mine="3 ms"` says the same. Once it is filled, the box gives way to text; running the
    cell once more brings it back. UsageError for a question that asks for both a number and a choice.
    """
    if unit and choices:
        raise UsageError(f"{name} asks for both a number and a choice", next="pass either `unit` or `choices`")
    mine = str(mine)
    asked = Question(name, question, unit, tuple(choices))
    again = _ASKED.get(name) == asked
    _ASKED[name] = asked
    problem = _keep(asked, mine) if mine else ""
    if name not in _SAID and (earlier := _said_before(asked)):
        _SAID[name] = earlier
    _show_question(asked, box=not mine and (again or name not in _SAID), problem=problem)


@contextmanager
def reveal_prediction(*names: str) -> Iterator[Truth]:
    """Holds back what the block prints and draws until what `names` ask for was predicted; then shows both.

    The value of the block takes what turned out: `truth(0.003)`, or `truth(name=0.003)` where there are several;
    numbers in SI units. `Instead(2.0, "modelled")` is a figure for a measurement that decided nothing. A block that
    raises shows what it printed, and raises on. Figures of pyplot are held back in notebooks alone; elsewhere nothing
    shows them unasked.
    """
    printed, truth = io.StringIO(), Truth(names)
    before = _open_figures()
    try:
        with redirect_stdout(printed):
            yield truth
    except BaseException:
        print(printed.getvalue(), end="")
        raise
    answer = _Answer(names, dict(truth.values), printed.getvalue().rstrip())
    if answer.missing and is_notebook():
        answer = replace(answer, pictures=_taken_pictures(before))
    _show_answer(answer)


def _open_figures() -> frozenset[int]:
    """The numbers of pyplot's open figures; none where nothing has loaded pyplot."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    return frozenset(pyplot.get_fignums()) if pyplot else frozenset()


def _taken_pictures(before: frozenset[int]) -> tuple[str, ...]:
    """The figures that were opened since `before`, as HTML, which may be hidden; pyplot lets them go."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    return tuple(f"<div>{picture_html(pyplot.figure(one))}</div>" for one in sorted(_open_figures() - before))


@dataclass(frozen=True)
class Truth:
    """Takes what turned out, by the name of what was predicted."""

    names: tuple[str, ...]
    values: dict[str, Any] = field(default_factory=dict)

    def __call__(self, value: Any = None, **values: Any) -> None:
        told = {self.names[0]: value, **values} if value is not None else values
        if strange := set(told) - set(self.names):
            raise UsageError(
                f"{sorted(strange)[0]} is revealed but was never predicted",
                why=f"this block reveals {', '.join(self.names)}",
                next="use the name that you passed to predict()",
            )
        self.values.update(told)


@dataclass(frozen=True)
class _Answer:
    """What a block printed, and what turned out; shown in full only when all was predicted."""

    names: tuple[str, ...]
    truths: dict[str, Any]
    printed: str
    pictures: tuple[str, ...] = ()
    """Figures that stay hidden until the prediction is made, as HTML."""

    @property
    def missing(self) -> list[str]:
        """The questions that are not answered yet."""
        return [_question(name).text for name in self.names if name not in _SAID]

    @property
    def is_off(self) -> bool:
        """Whether all was predicted, and not all of it was right."""
        asked = [(_question(name), name) for name in self.names]
        return not self.missing and any(one.is_off(_SAID[name], self.truths.get(name)) for one, name in asked)

    def lines(self) -> list[str]:
        """Each question with prediction and truth, and why the student was off."""
        lines = [_question(name).compared(_SAID.get(name, ""), self.truths.get(name)) for name in self.names]
        reason = _REASONS.get(self.names, "")
        return list(filter(None, [*lines, reason and f"Why I was off: {reason}"]))

    def bundle(self) -> dict[str, Any]:
        """All of it as text, as a page and, once all was predicted, as data."""
        said = [_question(name).kept(_SAID[name], self.truths.get(name)) for name in self.names if name in _SAID]
        kept = {KEPT_AS: {"predictions": said, "why": _REASONS.get(self.names, "")}} if not self.missing else {}
        return {**_bundle(self.text(), self.html()), **kept}

    def text(self) -> str:
        """All of it as plain text: it must be there where no page can hide it."""
        return "\n".join(filter(None, (self.printed, *self.lines())))

    def html(self) -> str:
        """All of it, or a place that says what to do first; what is hidden opens without a kernel too."""
        lines = "".join(f"<div>{prose_html(line)}</div>" for line in self.lines())
        printed = f'<pre style="margin:.2em 0">{escape(self.printed)}</pre>' if self.printed else ""
        printed += "".join(self.pictures)
        if not self.missing:
            return f'<div {_BOX.format(GOOD)}><div role="status" style="font-weight:600">{lines}</div>{printed}</div>'
        first = f"<b>Predict first.</b> The result appears here as soon as you fill in the box above: {_listed(self)}"
        hidden = f'<summary style="cursor:pointer">show it without a prediction</summary>{printed}{lines}'
        return f"<div {_BOX.format(IDLE)}>{first}<details>{hidden}</details></div>"


@dataclass
class _Revealed:
    """An answer on the page: where it stands, and where its student is asked why."""

    answer: _Answer
    display: Any
    handle: Any
    place: Any

    def asks_why(self) -> None:
        """Shows the box for the reason, where there is a place for it."""
        if self.place is None:
            return
        look = {
            "description": "Why was I off?",
            "placeholder": "one line, then Enter",
            "value": _REASONS.get(self.answer.names, ""),
            "layout": {"width": "48em", "max_width": "100%"},
        }
        show_box(self.display, lambda: line_box(self.take, **look), place=self.place)

    def take(self, reason: str) -> str:
        """Keeps the reason next to the notebook and in the answer."""
        names = self.answer.names
        _REASONS[names] = " ".join(reason.split())[:MOST_LETTERS]
        write_beside(_FILE, {**read_beside(_FILE), _reason_key(names): _REASONS[names]})
        self.handle.update(self.answer.bundle(), raw=True)
        return ""

    def predicted(self) -> None:
        """Shows what waited for the prediction."""
        self.handle.update(self.answer.bundle(), raw=True)
        if self.answer.is_off and self.answer.names not in _REASONS:
            self.asks_why()


def _reason_key(names: tuple[str, ...]) -> str:
    """Another prediction has another reason."""
    return f"why: {'; '.join(f'{_key(_question(name))} {_SAID.get(name)}' for name in names)}"


def _listed(answer: _Answer) -> str:
    return "; ".join(f"<i>{prose_html(text)} …</i>" for text in answer.missing)


def _question(name: str) -> Question:
    return _ASKED.get(name, Question(name, name, "", ()))


def _keep(asked: Question, said: str) -> str:
    """Keeps a prediction and shows what waited for it; says what is wrong where it is none."""
    try:
        _SAID[asked.name] = asked.checked(said)
    except UsageError as error:
        return f"{error.what}: {error.why}. {error.next[:1].upper()}{error.next[1:]}."
    if is_notebook():
        kept = {"question": asked.text, "said": _SAID[asked.name]}
        write_beside(_FILE, {**read_beside(_FILE), _key(asked): kept})
    for names, shown in _REVEALED.items():
        if asked.name in names:
            _REASONS.pop(names, None)
            if not shown.answer.missing:
                shown.predicted()
    return ""


def _key(asked: Question) -> str:
    """Notebooks in one folder share the file, and another lab may use the same name."""
    return f"{asked.name}: {asked.text}"


def _said_before(asked: Question) -> str:
    """What an earlier kernel was told, if the question was this one and the answer can be read."""
    found = read_beside(_FILE).get(_key(asked)) if is_notebook() else None
    if not isinstance(found, dict) or found.get("question") != asked.text or type(found.get("said")) is not str:
        return ""
    try:
        return asked.checked(found["said"])
    except UsageError:
        return ""


def _bundle(text: str, html: str) -> dict[str, Any]:
    return {"text/plain": text, "text/html": html}


def _asked_bundle(asked: Question, problem: str = "") -> dict[str, Any]:
    """The question with what was said, as text: this is what stays in the notebook."""
    said = _SAID.get(asked.name)
    state = f"you predicted {asked.shown(said)}" if said is not None else "not predicted yet"
    sign, colour = ("✓", GOOD) if said is not None else ("○", NOTE)
    head = "Your prediction" if said is not None else "Predict"
    rows = [f"<b>{head}.</b> {prose_html(asked.text)} … {sign} {escape(state)}"]
    rows += [f'<div role="alert">{escape(problem)}</div>'] if problem else []
    text = f"{sign} {asked.text} … {state}" + (f"\n  {problem}" if problem else "")
    return _bundle(text, f"<div {_BOX.format(colour)}>{REOPENED_STYLE}{''.join(rows)}</div>")


def _show_question(asked: Question, *, box: bool, problem: str) -> None:
    display = _display()
    if display is None:
        print(_asked_bundle(asked, problem)["text/plain"])
        return
    shown = display(_asked_bundle(asked, problem), raw=True, display_id=True)
    if not box:
        return
    place = show_box(display, lambda: _box(asked, lambda: shown.update(_asked_bundle(asked), raw=True)))
    if place is None:
        how = f'No box can be shown here. Write predict("{asked.name}", …, mine="…") into this cell and run it.'
        shown.update(_asked_bundle(asked, how), raw=True)


def _box(asked: Question, filled: Any) -> tuple[Any, Any]:
    """The box, and what connects a call for when it was filled."""

    def take(said: str) -> str:
        problem = _keep(asked, said)
        if not problem:
            filled()
        return problem

    tooltip = f"{asked.text} …".replace("`", "")
    if asked.choices:
        return choice_box(take, asked.choices, tooltip=tooltip)
    in_unit = f" ({asked.unit})" if asked.unit and asked.unit != "1" else ""
    return line_box(
        take,
        value=_SAID.get(asked.name, ""),
        description=f"I predict{in_unit}",
        placeholder=f"{'such as 12 or 1.2e1' if asked.unit else 'in a few words'}, then Enter",
        tooltip=tooltip,
        # Room for a number and the hint beside the label, whose letters take half an em each.
        layout={"width": f"{28 + len(in_unit) // 2}em" if asked.unit else "44em", "max_width": "100%"},
    )


def _show_answer(answer: _Answer) -> None:
    display = _display()
    if display is None:
        print(answer.text())
        return
    again = answer.names in _REVEALED
    kept = read_beside(_FILE).get(_reason_key(answer.names))
    if type(kept) is str and kept:
        _REASONS[answer.names] = kept[:MOST_LETTERS]
    handle = display(answer.bundle(), raw=True, display_id=True)
    asks = answer.is_off and (again or answer.names not in _REASONS)
    place = empty_place(display) if asks or answer.missing else None
    shown = _REVEALED[answer.names] = _Revealed(answer, display, handle, place)
    if asks:
        shown.asks_why()


def _display() -> Any:
    """IPython's display in a notebook, None elsewhere."""
    if not is_notebook():
        return None
    from IPython.display import display

    return display
