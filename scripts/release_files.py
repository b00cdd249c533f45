"""Builds a wheel and an sdist in dist/ for a release, and checks contents, size, leaks and version (`make dist`)."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
MOST_BYTES = 10_000_000  # students download it over a phone: the largest so far had 3 MB
FORBIDDEN = ("/solutions/", "/judge/", "/tests/", "/benchmarks/")
METADATA = ("2.1", "2.2", "2.3", "2.4")  # what the action that release.yml pins accepts; it refuses the upload of 2.5
NEEDED = ("edl_labs/cli/__init__.py", "lab01_gpu_basics.ipynb", "goldens/lab01_gpu_basics.json")


def main() -> int:
    """Builds both files; 1 with a line for each thing that is wrong with them."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(DIST), str(ROOT)], check=True)
    wrong = [f"{path.name}: {problem}" for path in sorted(DIST.iterdir()) for problem in problems(path)]
    wrong += version_problems(os.environ.get("GITHUB_REF", ""))
    command = [
        sys.executable,
        "-c",
        "from edl_labs.cli import main; main()",
        "leaks",
        *map(str, sorted(DIST.iterdir())),
    ]
    leaked = subprocess.run(command, cwd=ROOT).returncode
    print("\n".join(wrong) or "\n".join(f"{path.name}: {path.stat().st_size:,} B" for path in sorted(DIST.iterdir())))
    return 1 if wrong or leaked else 0


def problems(path: Path) -> list[str]:
    """What a file holds and must not, or lacks and must have."""
    names = contents(path)
    found = [f"holds {name}" for name in names if any(part in f"/{name}" for part in FORBIDDEN)]
    found += [f"lacks {wanted}" for wanted in NEEDED if not any(name.endswith(wanted) for name in names)]
    if path.stat().st_size > MOST_BYTES:
        found.append(f"has {path.stat().st_size:,} B; {MOST_BYTES:,} are enough")
    if (version := metadata_version(path)) not in METADATA:
        found.append(f"has core metadata {version}; the upload takes {METADATA[0]} to {METADATA[-1]}")
    return found


def contents(path: Path) -> list[str]:
    """The names of the files in a wheel or an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.namelist()
    with tarfile.open(path) as sdist:
        return sdist.getnames()


def metadata_version(path: Path) -> str:
    """The version of the core metadata in a wheel or an sdist."""
    (inside,) = [name for name in contents(path) if re.fullmatch(r"[^/]+(\.dist-info/METADATA|/PKG-INFO)", name)]
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            text = wheel.read(inside)
    else:
        with tarfile.open(path) as sdist:
            text = sdist.extractfile(inside).read()  # type: ignore[union-attr]
    return str(email.message_from_bytes(text)["Metadata-Version"])


def version_problems(ref: str) -> list[str]:
    """A tag that is not the version, or a version without its part of the changelog."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if not ref.startswith("refs/tags/"):
        return []
    found = (
        [] if ref == f"refs/tags/v{version}" else [f"the tag is {ref.rpartition('/')[2]}, but the version is {version}"]
    )
    if f"## {version}" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        found.append(f"CHANGELOG.md has no section for {version}")
    return found


if __name__ == "__main__":
    sys.exit(main())
