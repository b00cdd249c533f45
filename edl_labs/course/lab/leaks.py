"""The leak scan: students must not be able to read a line of a solution or a function of the judge."""

from __future__ import annotations

import ast
import builtins
import gzip
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.secret_functions import SecretFunction, published
from edl_labs.errors import EdlError

if TYPE_CHECKING:
    from edl_labs.course.course_folder import Course

MIN_LENGTH = 12  # shorter lines (`return x`, `i += 1`) stand in any program
MAX_MEMBER_BYTES = 64 << 20  # far above the largest published file (0.8 MB); a packed bomb could fill the memory
_SKIPPED = {".git", "__pycache__"}
_JUDGE = re.compile(r"(^|/)(exercises/[^/]+/judge|edl_labs/course/solutions)/")
_WORDS = re.compile(r"\w+")
_TAG = re.compile(r"<[^>]*>")  # a page colours code word by word
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+")


@dataclass(frozen=True)
class Secret:
    """A text that only instructors may see, and where it is written."""

    text: str
    file: str
    line: int


@dataclass(frozen=True)
class Leak:
    """A secret, and the public place where it was found."""

    path: str
    secret: Secret

    def __str__(self) -> str:
        return f"{self.path} contains {self.secret.text!r}, from {self.secret.file}:{self.secret.line}"


class LeakError(EdlError):
    """Something that only a solution or the judge has would become public."""

    def __init__(self, leaks: list[Leak]) -> None:
        more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
        super().__init__(
            f"a solution would leak: {leaks[0]}{more}",
            why="students can read this file",
            next="remove it from this file; if the line gives nothing away, add it to public_lines in lab.toml",
        )
        self.leaks = leaks


def secrets(labs: Iterable[Lab]) -> list[Secret]:
    """Every solution line, and every sentence of a rubric or model answer, of at least 12 characters.

    What a stub of the same lab says too, what any program might say, or what its lab.toml lists as `public_lines`, is
    no secret.
    """
    return [secret for lab in labs for secret in _of_lab(lab)]


def scan(
    paths: Iterable[Path],
    known: list[Secret],
    *,
    functions: Sequence[SecretFunction] = (),
    root: Path | None = None,
) -> list[Leak]:
    """Every place under `paths` (folders, files, wheels, archives) that holds a secret, as shown from `root`."""
    files = (pair for path in paths for pair in _files(path))
    return [leak for name, data in files for leak in scan_bytes(_shown(name, root), data, known, functions=functions)]


def scan_course(course: Course, known: list[Secret], *, functions: Sequence[SecretFunction] = ()) -> list[Leak]:
    """The leaks in everything that a course makes public: labs/ and what its wheel holds, which is no judge's part."""
    found = scan([course.labs, course.root / "edl_labs"], known, functions=functions, root=course.root)
    return [leak for leak in found if not _JUDGE.search(leak.path)]


def scan_bytes(name: str, data: bytes, known: list[Secret], *, functions: Sequence[SecretFunction] = ()) -> list[Leak]:
    """The secrets in one file's bytes; JSON and HTML are read through their escapes, archives through their members.

    A file in a `judge/`, or where the instructors' wheel has the solutions, is one whatever it holds.
    """
    found: list[Leak] = []
    for member, content in _members(name, data):
        text = "\n".join(_normal(part) for part in _texts(member, content))
        found += [Leak(member, secret) for secret in _held(text, known)]
        if functions and member.endswith((".py", ".ipynb")):
            copies = published(member, content.decode("utf-8", errors="replace"), functions)
            found += [Leak(member, Secret(f"a function {one.name}".rstrip(), one.file, one.line)) for one in copies]
        if _JUDGE.search(member):
            found.append(Leak(member, Secret("the judge's code", member, 1)))
    return found


def refuse(leaks: list[Leak]) -> None:
    """LeakError when there is a leak."""
    if leaks:
        raise LeakError(leaks)


def _of_lab(lab: Lab) -> list[Secret]:
    public = _public_text(lab)
    found = [
        Secret(text.strip(), lab.file, number)
        for cell in lab.cells
        if cell.role == "solve"
        for number, line in cell.solution_lines
        for text in (line, *_returned(line))
        if not says_nothing(text.strip())
    ]
    for one in lab.exercises:
        parts = [*one.rubric, *(rest for line in one.rubric if (rest := line.partition(": ")[2])), one.model_answer]
        lines = [sentence for part in parts for line in part.split("\n") for sentence in (line, *_SENTENCE.split(line))]
        found += [Secret(text.strip(), lab.toml.file, one.line) for text in lines]
    unique = {secret.text: secret for secret in reversed(found)}
    allowed = {line.strip() for line in lab.toml.public_lines}
    return [
        secret
        for secret in reversed(unique.values())
        if len(secret.text) >= MIN_LENGTH and secret.text not in allowed and not _holds(public, _normal(secret.text))
    ]


def _returned(line: str) -> list[str]:
    """The value that a line returns, as prose would say it without the word; none for a name or a literal."""
    value = line.strip().removeprefix("return ")
    try:
        tree = ast.parse(value, mode="eval").body
    except (SyntaxError, ValueError):
        return []
    plain = value == line.strip() or isinstance(tree, ast.Constant | ast.Name | ast.Attribute | ast.UnaryOp)
    return [] if plain else [value]


_CLOSES = {"(": ")", "[": "]", "{": "}"}


