"""The table of where_the_peak_is, held against the live bytes of the lab's own model."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_labs
from edl_labs.exercises.lab12_language_model.judge.drawn_shapes import moments

LAB = {lab.name: lab for lab in read_labs(Course(Path(__file__).resolve().parents[3]))}["lab12_language_model"]
WIDTH, LAYERS, TOKENS, BATCH = 128, 4, 64, 4


def model_of(words: int) -> torch.nn.Module:
    """The lab's model with another vocabulary, made of the notebook's own cells."""
    names: dict[str, Any] = {"torch": torch, "F": functional, "nn": torch.nn}
    names |= {"words": words, "width": WIDTH, "layers": LAYERS, "heads": 4, "tokens": TOKENS}
    for cell in LAB.cells:
        if cell.kind == "code" and cell.source.startswith(("class ", "def attended")):
            exec(cell.source, names)
    model: torch.nn.Module = names["LanguageModel"]()
    return model


class LiveBytes(TorchDispatchMode):
    """Bytes of the storages that operators made and that still exist, parameters apart, after each operator."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.live, self.most = 0, 0
        self.seen = {one.untyped_storage()._cdata: 0 for one in model.parameters()}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for one in out if isinstance(out, tuple | list) else (out,):
            if isinstance(one, torch.Tensor):
                self._count(one.untyped_storage())
        self.most = max(self.most, self.live)
        return out

    def _count(self, storage: Any) -> None:
        key = storage._cdata
        if key in self.seen:
            return
        self.seen[key] = storage.nbytes()
        self.live += storage.nbytes()
        weakref.finalize(storage, self._forget, key)

    def _forget(self, key: int) -> None:
        self.live -= self.seen.pop(key, 0)


def loss_of(model: torch.nn.Module, text: torch.Tensor) -> torch.Tensor:
    logits = model(text[:, :-1]).flatten(0, 1)
    return functional.cross_entropy(logits.float(), text[:, 1:].flatten())


def peak_bytes(words: int) -> tuple[int, int]:
    """(live after the forward pass, most live in the backward pass) of one step, without the states."""
    model, text = model_of(words), torch.randint(words, (BATCH, TOKENS + 1))
    with LiveBytes(model) as live:
        loss = loss_of(model, text)
        after_forward, live.most = live.live, 0
        loss.backward()
    return after_forward, live.most


def step(words: int) -> dict[str, Any]:
    shape = {"batch": BATCH, "tokens": TOKENS, "width": WIDTH, "layers": LAYERS, "vocabulary": words}
    return {**shape, "itemsize": 4, "checkpointed": False}


def test_the_logits_have_twelve_bytes_a_word_and_position_at_the_peak() -> None:
    few, many = peak_bytes(4_000), peak_bytes(12_000)
    positions = BATCH * TOKENS

    assert pytest.approx(12 * positions * 8_000, rel=0.03) == many[1] - few[1]


def test_layers_keep_what_the_table_says() -> None:
    words = 16
    kept = moments(step(words))["loss"]["activations"]

    assert pytest.approx(kept, rel=0.15) == peak_bytes(words)[0]


def test_the_states_of_the_table_are_those_of_the_parameters() -> None:
    words = 5_000
    parameters = sum(one.numel() for one in model_of(words).parameters())

    assert pytest.approx(12 * parameters, rel=0.02) == moments(step(words))["loss"]["states"]


def test_the_figures_of_the_text() -> None:
    logits = 8 * 4096 * 128_256
    text = "\n".join(cell.source for cell in LAB.cells)

    assert 8.4e9 == pytest.approx(2 * logits, rel=0.01)
    assert 50e9 == pytest.approx(12 * logits, rel=0.01)
    assert "128,256" in text


@pytest.fixture
def one_thread() -> Iterator[None]:
    """PyTorch on one thread: several that share a busy core wait for each other, and that counts as processor time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def trained(names: dict[str, Any], steps: int) -> list[float]:
    torch.manual_seed(7)
    losses: list[float] = names["train"](names["LanguageModel"](), steps)
    return losses


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.timeout(600)
def test_the_model_learns_most_of_what_there_is_in_200_steps_and_a_minute_of_one_core() -> None:
    names: dict[str, Any] = {"torch": torch, "F": functional, "nn": torch.nn}
    for cell in LAB.cells:
        if cell.kind == "code" and cell.source.startswith(("words, ", "class ", "def attended", "def train")):
            exec(cell.source, names)
    started_s = time.process_time()
    losses = trained(names, 200)
    spent_s = time.process_time() - started_s
    counts = torch.bincount(names["made_up_text"](4000, TOKENS + 1, seed=7).flatten(), minlength=1024).double()
    chances = counts / counts.sum()
    unigram = float(-(chances[chances > 0] * chances[chances > 0].log()).sum())

    assert losses[-1] <= 0.6 * unigram
    assert spent_s <= 60
    assert losses[:3] == trained(names, 3)
