"""The solution's answers against the roofline library and torch's own counter, which know nothing of the lab."""

from __future__ import annotations

import pytest

from edl_labs.roofline import Machine, bound, find_limiter, gemm, work
from edl_labs.virtual.cluster import ClusterMachine, CollectiveCosts

SEEDS = range(1, 6)
DTYPE = {8: "fp64", 4: "fp32", 2: "fp16", 1: "int8"}


def _priced(op):
    """The library's Work for an operation of the lab."""
    dtype = DTYPE[op["itemsize"]]
    if op["kind"] == "gemm":
        return work.gemm(op["m"], op["n"], op["k"], dtype=dtype)
    if op["kind"] == "matvec":
        return work.matvec(op["m"], op["n"], dtype=dtype)
    if op["kind"] == "linear":
        return work.linear(op["batch"], op["inputs"], op["outputs"], dtype=dtype)
    if op["kind"] == "relu":
        return work.elementwise(op["elements"], dtype=dtype)
    if op["kind"] == "layer_norm":
        return work.norm(op["rows"], op["features"], dtype=dtype)
    window = {"height": op["size"], "width": op["size"], **{n: op[n] for n in ("kernel", "stride", "padding")}}
    if op["kind"] == "conv":
        return work.conv2d(op["batch"], op["channels"], op["filters"], dtype=dtype, **window)
    return work.pooling(op["batch"], op["channels"], kind="mean", dtype=dtype, **window)


def ring_s(case):
    """Seconds in which a ring of the case's nodes sums all gradients."""
    cluster = ClusterMachine.flat(case["nodes"], alpha_s=0.0, byte_per_s=case["link_byte_per_s"])
    nbytes = case["itemsize"] * case["weights"]
    ring = CollectiveCosts(cluster).plan("all_reduce", tuple(range(case["nodes"])), nbytes, algorithm="ring")
    return ring.seconds(nbytes)


