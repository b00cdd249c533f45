"""Pictures of a graph: its kernels with their operators and bytes, and what is live while each operator runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edl_labs.plots.style import BLUE, GREEN, GREY, HATCHING, ON_COLOUR, ORANGE, PURPLE, TEXT, dress
from edl_labs.units import byte_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edl_labs.graph.kernel_groups import Partition
    from edl_labs.graph.operator_graph import Graph

# Colour is never the only sign: each kind has another hatch.
KINDS = {
    "contraction": (BLUE, "", "contraction"),
    "reduction": (ORANGE, "//", "reduction"),
    "pointwise": (GREEN, "..", "pointwise"),
    "layout": (PURPLE, "\\\\", "layout change"),
    "other": (GREY, "xx", "other"),
}
_MOST_ROWS = 48  # kernels whose names can still be read
_LETTERS = 5.7  # of an operator's name, in the narrowest box: "layer_norm" fills twice its width, but for one letter
_MOST_BOXES = 6  # operators of a kernel side by side


def draw_partition(axes: Axes, plan: Partition, *, title: str = "") -> Axes:
    """A row a kernel, in their order (48 at most): its operators, and what it moves as a bar on the right.

    Lines on the left lead from the kernel that writes a tensor to those that read it.
    """
    shown = min(plan.launches, _MOST_ROWS)
    most = max((plan.kernel_bytes(at) for at in range(shown)), default=1) or 1
    kinds: set[str] = set()
    longest = max((len(kernel.nodes) for kernel in plan.kernels[:shown]), default=1)
    wide = _MOST_BOXES / min(max(longest, 3), _MOST_BOXES)
    for at in range(shown):
        nodes = [plan.graph.by_name[name] for name in plan.kernels[at].nodes if name in plan.graph.by_name]
        for place, node in enumerate(nodes[:_MOST_BOXES]):
            kinds.add(node.kind)
            is_last = place == _MOST_BOXES - 1 and len(nodes) > _MOST_BOXES
            text = f"and {len(nodes) - place} more" if is_last else node.operator.lstrip("_").removeprefix("native_")
            _box(axes, at, place, "other" if is_last else node.kind, text, wide=wide)
        width = min(len(nodes), _MOST_BOXES)
        axes.add_patch(_frame(at, width * wide))
        size = plan.kernel_bytes(at)
        axes.barh(at, 2.0 * size / most, left=_MOST_BOXES + 0.3, height=0.5, color=GREY)
        look: dict[str, Any] = {"va": "center", "fontsize": "x-small", "color": TEXT}
        axes.text(_MOST_BOXES + 0.35 + 2.0 * size / most, at, byte_count(size), **look)
    _arcs(axes, plan, shown)
    heading = title or str(plan)
    rest = f"; the first {shown} of {plan.launches} kernels" if shown < plan.launches else ""
    axes.set(xlim=(-1.6, _MOST_BOXES + 3.2), ylim=(shown - 0.4, -0.6), xticks=[], title=heading + rest)
    axes.set_yticks(range(shown), [str(at) for at in range(shown)], fontsize="x-small")
    axes.set_ylabel("kernel")
    dress(axes)
    axes.spines["bottom"].set_visible(False)
    _legend(axes, kinds, has_arcs=bool(_pairs(plan, shown)))
    figure: Any = axes.figure
    figure.set_figheight(max(2.2, 0.34 * shown + 1.2))
    return axes


def _box(axes: Axes, row: int, place: int, kind: str, text: str, *, wide: float) -> None:
    from matplotlib.patches import Rectangle

    colour, hatch, _ = KINDS[kind]
    look: dict[str, Any] = {"facecolor": colour, "hatch": hatch, "edgecolor": HATCHING, "linewidth": 0}
    axes.add_patch(Rectangle(((place + 0.03) * wide, row - 0.29), 0.94 * wide, 0.58, **look))
    room = int(_LETTERS * wide)
    short = text if len(text) <= room else text[: room - 1] + "…"
    behind = {"facecolor": colour, "edgecolor": "none", "pad": 0.6}  # or the hatching runs through the letters
    axes.text((place + 0.5) * wide, row, short, ha="center", va="center", fontsize=7, color=ON_COLOUR, bbox=behind)


def _frame(row: int, width: float) -> Any:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch(
        (0.0, row - 0.33), width, 0.66, boxstyle="round,pad=0.0,rounding_size=0.08", fill=False, edgecolor=TEXT, lw=1.0
    )


def _arcs(axes: Axes, plan: Partition, shown: int) -> None:
    """From who writes to who reads, wider the further they are apart."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    for start, end in _pairs(plan, shown):
        out = -0.25 - 1.2 * min(1.0, abs(end - start) / 8)
        corners = [(0.0, start), (out, start), (out, end), (0.0, end)]
        path = Path(corners, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        axes.add_patch(PathPatch(path, fill=False, edgecolor=TEXT, lw=0.7, alpha=0.7))
        axes.plot([-0.04], [end], marker=">", markersize=3, color=TEXT, clip_on=False)


def _pairs(plan: Partition, shown: int) -> list[tuple[int, int]]:
    """Kernels, the one that writes a tensor and the one that reads it."""
    writer = {name: at for at, names in reversed(list(enumerate(plan.writes))) for name in names}
    pairs = {(writer[name], at) for at, reads in enumerate(plan.reads) for name in reads if name in writer}
    return sorted((start, end) for start, end in pairs if max(start, end) < shown and start != end)


def _legend(axes: Axes, kinds: set[str], *, has_arcs: bool = False) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=HATCHING if hatch else colour, label=label)
        for kind, (colour, hatch, label) in KINDS.items()
        if kind in kinds
    ]
    handles.append(Patch(facecolor=GREY, label="bytes moved"))
    if has_arcs:
        handles.append(Line2D([], [], color=TEXT, lw=0.7, marker=">", markersize=3, label="writes → reads"))
    look: dict[str, Any] = {"frameon": False, "labelcolor": TEXT, "fontsize": "small"}
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, -0.02), ncols=len(handles), **look)


def draw_graph(axes: Axes, graph: Graph, *, title: str = "") -> Axes:
    """Bytes that are live while each operator runs, in their order; a line where the backward pass begins."""
    axes.step(range(len(graph.nodes)), graph.live_bytes, where="mid", color=BLUE, label="live bytes")
    turn = next((at for at, node in enumerate(graph.nodes) if node.direction == "backward"), None)
    if turn is not None:
        axes.axvline(turn - 0.5, color=TEXT, linestyle="--", linewidth=1.0, label="the backward pass begins")
    axes.yaxis.set_major_formatter(lambda value, _: byte_count(value))
    axes.set(xlabel="operator", ylim=(0, None), title=title or f"{graph.name}: live bytes")
    dress(axes)
    axes.legend(frameon=False, labelcolor=TEXT)
    return axes
