"""Compares the sizes of the parts of the project with their budgets: python -m tools.size_budgets.

A budget is a measured size in tools/size_budgets.toml. A test fails if a part is more than 5 % above its budget. In
that case, delete something, or raise the number by hand and give the reason in the commit. Tokens are counted as in
`tools.count_tokens`.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

from tools.count_tokens import code_words, in_course_or_checks, in_package, texts_of
from tools.exercise_hooks import hooks_of

ROOT = Path(__file__).parents[1]
MARGIN = 1.05  # of a budget: smaller growth comes with any feature


def sizes() -> dict[str, int]:
    """The size of each part in the working tree, by its name in the table."""
    texts = texts_of(None)
    tokens = {
        path: len(list(code_words(text))) for path, text in texts.items() if path.startswith(("edl_labs/", "tools/"))
    }
    modules = [path for path in texts if path.startswith("edl_labs/")]
    return {
        "tokens, edl_labs/ without exercises/, and tools/": _sum(tokens, in_package),
        "tokens, course/ and checks/": _sum(tokens, in_course_or_checks),
        "tokens, exercises/": _sum(tokens, lambda path: path.startswith("edl_labs/exercises/")),
        "modules, edl_labs/": len(modules),
        "optional parts of an exercise": len(hooks_of(texts)),
        "lines, solutions/*/mistakes/": _lines(ROOT.glob("solutions/*/mistakes/*.py")),
        "lines, tests/labs/trials/": _lines(ROOT.glob("tests/labs/trials/lab*/*.toml")),
        "lines, README and docs/": _lines([ROOT / "README.md", *ROOT.glob("docs/**/*.md")]),
        "lines, CONTRIBUTING.md": _lines([ROOT / "CONTRIBUTING.md"]),
    }


def budgets() -> dict[str, int]:
    """The budgets by name."""
    return dict(tomllib.loads((ROOT / "tools" / "size_budgets.toml").read_text(encoding="utf-8")))


def above(found: dict[str, int], allowed: dict[str, int]) -> list[str]:
    """A sentence for each part that is too large, has no budget, or no longer exists.

    >>> above({"a": 105, "b": 106}, {"a": 100, "b": 100, "c": 1})
    ['b: 106, 6.0 % above its budget of 100', 'c has a budget and no size']
    """
    large = [
        f"{name}: {size:,}, {100 * (size / allowed[name] - 1):.1f} % above its budget of {allowed[name]:,}"
        if name in allowed
        else f"{name} has a size and no budget"
        for name, size in found.items()
        if size > MARGIN * allowed.get(name, 0)
    ]
    return large + [f"{name} has a budget and no size" for name in allowed if name not in found]


def table(found: dict[str, int], allowed: dict[str, int]) -> str:
    """The sizes as a Markdown table."""
    rows = [f"| {name} | {size:,} | {allowed.get(name, 0):,} |" for name, size in found.items()]
    return "\n".join(["| part | size | budget |", "|---|---|---|", *rows])


def _sum(tokens: dict[str, int], counts: Callable[[str], bool]) -> int:
    return sum(count for path, count in tokens.items() if counts(path))


def _lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths if path.is_file())


def main() -> int:
    """Print the table; 1 where a part is above its budget."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    found, allowed = sizes(), budgets()
    print(table(found, allowed))
    problems = above(found, allowed)
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