@pytest.mark.parametrize("seed", SEEDS)
def test_work_of_agrees_with_the_library(solution, exercises, seed):
    for op in exercises["intensity"].draw_cases(seed):
        if "weight_itemsize" in op:
            continue  # the library's work has one dtype
        right = _priced(op)

        assert (right.total_flops, right.moved_bytes) == pytest.approx(solution["work_of"](op), rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_narrow_weights_take_their_own_bytes_and_no_flops(solution, exercises, seed):
    narrow = [op for op in exercises["intensity"].draw_cases(seed) if "weight_itemsize" in op]
    weights = {
        "linear": lambda op: op["inputs"] * op["outputs"],
        "conv": lambda op: op["filters"] * op["channels"] * op["kernel"] ** 2,
        "layer_norm": lambda op: 2 * op["features"],
    }
    for op in narrow:
        wide = _priced(op)
        saved = (op["itemsize"] - op["weight_itemsize"]) * weights[op["kind"]](op)

        assert (wide.total_flops, wide.moved_bytes - saved) == pytest.approx(solution["work_of"](op), rel=1e-12)

    assert set(weights) == {op["kind"] for op in narrow}


@pytest.mark.parametrize("seed", SEEDS)
def test_lower_bound_agrees_with_the_library_where_one_memory_counts(solution, exercises, seed):
    for case in exercises["ridge_and_bound"].draw_cases(seed):
        level = list(case["work"]["moved_bytes"])[-1]
        nbytes, dtype = case["work"]["moved_bytes"][level], case["work"]["dtype"]
        rates = case["machine"]["peak_flop_per_s"]
        machine = Machine.simple(
            "drawn", peak_flop_per_s=rates, bandwidth_byte_per_s=case["machine"]["bandwidth_byte_per_s"][level]
        )
        right = bound(machine, work.Work(case["work"]["flop"], 0, nbytes, dtype))

        time_s, limiter = solution["lower_bound"](case["machine"], {**case["work"], "moved_bytes": {level: nbytes}})

        assert right.time_s == pytest.approx(time_s)
        assert right.limiter == ("compute" if limiter == "compute" else "memory")
        assert machine.ridge_flop_per_byte(dtype) == pytest.approx(
            solution["ridge_point"](case["machine"], dtype, level)
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_crossover_is_where_the_librarys_limiter_changes(solution, exercises, seed):
    for case in exercises["minibatch_crossover"].draw_cases(seed):
        batch = solution["batch_at_ridge"](**case)
        dtype = DTYPE[case["itemsize"]]

        def intensity(examples, case=case, dtype=dtype):
            return work.linear(examples, case["inputs"], case["outputs"], dtype=dtype).intensity_flop_per_byte

        if batch == float("inf"):
            assert intensity(10**12) < case["ridge"]
        else:
            assert intensity(max(1, int(batch))) <= case["ridge"] * (1 + 1e-9) or batch < 1
            assert case["ridge"] <= intensity(int(batch) + 1) * (1 + 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_diagnose_agrees_with_the_library(solution, exercises, seed):
    for case in exercises["diagnose"].draw_cases(seed):
        layer, given = case["layer"], case["machine"]
        if layer["kind"] not in ("gemm", "linear"):
            continue
        machine = Machine.simple(
            "drawn",
            peak_flop_per_s={"fp16": given["peak_flop_per_s"]},
            bandwidth_byte_per_s=given["bandwidth_byte_per_s"],
            units=given["sms"],
        )
        m, n = (layer[name] for name in (("m", "n") if layer["kind"] == "gemm" else ("batch", "outputs")))
        tiles = gemm.quantization(m, n, 1, tile=(given["tile_m"], given["tile_n"]), sms=given["sms"]).tiles
        right = find_limiter(machine, _priced(layer), parallel_items=tiles).limiter

        assert right.replace("compute", "math") == solution["diagnose"](layer, given)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_network_agrees_with_the_ring_of_a_cluster(solution, exercises, seed):
    hiding = {"weight gradient": 2, "backward": 4}  # of the 6 FLOPs per parameter and sample
    for case in exercises["network_roofline"].draw_cases(seed):
        compute_s = 6 * case["weights"] * case["batch"] / case["nodes"] / case["node_flop_per_s"]
        sums_s = ring_s(case)
        job = {name: case[name] for name in ("nodes", "itemsize", "weights", "node_flop_per_s", "link_byte_per_s")}

        # The two ends: everything after everything, and all that the backward pass can hide is hidden.
        exposed_s = max(0.0, sums_s - compute_s * 4 / 6)
        assert compute_s + sums_s == pytest.approx(solution["step_s"](case["batch"], buckets=1, **job))
        assert compute_s + exposed_s == pytest.approx(solution["step_s"](case["batch"], buckets=10**9, **job))
        if case["nodes"] > 1:
            flops = hiding[case["behind"]] * case["weights"] * case["batch"] / case["nodes"]

            assert flops / (sums_s * case["link_byte_per_s"]) == pytest.approx(
                solution["network_intensity"](
                    case["batch"], nodes=case["nodes"], itemsize=case["itemsize"], behind=case["behind"]
                )
            )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_is_what_its_buckets_take_one_by_one(solution, exercises, seed):
    for case in exercises["network_roofline"].draw_cases(seed):
        forward_s = 2 * case["weights"] * case["batch"] / case["nodes"] / case["node_flop_per_s"]
        finished_s = sent_s = forward_s
        for _ in range(case["buckets"]):
            finished_s += 2 * forward_s / case["buckets"]
            sent_s = max(sent_s, finished_s) + ring_s(case) / case["buckets"]
        job = ("nodes", "itemsize", "weights", "node_flop_per_s", "link_byte_per_s", "buckets")

        assert sent_s == pytest.approx(solution["step_s"](case["batch"], **{name: case[name] for name in job}))


def _block_run(shape):
    """(forward, backward) FLOPs that torch's counter sees in the listing of the lab, run on meta tensors."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    width, heads, kv_heads, hidden = (shape[name] for name in ("width", "heads", "kv_heads", "hidden"))
    size, trained = width // heads, not shape["frozen"]

    def weight(rows, columns):
        return torch.empty(rows, columns, device="meta", requires_grad=trained)

    wq, wo = weight(width, width), weight(width, width)
    wk, wv = weight(width, kv_heads * size), weight(width, kv_heads * size)
    w1, w3, w2 = weight(width, hidden), weight(width, hidden), weight(hidden, width)
    x = torch.empty(shape["batch"], shape["tokens"], width, device="meta", requires_grad=True)

    def norm(values):
        return torch.nn.functional.layer_norm(values, (width,))

    def split(values, count):
        return values.unflatten(-1, (count, size)).transpose(1, 2).repeat_interleave(heads // count, dim=1)

    with FlopCounterMode(display=False) as forward:
        q, k, v = split(norm(x) @ wq, heads), split(norm(x) @ wk, kv_heads), split(norm(x) @ wv, kv_heads)
        a = torch.softmax(q @ k.transpose(-1, -2), -1)
        h = x + (a @ v).transpose(1, 2).flatten(2) @ wo
        u = torch.relu(norm(h) @ w1)
        u = u * (norm(h) @ w3) if shape["gated"] else u
        y = h + u @ w2
    with FlopCounterMode(display=False) as backward:
        y.backward(torch.empty_like(y))
    return forward.get_total_flops(), backward.get_total_flops()


@pytest.mark.parametrize("seed", SEEDS)
def test_count_block_is_what_torch_counts_in_a_real_block(solution, exercises, seed):
    for shape in exercises["count_a_model"].draw_cases(seed):
        assert _block_run(shape) == solution["count_block"](shape)
