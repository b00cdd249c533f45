"""Submissions that answer nothing, as code that replaces every name of a solve cell. All of them must score 0."""

from __future__ import annotations

from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.rules import defined_names

_CONSTANTS = {
    "0": "0",
    "1": "1",
    "-1": "-1",
    "0.5": "0.5",
    "None": "None",
    "an empty string": '""',
    "[]": "[]",
    "{}": "{}",
    "True": "True",
    "nan": 'float("nan")',
    "inf": 'float("inf")',
    "a huge number": "1e308",
    "an integer of 4000 bits": "1 << 4000",
    "a pair of zeros": "(0.0, 0.0)",
    "a thousand zeros": "[0.0] * 1000",
    "a deeply nested list": "_deep()",
}

_HELPERS = '''
def _deep():
    inner = []
    for _ in range(1000):
        inner = [inner]
    return inner


def _constant(make):
    return lambda *given, **named: make()


def _echo(*given, **named):
    return given[0] if given else next(iter(named.values()), None)


def _echo_all(*given, **named):
    return [*given, *named.values()]


def _frozen(function):
    memory = []

    def first_answer(*given, **named):
        if not memory:
            memory.append(function(*given, **named))
        return memory[0]

    return first_answer


class _Everything:
    """Equal to everything, with every attribute, callable, a number, a sequence."""

    def __init__(self, *given, **named):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *given, **named):
        return self

    __getitem__ = __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __truediv__ = __call__
    __enter__ = __neg__ = __abs__ = __call__

    def __eq__(self, other):
        return True

    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = __eq__

    def __hash__(self):
        return 0

    def __iter__(self):
        return iter((self, self))

    def __len__(self):
        return 2

    def __float__(self):
        return 1.0

    def __int__(self):
        return 1

    __index__ = __int__

    def __exit__(self, *given):
        return True
'''


def hostile_cells(lab: Lab) -> dict[str, str]:
    """Code by the name of the attack; run after the solution, each replaces what all solve cells define."""
    names = [name for cell in lab.cells if cell.role == "solve" for name in defined_names(cell)]
    values = {f"returns {text}": f"_constant(lambda: {code})" for text, code in _CONSTANTS.items()}
    values |= {"echoes its first argument": "_echo", "echoes all arguments": "_echo_all"}
    values |= {
        "returns an object equal to everything": "_constant(_Everything)",
        "is an object equal to everything": "_Everything()",
    }
    cells = {what: _replacing(names, value) for what, value in values.items()}
    return cells | {"always returns its first answer": _frozen_cell(names)}


def _replacing(names: list[str], value: str) -> str:
    return _HELPERS + "".join(f"{name} = {value}\n" for name in names)


def _frozen_cell(names: list[str]) -> str:
    """Functions remember one right answer; classes, whose one object may serve for ever, are replaced by a constant."""
    lines = [f"{name} = _constant(lambda: 0) if isinstance({name}, type) else _frozen({name})" for name in names]
    return _HELPERS + "\n".join(lines) + "\n"
