"""`plan`: every way to lay a transformer's training over a cluster, data, tensor and pipeline parallel, priced."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass

from edl_labs.roofline.network.layout_costs import Layout, PricedLayout
from edl_labs.roofline.network.training_jobs import GPUCluster, Transformer
from edl_labs.roofline.sizes import check_size
from edl_labs.units import byte_count, seconds
from edl_labs.values import Value

_MICRO_BATCHES = (1, 2, 4, 8, 16, 32)  # a GPU is full long before, or its memory is


@dataclass(frozen=True, repr=False)
class LayoutPlan(Value):
    """Every way to divide a cluster's GPUs, with the fastest settings of each; `best` is the fastest that fits."""

    ROWS = "layouts"
    DERIVED = ("best",)

    minibatch: int
    gpu_memory_bytes: float
    layouts: tuple[Layout, ...]

    @property
    def best(self) -> Layout | None:
        """The fastest layout that fits; None where none does."""
        return min((one for one in self.layouts if one.fits), key=lambda one: one.step_s, default=None)

    def __str__(self) -> str:
        best = self.best
        rows = [_HEAD, *(_row(one, marked=one is best) for one in sorted(self.layouts, key=_order))]
        last = f"best: {named(best)}, {seconds(best.step_s)} a step" if best else "no layout fits"
        return "\n".join([*rows, last])


_HEAD = "  data tensor pipeline  zero again  micro    memory      step  sent a GPU"


def named(one: Layout) -> str:
    """A layout in words."""
    extra = [f"ZeRO {one.zero}"] * bool(one.zero) + ["recomputation"] * one.recompute
    sizes = f"data {one.data} x tensor {one.tensor} x pipeline {one.pipeline}"
    return f"{sizes}{' with ' if extra else ''}{' and '.join(extra)}"


def _order(one: Layout) -> tuple[float, int, int]:
    return (one.step_s if one.fits else math.inf, one.tensor, one.pipeline)


def _row(one: Layout, *, marked: bool) -> str:
    head = f"{'*' if marked else ' '} {one.data:4} {one.tensor:6} {one.pipeline:8}"
    if not one.fits:
        return f"{head}  {one.why}"
    sent = ", ".join(f"{name} {byte_count(count)}" for name, count in one.link_bytes.items() if count)
    split = f"{one.micro_batches}x{one.micro_batch}"
    again = "yes" if one.recompute else "no"
    return (
        f"{head}  {one.zero:4} {again:>5} {split:>6} {byte_count(one.memory_bytes):>9} {seconds(one.step_s):>9}  {sent}"
    )


def plan(model: Transformer, cluster: GPUCluster, *, minibatch: int) -> LayoutPlan:
    """All layouts of `model` on `cluster` for a global `minibatch` of sequences, each with its fastest settings.

    Neighbours share blocks (tensor), then data, then the pipeline's stages. For each division every ZeRO stage, size of
    micro-batch and recomputation is priced, with 1F1B. Sums of split blocks and hand-overs hide behind nothing; sums of
    gradients behind their backward pass, gathered weights of stage 3 behind arithmetic, those of stages 1 and 2 not.

    >>> small = Transformer(layers=24, hidden=2048, heads=16, sequence=2048)
    >>> print(plan(small, GPUCluster.of("8xH100"), minibatch=64).best.tensor)
    1
    """
    check_size("minibatch", minibatch)
    layouts = [_fastest(model, cluster, minibatch, sizes) for sizes in _divisions(cluster.ranks)]
    return LayoutPlan(minibatch, cluster.gpu_memory_bytes, tuple(layouts))


def _divisions(ranks: int) -> Iterator[tuple[int, int, int]]:
    for tensor in _divisors(ranks):
        for pipeline in _divisors(ranks // tensor):
            yield ranks // tensor // pipeline, tensor, pipeline


def _divisors(count: int) -> list[int]:
    return [one for one in range(1, count + 1) if count % one == 0]


def _fastest(model: Transformer, cluster: GPUCluster, minibatch: int, sizes: tuple[int, int, int]) -> Layout:
    data, tensor, pipeline = sizes
    why = _impossible(model, minibatch, sizes)
    if why:
        return Layout(data, tensor, pipeline, why)
    priced = [
        PricedLayout(
            model, cluster, data, tensor, pipeline, zero, recompute, micro, minibatch // data // micro
        ).layout()
        for zero in ((0, 1, 2, 3) if data > 1 else (0,))
        for recompute in (False, True)
        for micro in _MICRO_BATCHES
        if minibatch // data % micro == 0
    ]
    fitting = [one for one in priced if one.memory_bytes <= cluster.gpu_memory_bytes]
    if fitting:
        return min(fitting, key=lambda one: one.step_s)
    nearest = min(priced, key=lambda one: one.memory_bytes)
    needs = f"needs {byte_count(nearest.memory_bytes)} of {byte_count(cluster.gpu_memory_bytes)} at least"
    held = f"state {byte_count(nearest.state_bytes)}, activations {byte_count(nearest.activation_bytes)}"
    return dataclasses.replace(nearest, why=f"{needs}: {held}")


def _impossible(model: Transformer, minibatch: int, sizes: tuple[int, int, int]) -> str:
    data, tensor, pipeline = sizes
    if model.heads % tensor:
        return f"{model.heads} heads cannot be split over {tensor}"
    if model.layers % pipeline:
        return f"{model.layers} layers do not make {pipeline} equal stages"
    if minibatch % data:
        return f"{minibatch} sequences do not divide over {data}"
    return ""
