"""kv_cache: attention of one new token over cached keys and values, and how many sequences a memory holds."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.checks.asked_form import tensor_of
from edl_labs.errors import Wrong
from edl_labs.exercises.input_guard import InputGuard, asked_twice, explained_by_changes
from edl_labs.exercises.lab09b_serving.sequence_counts import judge_fits
from edl_labs.units import byte_count, counted

_SAME = 1e-9  # of a weight: float64, added in another order
_SEEN = 1e-12  # a weight that is no rounding
_PAIRS = 3  # old tokens that a shift by one is told from: two of them keep a neighbour
_SMALL = 0.6  # of a normal number: even scores without their root leave every token a weight


@exercise("kv_cache", digits=13)
class KVCache(Exercise):
    """One token at a time over a cache gives what attention over the whole text gives, and the cache has a size.

    `decode(cache, q, k, v)` gives the outputs of a step; `fits(chip, model, tokens)` a number of sequences. Values are
    drawn so that an output says how much of which cell of the cache is in it.
    """

    answers = ("outputs", "lengths", "fits")

    def probe(self, student: Any, given: Any) -> Any:
        found, changed = asked_twice(lambda guard: self._asked(student, given, guard))
        return {**found, "changed": changed}

    def _asked(self, student: Any, given: Any, guard: InputGuard) -> dict[str, Any]:
        cache, steps = drawn_cache(given)
        outputs = []
        for q, k, v in steps:
            out = student.decode(cache, guard("q", q), guard("k", k), guard("v", v))
            outputs.append(tensor_of(out, q.shape).tolist())
        return {
            "outputs": outputs,
            "lengths": [int(one) for one in cache["lengths"]],
            "fits": [
                student.fits(guard("chip", chip), guard("model", given["model"]), given["tokens"])
                for chip in (given["chip"], given["small_chip"])
            ],
        }

    def student_inputs(self, case: Any) -> Any:
        """The cache and the first new token's q, k and v, as tensors."""
        cache, steps = drawn_cache(case)
        q, k, v = steps[0]
        asked = {name: case[name] for name in ("chip", "small_chip", "model", "tokens")}
        return {"cache": cache, "q": q, "k": k, "v": v, **asked}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        with explained_by_changes(got["changed"]):
            self._judge_parts(case, got, want)

    def _judge_parts(self, case: Any, got: Any, want: Any) -> None:
        for step, (found, right) in enumerate(zip(got["outputs"], want["outputs"], strict=True)):
            _judge_step(case, step, found, right)
            if got["lengths"] != want["lengths"]:
                counts = (
                    f"lengths were {case['lengths']}; after {counted(case['steps'], 'new token')} per row, they are "
                    f"{got['lengths']}"
                )
                what = "your lengths do not match the number of tokens in the cache"
                raise Wrong(what, why=counts, next="for each new token, increase the row's length by one")
        judge_fits(case, got["fits"][0], want["fits"][0])
        if got["fits"][1] != want["fits"][1]:
            weights = case["model"]["parameters"] * case["model"]["number_bytes"]
            memory = byte_count(case["small_chip"]["memory_bytes"])
            why = f"got {got['fits'][1]} sequences for {memory}, but the weights alone need {byte_count(weights)}"
            raise Wrong(
                "your function counts sequences where not even the weights fit", why=why, next="return 0 in this case"
            )

    def format_answer(self, case: Any, got: Any) -> str:
        """The lengths and the count: outputs are too many numbers to read."""
        first = got["outputs"][0]
        shape = f"{len(first)} rows of {len(first[0])} heads" if first and isinstance(first[0], list) else "none"
        return f"outputs of {shape}; lengths {got['lengths']}; {got['fits'][0]} sequences fit"

    def format_case(self, case: Any) -> str:
        """The cache, the memory and the model."""
        model = case["model"]
        return (
            f"{case['rows']} rows with {', '.join(map(str, case['lengths']))} cached tokens, {case['heads']} heads and "
            f"{case['kv_heads']} kv heads, {counted(case['steps'], 'new token')}; fits: memory of "
            f"{byte_count(case['chip']['memory_bytes'])}, {case['tokens']} tokens per sequence, {model['layers']} "
            f"layers, {model['heads']} heads and {model['kv_heads']} kv heads, {model['number_bytes']} B per number"
        )


