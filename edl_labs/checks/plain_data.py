"""Plain data as bytes: the only thing that travels between a student's process and the judge.

None, bool, int, float, str, lists, dicts with text keys, numpy arrays and CPU tensors. Never pickle. A message is
`EDLP1`, the length of a JSON header (8 bytes, little endian), the header, then the arrays' raw bytes.
NaN and infinity survive; tuples come back as lists, and what has a plain form (a subclass, a generator) as that form.
Decoding trusts nothing: depth, node count, bytes, dtypes and shapes are all checked before anything is allocated.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Sequence
from typing import Any

from edl_labs.checks.plain_forms import plain_form
from edl_labs.errors import PlainDataError

MAGIC = b"EDLP1"
MAX_BYTES = 64 << 20  # twice what grading takes from a probe
MAX_NODES = 1_000_000  # a second or two of decoding
MAX_DEPTH = 32  # far from Python's limit of recursion
MAX_DIMENSIONS = 16  # more than any lab's arrays have
MAX_INT_BITS = 1024  # the exponents of a double, and no integer that takes long to print
_SMALLEST_REFUSED = 1 << MAX_INT_BITS
_SMALL_INT = 1 << 63  # a message has at most 20 letters for it
NUMPY_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
TENSOR_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64"),
    *("complex64", "complex128", "float8_e4m3fn", "float8_e5m2"),
)
_EXACT = frozenset({type(None), bool, str, int, float, list, tuple, dict})
_TENSOR_ITEMSIZE = {"bool": 1, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}


def encode(value: Any, *, max_bytes: int = MAX_BYTES) -> bytes:
    """`value` as one plain-data message. Raises PlainDataError, naming the place, when it is not plain data.

    >>> decode(encode({"a": [1, 2.5, None, True, "x"], "b": float("inf")}))
    {'a': [1, 2.5, None, True, 'x'], 'b': inf}
    """
    buffers: list[bytes] = []
    writer = _Writer(buffers, max_bytes)
    header = json.dumps(writer.node(value, "value", 0), allow_nan=False, separators=(",", ":")).encode()
    size = len(header) + sum(map(len, buffers))
    if size > max_bytes:
        raise PlainDataError(
            "the data has {size} bytes, but at most {most} can be sent",
            size=f"{size:,}",
            most=f"{max_bytes:,}",
            next="return less data",
        )
    return b"".join([MAGIC, len(header).to_bytes(8, "little"), header, *buffers])


def decode(message: bytes, *, max_bytes: int = MAX_BYTES, max_nodes: int = MAX_NODES) -> Any:
    """The value in a message that `encode` wrote; PlainDataError, and nothing else, for any other bytes."""
    if len(message) > max_bytes + len(MAGIC) + 8:
        raise PlainDataError(
            "the message has {size} bytes, but at most {most} are read", size=f"{len(message):,}", most=f"{max_bytes:,}"
        )
    start = len(MAGIC) + 8
    if message[: len(MAGIC)] != MAGIC or len(message) < start:
        raise PlainDataError("the bytes are not a plain-data message")
    stop = start + int.from_bytes(message[len(MAGIC) : start], "little")
    if stop > len(message):
        raise PlainDataError("the message is cut off")
    try:
        tree = json.loads(message[start:stop])
    except (ValueError, RecursionError, MemoryError) as error:
        raise PlainDataError("the message's header is not valid JSON", why=type(error).__name__) from None
    return _Reader(memoryview(message)[stop:], max_nodes).value(tree, 0)


def to_json(value: Any) -> Any:
    """`value` as a JSON tree with arrays in base64, for goldens that people diff."""
    buffers: list[bytes] = []
    tree = _Writer(buffers, MAX_BYTES).node(value, "value", 0)
    if not buffers:
        return tree
    return {"tree": tree, "base64": base64.b64encode(b"".join(buffers)).decode()}


def from_json(tree: Any) -> Any:
    """The value of a tree that `to_json` made."""
    data = b""
    if isinstance(tree, dict) and set(tree) == {"tree", "base64"}:
        tree, data = tree["tree"], base64.b64decode(tree["base64"])
    return _Reader(memoryview(data), MAX_NODES).value(tree, 0)


def plain_copy(value: Any) -> Any:
    """A copy that shares nothing with `value`: what would come out of a message with it, or its PlainDataError.

    >>> plain_copy({"a": (1, 2.5), "b": [True, None]})
    {'a': [1, 2.5], 'b': [True, None]}
    """
    try:
        return _Copier().copy(value, 0)
    except _NeedsMessage:
        return decode(encode(value))


def _are_plain_numbers(items: Sequence[Any], *, finite: bool = False, below: int = _SMALLEST_REFUSED) -> bool:
    """Whether all are ints of a size `below`, floats or bools, which are themselves in a message and in memory.

    Long lists of numbers are most of what is compared. With `finite`, infinities and nan are not among them.
    """
    kinds = set(map(type, items))
    if not kinds or not kinds <= {int, float, bool}:
        return False
    if int in kinds and not all(-below < item < below for item in items if type(item) is int):
        return False
    return not finite or float not in kinds or all(map(math.isfinite, items))


def _array_of(numpy: Any, value: Any) -> Any:
    """A contiguous array of the same numbers, of the very dtype that decoding makes."""
    if value.ndim > MAX_DIMENSIONS:
        raise _NeedsMessage
    copied = numpy.empty(value.shape, dtype=numpy.dtype(value.dtype.name))
    copied[...] = value
    return copied


class _NeedsMessage(Exception):
    """A value is no plain data as it stands, or so large that only a message's own checks may pass it."""


