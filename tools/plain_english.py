"""How well the text reads: python -m tools.plain_english [FILE...] [--figures | --words | --record | --draw N].

It collects the sentences that people read, by kind: messages (texts in the package, and the hints and mistakes of
labs), labs (their prose), docs (Markdown) and docstrings (of public names). `--figures` measures their length, and
`--words` lists each use of a house word. `--record` lowers the counts in plain_english.toml to the present ones, and
`--draw` prints N sentences, drawn with seed 47.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import statistics
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COUNTS = Path(__file__).with_suffix(".toml")
KINDS = ("messages", "labs", "docs", "docstrings")
LONG = 25  # words: STYLE's 20, and some for terms
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "benchmarks/README.md")
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_END = re.compile(
    r"(?<=[.?!])(?<!e\.g\.)(?<!i\.e\.)[)\"']?\s+(?=[A-Z`\"'(*])|\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.) ?)|\s\|\s"
)
_WORD = re.compile(r"[A-Za-z0-9µ…'’.-]*[A-Za-z0-9µ…][A-Za-z0-9µ…'’-]*")


@dataclass(frozen=True)
class Sentence:
    """One sentence, its kind and its place."""

    kind: str
    path: str
    line: int
    text: str

    @property
    def words(self) -> int:
        """How many words it has."""
        return len(_WORD.findall(self.text))


def sentences_of(path: Path, root: Path = ROOT) -> list[Sentence]:
    """The sentences of one file, in its order."""
    name = path.relative_to(root).as_posix()
    found = [
        Sentence(kind, name, line, text)
        for kind, line, whole in _texts(path, name)
        for text in split(whole)
        if len(text.split()) > 2
    ]
    return found


def split(text: str) -> list[str]:
    """The sentences of a text.

    >>> split("One is here. Two is there: `a.b`.\\n\\nThree")
    ['One is here.', 'Two is there: `a.b`.', 'Three']
    """
    parts = (re.sub(r"\s+", " ", part).strip(" |#>*-") for part in _END.split(text))
    return [part for part in parts if re.search(r"[a-z]{2}", part)]


def files(root: Path = ROOT) -> list[Path]:
    """All files with text that people read."""
    pages = [path for pattern in PAGES for path in root.glob(pattern)]
    labs = [path for path in root.glob("solutions/*/*") if path.suffix in (".py", ".toml")]
    mistakes = root.glob("solutions/*/mistakes/*.py")
    return sorted({*pages, *labs, *mistakes, *root.glob("edl_labs/**/*.py")})


def _texts(path: Path, name: str) -> Iterator[tuple[str, int, str]]:
    """Kind, line and text of all that people read in a file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from _of_page(source)
    elif path.suffix == ".toml":
        yield from (("messages", 1, hint) for hint in _hints(source))
    elif "/mistakes/" in name:
        yield from (
            ("messages", number, line.partition(": ")[2])
            for number, line in enumerate(source.splitlines(), 1)
            if re.match(r"# (told|why|next): ", line)
        )
    elif name.startswith("solutions/"):
        yield from _of_lab(source)
    else:
        yield from _of_module(ast.parse(source))


def _of_page(source: str) -> Iterator[tuple[str, int, str]]:
    """Paragraphs without code."""
    inside, line, block = False, 1, ""
    for number, text in enumerate([*source.splitlines(), ""], 1):
        if text.lstrip().startswith(("```", "---")):
            inside = not inside if text.lstrip().startswith("```") else inside
        elif not inside and text.strip():
            line, block = (line, f"{block}\n{text}") if block else (number, text)
            continue
        if block:
            yield "docs", line, block
        block = ""


def _hints(source: str) -> list[str]:
    return [hint for one in tomllib.loads(source).get("exercise", ()) for hint in one.get("hints", ())]


def _of_lab(source: str) -> Iterator[tuple[str, int, str]]:
    """The Markdown cells of a lab's text."""
    line = 1
    for cell in re.split(r"(?m)^(?=# %%)", source):
        if cell.startswith("# %% [markdown]"):
            text = "\n".join(re.sub(r"^# ?", "", one) for one in cell.splitlines()[1:])
            yield "labs", line, re.sub(r"(?s)```.*?```|\$\$.*?\$\$", " ", text)
        line += cell.count("\n")


