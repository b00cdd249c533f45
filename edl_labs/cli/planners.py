"""Commands for choosing a machine: predict a step on a remote machine, calibrate this one."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edl_labs.cli.output import AsJson, ProgressLines, emit, table
from edl_labs.errors import UsageError

if TYPE_CHECKING:
    from edl_labs.predict import MachineCard


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (predict, calibrate):
        app.command()(command)


def predict(
    what: Annotated[
        str, typer.Argument(help="torchvision:resnet50, or my_model.py:make, a function that returns (model, example).")
    ],
    machine: Annotated[
        list[str] | None,
        typer.Option("--machine", "-m", help="A GPU, or a card written by calibrate; repeat it to compare several."),
    ] = None,
    batch: Annotated[
        int, typer.Option(help="The batch size of a torchvision model, or a new first dimension for the example.")
    ] = 0,
    dtype: Annotated[
        str, typer.Option(help="fp32, tf32, amp_fp16, amp_bf16, fp16 or bf16 (default: the model's own).")
    ] = "",
    train: Annotated[bool, typer.Option("--train/--infer", help="Predict a training step or a forward pass.")] = True,
    optimizer: Annotated[str, typer.Option(help="momentum, sgd, adam, adamw, fused_adamw, rmsprop or none.")] = "adamw",
    compiled: Annotated[bool, typer.Option("--compiled", help="Predict the model after torch.compile.")] = False,
    checkpoint: Annotated[
        bool, typer.Option("--checkpoint", help="Recompute each of a stack of equal blocks in the backward pass.")
    ] = False,
    channels_last: Annotated[bool, typer.Option("--channels-last", help="Store images and weights in NHWC.")] = False,
    gpus: Annotated[int, typer.Option(help="How many GPUs of this kind.")] = 1,
    zero: Annotated[int, typer.Option(help="The ZeRO stage on these GPUs, 0 to 3 (3 is FSDP).")] = 0,
    tensor_parallel: Annotated[int, typer.Option(help="How many GPUs share each layer.")] = 1,
    price: Annotated[
        list[str] | None, typer.Option(help="The price of one hour of a GPU, such as H100=2.5; repeatable.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Write the timeline of the step to this file, for Perfetto.")
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Write a picture to this file (.png or .svg).")] = None,
    as_json: AsJson = False,
) -> None:
    """Predict the time of a step on a GPU from the model: with an interval, the memory, the bottleneck and reasons."""
    from edl_labs.predict import compare_machines

    model, example = _loaded(what, batch)
    if batch and not what.startswith("torchvision:"):
        example = _resized(example, batch)
    if hasattr(model, "train"):
        model.train(train)
    if channels_last:
        model, example = _channels_last(model, example)
    cards = [_card(name) for name in machine or ["H100"]]
    cluster = {"gpus": gpus, "zero": zero, "tp": tensor_parallel} if gpus > 1 else None
    chosen = optimizer if train and optimizer != "none" and hasattr(model, "parameters") else None
    options: dict[str, Any] = {
        "dtype": dtype or None,
        "compiled": compiled,
        "checkpoint": checkpoint,
        "cluster": cluster,
    }
    found = compare_machines(model, example, cards, price_per_hour=_prices(price), optimizer=chosen, **options)
    first = found.predictions[0]
    if trace is not None:
        trace.write_text(json.dumps(first.timeline.to_chrome_trace()), encoding="utf-8")
    if picture is not None:
        drawn: Any = (found if len(cards) > 1 else first).plot()
        getattr(drawn, "figure", drawn).savefig(picture, bbox_inches="tight", dpi=150)
    if as_json:
        emit(found.to_json() if len(cards) > 1 else first.to_json())
        return
    print(repr(found) if len(cards) > 1 else repr(first))
    for path in (trace, picture):
        if path is not None:
            print(f"written: {path}")


def calibrate(
    out: Annotated[Path, typer.Option(help="The file for the machine card; pass it to predict with -m.")] = Path(
        "card.json"
    ),
    as_json: AsJson = False,
) -> None:
    """Measure this machine's GPU in a few minutes (products, memory, launches), and write a card for predict."""
    from edl_labs.predict import calibrate as measured

    with ProgressLines(quiet=as_json) as progress:
        card = measured(progress=progress)
    out.write_text(json.dumps(card.to_json(), indent=1) + "\n", encoding="utf-8")
    if as_json:
        emit(card.to_json())
        return
    rows = [[f"products in {dtype}", f"{rate / 1e12:.4g} TFLOP/s"] for dtype, rate in card.product_flop_per_s]
    rows.append(["memory", f"{card.stream_measured_byte_per_s / 1e9:.4g} GB/s"])
    rows.append(["a small kernel", f"{card.kernel_floor_s * 1e6:.3g} µs"])
    rows.append(["an operation on the host", f"{card.host_op_s * 1e6:.3g} µs"])
    table(card.name, ["figure", "measured"], rows)
    print(f"card: {out}\nnext: edl-labs predict … -m {out}")


