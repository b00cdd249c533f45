"""Boxes for predictions: what a student expects is kept, and the truth is shown next to it, not before it.

`predict` shows a box, and `revealed` holds back what its block prints until the box is filled:

    predict("pan", "Three slices take at least", unit="min")

    with revealed("pan") as truth:
        print("a pan that is never half empty:", ...)
        truth(180.0)

Both only ever show something: no points come from them, nothing waits, and nothing is raised at a student. What was
typed is stored next to the notebook, so that it outlasts a restart, and as text in the notebook itself.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from edl_labs.checks.kept_beside import is_notebook, read_beside, write_beside
from edl_labs.checks.outcome_display import prose_html
from edl_labs.errors import UsageError
from edl_labs.palette import GOOD, IDLE, NOTE
from edl_labs.ui.live_or_still import picture_html
from edl_labs.ui.number_entry import apart, example, number_text, typed_number

_FILE = "predictions"
_ASKED: dict[str, _Question] = {}
_SAID: dict[str, str] = {}
_REVEALED: dict[tuple[str, ...], tuple[Any, _Answer]] = {}
_BOX = 'style="border-left:4px solid {};padding:.3em .8em;margin:.3em 0"'
_NO_BOX = "(a box to write in, where a notebook runs)"


@dataclass(frozen=True)
class _Question:
    """What is asked: a number where there is a `unit`, one of `choices`, else words."""

    name: str
    text: str
    unit: str
    choices: tuple[str, ...]

    def checked(self, said: str) -> str:
        """What was said, tidied; UsageError where it is no answer to this."""
        said = " ".join(said.split())
        if self.choices and said not in self.choices:
            raise UsageError(
                f"{said[:40]!r} is none of the choices", why="expected one of them", next=" or ".join(self.choices)
            )
        if self.unit:
            typed_number(said, self.unit)
        return said

    def shown(self, said: str) -> str:
        """What was said, as it is shown."""
        return number_text(typed_number(said, self.unit), self.unit) if self.unit else said

    def compared(self, said: str, true: Any) -> str:
        """One line: how the question's sentence ends, and how it was predicted to; empty where neither is known."""
        if true is None:
            return f"{self.text} … you predicted {self.shown(said)}" if said else ""
        ends = number_text(float(true), self.unit) if self.unit else str(true)
        told = f"you predicted {self.shown(said)}: {self._verdict(said, true)}" if said else "nothing was predicted"
        return f"{self.text} … {ends} ({told})".replace(": )", ")")

    def _verdict(self, said: str, true: Any) -> str:
        if self.unit:
            return apart(typed_number(said, self.unit), float(true))
        return ("right" if said == true else "not so") if self.choices else ""


def predict(name: str, question: str, *, unit: str = "", choices: Sequence[str] = (), mine: str | float = "") -> None:
    """Shows a box for a prediction: a number in `unit`, one of `choices`, or words. It is kept under `name`.

    Where no box can be shown, `mine="3 ms"` says the same. Once it is filled, the box gives way to text; running the
    cell once more brings it back. UsageError for a question that asks for a number and a choice.
    """
    if unit and choices:
        raise UsageError(f"{name} asks for a number and a choice", next="give unit= or choices=, not both")
    mine = str(mine)
    asked = _Question(name, question, unit, tuple(choices))
    again = _ASKED.get(name) == asked
    _ASKED[name] = asked
    problem = _keep(asked, mine) if mine else ""
    if name not in _SAID and (earlier := _said_before(asked)):
        _SAID[name] = earlier
    _show_question(asked, box=not mine and (again or name not in _SAID), problem=problem)


