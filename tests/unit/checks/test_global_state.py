"""Whatever a solve cell sets for good, a probe begins as in a new process, and the notebook's settings come back."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, ClassVar

import pytest

from edl_labs.checks import RegisteredExercise
from edl_labs.checks.evidence import collect

READ = """
import decimal, random, sys, warnings
import numpy, torch


def settings():
    return {
        "dtype": str(torch.tensor(1.0).dtype),
        "device": str(torch.ones(1).device),
        "threads": torch.get_num_threads(),
        "grad": torch.ones(1, requires_grad=True).mul(2).requires_grad,
        "inference": torch.is_inference_mode_enabled(),
        "anomaly": torch.is_anomaly_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "cudnn": torch.backends.cudnn.deterministic,
        "precision": torch.get_float32_matmul_precision(),
        "autocast": [torch.is_autocast_enabled("cpu"), str(torch.get_autocast_dtype("cpu"))],
        "subnormal": bool(sys.float_info.min / 2 > 0),
        "printed": [str(torch.tensor([1 / 3], dtype=torch.float32)) if torch.ones(1).device.type == "cpu" else "",
                    str(numpy.array([1 / 3, 1e-9]))],
        "numpy": {key: str(value) for key, value in numpy.geterr().items()},
        "decimal": str(decimal.Decimal(1) / 3),
        "drawn": [random.random(), float(numpy.random.rand()), float(torch.rand(1, device="cpu"))],
        "warns": bool([f for f in warnings.filters if f[0] == "error"]),
    }
"""

SET = """
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
torch.set_num_threads(3)
torch.set_grad_enabled(False)
torch.autograd.set_detect_anomaly(True)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cudnn.deterministic = True
torch.set_float32_matmul_precision("medium")
torch.set_autocast_enabled("cpu", True)
torch.set_autocast_dtype("cpu", torch.float16)
torch.set_flush_denormal(True)
torch.set_printoptions(precision=1)
numpy.set_printoptions(precision=1, suppress=True)
numpy.seterr(all="raise")
decimal.getcontext().prec = 5
random.seed(7), numpy.random.seed(7), torch.manual_seed(7)
warnings.simplefilter("error")
"""

CHECKED = """
from edl_labs.checks import RegisteredExercise
from edl_labs.checks.evidence import collect


class Spec:
    returns = {}
    def probe(self, student, case):
        return student.settings()


def probed():
    return collect(RegisteredExercise("ex", "lab90_x", Spec()), globals(), [{}])[0]["value"]
"""


def run(code: str) -> None:
    """Run `code` in a process of its own: these settings would change other tests."""
    done = subprocess.run([sys.executable, "-c", READ + CHECKED + code], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr[-3000:]


@pytest.mark.slow
def test_settings_of_a_solve_cell_do_not_reach_a_probe_and_come_back_after_it() -> None:
    pytest.importorskip("torch")

    run(f"""
fresh = probed()
{SET}
own = settings()
random.seed(7), numpy.random.seed(7), torch.manual_seed(7)
again = probed()
assert fresh == again, [(key, fresh[key], again[key]) for key in fresh if fresh[key] != again[key]]
later = settings()
assert own == later, [(key, own[key], later[key]) for key in own if own[key] != later[key]]
assert {{key for key in fresh if fresh[key] != own[key]}} == set(fresh) - {{"inference"}}, "something was not set"
""")


@pytest.mark.slow
def test_an_inference_mode_that_was_entered_for_good_is_left_for_the_probe() -> None:
    pytest.importorskip("torch")

    run("""
fresh = probed()
mode = torch.inference_mode()
mode.__enter__()
assert fresh == probed()
assert torch.is_inference_mode_enabled()
""")


def test_functions_that_were_replaced_stop_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    for name in ("set_default_dtype", "get_num_threads", "set_printoptions", "Generator"):
        monkeypatch.setattr(torch, name, None)

    class Spec:
        returns: ClassVar[dict[str, Any]] = {}

        def probe(self, student: Any, case: Any) -> Any:
            return student.f()

    assert [{"value": 1}] == collect(RegisteredExercise("ex", "lab90_x", Spec()), {"f": lambda: 1}, [{}])


@pytest.mark.slow
def test_every_case_begins_anew() -> None:
    pytest.importorskip("torch")

    run("""
def settings():
    before = str(torch.tensor(1.0).dtype)
    torch.set_default_dtype(torch.float64)
    return before

records = collect(RegisteredExercise("ex", "lab90_x", Spec()), globals(), [{}, {}])
assert [{"value": "torch.float32"}] * 2 == records
assert torch.get_default_dtype() == torch.float32
""")


@pytest.mark.slow
def test_putting_settings_back_imports_no_compiler() -> None:
    code = (
        "import sys, torch\n"
        "from edl_labs.checks import _exercise, evidence\n"
        "class Spec:\n"
        "    returns = {}\n"
        "    def probe(self, student, case): return case\n"
        "evidence.collect(_exercise.RegisteredExercise('x', 'lab', Spec()), {}, [1])\n"
        "print([name for name in ('torch._inductor', 'torch._dynamo') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()
