"""A step of many small kernels on a VirtualGPU: two towers that need not wait for each other, then an update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edl_labs.virtual.errors import VirtualGPUError

if TYPE_CHECKING:
    from edl_labs.virtual.gpu.buffers import Region
    from edl_labs.virtual.gpu.virtual_gpu import VirtualGPU

_WEIGHT_BYTES = 64  # they stand for all of them: what a kernel takes is said, not priced by its bytes
LOSS_BYTES = 4  # float32


@dataclass(frozen=True)
class TowersPlan:
    """Kernels of each tower and of the update, how long each runs, and what the libraries' first call costs."""

    image_kernels: int
    text_kernels: int
    update_kernels: int
    kernel_s: float
    batch_bytes: int
    workspace_bytes: int
    init_s: float


class TwoTowers:
    """A model of an image tower and a text tower, whose features meet in one loss. What it issues, it issues in order
    in the current stream.

    `image(batch)` and `text(batch)` read a batch on the device; a tower's kernel fills half of the SMs. `update()`
    computes the loss from both, then gradients and new weights; `loss` holds the loss of the last update, 4 bytes on
    the device. The first call sets up the libraries: it asks for memory, which a capture does not allow.

    >>> from edl_labs.virtual import VirtualGPU
    >>> gpu = VirtualGPU("H100-SXM")
    >>> towers = TwoTowers(gpu, TowersPlan(2, 2, 1, 4e-6, 1024, 4096, 1e-3))
    >>> batch = gpu.empty(1024)
    >>> towers.image(batch); towers.text(batch); towers.update()
    >>> [entry["name"] for entry in gpu.program if entry["op"] == "launch"]
    ['image', 'image', 'text', 'text', 'loss', 'update']
    """

    def __init__(self, gpu: VirtualGPU, plan: TowersPlan) -> None:
        self.gpu, self.plan = gpu, plan
        self.weights = gpu.empty(_WEIGHT_BYTES, name="weights")
        self.loss = gpu.empty(LOSS_BYTES, name="loss")
        self._features = {name: gpu.empty(_WEIGHT_BYTES, name=f"{name} features") for name in ("image", "text")}
        self._is_set_up = False

    def image(self, batch: Region) -> None:
        """The image tower's kernels on a batch."""
        self._tower("image", batch, self.plan.image_kernels)

    def text(self, batch: Region) -> None:
        """The text tower's kernels on a batch."""
        self._tower("text", batch, self.plan.text_kernels)

    def update(self) -> None:
        """The loss of both towers' features, its gradients, and new weights."""
        both, weights = tuple(self._features.values()), self.weights
        self._launch("loss", reads=both, writes=self.loss)
        for _ in range(self.plan.update_kernels):
            self._launch("update", reads=(*both, weights), writes=weights)

    def _tower(self, name: str, batch: Region, kernels: int) -> None:
        self._set_up()
        features, blocks = self._features[name], max(1, self.gpu.machine.sm_count // 2)
        self._launch(name, reads=(batch, self.weights), writes=features, blocks=blocks)
        for _ in range(kernels - 1):
            self._launch(name, reads=(features, self.weights), writes=features, blocks=blocks)

    def _launch(self, name: str, **work: Any) -> None:
        self.gpu.launch(name, duration_s=self.plan.kernel_s, **work)

    def _set_up(self) -> None:
        if self._is_set_up:
            return
        if self.gpu.is_current_stream_capturing():
            raise VirtualGPUError(
                "this model's first call sets up its libraries, so it cannot be captured",
                why="the first call allocates memory and chooses kernels, and a graph can contain neither",
                next="warm up first: run an ordinary step before you capture a graph",
            )
        self.gpu.host_work(self.plan.init_s)
        self.gpu.empty(self.plan.workspace_bytes, name="workspace")
        self._is_set_up = True
