"""kv_int8: the cache against attention without one, sizes against its tables, draws, and other right ways."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from edl_labs.exercises.lab12_language_model.judge.drawn_int8_caches import caches

SEEDS = range(1, 6)
EMPTY = {"keys": torch.int8, "key_scales": torch.float16, "recent": torch.float32, "values": torch.int8}


def drawn(seed):
    return [case.given for case in caches(np.random.default_rng(seed))]


def grown(appended, keys, values, block):
    cache = {name: torch.zeros(0, keys.shape[1], dtype=dtype) for name, dtype in EMPTY.items()}
    cache["value_scales"] = torch.zeros(0, 1, dtype=torch.float16)
    for key, value in zip(keys, values, strict=True):
        cache = appended(cache, key, value, block)
    return cache


def keys_with_a_large_channel(tokens, size):
    torch.manual_seed(0)
    keys, values, queries = torch.randn(3, tokens, size)
    keys[:, 3] *= 20
    return keys, values, queries[:4]


def test_attention_is_nearly_that_without_a_cache(solution):
    keys, values, queries = keys_with_a_large_channel(70, 16)
    queries[:, 3] /= 20
    cache = grown(solution["appended"], keys, values, 32)
    exact = scaled_dot_product_attention(queries[None], keys[None], values[None])[0]

    assert (64, 2, 6, 70) == tuple(len(cache[name]) for name in ("keys", "key_scales", "recent", "values"))
    torch.testing.assert_close(exact, solution["attended_int8"](queries, cache, 32), rtol=0.03, atol=0.01)


def test_keys_with_a_scale_for_each_channel_have_a_smaller_error(solution):
    keys, *_ = keys_with_a_large_channel(64, 32)
    others = torch.arange(32) != 3

    def error(dim):
        integers, scales = solution["int8_along"](keys, dim)
        return (integers * scales.float() - keys)[:, others].norm()

    assert error(0) < error(1) / 5


@pytest.mark.parametrize("heads", [1, 2])
def test_bytes_are_those_of_the_tables(solution, heads):
    keys, values, _ = keys_with_a_large_channel(96, 16)
    cache = grown(solution["appended"], keys, values, 32)
    stored = sum(table.nbytes for table in cache.values())

    assert 5 * heads * stored / 96 == solution["cache_bytes"](5, 4 * heads, heads, 16, 32)


def test_the_numbers_of_the_text(solution):
    assert 57 == round(2 * 128 * 128 / (512 + 64))
    assert 2.25 == (512 + 64) / (2 * 128)
    assert 61 * 2.25 * 2 * 128 * 2 == solution["latent_bytes"](61, 128, 512, 64, 16)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_draw_has_lines_of_every_kind_and_full_and_unfinished_blocks(solution, seed):
    cases = drawn(seed)

    assert {True, False} == {len(case["new_keys"]) % case["block"] == 0 for case in cases}
    assert any(len(case["new_keys"]) < case["block"] for case in cases)
    assert {True, False} == {bool(case["cache"]["recent"]) for case in cases}
    assert any(not case["cache"]["keys"] for case in cases)
    for case in cases:
        keys = np.array(case["new_keys"])

        assert 1 == (abs(keys).max(0) == 0).sum()
        assert 1 == (abs(np.array(case["new_values"])).max(1) == 0).sum()
        for dim, table in enumerate(case["tables"]):
            amax = abs(np.array(table)).max(dim, keepdims=True)
            exact, rounded = amax / 127, np.float16(amax / 127).astype(float)
            scales = np.where(rounded > 0, rounded, 1)
            unrounded = np.rint(table / np.where(exact > 0, exact, 1))

            assert (rounded == 0).any()
            assert 4 <= (table / scales % 1 == 0.5).sum()
            assert (unrounded != np.rint(table / scales)).any()


def numpys(table, dim):
    values = table.double().numpy()
    scales = np.float16(np.abs(values).max(axis=dim, keepdims=True) / 127)
    scales[scales == 0] = 1
    return torch.from_numpy(np.rint(values / scales.astype(float)).astype(np.int8)), torch.from_numpy(scales)


def in_place(cache, key, value, block):
    scale = (value.abs().max() / 127).half()
    scale = scale if scale > 0 else torch.tensor(1.0).half()
    integers = torch.round(value / scale.float()).char()
    cache["values"] = torch.vstack([cache["values"], integers])
    cache["value_scales"] = torch.vstack([cache["value_scales"], scale.reshape(1, 1)])
    recent = torch.vstack([cache["recent"], key])
    if len(recent) >= block:
        scales = (recent.abs().max(0).values / 127).half()
        scales[scales == 0] = 1
        cache["keys"] = torch.vstack([cache["keys"], torch.round(recent / scales.float()).char()])
        cache["key_scales"] = torch.vstack([cache["key_scales"], scales])
        recent = torch.zeros(0, len(key))
    cache["recent"] = recent
    return cache


def scales_last(queries, cache, block):
    """Scales of keys on the queries, those of values on the weights."""
    parts = [
        (queries.double() * scales) @ cache["keys"][at * block :][:block].double().T
        for at, scales in enumerate(cache["key_scales"])
    ]
    scores = torch.cat([*parts, queries.double() @ cache["recent"].double().T], 1) / queries.shape[1] ** 0.5
    return (scores.softmax(-1) * cache["value_scales"].double().T) @ cache["values"].double()


def with_sdpa(queries, cache, block):
    of_keys = torch.kron(cache["key_scales"].float(), torch.ones(block, 1))
    keys = torch.cat([cache["keys"].float() * of_keys, cache["recent"]])
    return scaled_dot_product_attention(queries, keys, cache["values"].float() * cache["value_scales"].float())


@pytest.mark.parametrize(
    "other",
    [
        {"int8_along": numpys, "attended_int8": scales_last},
        {"appended": in_place, "attended_int8": with_sdpa},
    ],
    ids=["scales_last", "in_place"],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_other_ways_to_the_same_numbers_earn_all(judged, other, seed):
    outcome = judged("kv_int8", seed=seed, **other)

    assert 1 == outcome.points, outcome