def drawn_cache(case: Any) -> tuple[dict[str, Any], list[tuple[Any, Any, Any]]]:
    """A cache with keys and values of some tokens in each row, and the new tokens' q, k and v.

    Cell t of a row and a kv head has its own place in the values, and a stale cell t one after those of all rows.
    """
    import torch

    rows, kv_heads, heads = case["rows"], case["kv_heads"], case["heads"]
    capacity = max(case["lengths"]) + case["steps"] + 1
    size = (rows + 1) * kv_heads * capacity
    drawn = torch.Generator().manual_seed(case["seed"])

    def make(*shape: int) -> Any:
        return _SMALL * torch.randn(*shape, generator=drawn, dtype=torch.float64)

    own = torch.eye(size, dtype=torch.float64).reshape(rows + 1, kv_heads, capacity, size)
    own, left_over = own[:rows], own[rows:].expand(rows, kv_heads, capacity, size)
    lengths = torch.tensor(case["lengths"])
    filled = (torch.arange(capacity) < lengths[:, None])[:, None, :, None]
    alike = make(size) if case["alike"] else None
    keys = make(rows, kv_heads, capacity, size) if alike is None else alike.expand(rows, kv_heads, capacity, size)
    stale = 3 * make(rows, kv_heads, capacity, size)
    rotated = _rotated(keys, torch.arange(capacity))
    cache = {
        "k": torch.where(filled, rotated, stale),
        "v": torch.where(filled, own, left_over),
        "lengths": lengths.clone(),
    }
    steps = []
    for step in range(case["steps"]):
        q = make(rows, heads, size) if alike is None else alike.expand(rows, heads, size)
        k = make(rows, kv_heads, size) if alike is None else alike.expand(rows, kv_heads, size)
        steps.append((q, k, torch.stack([own[row, :, int(lengths[row]) + step] for row in range(rows)])))
    return cache, steps


def _rotated(x: Any, positions: Any) -> Any:
    """Rotary positions of the prompt's keys, as the lab's `rotate`: entry i and i + size / 2 turn together."""
    import torch

    half = x.shape[-1] // 2
    angles = positions[:, None] * 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([x[..., :half] * cos - x[..., half:] * sin, x[..., :half] * sin + x[..., half:] * cos], dim=-1)


def _judge_step(case: Any, step: int, found: Any, right: Any) -> None:
    shape = [case["rows"], case["heads"], len(right[0][0])]
    if _shape(found) != shape:
        why = f"got the shape {_shape(found)}, expected {shape}"
        then = "return one output for each head of each row, in the shape (rows, heads, size)"
        raise Wrong("your outputs do not have the shape of q", why=why, next=then)
    flat = [(row, head, found[row][head], right[row][head]) for row in range(shape[0]) for head in range(shape[1])]
    wrong = [one for one in flat if not all(close(a, b, rtol=0.0, atol=_SAME) for a, b in zip(*one[2:], strict=True))]
    if wrong:
        looked = [_Look(case, step, *one) for one in flat]
        raise _symptom(looked, [one for one in looked if (one.row, one.head) in {(w[0], w[1]) for w in wrong}])


def _shape(value: Any) -> list[int]:
    found = []
    while isinstance(value, list):
        found.append(len(value))
        value = value[0] if value else None
    return found


