"""Tensor cores from kernel names, from Volta's to Blackwell's, and what deck [000]'s pattern makes of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from edl_labs.arguments import checked_arguments
from edl_labs.values import Value

# As the deck prints it. It knows the instruction shapes of Volta to Ampere (s884, s1688, s16816, h884, i8816) alone.
DECK_PATTERN = re.compile(r"[i|s|h](\d)+")

# In order: the first that is found decides. Marks of scalar units come first, because names such as
# cutlass3x_sm100_simt_sgemm carry an architecture whose other kernels do use tensor cores.
_MARKS: tuple[tuple[bool | None, str, str], ...] = (
    (False, "simt", r"simt"),
    (False, "scalar multiply-adds", r"_(ffma|hfma2?|dfma)_|UniversalFMA|_sm50\b"),
    (False, "matrix times vector", r"gemv|dot_kernel|splitKreduce|split_?k_?reduce"),
    (True, "tensorop", r"tensorop|wmma_tensorop|OpClassTensorOp|OpClassBlockScaledTensorOp"),
    # The instruction's shape m n k, written without spaces, behind a letter for the type that it sums in.
    (
        True,
        "mma shape",
        r"(?<![a-z])[hsidc](884|1688|16816|161616|8816|8832|16832|16864|88128|168128|168256|64)\d*(cudnn|gemm|fprop|dgrad|wgrad|bf16|tf32|_)",
    ),
    (True, "mma shape", r"_tensor\d+x\d+x\d+|[hsid]\d+x\d+x\d+(gemm|tf32|_)"),
    (True, "warpgroup mma (Hopper)", r"wgmma|GMMA|warpgroupsize|SM90_\d+x\d+x\d+_"),
    (True, "tcgen05 (Blackwell)", r"tcgen05|Umma|UMMA|SM1[0-9]{2}_MMA"),
    (True, "nvjet (cuBLAS for Hopper and Blackwell)", r"nvjet"),
    (True, "mma", r"SM(75|80|89)_\d+x\d+x\d+_|hmma|imma|_mma_"),
    (True, "fused attention", r"flash_(fwd|bwd|fprop|dgrad)|flash_attn|fmha(Sm\d+|_v2|_cutlass)|sdpa_sm\d+"),
    (True, "xmma on a Hopper or Blackwell chip", r"sm(9\d|1\d\d)_xmma"),
    (
        None,
        "the name of a compiled matrix product does not tell",
        r"triton_(tem|mm|bmm)|_?(matmul|gemm|bmm)_?kernel|flex_attention",
    ),
    (False, "a plain fp32 or fp64 product", r"(?<![a-z])[sdc]gemm|winograd"),
    (None, "a matrix product without a mark", r"gemm|matmul|conv|fprop|dgrad|wgrad|xmma|attention"),
)
_COMPILED = tuple((uses, mark, re.compile(pattern)) for uses, mark, pattern in _MARKS)
_ARCHITECTURES = (
    (r"sm10\d|sm100|sm12\d|tcgen05|Umma|UMMA|Sm100", "Blackwell"),
    (r"sm90|Sm90|SM90|hopper|wgmma|GMMA|nvjet", "Hopper"),
    (r"sm8\d|ampere|cutlass_80|SM80|16816|16832", "Ampere"),
    (r"turing|cutlass_75|sm75", "Turing"),
    (r"volta|cutlass_70|sm70|884", "Volta"),
)
_DTYPES = (
    (r"f8|e4m3|e5m2|fp8|nvjet_(sm\d+_)?qq", "fp8"),
    (r"bf16|bfloat16|nvjet_(sm\d+_)?t", "bf16"),
    (r"tf32", "tf32"),
    (r"fp16|f16|half|h884|h1688|h16816|nvjet_(sm\d+_)?h", "fp16"),
    (r"d884|d16816|f64|dgemm", "fp64"),
    (r"i8816|i16832|imma|int8|s8_", "int8"),
)


@dataclass(frozen=True, repr=False)
class KernelKind(Value):
    """What a kernel's name tells: `tensor_core` is None where it does not tell, `mark` says what it was read from."""

    name: str
    tensor_core: bool | None
    mark: str
    architecture: str | None
    dtype: str | None
    deck_says: bool


@checked_arguments()
def tensor_core_kernel(name: str) -> KernelKind:
    """Whether the kernel called `name` uses tensor cores: yes, no, or None where the name does not tell.

    >>> tensor_core_kernel("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTT").tensor_core
    True
    >>> tensor_core_kernel("ampere_sgemm_128x64_nn").tensor_core
    False
    """
    text = str(name)
    uses, mark = next(((u, m) for u, m, pattern in _COMPILED if pattern.search(text)), (False, "no matrix product"))
    return KernelKind(
        name=text,
        tensor_core=uses,
        mark=mark,
        architecture=_first(_ARCHITECTURES, text),
        dtype=_first(_DTYPES, text) if uses else None,
        deck_says=bool(DECK_PATTERN.search(text)),
    )


def _first(table: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((word for pattern, word in table if re.search(pattern, text)), None)