@contextmanager
def revealed(*names: str) -> Iterator[Truth]:
    """Holds back what the block prints and draws until what `names` ask for was predicted; then shows both.

    The value of the block takes what turned out: `truth(0.003)`, or `truth(name=0.003)` where there are several;
    numbers in SI units. A block that raises shows what it printed, and raises on. Figures of pyplot are held back in
    notebooks alone; elsewhere they are not shown automatically.
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
                next="use the name that predict() has",
            )
        self.values.update(told)


@dataclass(frozen=True)
class _Answer:
    """What a block printed, and what turned out; shown in full only when all was predicted."""

    names: tuple[str, ...]
    truths: dict[str, Any]
    printed: str
    pictures: tuple[str, ...] = ()
    """Figures that waited for the prediction, as HTML."""

    @property
    def missing(self) -> list[str]:
        """The questions that are not answered yet."""
        return [_question(name).text for name in self.names if name not in _SAID]

    def lines(self) -> list[str]:
        """Each question with prediction and truth."""
        lines = [_question(name).compared(_SAID.get(name, ""), self.truths.get(name)) for name in self.names]
        return list(filter(None, lines))

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
        first = f"<b>Predict first.</b> What came out is shown here as soon as the box above is filled: {_listed(self)}"
        hidden = f'<summary style="cursor:pointer">show it without a prediction</summary>{printed}{lines}'
        return f"<div {_BOX.format(IDLE)}>{first}<details>{hidden}</details></div>"


def _listed(answer: _Answer) -> str:
    return "; ".join(f"<i>{prose_html(text)} …</i>" for text in answer.missing)


def _question(name: str) -> _Question:
    return _ASKED.get(name, _Question(name, name, "", ()))


def _keep(asked: _Question, said: str) -> str:
    """Keeps a prediction and shows what waited for it; says what is wrong where it is none."""
    try:
        _SAID[asked.name] = asked.checked(said)
    except UsageError as error:
        return f"{error.what}: {error.why}. {error.next[:1].upper()}{error.next[1:]}."
    if is_notebook():
        kept = {"question": asked.text, "said": _SAID[asked.name]}
        write_beside(_FILE, {**read_beside(_FILE), _key(asked): kept})
    for names, (handle, answer) in _REVEALED.items():
        if asked.name in names and not answer.missing:
            handle.update(_bundle(answer.text(), answer.html()), raw=True)
    return ""


def _key(asked: _Question) -> str:
    """Notebooks in one folder share the file, and another lab may use the same name."""
    return f"{asked.name}: {asked.text}"


def _said_before(asked: _Question) -> str:
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


def _asked_bundle(asked: _Question, problem: str = "") -> dict[str, Any]:
    """The question with what was said, as text: this is what stays in the notebook."""
    said = _SAID.get(asked.name)
    state = f"you predicted {asked.shown(said)}" if said is not None else "not predicted yet"
    sign, colour = ("✓", GOOD) if said is not None else ("○", NOTE)
    head = "Your prediction" if said is not None else "Predict"
    rows = [f"<b>{head}.</b> {prose_html(asked.text)} … {sign} {escape(state)}"]
    rows += [f'<div role="alert">{escape(problem)}</div>'] if problem else []
    text = f"{sign} {asked.text} … {state}" + (f"\n  {problem}" if problem else "")
    return _bundle(text, f"<div {_BOX.format(colour)}>{''.join(rows)}</div>")


def _show_question(asked: _Question, *, box: bool, problem: str) -> None:
    display = _display()
    if display is None:
        print(_asked_bundle(asked, problem)["text/plain"])
        return
    shown = display(_asked_bundle(asked, problem), raw=True, display_id=True)
    if not box:
        return
    try:
        widget, connect = _widget(asked)
        live = {"text/plain": _NO_BOX, **dict(widget._repr_mimebundle_())}
    except Exception:  # no ipywidgets, or no kernel to talk to
        how = f'No box can be shown here. Write predict("{asked.name}", …, mine="…") into this cell and run it.'
        shown.update(_asked_bundle(asked, how), raw=True)
        return
    place = display({**live, "text/plain": _NO_BOX}, raw=True, display_id=True)

    def filled() -> None:
        shown.update(_asked_bundle(asked), raw=True)
        place.update(_bundle("", ""), raw=True)
        with suppress(Exception):
            widget.close()

    connect(filled)


def _widget(asked: _Question) -> tuple[Any, Any]:
    """The box, and what tells it whom to call when it was filled."""
    import ipywidgets

    told = ipywidgets.HTML()
    filled: list[Any] = []

    def take(said: str) -> None:
        if not said.strip():
            return
        problem = _keep(asked, said)
        told.value = f'<span role="alert">{escape(problem)}</span>'
        for call in filled if not problem else ():
            call()

    controls = _choice(ipywidgets, asked, take) if asked.choices else _line(ipywidgets, asked, take)
    return ipywidgets.VBox([controls, told]), filled.append


def _line(ipywidgets: Any, asked: _Question, take: Any) -> Any:
    line = ipywidgets.Text(
        value=_SAID.get(asked.name, ""),
        description="I predict",
        placeholder=f"{example(asked.unit)}, then Enter" if asked.unit else "in a few words, then Enter",
        tooltip=f"{asked.text} …".replace("`", ""),
        continuous_update=False,
        layout={"width": "26em" if asked.unit else "44em", "max_width": "100%"},
    )
    line.observe(lambda change: take(change["new"]), "value")
    return line


def _choice(ipywidgets: Any, asked: _Question, take: Any) -> Any:
    buttons = [
        ipywidgets.Button(
            description=choice, tooltip=f"{asked.text} … {choice}".replace("`", ""), layout={"width": "auto"}
        )
        for choice in asked.choices
    ]
    for button in buttons:
        button.on_click(lambda pressed: take(pressed.description))
    return ipywidgets.HBox(buttons, layout={"flex_flow": "row wrap"})


def _show_answer(answer: _Answer) -> None:
    display = _display()
    if display is None:
        print(answer.text())
        return
    handle = display(_bundle(answer.text(), answer.html()), raw=True, display_id=True)
    _REVEALED[answer.names] = (handle, answer)


def _display() -> Any:
    """IPython's display in a notebook, None elsewhere."""
    if not is_notebook():
        return None
    from IPython.display import display

    return display
