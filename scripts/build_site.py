"""Builds the documentation site in build/site/html from docs/, labs/, the changelog and the package's docstrings.

Run it with `make docs`. It uses npm to download Pyodide once to build/site/npm. Pages load nothing from other hosts.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from site_pages import OUT_OF_SEARCH, lab_page, mend_anchors, table_of_labs

ROOT = Path(__file__).resolve().parents[1]
DOCS, SITE = ROOT / "docs", ROOT / "build" / "site"
SOURCE, HTML, NPM = SITE / "source", SITE / "html", SITE / "npm"
PYODIDE = "pyodide@314.0.7"
PYODIDE_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
# Pages that live elsewhere in the repository, and what they are called here.
ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
    "labs/README.md": "labs/index.md",
}
# Files that pages give to download.
GIVEN = {
    "Dockerfile": "files/Dockerfile",
    "LICENSE": "files/LICENSE",
    ".github/workflows/ci.yml": "files/ci.yml",
    ".github/workflows/gpu.yml": "files/gpu.yml",
}
NOT_FOUND = ("changelog.md", "contributing.md")  # by search: they name everything, and answer no visitor
LEFT_OUT = ("course", "cli", "exercises", "labs")  # of the package: what no explorer needs, and nothing of the judge
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def main() -> int:
    """Assemble the sources, build, scan for leaks; the exit code says whether all of it went well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--without-labs", action="store_true", help="leave out the labs, which take several minutes in the first build"
    )
    arguments = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(DOCS / "_static")]
    assemble(labs=not arguments.without_labs)
    write_static(SOURCE / "_static")
    print("building the pages; each cell runs once, and its output is kept until the cell changes", flush=True)
    strict = ("-n", "-W", "--keep-going", "-q", "-d", str(SITE / "doctrees"))
    if subprocess.run([sys.executable, "-m", "sphinx", *strict, str(SOURCE), str(HTML)], cwd=ROOT).returncode:
        return 1
    dead = mend_anchors(HTML)
    if dead:
        print("links to sections that do not exist:", *dead, sep="\n  ", file=sys.stderr)
        return 1
    (HTML / "_static" / "webpack-macros.html").unlink(missing_ok=True)  # the theme's own template, no page
    leaked = leaks()
    shown = HTML.relative_to(ROOT)
    print(f"the site is in {shown}; view it with: {Path(sys.executable).name} -m http.server -d {shown}")
    return leaked


def assemble(*, labs: bool) -> None:
    """build/site/source: the pages of docs/, those that live elsewhere, and the released notebooks."""
    pages = {path.relative_to(DOCS).as_posix(): path for path in DOCS.rglob("*") if path.is_file()}
    pages |= {name: ROOT / where for where, name in (ELSEWHERE | GIVEN).items()}
    if labs:
        pages |= {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "labs").glob("lab*/*.ipynb"))}
    homes = {where.relative_to(ROOT).as_posix(): name for name, where in pages.items()}
    for name, where in pages.items():
        data = where.read_bytes()
        if name.endswith(".md"):
            text = table_of_labs(data.decode()) if name == "labs/index.md" else data.decode()
            data = ((OUT_OF_SEARCH if name in NOT_FOUND else "") + linked(text, where, name, homes)).encode()
        if name.endswith(".ipynb"):
            write(SOURCE / "files" / where.name, data)
            data = lab_page(data, where.stem)
        if name == "labs/index.md":
            data += toctree(sorted(page.removeprefix("labs/") for page in pages if page.endswith(".ipynb"))).encode()
        write(SOURCE / name, data)
    for path in SOURCE.rglob("*"):
        is_page = path.is_file() and path.suffix in (".md", ".ipynb", ".py") and not written(path)
        if is_page and path.relative_to(SOURCE).as_posix() not in pages:
            path.unlink()


def written(path: Path) -> bool:
    """Whether Sphinx or this script writes it there, beside the pages."""
    return path.relative_to(SOURCE).parts[0] in ("api", "files", "jupyter_execute") or "_static" in path.parts


def linked(text: str, where: Path, name: str, homes: dict[str, str]) -> str:
    """The text with links to files that are pages here pointing at these, and no link to a file that is none.

    A link from the site's root, `/api/…`, is left to Sphinx, which refuses one that leads nowhere; ValueError for a
    link to a file that is nowhere in the repository.
    """

    def one(found: re.Match[str]) -> str:
        said, target, anchor = found[1], found[2], found[3] or ""
        if target.startswith("/"):
            return found[0]
        try:
            home = homes.get((where.parent / target).resolve().relative_to(ROOT).as_posix())
        except ValueError:
            home = None
        if home is None:
            if (where.parent / target).suffix == "" and "/" not in target:
                return found[0]
            if not (where.parent / target).exists():
                raise ValueError(f"{where.relative_to(ROOT)}: [{said}]({target}) links to a file that does not exist")
            return said
        return f"[{said}](/{home}{anchor})"

    return LINK.sub(one, text)


