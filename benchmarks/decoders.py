"""JPEG decoders on this machine: do they give the same images, and how fast are they alone and in a DataLoader?

Run with `python benchmarks/decoders.py [--json] [--rounds N] [--picture FILE]`. Exit status 1 means that a decoder
gives different images.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from pathlib import Path

from edl_labs.device import describe
from edl_labs.pipeline import image_set, missing_decoders, rank_decoders, usable_cores

SIZES = ((375, 500), (1000, 1500))


def main() -> int:
    """Measure, print the tables, and say whether all decoders agree."""
    import torch

    warnings.filterwarnings("ignore", category=DeprecationWarning)
    torch.set_num_threads(1)
    rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 4
    found = {}
    with tempfile.TemporaryDirectory() as name:
        for size in SIZES:
            data = image_set(48 if size[0] < 500 else 12, size=size, folder=Path(name))
            ranks = rank_decoders(data.samples, workers=usable_cores(), rounds=rounds, seconds=0.6)
            found[f"{size[0]}x{size[1]}"] = ranks
    if "--picture" in sys.argv:
        from edl_labs.plots import style
        from edl_labs.plots.data_pipelines import draw_decoders

        figure, axes = style.subplots(1, len(found), figsize=(7 * len(found), 4))
        for part, (size_name, ranks) in zip(axes, found.items(), strict=True):
            draw_decoders(part, ranks).set_title(size_name)
        figure.savefig(sys.argv[sys.argv.index("--picture") + 1])
    if "--json" in sys.argv:
        sizes = {name: ranks.to_json() for name, ranks in found.items()}
        print(json.dumps({"sizes": sizes, "missing": missing_decoders(), "stamp": describe("cpu").to_dict()}, indent=1))
    else:
        for size_name, ranks in found.items():
            print(f"{size_name}, {ranks.workers} workers, median of {rounds} rounds [lowest, highest]")
            for row in ranks.rows:
                print(
                    f"  {row.alone_rank}. alone {row.alone_per_s:6.0f}/s [{row.alone_low_per_s:.0f}, "
                    f"{row.alone_high_per_s:.0f}]"
                    f"  {row.loader_rank}. in the loader {row.loader_per_s:6.0f}/s [{row.loader_low_per_s:.0f}, "
                    f"{row.loader_high_per_s:.0f}]  {row.scaling:.2f}x  {row.name} {row.version}"
                )
            print(f"  decoders whose rank differs in the loader: {ranks.moved or 'none'}; ", end="")
            print(f"by more than the spread of the rounds: {ranks.surely_moved or 'none'}")
        for name, why in missing_decoders().items():
            print(f"  not measured: {name}: {why}")
    return 1 if any(ranks.refused for ranks in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