class _Look:
    """How much of which cell is in the output of a head, and how much should be."""

    def __init__(self, case: Any, step: int, row: int, head: int, got: list[float], want: list[float]) -> None:
        kv_heads, capacity = case["kv_heads"], len(want) // (case["rows"] + 1) // case["kv_heads"]
        self.row, self.head, self.step, self.alike = row, head, step, case["alike"]
        self.length = case["lengths"][row]
        self.equal_lengths = len(set(case["lengths"])) == 1
        weights = {(*divmod(at // capacity, kv_heads), at % capacity): w for at, w in enumerate(got) if abs(w) > _SEEN}
        self.other_rows = sorted({place[0] for place in weights} - {row, case["rows"]})
        (self.group,) = {at // capacity % kv_heads for at, w in enumerate(want) if w > _SEEN}
        self.other_heads = sorted({place[1] for place in weights if place[0] == row} - {self.group})
        self.stale = sorted(place[2] for place in weights if place[0] == case["rows"])
        base = (row * kv_heads + self.group) * capacity
        self.tokens = self.length + step + 1
        self.got, self.want = got[base : base + self.tokens], want[base : base + self.tokens]
        self.cells = len(weights)
        self.whole, self.base, self.wanted = got, base, want
        self.vector = drawn_cache(case)[1][0][0][row, head].tolist() if case["alike"] else []
        self.total = sum(got)

    def has_turned_values(self) -> bool:
        """Whether it is what comes out if values of decoded tokens are rotated to their positions."""
        import torch

        made = torch.tensor(self.wanted, dtype=torch.float64)
        for at in range(self.length, self.tokens):
            own = torch.zeros_like(made)
            own[self.base + at] = self.wanted[self.base + at]
            made += _rotated(own.view(1, -1), torch.tensor([at]))[0] - own
        return all(close(a, b, rtol=0.0, atol=_SAME) for a, b in zip(self.whole, made.tolist(), strict=True))

    def stands(self, query: int, keys: list[int]) -> bool:
        """Whether it has the weights of a query and keys at these positions; only where tokens are alike."""
        if not self.vector or self.step:
            return False
        half, root = len(self.vector) // 2, math.sqrt(len(self.vector))
        power = [a * a + b * b for a, b in zip(self.vector, self.vector[half:], strict=False)]
        scores = [
            sum(one * math.cos((query - key) * 10000.0 ** (-i / half)) for i, one in enumerate(power)) / root
            for key in keys
        ]
        parts = [math.exp(one - max(scores)) for one in scores]
        return all(close(a, b / sum(parts), rtol=0.0, atol=_SAME) for a, b in zip(self.got, parts, strict=True))

    @property
    def where(self) -> str:
        return f"head {self.head} of row {self.row}, after {self.length + self.step} tokens"


def _symptom(every: list[_Look], wrong: list[_Look]) -> Wrong:
    """The sentence of the first rule that fits what the outputs are made of."""
    one = wrong[0]
    if any(not math.isfinite(look.total) for look in wrong):
        then = "over which dimension do you compute the softmax? It returns nan if all scores are masked"
        return Wrong("one of your outputs is not a number", why=one.where, next=then)
    if all(look.has_turned_values() for look in wrong):
        then = "which of q, k and v enter the scores? Only the scores depend on positions"
        why = f"{one.where}; this mistake gives exactly your result"
        return Wrong("your code rotates the values as well", why=why, next=then)
    for rule in (_of_rows, _of_cells, _of_heads, _of_masks):
        found = rule(every, wrong)
        if found is not None:
            return found
    return _of_scores(wrong)


def _of_rows(every: list[_Look], wrong: list[_Look]) -> Wrong | None:
    for look in wrong:
        if look.other_rows:
            why = f"the output of {look.where}, contains values of row {look.other_rows[0]}"
            return Wrong(
                "in your code, a row attends to the tokens of another row", why=why, next="use only the row's own cache"
            )
    counts = {look.cells for look in every}
    if len(counts) == 1 and not every[0].equal_lengths and any(look.stale for look in wrong):
        look = next(look for look in wrong if look.stale)
        why = f"every row attends to {look.cells} cells, but row {look.row} has {look.tokens} tokens with the new one"
        return Wrong(
            "your code treats all rows as equally long", why=why, next="use the length of each row in cache['lengths']"
        )
    return None


def _of_cells(every: list[_Look], wrong: list[_Look]) -> Wrong | None:
    for look in wrong:
        if look.tokens - 1 in look.stale:
            why = f"{look.where}, attends to cell {look.tokens - 1}, where the new token belongs (cells count from 0), "
            why += "but this cell still has numbers of an earlier request"
            then = "store the new token's k and v at index lengths[row] of the row, before you attend"
            return Wrong("in your code, a row attends to cells that do not hold its tokens", why=why, next=then)
        if look.stale:
            why = f"{look.where}, attends to cell {look.stale[0]}, which still has numbers of an earlier request"
            then = "attend only to the cells up to the row's length, including the new token's cell"
            return Wrong("in your code, a row attends to cells that do not hold its tokens", why=why, next=then)
    return None


def _of_heads(every: list[_Look], wrong: list[_Look]) -> Wrong | None:
    for look in wrong:
        if look.other_heads:
            why = f"{look.where}, uses values of kv head {look.other_heads[0]} instead of kv head {look.group}"
            then = "let neighbouring heads share a kv head: the first `heads // kv_heads` heads share the first kv head"
            return Wrong("your code matches heads with the wrong keys and values", why=why, next=then)
    return None


def _of_masks(every: list[_Look], wrong: list[_Look]) -> Wrong | None:
    seeing = [look for look in wrong if look.tokens > 1]
    if seeing and all(close(look.got[0], 1.0, atol=1e-6) for look in seeing):
        why = f"{seeing[0].where}: token 0 has all the weight"
        then = "do not use a causal mask for a single query: it may attend to all cached tokens"
        return Wrong("your mask hides all tokens except the first", why=why, next=then)
    for look in wrong:
        if look.got[-1] <= _SEEN < look.want[-1]:
            why = f"{look.where}: the new token's own value has no weight in the output"
            return Wrong(
                "in your code, the new token does not attend to itself",
                why=why,
                next="let the row attend to one more cell: the new token's own, which must already contain its k and v",
            )
        for at in range(look.length, look.tokens - 1):
            if look.got[at] <= _SEEN < look.want[at]:
                why = f"{look.where}: token {at}, which was decoded earlier, has no weight"
                then = "in each step, store k and v in the cell after the one that the previous step used"
                return Wrong("your cache loses a decoded token", why=why, next=then)
        if any(a <= _SEEN < b for a, b in zip(look.got, look.want, strict=True)):
            return Wrong(
                "your code gives some cached tokens no weight", why=look.where, next="give every earlier token a weight"
            )
    return None


def _of_scores(wrong: list[_Look]) -> Wrong:
    look = wrong[0]
    if not close(look.total, 1.0, atol=1e-6):
        why = f"{look.where}: the weights add up to {look.total:.4g}"
        then = "compute the softmax over the tokens of the row"
        return Wrong("your attention weights do not add up to 1", why=why, next=then)
    if all(_is_scaled(one) for one in wrong):
        why = f"{look.where}: all differences between scores are off by the same factor"
        return Wrong("your scores have the wrong scale", why=why, next="divide by the square root of the head size")
    long = [one for one in wrong if one.alike and one.length >= _PAIRS]
    for positions, what, then in _MISPLACED:
        if long and all(one.stands(*positions(one.length)) for one in long):
            return Wrong(what, why=f"{look.where}; this mistake gives exactly your result", next=then)
    for shift, what in ((1, "one place later"), (-1, "one place earlier")):
        if long and all(_is_shifted(one, shift) for one in long):
            why = f"{look.where}: the distances from the query to the tokens are those of a query {what}"
            then = "positions count from 0: how many tokens are in the cache before the new one?"
            return Wrong("your code gives the new token the wrong position", why=why, next=then)
    at = max(range(len(look.want)), key=lambda at: abs(look.got[at] - look.want[at]))
    why = f"{look.where}: the weight of token {at} is {look.got[at]:.6g}, but should be {look.want[at]:.6g}"
    then = (
        "are the query and the new key at the new token's position? Are the cached keys unchanged? Is the scale right?"
    )
    return Wrong("your code attends to the right tokens, but with the wrong weights", why=why, next=then)


_MISPLACED: Any = (
    (
        lambda n: (0, [*range(n + 1)]),
        "your code does not rotate the query",
        "rotate q to the position of the new token: your function gets q and k unrotated",
    ),
    (
        lambda n: (n, [*range(n), 0]),
        "your code does not rotate the new key",
        "rotate k before you store it: all cached keys are rotated",
    ),
    (
        lambda n: (0, [*range(n), 0]),
        "your code rotates neither the query nor the new key",
        "rotate q and k: your function gets both of them unrotated",
    ),
    (
        lambda n: (n, [*range(0, 2 * n, 2), n]),
        "your code rotates the cached keys again",
        "leave cached keys unchanged: they were rotated before they were stored",
    ),
)


def _logits(weights: list[float]) -> list[float]:
    return [math.log(max(w, 1e-300)) for w in weights]


def _is_scaled(look: _Look) -> bool:
    """Whether differences of scores are those of the right ones, times one factor."""
    got, want = _logits(look.got), _logits(look.want)
    spread = [(a - got[0], b - want[0]) for a, b in zip(got[1:], want[1:], strict=True) if abs(b - want[0]) > 1e-3]
    factors = [a / b for a, b in spread]
    return bool(factors) and all(close(one, factors[0], rtol=1e-4) for one in factors) and factors[0] > 0


def _is_shifted(look: _Look, shift: int) -> bool:
    """Whether old tokens, all alike, have the weights of tokens that are further away, or nearer, by one."""
    got, want = _logits(look.got[: look.length]), _logits(look.want[: look.length])
    pairs = [(at, at - shift) for at in range(look.length) if 0 <= at - shift < look.length]
    moved = [got[a] - want[b] for a, b in pairs]
    return all(close(one, moved[0], rtol=0.0, atol=1e-6) for one in moved)