class _Copier:
    """Copies what is plain data already, without writing it as a message: a sixth of the time for long cases."""

    def __init__(self) -> None:
        self.left, self.bytes_left = MAX_NODES, MAX_BYTES // 8  # of text each letter has at most 6 bytes as JSON

    def copy(self, value: Any, depth: int) -> Any:
        kind = type(value)
        self.left -= 1
        if depth > MAX_DEPTH or self.left < 0:
            raise _NeedsMessage
        if value is None or kind is bool or (kind is float and math.isfinite(value)):
            return value
        if kind is int and -_SMALL_INT < value < _SMALL_INT:
            return value
        if kind is str and value.isascii():
            self._take(len(value))
            return value
        if kind is list or kind is tuple:
            copied = list(value)
            if depth < MAX_DEPTH and _are_plain_numbers(copied, finite=True, below=_SMALL_INT):
                self._count(len(copied))
                return copied
            return [self.copy(item, depth + 1) for item in copied]
        if kind is dict and all(type(key) is str and key.isascii() for key in value):
            self._take(sum(map(len, value)))
            return {key: self.copy(item, depth + 1) for key, item in value.items()}
        numpy = sys.modules.get("numpy")
        if numpy is not None and kind is numpy.ndarray and value.dtype.name in NUMPY_DTYPES and value.nbytes:
            self._take(value.nbytes)
            return _array_of(numpy, value)
        raise _NeedsMessage

    def _count(self, nodes: int) -> None:
        self.left -= nodes
        if self.left < 0:
            raise _NeedsMessage

    def _take(self, size: int) -> None:
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise _NeedsMessage


