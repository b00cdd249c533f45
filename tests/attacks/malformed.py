"""Malformed notebooks, drawn from a seed: bytes that no editor would write, and a few that some do."""

from __future__ import annotations

import copy
import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable
from typing import Any

Maker = Callable[[random.Random, dict[str, Any]], bytes]


def draw(rng: random.Random, notebook: dict[str, Any]) -> tuple[str, bytes]:
    """One malformed notebook and what was done to it."""
    name = rng.choice(sorted(MAKERS))
    return name, MAKERS[name](rng, copy.deepcopy(notebook))


def _text(notebook: Any) -> bytes:
    return json.dumps(notebook).encode()


def _cut(rng: random.Random, notebook: dict[str, Any]) -> bytes:
    data = _text(notebook)
    return data[: rng.randrange(len(data))]


def _flipped(rng: random.Random, notebook: dict[str, Any]) -> bytes:
    data = bytearray(_text(notebook))
    for _ in range(rng.randint(1, 40)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def _shuffled(rng: random.Random, notebook: dict[str, Any]) -> bytes:
    data = _text(notebook)
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    return data[:a] + data[b:] + data[a:b]


def _random(rng: random.Random, _: dict[str, Any]) -> bytes:
    return rng.randbytes(rng.randrange(1, 5000))


def _junk(rng: random.Random) -> Any:
    kinds = [
        None,
        True,
        -1,
        1e308,
        "",
        "x" * 5000,
        [],
        {},
        [[]],
        {"a": {}},
        "\u202e\0",
        "\ud800",
        float("nan"),
        1 << 80,
    ]
    return rng.choice(kinds)


def _mutated(rng: random.Random, notebook: dict[str, Any]) -> bytes:
    """Values of the wrong kind at places drawn from the tree."""
    for _ in range(rng.randint(1, 12)):
        _mutate(rng, notebook)
    return json.dumps(notebook).encode("utf-8", "surrogatepass")


def _mutate(rng: random.Random, tree: Any) -> None:
    while isinstance(tree, (dict, list)) and tree:
        key = rng.choice(list(tree)) if isinstance(tree, dict) else rng.randrange(len(tree))
        if rng.random() < 0.35 or not isinstance(tree[key], (dict, list)):
            if rng.random() < 0.3:
                del tree[key]
            else:
                tree[key] = _junk(rng)
            return
        tree = tree[key]


def _metadata(rng: random.Random, notebook: dict[str, Any]) -> bytes:
    for cell in rng.sample(notebook["cells"], k=rng.randint(1, len(notebook["cells"]))):
        cell["metadata"] = rng.choice([_junk(rng), {"nbgrader": _junk(rng)}, {"nbgrader": {"grade_id": _junk(rng)}}])
    return json.dumps(notebook).encode("utf-8", "surrogatepass")


def _encoded(rng: random.Random, notebook: dict[str, Any]) -> bytes:
    text = json.dumps(notebook, ensure_ascii=False) + " é"
    return text.encode(rng.choice(["utf-16", "utf-32", "latin-1", "cp037", "utf-8-sig", "utf-7"]), "replace")


def _nested(rng: random.Random, notebook: dict[str, Any]) -> bytes:
    depth = rng.choice([500, 20_000, 300_000])
    deep = b"[" * depth + b"]" * depth
    place = rng.choice(["outputs", "metadata", "source", "top"])
    if place == "top":
        return deep
    notebook["cells"][2][place] = "@@"
    return _text(notebook).replace(b'"@@"', deep)


def _archive(rng: random.Random, notebook: dict[str, Any]) -> bytes:
    packed = io.BytesIO()
    if rng.random() < 0.5:
        return gzip.compress(_text(notebook))
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("lab.ipynb", _text(notebook))
    return packed.getvalue()


def _other_format(rng: random.Random, notebook: dict[str, Any]) -> bytes:
    old = {"worksheets": [{"cells": notebook["cells"]}], "nbformat": 3, "metadata": {}}
    return _text(rng.choice([old, [notebook], {"notebook": notebook}, notebook["cells"], "notebook", None, 4]))


def _many_cells(rng: random.Random, notebook: dict[str, Any]) -> bytes:
    notebook["cells"] *= rng.choice([50, 3000])
    return _text(notebook)


def _long_source(rng: random.Random, notebook: dict[str, Any]) -> bytes:
    rng.choice(notebook["cells"])["source"] = "x = 1\n" * rng.choice([10_000, 3_000_000])
    return _text(notebook)


def _repeated_keys(rng: random.Random, notebook: dict[str, Any]) -> bytes:
    return (
        b'{"cells": 1, "cells": [], '
        + _text(notebook)[1:-1]
        + b', "cells": '
        + rng.choice([b"[]", b"null", b"[{}]"])
        + b"}"
    )


def _empty(rng: random.Random, _: dict[str, Any]) -> bytes:
    return rng.choice([b"", b" \n", b"{}", b"[]", b"\0" * 100, b'{"cells": []}', b'{"cells": {}}', b"\xef\xbb\xbf"])


MAKERS: dict[str, Maker] = {
    "archive": _archive,
    "cut": _cut,
    "empty": _empty,
    "encoded": _encoded,
    "flipped": _flipped,
    "long source": _long_source,
    "many cells": _many_cells,
    "metadata": _metadata,
    "mutated": _mutated,
    "nested": _nested,
    "other format": _other_format,
    "random": _random,
    "repeated keys": _repeated_keys,
    "shuffled": _shuffled,
}
