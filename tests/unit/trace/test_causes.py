"""A cause is one row: what is charged to it, what is said of it, and how it looks all come from there."""

from __future__ import annotations

import subprocess
import sys

from edl_labs.trace import CAUSES, KINDS
from edl_labs.trace.causes import CHARGED, TABLE

# Charged by their names, or to what is around them.
BY_CONTEXT = {"annotation", "step", "python", "work"}
# A cause that nobody has thought of yet, and a loop that has it: with the table's text changed, and nothing else.
WITH_ONE_MORE = """
import sys, types
from pathlib import Path
import edl_labs
path = Path(edl_labs.__file__).parent / "trace" / "causes.py"
row = 'Cause(name="save", verdict="checkpoint-bound", advice="save less often", colour=GREEN, hatch="..", '
row += 'words=re.compile("save_checkpoint"), encloses=True, without="no checkpoints"),'
head, last, tail = path.read_text(encoding="utf-8").partition('    Cause(\\n        name="host"')
sys.modules["edl_labs.trace.causes"] = module = types.ModuleType("edl_labs.trace.causes")
exec(compile(head + row + last + tail, path, "exec"), vars(module))
"""
USED = """
from edl_labs.trace import TracedGPU, ablate, diagnose, VirtualLoop
def step(gpu, state):
    gpu.launch("gemm", duration_s=1e-3)
    with gpu.annotate("save_checkpoint"):
        gpu.host_work(9e-3)
loop = VirtualLoop(step)
found = diagnose(loop)
print(found.verdict, round(found.shares["save"], 2), f"{found.ablations[0].cause} {found.ablations[0].speedup:.0f}x")
print("save_checkpoint" in {text.get_text() for text in found.figure().axes[3].texts}, "save" in found.html())
"""


def test_each_kind_of_event_has_a_cause_or_takes_that_of_its_context() -> None:
    assert set(KINDS) - BY_CONTEXT == set(CHARGED)
    assert len(CHARGED) == sum(len(cause.kinds) for cause in TABLE)


def test_causes_are_told_apart_by_colour_and_hatching() -> None:
    assert len(CAUSES) == len({(cause.colour, cause.hatch) for cause in TABLE})


def test_one_more_cause_is_one_more_row() -> None:
    done = subprocess.run([sys.executable, "-c", WITH_ONE_MORE + USED], capture_output=True, text=True, check=False)

    # Of 9 ms of saving 1 ms runs beside the kernel.
    assert ["checkpoint-bound 0.89 save 9x", "True True"] == done.stdout.splitlines(), done.stderr