def _of_module(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Public docstrings without their examples, and texts that may be shown."""
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, *_NAMED)) and node.body and isinstance(node.body[0], ast.Expr):
            docstrings.add(node.body[0].value)
            text = ast.get_docstring(node)
            if text and not getattr(node, "name", "").startswith("_"):
                yield "docstrings", node.body[0].lineno, re.sub(r"(?m)^\s*>>>(?:.+\n?)+", "\n", text)
    yield from (("messages", line, text) for line, text in _shown(tree, docstrings) if _is_text(text))


def _shown(node: ast.AST, apart: set[ast.expr]) -> Iterator[tuple[int, str]]:
    """The texts of a module, with "…" for what an f-string fills in."""
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        yield node.lineno, "".join(map(str, parts))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in apart:
        yield node.lineno, node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from _shown(child, apart)


def _is_text(text: str) -> bool:
    """Whether a string reads as words: no pattern, query, script or markup."""
    odd = re.search(r"[<>]/|\(\?|\\[sdwb]|=>|;\n|\{\n|\bSELECT\b|==|import |def ", text)
    return not odd and len(re.findall(r"(?:^|\s)[a-z'’]{2,}(?=[\s,;:.?]|$)", text)) >= 2


def house_words(counts: Path = COUNTS) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Words that never pass, and words that depend on their sense."""
    words = tomllib.loads(counts.read_text(encoding="utf-8"))["words"]
    first, second = (
        rf"(?i)(?<![\w`\"#./-])(?:{'|'.join(words[one])})(?![\w`\"=(]|\.\w)" for one in ("never", "by_sense")
    )
    return re.compile(first), re.compile(second)


def uses(found: Iterable[Sentence], pattern: re.Pattern[str]) -> list[tuple[Sentence, str]]:
    """Each use of a word, with its sentence; code in backticks is none."""
    return [(one, word.group()) for one in found for word in pattern.finditer(re.sub(r"`[^`]*`", "…", one.text))]


def counted(found: Iterable[Sentence], counts: Path = COUNTS) -> tuple[Counter[str], Counter[str]]:
    """How often words of both lists are used, by file."""
    sentences = list(found)
    never, by_sense = (Counter(one.path for one, _ in uses(sentences, words)) for words in house_words(counts))
    return never, by_sense


def allowed(counts: Path = COUNTS) -> tuple[Counter[str], Counter[str]]:
    """How often they may be used, by file."""
    table = tomllib.loads(counts.read_text(encoding="utf-8"))
    return Counter(table["left"]), Counter(table["reviewed"])


def figures(found: Iterable[Sentence]) -> dict[str, tuple[int, float, float, int]]:
    """By kind: sentences, their median length in words, the share of those over 25 words, and uses of house words."""
    sentences = [*found]
    never, _ = house_words()
    by_kind = {kind: [one for one in sentences if one.kind == kind] for kind in KINDS}
    return {
        kind: (
            len(some),
            statistics.median(one.words for one in some),
            sum(one.words > LONG for one in some) / len(some),
            len(uses(some, never)),
        )
        for kind, some in by_kind.items()
        if some
    }


def record(found: Iterable[Sentence], counts: Path = COUNTS) -> None:
    """Lowers the counts to what is found; what is reviewed is set to what is found."""
    head = counts.read_text(encoding="utf-8").partition("\n[left]\n")[0]
    now, limits = counted(found, counts), allowed(counts)
    left = {path: min(number, limits[0][path]) for path, number in now[0].items() if limits[0][path]}
    tables = "\n\n".join(
        "\n".join([f"[{name}]", *(f'"{path}" = {number}' for path, number in sorted(table.items()))])
        for name, table in (("left", left), ("reviewed", now[1]))
    )
    counts.write_text(f"{head}\n{tables}\n", encoding="utf-8")


def main() -> None:
    """Shows what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="*", type=Path)
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--words", action="store_true")
    parser.add_argument(
        "--by-sense", action="store_true", help="with --words: also list words that are plain in some senses"
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--draw", type=int, default=0)
    args = parser.parse_args()
    found = [one for path in args.file or files() for one in sentences_of(path.resolve())]
    if args.figures:
        print("| kind | sentences | median words | over 25 words | house words |\n|---|---|---|---|---|")
        for kind, (number, median, share, words) in figures(found).items():
            print(f"| {kind} | {number:,} | {median:g} | {share:.1%} | {words} |")
    if args.words:
        for pattern in house_words()[: 1 + args.by_sense]:
            for one, word in uses(found, pattern):
                print(f"{one.path}:{one.line}: [{word}] {one.text}")
    if args.record:
        record(found)
    drawn = [one for one in found if one.kind != "labs"]
    for one in random.Random(47).sample(drawn, args.draw):
        print(f"{one.path}:{one.line}: {one.text}")


if __name__ == "__main__":
    main()
