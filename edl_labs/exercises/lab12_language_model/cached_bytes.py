"""kv_int8: keys and values in 8 bits, one token more, attention with them, and the bytes that a token takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab12_language_model.plain_tables import have_one_shape, plain_table, shapes

_SAME = 1e-5  # of the largest value: fp32, in another order of sums
_STORED = ("keys", "key_scales", "recent", "values", "value_scales")
_CALLED = {
    "integers": "int8_along (the integers)",
    "scales": "int8_along (the scales)",
    **{name: f'appended ("{name}")' for name in _STORED},
    "attended": "attended_int8",
    "cache_bytes": "cache_bytes",
    "latent_bytes": "latent_bytes",
}
_NEXT = {
    "integers": "divide this value by the scale of its row or column with pencil and paper, then round",
    "scales": "divide the largest magnitude of the row or column by 127, in fp16; use 1 where the result is 0",
    "keys": "print the cache after each token: when does a block of keys become full?",
    "key_scales": "store one scale for each channel of a full block",
    "recent": "do not convert the keys of a block that is not full yet",
    "values": "store each value immediately, with its own scale",
    "value_scales": "store one scale for each token, in a table of one column",
    "attended": "restore keys and values first, then compute attention as usual",
    "cache_bytes": "list what a token adds in one layer and one head: first the integers, then the scales",
    "latent_bytes": "what is stored once per token and layer, and what is stored for each head?",
}


@exercise("kv_int8")
class KvInt8(Exercise):
    """`int8_along` in both directions, `appended` token by token, `attended_int8` with a cache that the judge drew."""

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"int8_along": tuple[Any, Any], "appended": dict[str, Any]}

    def probe(self, student: Any, given: Any) -> Any:
        lines = [student.int8_along(_floats(given["tables"][dim]), dim) for dim in (0, 1)]
        grown = _grown(student, given)
        attended = plain_table(student.attended_int8(_floats(given["queries"]), _cache(given["cache"]), given["block"]))
        parts = {
            "integers": [plain_table(integers) for integers, _ in lines],
            "scales": [plain_table(scales) for _, scales in lines],
            **{name: [plain_table(grown[name])] for name in _STORED},
            "rounded": [_rounded(attended["values"])],  # by which a mistake is recognized in any order of sums
            "cache_bytes": [_numbers(student.cache_bytes(*one) for one in given["models"])],
            "latent_bytes": [_numbers(student.latent_bytes(*one) for one in given["latents"])],
        }
        types = {name: _type(grown[name]) for name in _STORED if name != "recent"}
        return {"parts": parts, "attended": [attended], "types": types}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for name, called in _CALLED.items():
            mine, right = (one["attended"] if name == "attended" else one["parts"][name] for one in (got, want))
            for at, pair in enumerate(zip(mine, right, strict=True)):
                _require_same(case, name, called, at, *pair)
        for name, right in want["types"].items():
            if got["types"][name] != right:
                why = f"got {got['types'][name]}, expected {right}"
                raise Wrong(f'"{name}" has the wrong type in the cache.', why=why, next=f"end with .to(torch.{right})")

    def student_inputs(self, case: Any) -> Any:
        """Tensors and numbers by the parameters' names; `tokens` are the keys and values that are appended."""
        tokens = list(zip(_floats(case["new_keys"]), _floats(case["new_values"]), strict=True))
        tensors = {"queries": _floats(case["queries"]), "cache": _cache(case["cache"]), "tokens": tokens}
        return {"table": _floats(case["tables"][0]), "dim": 0, "block": case["block"], **tensors}

    def format_case(self, case: Any) -> str:
        """Sizes."""
        keys, block = case["new_keys"], case["block"]
        cache = f"{len(case['cache']['values'])} tokens, {len(case['cache']['recent'])} of them recent"
        first = f"blocks of {block}; {len(keys)} tokens of size {len(keys[0])} are appended"
        return f"{first}; {len(case['queries'])} queries attend to {cache}; first model {case['models'][0]}"

    def format_answer(self, case: Any, got: Any) -> str:
        """The beginning of some parts, and the bytes."""
        parts = got["parts"]
        begun = ", ".join(f"{name} begins with {parts[name][0]['values'][:3]}" for name in ("integers", "scales"))
        size = {name: parts[name][0]["values"] for name in ("cache_bytes", "latent_bytes")}
        return f"{begun}, attended begins with {got['attended'][0]['values'][:3]}; bytes {size}"


def _require_same(case: Any, name: str, called: str, at: int, mine: Any, right: Any) -> None:
    where = f" with dim = {at}" if name in ("integers", "scales") else ""
    if not have_one_shape(mine, right):
        raise Wrong(f"Got the wrong shape from {called}{where}.", why=shapes(mine, right), next=_NEXT[name])
    atol = _SAME * max(map(abs, right["values"])) if name == "attended" else 0.0
    pairs = list(zip(mine["values"], right["values"], strict=True))
    off = next((i for i, pair in enumerate(pairs) if not close(*pair, atol=atol)), None)
    if off is not None:
        seen = f"number {off}, counted row by row from 0, is {pairs[off][0]:.8g}, expected {pairs[off][1]:.8g}"
        raise Wrong(
            f"Got a wrong number from {called}{where}.", why=f"{seen}{_known_of(case, name, off)}", next=_NEXT[name]
        )


def _known_of(case: Any, name: str, off: int) -> str:
    if name == "cache_bytes":
        return "; the arguments are layers = {}, heads = {}, kv_heads = {}, size = {}, block = {}".format(
            *case["models"][off]
        )
    if name == "latent_bytes":
        return "; the arguments are layers = {}, heads = {}, latent = {}, rope = {}, bits = {}".format(
            *case["latents"][off]
        )
    return ""


def _grown(student: Any, given: Any) -> Any:
    """The cache after all tokens."""
    import torch

    cache, size = _cache({name: [] for name in _STORED}, size=len(given["new_keys"][0])), given["block"]
    for key, value in zip(given["new_keys"], given["new_values"], strict=True):
        cache = student.appended(cache, torch.tensor(key), torch.tensor(value), size)
    return cache


def _floats(table: Any) -> Any:
    import torch

    return torch.tensor(table)


def _cache(drawn: Any, size: int | None = None) -> dict[str, Any]:
    import torch

    types = (torch.int8, torch.float16, torch.float32, torch.int8, torch.float16)
    width = size or len(drawn["values"][0])
    columns = dict.fromkeys(_STORED, width) | {"value_scales": 1}
    return {
        name: torch.tensor(drawn[name], dtype=dtype).reshape(-1, columns[name])
        for name, dtype in zip(_STORED, types, strict=True)
    }


def _numbers(values: Any) -> dict[str, Any]:
    found = [float(one) for one in values]
    return {"shape": [len(found)], "values": found}


def _rounded(values: list[float]) -> list[float]:
    return [round(one, 3) + 0.0 for one in values]


def _type(value: Any) -> str:
    return str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
