"""What share of their datasheets GPUs reach: few numbers, each with its reason, its source and its spread.

Sources: published tables of the best products and streams of each card (NeuSight's kernel data, the ML Engineering
book's MAMF tables, gpt-fast, FlashAttention's papers); where no table says, the value is fitted on the calibration rows
of `benchmarks/step_prediction.py` (marked "fitted").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType

from edl_labs.errors import UsageError


def _frozen(**values: float) -> Mapping[str, float]:
    return MappingProxyType(values)


# Board power in watts, from each card's datasheet: the clock that products can hold follows from it.
BOARD_POWER_W: Mapping[str, float] = MappingProxyType(
    {
        "T4": 70,
        "L4": 72,
        "A10": 150,
        "A10G": 150,
        "A30": 165,
        "A40": 300,
        "A6000": 300,
        "L40": 300,
        "L40S": 350,
        "V100-16GB": 300,
        "V100-32GB": 300,
        "V100-PCIe-16GB": 250,
        "V100-PCIe-32GB": 250,
        "P100-SXM2": 300,
        "P100-PCIe-16GB": 250,
        "P100-PCIe-12GB": 250,
        "A100-40GB": 400,
        "A100-80GB": 400,
        "A100-40GB-PCIe": 250,
        "A100-80GB-PCIe": 300,
        "RTX-3080-10GB": 320,
        "RTX-3080-12GB": 350,
        "RTX-3090": 350,
        "RTX-4090": 450,
        "RTX-5090": 575,
        "RTX-6000-Ada": 300,
        "H100-SXM": 700,
        "H100-PCIe": 350,
        "H100-NVL": 400,
        "H100-SXM-96GB-HBM2e": 500,
        "H200": 700,
        "H200-NVL": 600,
        "H20": 400,
        "GH200-96GB": 900,
        "GH200-144GB": 900,
        "B200": 1000,
        "GB200": 1200,
        "B300": 1400,
        "MI250X-GCD": 280,
        "MI300X": 750,
        "MI325X": 1000,
        "K80": 150,
        "GTX-1080-Ti": 250,
        "TITAN-RTX": 280,
        "RTX-8000": 260,
        "A16": 62.5,
        "RTX-PRO-6000": 600,
        "H800-SXM": 700,
        "A800-80GB": 400,
        "MI355X": 1400,
        "RX-7900-XTX": 355,
    }
)
# Which chips share a way of making and of issuing products.
FAMILY: Mapping[str, str] = MappingProxyType(
    {
        "Kepler": "old",
        "Pascal": "old",
        "Volta": "old",
        "Turing": "old",
        "Ampere": "ga100",
        "Ada": "ada",
        "Hopper": "hopper",
        "Blackwell": "blackwell",
        "CDNA2": "ga100",
        "CDNA3": "hopper",
        "CDNA4": "hopper",
        "RDNA3": "ga10x",
    }
)


@dataclass(frozen=True)
class Efficiencies:
    """Shares of peaks, seconds and joules; `replace` changes some, as a calibrated card or a fit does."""

    # The best large product, as a share of the tensor cores' datasheet rate: V100 0.90, A100 0.94, RTX 4090 1.0 (its
    # clock is above the printed one), B200 0.78 (tables named above). H100 0.80 there; fitted from these.
    tensor: Mapping[str, float] = field(
        default_factory=lambda: _frozen(
            old=0.9162, ga100=0.9035, ga10x=1.039, ada=1.049, hopper=0.6901, blackwell=0.78, gb20x=1.049
        )
    )
    # The same on CUDA cores in fp32: V100 0.97, A100 0.98, H100 0.76; GA10x and Ada share half of their lanes with
    # integers, and sgemm keeps 0.7 of them busy (cutlass on A10; power apart).
    cuda: Mapping[str, float] = field(
        default_factory=lambda: _frozen(
            old=0.9752, ga100=0.9666, ga10x=0.70, ada=0.7547, hopper=0.8095, blackwell=0.75, gb20x=0.75
        )
    )
    # Joules of a tensor-core FLOP in 16 bits at full clock: T4's 24 TFLOP/s at 70 W, A100 PCIe's 253 at 300 W, the
    # H100's 795 at 700 W; fp32 on CUDA cores: T4's 3.9 TFLOP/s at 70 W, L4's 8.8 at 72 W.
    tensor_j: Mapping[str, float] = field(
        default_factory=lambda: _frozen(
            old=1.95e-12, ga100=0.95e-12, ga10x=1.1e-12, ada=0.9e-12, hopper=0.62e-12, blackwell=0.38e-12, gb20x=0.9e-12
        )
    )
    cuda_j: Mapping[str, float] = field(
        default_factory=lambda: _frozen(
            old=12.5e-12, ga100=9e-12, ga10x=8e-12, ada=6.2e-12, hopper=5e-12, blackwell=4.5e-12, gb20x=6.2e-12
        )
    )
    # Clocks of GeForce boards in use against the printed boost clock: 1.9 of 1.7 GHz on RTX 3090, 2.7 of 2.5 on 4090.
    geforce_clock: float = 1.176
    power_exponent: float = 0.7441  # of share of power to share of clock: 1 at lowest voltage, 1/3 far above it
    idle_share: float = 0.15  # of a board's power that memory and the rest take while products run
    # Streams over large tensors, as a share of the datasheet: HBM2 0.90, HBM2e 0.86, GDDR6 0.75, HBM3 0.91;
    # fitted from these; HBM3e (H200 and B200, 7 rows under early software) ends far below its prior of 0.91.
    dram: Mapping[str, float] = field(
        default_factory=lambda: _frozen(
            HBM2=0.9039, HBM2e=0.8592, GDDR6=0.7713, GDDR6X=1.011, GDDR7=0.88, HBM3=0.8437, HBM3e=0.5801, HBM3E=0.85
        )
    )
    # Shares of that stream that kernels of a kind reach (NeuSight: norms 0.6-0.8, softmax 0.65-0.8 of the sheet).
    stream: Mapping[str, float] = field(
        default_factory=lambda: _frozen(
            pointwise=1.0,
            norm=0.8104,
            softmax=0.7002,
            reduce=0.661,
            copy=0.7912,
            gather=0.5372,
            pool=0.7572,
            optimizer=0.95,
            product=0.9579,
            attention=0.9,
        )
    )
    l2_speedup: float = 2.5  # the L2 against DRAM, as VirtualMachine has it
    l2_share: float = 0.5  # of the L2 that one kernel's tensors may fill and still be found there by the next
    ordinary: float = 0.8317  # of the best product of a search that an ordinary large shape reaches (MAMF tables)
    ordinary_fp32: float = 1.001  # fitted; sgemm has fewer kernels to choose among
    prologue: float = 94.86  # of k, in elements, that filling and draining a tile's pipeline costs; fitted
    misaligned: float = 0.30  # rows off 16 bytes: no asynchronous or wide loads (tensor cores at a third); fitted
    conv: float = 1.029  # an implicit product against a plain one: windows are gathered on the way; fitted
    dgrad: float = 0.8347  # fitted
    strided_dgrad: float = 0.5293  # windows that skip places leave taps without work; fitted
    wgrad: float = 0.836  # sums over all images, split and added again; fitted
    conv_fp32: float = 1.174  # fitted
    winograd: float = 1.534  # cuDNN's gain on 3 x 3 windows in fp32 on CUDA cores, of 2.25 in theory; fitted
    tf32_conv: float = 0.7495  # TF32 convolutions against 16-bit ones, after the halved peak; fitted
    nchw_conv: float = 0.7157  # tensor-core convolutions of images in NCHW; fitted
    nchw_passes: float = 0.9947  # how often NCHW images are written and read again in NHWC around a kernel; fitted
    nchw_back: float = 1.135  # the same around a gradient's kernel; fitted
    nchw_straight: float = 0.25  # of that rate where a kernel reads NCHW images as they lie; fitted
    depthwise: float = 0.852  # of the stream that a depthwise window reaches; fitted
    depthwise_back: float = 0.5  # and its gradients; fitted
    grouped: float = 1.262  # of a product's rate in narrow groups after padding to 16 channels; fitted
    # FlashAttention-2 forward on A100 0.6, on H100 0.4; backward 0.85 of it; older chips have a memory-saving kernel.
    attention: Mapping[str, float] = field(
        default_factory=lambda: _frozen(
            old=0.25, ga100=0.4913, ga10x=0.6031, ada=0.6508, hopper=0.4388, blackwell=0.40, gb20x=0.6508
        )
    )
    attention_back: float = 0.80  # of the forward pass's rate, FlashAttention-2's paper
    kernel_s: float = 8.147e-06  # beside a kernel's work: start, last wave, end, and what else a step of many
    # kernels loses; fitted, from 2 to 7 us in other models
    # What an operation costs the host in eager mode, a module's Python included: 5-25 us on hosts of today, and
    # 10 ms of a ResNet-50 on those that carried V100 and T4 (published latencies at batch 1).
    host_s: Mapping[str, float] = field(
        default_factory=lambda: _frozen(
            old=5.879e-05, ga100=18e-6, ga10x=14e-6, ada=10e-6, hopper=12e-6, blackwell=11e-6, gb20x=10e-6
        )
    )
    host_backward: float = 0.5  # autograd issues from C++
    host_compiled: float = 0.4  # a compiled graph's wrapper, against eager's dispatcher
    graph_launch_s: float = 1.0e-6  # a kernel of a CUDA graph
    compiled_stream: float = 1.125  # generated kernels against written ones; fitted
    overlap: float = 4.0  # p of (compute^p + memory^p)^(1/p): how well a product hides its traffic

    def changed(self, **values: float) -> Efficiencies:
        """The same with some numbers changed; 'stream.norm' reaches into a table. UsageError for unknown names."""
        plain: dict[str, object] = {}
        known = {one.name for one in fields(self)}
        for name, value in values.items():
            table, _, key = name.partition(".")
            if table not in known:
                raise UsageError(
                    f"there is no efficiency {name!r}",
                    why=f"the efficiencies are {', '.join(sorted(known))}",
                    next="use one of these names",
                )
            if key:
                plain[table] = _frozen(**{**dict(plain.get(table) or getattr(self, table)), key: value})  # type: ignore
            else:
                plain[table] = value
        return replace(self, **plain)  # type: ignore[arg-type]


def family(key: str, architecture: str) -> str:
    """Which row of the tables a card reads: Ampere and Blackwell are two chips each, a server's and a graphics card's.

    A GB202's SM does the 256 multiply-adds a clock of Ada's where it accumulates in fp32 (half of its rate on GeForce;
    appendices A of NVIDIA's Ada and RTX Blackwell architecture white papers), and both are made in TSMC's 4N, so that
    tensor cores, energy and attention are Ada's until measured rows say otherwise; all of its lanes do fp32 and
    integers, and its memory is GDDR7. A B200's SM does 4096.
    """
    if architecture == "Ampere" and not key.startswith(("A100", "A30")):
        return "ga10x"
    if architecture == "Blackwell" and key.startswith("RTX"):
        return "gb20x"
    return FAMILY.get(architecture, "hopper")