def _loaded(what: str, batch: int) -> tuple[Any, Any]:
    source, _, name = what.rpartition(":")
    if not source or not name:
        raise UsageError(
            f"{what!r} is not the name of a model",
            why="a model must come from torchvision or from a function in a file",
            next="write torchvision:resnet50, or my_model.py:make for a function make() that returns (model, example)",
        )
    if source == "torchvision":
        return _of_torchvision(name, batch or 32)
    path = Path(source)
    if not path.is_file():
        raise UsageError(
            f"there is no file {source}", next="pass the path of a Python file, a colon and the function's name"
        )
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    made = getattr(module, name, None)
    if not callable(made):
        raise UsageError(
            f"{source} has no function {name}", next=f"define {name}() there; it must return (model, example)"
        )
    found = made()
    if not isinstance(found, tuple) or len(found) != 2 or not callable(found[0]):
        raise UsageError(
            f"{name}() did not return a pair (model, example), but an object of type {type(found).__name__}",
            why="predict needs a model (or a function that does one step) and its example input",
            next="return (model, example); a meta tensor will do: torch.empty(8, 3, 224, 224, device='meta')",
        )
    return found[0], found[1]


def _of_torchvision(name: str, batch: int) -> tuple[Any, Any]:
    import torch
    import torchvision

    try:
        with torch.device("meta"):
            model = torchvision.models.get_model(name)
    except ValueError as error:
        raise UsageError(
            f"torchvision has no model {name!r}",
            why=str(error)[:160],
            next="choose one of torchvision.models.list_models()",
        ) from None
    return model, torch.empty(batch, 3, 224, 224, device="meta")


def _resized(example: Any, batch: int) -> Any:
    import torch
    from torch.utils._pytree import tree_map_only

    return tree_map_only(
        torch.Tensor, lambda one: torch.empty((batch, *one.shape[1:]), dtype=one.dtype, device="meta"), example
    )


def _channels_last(model: Any, example: Any) -> tuple[Any, Any]:
    import torch
    from torch.utils._pytree import tree_map_only

    last = torch.channels_last
    images = tree_map_only(torch.Tensor, lambda one: one.to(memory_format=last) if one.dim() == 4 else one, example)
    return model.to(memory_format=last), images


def _card(name: str) -> MachineCard:
    from edl_labs.predict import MachineCard

    path = Path(name)
    if path.suffix == ".json":
        if not path.is_file():
            raise UsageError(f"there is no card {name}", next="create one with edl-labs calibrate --out card.json")
        return MachineCard.from_json(path.read_text(encoding="utf-8"))
    return MachineCard.of(name)


def _prices(given: list[str] | None) -> dict[str, float]:
    prices = {}
    for one in given or []:
        name, _, value = one.rpartition("=")
        try:
            prices[_card(name).key] = float(value)
        except ValueError:
            raise UsageError(
                f"{one!r} is not a price", why="a price consists of a GPU and a number", next="write --price H100=2.5"
            ) from None
    return prices