class _Writer:
    def __init__(self, buffers: list[bytes], max_bytes: int) -> None:
        self.buffers, self.offset, self.nodes, self.max_bytes = buffers, 0, 0, max_bytes

    def node(self, value: Any, where: str, depth: int) -> Any:
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise PlainDataError(
                "{where} is nested too deeply or has too many parts", where=where, next="return less data"
            )
        if type(value) not in _EXACT:
            value = plain_form(value, most=MAX_NODES - self.nodes + 1)
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            return self._text(value, where)
        if kind is int:
            return self._int(value, where)
        if kind is float:
            return value if math.isfinite(value) else {"f": repr(value)}
        if kind is list or kind is tuple:
            if self.nodes + len(value) <= MAX_NODES and depth < MAX_DEPTH and _are_plain_numbers(value, finite=True):
                self.nodes += len(value)
                return list(value)
            return [self.node(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
        if kind is dict:
            named = [(_key(key, where), item) for key, item in value.items()]
            return {"d": [[key, self.node(item, f"{where}[{key!r}]", depth + 1)] for key, item in named]}
        return self._array(value, where)

    def _text(self, value: str, where: str) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise PlainDataError("{where} is text that contains half of a surrogate pair", where=where) from None
        return value

    def _int(self, value: int, where: str) -> int:
        if value.bit_length() > MAX_INT_BITS:
            raise PlainDataError("{where} is an integer of more than {bits} bits", where=where, bits=MAX_INT_BITS)
        return value

    def _array(self, value: Any, where: str) -> Any:
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if numpy is not None and type(value) is numpy.ndarray and value.dtype.name in NUMPY_DTYPES:
            little = numpy.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
            return self._buffer("a", value.dtype.name, value.shape, little.tobytes())
        if torch is not None and type(value) is torch.Tensor:
            return self._tensor(torch, value, where)
        raise PlainDataError(
            "{where} is an object of type {kind}, not plain data",
            where=where,
            kind=type(value).__name__,
            why="evidence may be None, bool, int, float, str, lists, dicts with text keys, numpy arrays or CPU tensors",
            next="return numbers, lists or arrays",
        )

    def _tensor(self, torch: Any, value: Any, where: str) -> Any:
        name = str(value.dtype).removeprefix("torch.")
        if name not in TENSOR_DTYPES or value.layout != torch.strided or value.is_meta or value.is_nested:
            raise PlainDataError(
                "{where} is a tensor of {dtype} ({layout}), which cannot be sent",
                where=where,
                dtype=name,
                layout=value.layout,
            )
        if value.numel() * value.element_size() > self.max_bytes:
            raise PlainDataError(
                "{where} is a tensor of {count} elements, which is too large to send",
                where=where,
                count=f"{value.numel():,}",
            )
        flat = value.detach().to("cpu").resolve_conj().resolve_neg().contiguous().reshape(-1)
        raw = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        return self._buffer("t", name, tuple(value.shape), raw)

    def _buffer(self, tag: str, dtype: str, shape: tuple[int, ...], raw: bytes) -> Any:
        start, self.offset = self.offset, self.offset + len(raw)
        if self.offset > self.max_bytes:
            raise PlainDataError(
                "the arrays have more than {most} bytes", most=f"{self.max_bytes:,}", next="return less data"
            )
        self.buffers.append(raw)
        return {tag: [dtype, list(shape), start]}


class _Reader:
    def __init__(self, data: memoryview, max_nodes: int) -> None:
        self.data, self.left = data, max_nodes

    def value(self, tree: Any, depth: int) -> Any:
        self.left -= 1
        if self.left < 0 or depth > MAX_DEPTH:
            raise PlainDataError("the message is nested too deeply or has too many parts")
        if tree is None or isinstance(tree, (bool, str)):
            return tree
        if isinstance(tree, int):
            if tree.bit_length() > MAX_INT_BITS:
                raise PlainDataError("the message has an integer of more than {bits} bits", bits=MAX_INT_BITS)
            return tree
        if isinstance(tree, float):
            return tree
        if isinstance(tree, list):
            if self.left >= len(tree) and depth < MAX_DEPTH and _are_plain_numbers(tree):
                self.left -= len(tree)
                return list(tree)
            return [self.value(item, depth + 1) for item in tree]
        if isinstance(tree, dict) and len(tree) == 1:
            return self._tagged(*next(iter(tree.items())), depth)
        raise PlainDataError("the message has a part of an unknown kind")

    def _tagged(self, tag: str, body: Any, depth: int) -> Any:
        if tag == "f" and body in ("nan", "inf", "-inf"):
            return float(body)
        if tag == "d" and isinstance(body, list):
            return self._dict(body, depth)
        if tag in ("a", "t") and isinstance(body, list) and len(body) == 3:
            return self._array(tag, *body)
        raise PlainDataError("the message has a part of an unknown kind")

    def _dict(self, body: list[Any], depth: int) -> dict[str, Any]:
        if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in body):
            raise PlainDataError("the message has a dict whose keys are not text")
        return {key: self.value(item, depth + 1) for key, item in body}

    def _array(self, tag: str, dtype: Any, shape: Any, start: Any) -> Any:
        known = NUMPY_DTYPES if tag == "a" else TENSOR_DTYPES
        sizes = shape if isinstance(shape, list) and len(shape) <= MAX_DIMENSIONS else None
        if dtype not in known or sizes is None or not all(type(n) is int and 0 <= n < 1 << 48 for n in (*sizes, start)):
            raise PlainDataError("the message has an array of an unknown dtype or shape")
        import numpy

        itemsize = _TENSOR_ITEMSIZE.get(dtype) or numpy.dtype(dtype).itemsize
        size = math.prod(sizes) * itemsize
        if start + size > len(self.data):
            raise PlainDataError("the message has too few bytes for one of its arrays")
        raw = self.data[start : start + size]
        if tag == "a":
            return numpy.frombuffer(raw, dtype=numpy.dtype(dtype).newbyteorder("<")).astype(dtype).reshape(sizes)
        return _tensor(dtype, sizes, bytes(raw))


def _tensor(dtype: str, shape: list[int], raw: bytes) -> Any:
    import torch

    if not raw:
        return torch.empty(shape, dtype=getattr(torch, dtype))
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(getattr(torch, dtype)).reshape(shape)


def _key(key: Any, where: str) -> str:
    if not issubclass(type(key), str):
        raise PlainDataError(
            "{where} has the key {key}; keys of plain data must be text",
            where=where,
            key=repr(key),
            next="use str(key) as the key",
        )
    return str.__str__(key)
