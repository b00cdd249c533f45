"""Generates code that passes a function's arguments to another function, and that reads parts of its result.

Names that agree are matched, entries of dicts and of short lists count as arguments, a dataclass that a parameter asks
for is made of them, and what has no name of its own is tried in every order. Values are never renamed or computed with.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import math
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from edl_labs.checks import plain_data
from edl_labs.checks.evidence_form import Misfit, plain_lists
from edl_labs.errors import PlainDataError

BUDGET = 24  # arrangements of a function's arguments for each function that is asked for: a minute of CPU a lab
_MAX_ENTRIES = 24  # of a dict; the largest case of the labs has 12
_MAX_PARTS = 4  # of an answer that is put together from several attributes or items
_NUMBERS = {"int": (int, float), "float": (int, float), "str": (str,), "bool": (bool,)}


def arranged(signature: inspect.Signature, hints: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    """Argument lists as text in which `given` can be handed to a function, likely ones first."""
    sources = dict(_sources(given))
    named = {_last(text): text for text in reversed(sources)}
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = [p for p in signature.parameters.values() if p.kind in kinds]
    suited = {p.name: named[p.name] for p in parameters if p.name in named}
    missing = [p for p in parameters if p.default is p.empty and p.name not in suited]
    rest = {text: value for text, value in sources.items() if text not in suited.values()}
    if suited or missing:
        for filling in _fillings(missing, hints, rest, named, budget=BUDGET // 2):
            pairs = {**suited, **dict(zip([p.name for p in missing], filling, strict=True))}
            yield ", ".join(f"{name}={text}" for name, text in pairs.items())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    places = [p for p in signature.parameters.values() if p.kind in positional]
    most = _MAX_PARTS if any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()) else len(places)
    for count in range(1, min(most, _MAX_PARTS, len(sources)) + 1):
        filled = [*places, *[inspect.Parameter("more", positional[0])] * count][:count]
        for filling in _fillings(filled, hints, sources, named, budget=BUDGET):
            text = ", ".join(filling)
            with contextlib.suppress(TypeError):
                signature.bind(*filling)
                yield text


def _sources(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The arguments and the entries of those that have some, as text and value."""
    for name, value in given.items():
        yield name, value
        if isinstance(value, dict) and len(value) <= _MAX_ENTRIES:
            yield from ((f"{name}[{key!r}]", entry) for key, entry in value.items() if isinstance(key, str))
        if isinstance(value, (list, tuple)) and 1 < len(value) <= _MAX_PARTS:
            yield from ((f"{name}[{index}]", entry) for index, entry in enumerate(value))


def _last(text: str) -> str:
    return text.rpartition("['")[2].removesuffix("']")


def _fillings(
    parameters: list[inspect.Parameter],
    hints: Mapping[str, Any],
    sources: Mapping[str, Any],
    named: Mapping[str, str],
    *,
    budget: int,
) -> Iterator[tuple[str, ...]]:
    """Texts for the parameters, each source at most once, of types that their annotations allow."""
    choices = []
    for one in parameters:
        built = _built(hints.get(one.name), named, sources)
        choices.append(built or [text for text, value in sources.items() if _suits(hints.get(one.name), value)])
    found = (filling for filling in itertools.product(*choices) if len(set(filling)) == len(filling))
    return itertools.islice(found, budget)


def _suits(hint: Any, value: Any) -> bool:
    allowed = _NUMBERS.get(getattr(hint, "__name__", ""))
    return allowed is None or (isinstance(value, allowed) and (bool in allowed or not isinstance(value, bool)))


def _built(hint: Any, named: Mapping[str, str], sources: Mapping[str, Any]) -> list[str]:
    """Texts that make a dataclass of the library from sources: by name, and one more where one field is left."""
    if not (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        return []
    fields = [f for f in dataclasses.fields(hint) if f.init]
    known = [f"{f.name}={named[f.name]}" for f in fields if f.name in named]
    blank = (dataclasses.MISSING, dataclasses.MISSING)
    missing = [f.name for f in fields if (f.default, f.default_factory) == blank and f.name not in named]
    made = f"_made[{hint.__qualname__!r}]"
    if not missing:
        return [f"{made}({', '.join(known)})"] if known else []
    if len(missing) > 1:
        return []
    rest = [text for text, value in sources.items() if type(value) in (int, float)]
    return [f"{made}({', '.join([*known, f'{missing[0]}={text}'])})" for text in rest[:8]]


def readings(found: Any, want: Any) -> Iterator[str]:
    """How `want` can be read from `found`, as text over the name `found`."""
    parts = dict(_parts(found))
    yield from (text for text, value in parts.items() if same(value, want))
    if isinstance(want, list) and 1 < len(want) <= _MAX_PARTS:
        texts = [[text for text, value in parts.items() if same(value, one)][:3] for one in want]
        yield from (f"[{', '.join(pieces)}]" for pieces in itertools.islice(itertools.product(*texts), 9))


_READ = (("found.item()", lambda found: found.item()), ("float(found)", float), ("list(found)", list))


def _parts(found: Any) -> Iterator[tuple[str, Any]]:
    """What can be read of a result in one step."""
    yield "found", found
    for text, way in _READ if not isinstance(found, (int, float, str, dict)) else ():
        with contextlib.suppress(Exception):
            yield text, way(found)
    if isinstance(found, Mapping):
        yield from ((f"found[{key!r}]", value) for key, value in list(found.items())[:_MAX_ENTRIES])
    elif isinstance(found, (list, tuple)):
        yield from ((f"found[{index}]", found[index]) for index in (*range(min(len(found), _MAX_PARTS)), -1) if found)
    kind: Any = type(found)
    for name in _told(kind):
        with contextlib.suppress(Exception):
            if not callable(value := getattr(found, name)):
                yield f"found.{name}", value


@cache
def _told(kind: type) -> tuple[str, ...]:
    """What an object of the library tells: its fields, and what it works out."""
    if not kind.__module__.startswith("edl_labs"):
        return ()
    fields = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    return tuple(name for name in dict.fromkeys([*fields, *dir(kind)]) if name[0] != "_")


def same(got: Any, want: Any) -> bool:
    """Whether a value is, in any form that passes for it, what the solution gave."""
    if isinstance(want, (bool, str)) or want is None:
        return type(got) is type(want) and bool(got == want)
    if isinstance(want, (int, float)) and type(got) in (int, float):
        return _equal(got, want)
    numeric = hasattr(got, "item") and getattr(got, "ndim", 1) == 0
    if isinstance(want, (int, float)) and not numeric:
        return False
    if isinstance(want, dict) is not isinstance(got, Mapping) or isinstance(got, str):
        return False
    if isinstance(want, list) and hasattr(got, "__len__") and len(got) != len(want):
        return False
    try:
        return _equal(plain_lists(plain_data.plain_copy(got)), want)
    except (PlainDataError, Misfit):
        return False


def _equal(got: Any, want: Any) -> bool:
    if isinstance(got, list) and isinstance(want, list):
        return len(got) == len(want) and all(map(_equal, got, want))
    if isinstance(got, dict) and isinstance(want, dict):
        return got.keys() == want.keys() and all(_equal(got[key], want[key]) for key in want)
    if type(got) in (int, float) and type(want) in (int, float):
        return math.isclose(got, want, rel_tol=1e-6) or (math.isnan(got) and math.isnan(want))
    return type(got) is type(want) and bool(got == want)
