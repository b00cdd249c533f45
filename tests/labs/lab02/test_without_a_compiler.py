"""lab02's cells that use the machine's ceilings run where there is no C compiler, as on most students' machines."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from edl_labs.roofline import _ceilings
from edl_labs.roofline.microbenchmarks import compiled_streams, fastest_kernels

LAB = Path(__file__).resolve().parents[3] / "solutions" / "lab02_roofline" / "lab02_roofline.py"
# What a cell of the lab needs from earlier ones: imports, and the parameters.
PREAMBLE = re.compile(r"^(?:from|import) .+$", re.MULTILINE)
TINY = "ceilings_s, measure_s, width = 0.3, 0.02, 32"


def cells() -> list[str]:
    """The lab's plain code cells, without exercises, checks and set-up."""
    parts = re.split(r"^# %%(.*)$", LAB.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [code for mark, code in zip(parts[1::2], parts[2::2], strict=True) if not mark.strip()]


def using_ceilings() -> list[str]:
    found = cells()
    first = next(place for place, code in enumerate(found) if "roofline.ceilings(" in code)
    asked = next(place for place, code in enumerate(found) if 'predict("product"' in code)
    last = next(place for place, code in enumerate(found) if "RooflineExplorer(machine" in code)
    return [found[first], found[first + 1], *found[asked : last + 1]]


@pytest.fixture
def no_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("EDL_LABS_CACHE", str(tmp_path))
    monkeypatch.setattr(compiled_streams, "COMPILERS", ())
    monkeypatch.setattr(fastest_kernels, "_CPU_SIDES", (256,))
    monkeypatch.setattr(_ceilings, "_largest_bytes", lambda told, **_: 64 << 20)
    yield
    plt.close("all")


def test_cells_that_use_ceilings_run_and_say_what_was_not_measured(no_compiler, capsys):
    names: dict[str, object] = {}
    chosen = using_ceilings()
    imports = "\n".join(line for code in cells() for line in PREAMBLE.findall(code))
    given = "import math\nfrom edl_labs import units\nfrom edl_labs.ui.predictions import predict, reveal_prediction"
    given += "\nfrom edl_labs.ui.progress_bar import ProgressBar"
    exec(f"{given}\n{imports}\n{TINY}", names)
    for code in chosen:
        exec(code, names)
    said = capsys.readouterr().out

    machine = names["machine"]
    assert machine.unmeasured
    for name in machine.unmeasured:
        assert re.search(rf"^ *{name}: not measured: no C compiler", said, re.MULTILINE)
    assert len(names["operators"]) == sum(said.count(f"\n{name:<16} ") or name in said for name in names["operators"])
