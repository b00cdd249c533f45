"""Records `cpu_compiled_network`: lab08c's slow and mended networks, eager and compiled, on one thread.

    python scripts/record_compiled_network.py [FOLDER]

Needs a C++ compiler, and takes some minutes; the networks are those of the lab's own text.
"""

import platform
import sys
import time
from pathlib import Path

import torch

from edl_labs.bench import compare
from edl_labs.course.lab.source import parse
from edl_labs.device import describe
from edl_labs.hardware import recordings

ROOT = Path(__file__).resolve().parents[1]
LAB = ROOT / "solutions" / "lab08c_compilers" / "lab08c_compilers.py"
SWITCHES = ("checks", "loops", "unfolds", "copies")
BUDGET_S = 20.0  # of a comparison: the intervals of the smaller network are a few percent wide then


def lab_names():
    """What the lab's cell with the networks defines."""
    cells = parse(LAB.read_text(encoding="utf-8"), file=LAB.name)
    (cell,) = (cell for cell in cells if "def network(" in cell.source)
    names = {}
    exec(compile(cell.source, LAB.name, "exec"), names)
    return names


def recorded(names, mended):
    """Seconds of eager mode, of the first compiled call and of later ones, and the interval of their ratio."""
    layout = torch.channels_last if mended else torch.contiguous_format
    x, weights = names["inputs"](layout)
    switches = dict.fromkeys(SWITCHES, False) if mended else {}

    def eager():
        return names["network"](x, weights, **switches)

    torch._dynamo.reset()
    compiled = torch.compile(eager)
    began = time.perf_counter()
    compiled()
    first_s = time.perf_counter() - began
    close = lambda one, two: torch.allclose(one, two, atol=1e-4)  # noqa: E731
    measured = compare({"eager": eager, "compiled": compiled}, budget_s=BUDGET_S, equal=close)
    eagerly, warm = measured.sides
    return (eagerly.median_s, first_s, warm.median_s, measured.low, measured.high)


def main():
    """Both networks, written as the recording that the lab loads."""
    torch.set_num_threads(1)
    names = lab_names()
    with torch.no_grad():
        rows = [recorded(names, mended) for mended in (False, True)]
    labels = ("eager", "first compiled call", "compiled, warm")
    ends = tuple(f"warm against eager, {end}" for end in ("low", "high"))
    made = recordings.Recording(
        name="cpu_compiled_network",
        title="Recorded: two networks of lab08c, eager and compiled by torch.compile, on one thread of a processor",
        experiment="compiled_network",
        hardware_key="CPU",
        modelled=False,
        environment={
            "compiler": "g++",
            "cpu_model": describe("cpu").device_name,
            "kind": "cpu",
            "python": platform.python_version(),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        },
        x_label="mended",
        x_unit="",
        x=(0, 1),
        series=tuple(
            recordings.Series(label, "1" if label in ends else "s", tuple(float(f"{row[at]:.3g}") for row in rows))
            for at, label in enumerate((*labels, *ends))
        ),
    )
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(recordings.__file__).parent
    path = folder / f"{made.name}.json"
    path.write_text(made.to_json(), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
