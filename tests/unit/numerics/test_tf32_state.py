"""TF32 as torch is set, whichever of its two interfaces was used."""

from __future__ import annotations

import subprocess
import sys

import pytest

# One process of its own: the settings are global, and torch complains when the two interfaces are mixed.
PROGRAM = """
import torch
from edl_labs.numerics import tf32_state
def show():
    state = tf32_state()
    print(state.matmul, state.convolution, end="; ")
show()
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = False
show()
if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    torch.backends.cudnn.conv.fp32_precision = "tf32"
else:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = True
show()
print(tf32_state())
"""


@pytest.mark.slow
def test_the_setting_is_read_through_both_interfaces() -> None:
    shown = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout

    assert shown.startswith("False True; True False; False True; ")
    assert "matrix products run in fp32, convolutions in TF32" in shown