def says_nothing(line: str) -> bool:
    """Whether a line of code is one that any program might have: it hands a name on, loops over one, or tests one.

    >>> says_nothing("return total"), says_nothing("return total / calls"), says_nothing("except ValueError as e:")
    (True, False, True)
    >>> says_nothing("return tuple("), says_nothing("return seconds_of_a_ring(")  # a long line, broken
    (True, False)
    """
    if line.endswith(("(", "[", "{")):
        return any(says_nothing(line + _CLOSES[line[-1]] + end) for end in ("", ":"))
    header = line.removeprefix("el") if line.startswith("elif ") else line
    text = f"try:\n    pass\n{header} pass" if header.startswith(("except", "finally")) else header
    text = f"if 0:\n    pass\n{header} pass" if header == "else:" else text
    opens = header.endswith(":")
    try:
        (node,) = ast.parse(f"{text} pass" if text == header and opens else text).body
    except (SyntaxError, ValueError):
        return False
    if isinstance(node, ast.Try | ast.For | ast.If | ast.While) and not opens:
        return False
    if isinstance(node, ast.Try):
        return True
    if isinstance(node, ast.Return):
        return node.value is None or _plain(node.value) or _is_made_by_python(node.value)
    if isinstance(node, ast.For):
        return _plain(node.target) and (_plain(node.iter) or _is_made_by_python(node.iter))
    if isinstance(node, ast.Raise):
        return node.exc is None or _is_made_by_python(node.exc)
    if isinstance(node, ast.If | ast.While):
        return _plain(node.test)
    return False


def _is_made_by_python(node: ast.expr) -> bool:
    """`tuple()`, `[]` and the like: nothing, made by a name that Python brings along."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return hasattr(builtins, node.func.id) and not node.args and not node.keywords
    return (isinstance(node, ast.Dict) and not node.keys) or (isinstance(node, ast.List | ast.Tuple) and not node.elts)


def _plain(node: ast.expr) -> bool:
    """A name, a constant, an attribute of `self`, or such a one compared with constants."""
    if isinstance(node, ast.Compare):
        return _plain(node.left) and all(_plain(other) for other in node.comparators)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not | ast.USub) and _plain(node.operand)
    if isinstance(node, ast.Tuple | ast.List):
        return all(isinstance(item, ast.Constant | ast.Name) for item in node.elts)
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id == "self"
    return isinstance(node, ast.Name | ast.Constant)


def _public_text(lab: Lab) -> str:
    """The stubs of the lab: what its solve cells say to students anyway."""
    return "\n".join(_normal(cell.stub) for cell in lab.cells if cell.role == "solve")


def _normal(text: str) -> str:
    """Each line without any white space, so that a line spaced otherwise is the same line."""
    return "\n".join("".join(line.split()) for line in text.split("\n"))


def _holds(text: str, secret: str) -> bool:
    """Whether `text` has `secret` as words of its own: `return total` is not in `return total_s`."""
    start = text.find(secret)
    while start >= 0:
        before, after = text[start - 1 : start], text[start + len(secret) : start + len(secret) + 1]
        if not (_word(before) and _word(secret[0])) and not (_word(after) and _word(secret[-1])):
            return True
        start = text.find(secret, start + 1)
    return False


def _held(text: str, known: Iterable[Secret]) -> Iterator[Secret]:
    """The secrets that a normal text holds. A secret's words are words of the text, so most are ruled out by one."""
    words = set(_WORDS.findall(text))
    for secret in known:
        normal, longest = _sought(secret.text)
        if (not longest or longest in words) and _holds(text, normal):
            yield secret


@cache
def _sought(text: str) -> tuple[str, str]:
    """A secret's text as it is looked for, and its longest word."""
    normal = _normal(text)
    return normal, max(_WORDS.findall(normal), key=len, default="")


def _word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _texts(name: str, data: bytes) -> Iterator[str]:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data[:400]:
        yield from (data.decode(code, errors="replace") for code in ("utf-16-le", "utf-16-be"))
    text = data.decode("utf-8", errors="replace")
    yield text
    if name.endswith((".html", ".htm")):
        yield unescape(_TAG.sub("", text))
    if name.endswith((".ipynb", ".json")):
        try:
            yield from _strings(json.loads(text))
        except (ValueError, RecursionError):
            return


def _strings(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, list):
        if tree and all(isinstance(item, str) for item in tree):
            yield "".join(tree)
        for item in tree:
            yield from _strings(item)
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield key
            yield from _strings(item)


def _files(path: Path) -> Iterator[tuple[Path, bytes]]:
    if path.is_dir():
        for inside in sorted(path.rglob("*")):
            if inside.is_file() and not _SKIPPED & set(inside.relative_to(path).parts):
                yield inside, inside.read_bytes()
    elif path.is_file():
        yield path, path.read_bytes()


def _members(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    if name.endswith((".whl", ".zip")):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                if not info.is_dir() and info.file_size <= MAX_MEMBER_BYTES:
                    yield from _members(f"{name}/{info.filename}", archive.read(info))
    elif name.endswith((".tar.gz", ".tgz", ".tar")):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive.getmembers():
                held = archive.extractfile(member) if member.isfile() and member.size <= MAX_MEMBER_BYTES else None
                if held is not None:
                    yield from _members(f"{name}/{member.name}", held.read())
    elif name.endswith(".gz"):
        with gzip.open(io.BytesIO(data)) as packed:
            yield from _members(name.removesuffix(".gz"), packed.read(MAX_MEMBER_BYTES))
    else:
        yield name, data


def _shown(path: Path, root: Path | None) -> str:
    try:
        return path.relative_to(root).as_posix() if root else path.as_posix()
    except ValueError:
        return path.as_posix()