def toctree(pages: list[str]) -> str:
    """The part of a page that puts others below it."""
    return "\n".join(["", "```{toctree}", ":hidden:", "", *(page.rsplit(".", 1)[0] for page in pages), "```", ""])


def write_static(folder: Path) -> None:
    """What the explorers load: Pyodide, the library as an archive, and the settings that pages open with."""
    npm = shutil.which("npm")
    kept = NPM / "node_modules" / "pyodide"
    if not (kept / "pyodide.mjs").is_file():
        if npm is None:
            why = "npm downloads Pyodide, which runs the explorers"
            sys.exit(f"npm is not installed\n  why:  {why}\n  next: scripts/system_packages npm")
        quiet = ("--no-save", "--no-audit", "--no-fund", "--silent")
        subprocess.run([npm, "install", *quiet, f"--prefix={NPM}", PYODIDE], check=True)
    for name in PYODIDE_FILES:
        write(folder / "pyodide" / name, (kept / name).read_bytes())
    pack_library(folder / "edl_labs.zip")
    write(folder / "states.json", json.dumps(states(), separators=(",", ":"), ensure_ascii=False).encode())
    write(folder / "formats.json", json.dumps(list(formats()), separators=(",", ":")).encode())


def pack_library(target: Path) -> None:
    """The package without what students have no use for on a page, and explorers.py beside it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    package = ROOT / "edl_labs"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(package.rglob("*")):
            inside = path.relative_to(package)
            if path.is_file() and inside.parts[0] not in LEFT_OUT and path.suffix in (".py", ".toml", ".json", ".csv"):
                archive.writestr(zipfile.ZipInfo(f"edl_labs/{inside.as_posix()}"), path.read_bytes())
        archive.writestr(zipfile.ZipInfo("explorers.py"), (DOCS / "_static" / "explorers.py").read_bytes())


def states() -> dict[str, dict[str, Any]]:
    """Each explorer's controls, and what it shows before Python is there: all settings of the landing page's and of
    those that need NumPy, the one that it opens with of the others. Settings are named by the places of their values,
    "3,2".
    """
    import explorers
    import tile_frames

    found: dict[str, dict[str, Any]] = {}
    for kind, controls in (explorers.CONTROLS | tile_frames.CONTROLS).items():
        shows = getattr(tile_frames if kind in tile_frames.CONTROLS else explorers, kind)
        opens = [(start,) for *_, start in controls]
        is_whole = kind == "streams" or kind in tile_frames.CONTROLS
        places = [range(len(values)) for _, _, values, _, _ in controls] if is_whole else opens
        kept = {}
        for place in product(*places):
            options = {name: values[at] for (name, _, values, _, _), at in zip(controls, place, strict=True)}
            kept[",".join(map(str, place))] = rounded(shows(**options))
        found[kind] = {"controls": controls, "states": kept}
    return found


def rounded(result: Any) -> Any:
    """Seven digits are more than a picture shows."""
    if isinstance(result, float):
        return float(f"{result:.7g}")
    if isinstance(result, dict):
        return {name: rounded(value) for name, value in result.items()}
    return [rounded(value) for value in result] if isinstance(result, list) else result


def formats() -> Iterator[dict[str, Any]]:
    """Number formats as a table: a scale and a whole part for each exponent, None where it means inf and NaN."""
    from edl_labs.numerics import BF16, E4M3FN, E5M2, FP16, FP32, TF32

    for fmt in (FP32, TF32, FP16, BF16, E4M3FN, E5M2):
        last, ulps = 1 << fmt.exponent_bits, 1 << fmt.mantissa_bits
        exponents: list[list[float] | None] = []
        for exponent in range(last):
            low, high = (float(fmt.decode(exponent * ulps + fraction)) for fraction in (0, 1))
            step = high - low
            exponents.append([step * ulps, low / (step * ulps)] if math.isfinite(step) else None)
        yield {
            "name": fmt.name,
            "bits": fmt.bits,
            "signed": fmt.signed,
            "exponent_bits": fmt.exponent_bits,
            "mantissa_bits": fmt.mantissa_bits,
            "exponents": exponents,
            "specials": {} if fmt.specials == "ieee" else {"1" * fmt.bits: "nan", "0" + "1" * (fmt.bits - 1): "nan"},
            "largest": f"{fmt.largest:.6g}",
            "smallest": f"{fmt.smallest_subnormal:.6g}",
            "one": f"{int(fmt.encode(1.0)):0{fmt.bits}b}",
        }


def write(path: Path, data: bytes) -> None:
    """Only where something changed: what is newer is built again."""
    if not path.is_file() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def leaks() -> int:
    """No page holds a solution: the scan that wheels go through. Pyodide's files are Python's own."""
    own = [str(path) for path in sorted(HTML.iterdir()) if path.name != "_static"]
    own += [str(path) for path in sorted((HTML / "_static").iterdir()) if path.name != "pyodide"]
    command = [sys.executable, "-c", "from edl_labs.cli import main; main()", "leaks", *own]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
