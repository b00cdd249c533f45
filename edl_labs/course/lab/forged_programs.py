"""Decodes recorded programs inside evidence, so that forging can change the fields that a case fixes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from edl_labs.virtual.cluster.program import PROGRAM as CLUSTER
from edl_labs.virtual.gpu.program import PROGRAM as GPU
from edl_labs.virtual.loader.program import PROGRAM as LOADER
from edl_labs.virtual.memory.allocator.program import PROGRAM as ALLOCATOR
from edl_labs.virtual.memory.tape.program import PROGRAM as TAPE
from edl_labs.virtual.program import FREE, OperationKind
from edl_labs.virtual.server.program import PROGRAM as SERVER
from edl_labs.virtual.warp.program import PROGRAM as WARP

_MACHINES = (GPU, CLUSTER, LOADER, ALLOCATOR, TAPE, SERVER, WARP)


class OpenedText(list[Any]):
    """A list that evidence holds as JSON text."""


def opened(node: Any) -> Any:
    """Evidence with the lists in it that are JSON text as `OpenedText`.

    >>> opened({"program": '[{"op": "sync"}]', "word": "[sic"})
    {'program': [{'op': 'sync'}], 'word': '[sic'}
    """
    if isinstance(node, dict):
        return {name: opened(item) for name, item in node.items()}
    if isinstance(node, (list, tuple)):
        return type(node)([opened(item) for item in node])
    if isinstance(node, str) and node.startswith("["):
        try:
            return OpenedText(json.loads(node))
        except ValueError:
            return node
    return node


def closed(node: Any) -> Any:
    """What `opened` made, as text again."""
    if isinstance(node, OpenedText):
        return json.dumps(node)
    if isinstance(node, dict):
        return {name: closed(item) for name, item in node.items()}
    return type(node)([closed(item) for item in node]) if isinstance(node, (list, tuple)) else node


def operations(node: Any) -> Iterator[Mapping[str, Any]]:
    """Each operation in an opened text, those inside other operations too."""
    if isinstance(node, dict):
        if type(node.get("op")) is str:
            yield node
        node = list(node.values())
    for item in node if isinstance(node, list) else ():
        yield from operations(item)


def fixed_fields(text: OpenedText) -> set[tuple[str, str]]:
    """(operation, field) of what the case fixes or earlier operations do, by the machine that knows all operations."""
    used = {entry["op"] for entry in operations(text)}
    kinds = next((one.operations for one in _MACHINES if used <= one.operations.keys()), {})
    return {(name, key) for name in used & kinds.keys() for key in _fixed(kinds[name])}


def _fixed(kind: OperationKind) -> list[str]:
    return [key for key, check in kind.checks.items() if getattr(check, "source", FREE) != FREE]
