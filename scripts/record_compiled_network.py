"""Records `cpu_compiled_network`: lab08c's slow and mended networks, eager and compiled, on one thread.

    python scripts/record_compiled_network.py [FOLDER]

It needs a C++ compiler and takes some minutes. The networks are taken from the text of the lab.
"""

import platform
import sys
from pathlib import Path

import torch

from edl_labs.bench.compiled_runs import SERIES, compiled_run
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
    """What compiling the slow or the mended network came to."""
    layout = torch.channels_last if mended else torch.contiguous_format
    x, weights = names["inputs"](layout)
    switches = dict.fromkeys(SWITCHES, False) if mended else {}
    close = lambda one, two: torch.allclose(one, two, atol=1e-4)  # noqa: E731
    return compiled_run(lambda: names["network"](x, weights, **switches), budget_s=BUDGET_S, equal=close)


def main():
    """Both networks, written as the recording that the lab loads."""
    torch.set_num_threads(1)
    names = lab_names()
    with torch.no_grad():
        rows = [recorded(names, mended) for mended in (False, True)]
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
            recordings.Series(
                label,
                "s" if field.endswith("_s") else "1",
                tuple(float(f"{getattr(row, field):.3g}") for row in rows),
            )
            for label, field in SERIES.items()
        ),
    )
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(recordings.__file__).parent
    path = folder / f"{made.name}.json"
    path.write_text(made.to_json(), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
