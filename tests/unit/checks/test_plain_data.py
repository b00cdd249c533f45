"""Plain data survives the journey; anything else is refused with a sentence."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edl_labs.checks import plain_data
from edl_labs.errors import PlainDataError

scalars = st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.floats() | st.text(max_size=20)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner), max_leaves=20
)


def same(a, b) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return a == b


@given(values)
@settings(max_examples=200, deadline=None)
def test_values_come_back_as_they_were(value) -> None:
    assert same(value, plain_data.decode(plain_data.encode(value)))
    assert same(value, plain_data.from_json(json.loads(json.dumps(plain_data.to_json(value)))))


odd = scalars | st.text(max_size=5).map(lambda text: text + "\ud800") | st.integers(2**1023, 2**1025) | st.binary()
some_plain = st.recursive(
    scalars | odd,
    lambda inner: st.lists(inner, max_size=4) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | odd, inner),
    max_leaves=20,
)


@given(some_plain)
@settings(max_examples=400, deadline=None)
def test_a_copy_is_what_a_message_gives_or_refuses(value) -> None:
    try:
        wanted = plain_data.decode(plain_data.encode(value))
    except PlainDataError as refused:
        with pytest.raises(PlainDataError) as again:
            plain_data.plain_copy(value)
        assert str(refused) == str(again.value)
        return

    assert same(wanted, plain_data.plain_copy(value))


@pytest.mark.parametrize("dtype", [*plain_data.NUMPY_DTYPES, ">i4", ">f8"])
def test_an_array_s_copy_is_native_contiguous_and_its_own(dtype: str) -> None:
    array = np.arange(12).reshape(3, 4).astype(dtype).T

    copied = plain_data.plain_copy([array])[0]
    array[0, 0] = 1

    assert (array.dtype.newbyteorder("="), True, True) == (copied.dtype, copied.flags.c_contiguous, not copied[0, 0])


@pytest.mark.parametrize(
    "value",
    [
        [1] * (plain_data.MAX_NODES + 1),
        ["x" * plain_data.MAX_BYTES],
        np.zeros(plain_data.MAX_BYTES + 1, "u1"),
        [2**1023] * 230_000,
    ],
    ids=["nodes", "text", "array", "long integers"],
)
def test_a_copy_has_a_message_s_bounds(value) -> None:
    with pytest.raises(PlainDataError):
        plain_data.plain_copy(value)


@pytest.mark.parametrize("value", [np.zeros((1,) * 17), np.zeros((2**49, 0)), np.zeros((3, 0), ">i4"), np.array(1.5)])
def test_an_array_s_copy_is_what_a_message_gives_or_refuses(value: np.ndarray) -> None:
    found = []
    for copied in (plain_data.plain_copy, lambda one: plain_data.decode(plain_data.encode(one))):
        try:
            got = copied(value)
            found.append((got.dtype.char, got.shape, got.tobytes()))
        except PlainDataError as refused:
            found.append(str(refused))
    assert found[0] == found[1]


@pytest.mark.parametrize("depth", [plain_data.MAX_DEPTH, plain_data.MAX_DEPTH + 1, plain_data.MAX_DEPTH + 2])
@pytest.mark.parametrize("innermost", [[], [1.0], 1.0, "x"])
def test_a_copy_may_be_as_deep_as_a_message(depth: int, innermost: object) -> None:
    value = innermost
    for _ in range(depth - 1):
        value = [value]

    found = []
    for copied in (plain_data.plain_copy, lambda one: plain_data.decode(plain_data.encode(one))):
        try:
            found.append(copied(value))
        except PlainDataError as refused:
            found.append(str(refused))
    assert found[0] == found[1]


def test_a_tuple_comes_back_as_a_list() -> None:
    assert [1, [2]] == plain_data.decode(plain_data.encode((1, (2,))))


@pytest.mark.parametrize("dtype", plain_data.NUMPY_DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_arrays_keep_dtype_shape_and_bytes(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)

    back = plain_data.decode(plain_data.encode({"a": array}))["a"]

    assert (array.dtype, array.shape, array.tobytes()) == (back.dtype, back.shape, back.tobytes())


def test_numpy_scalars_become_plain_numbers() -> None:
    back = plain_data.decode(plain_data.encode([np.float64(2.5), np.int32(3), np.bool_(True)]))

    assert [float, int, bool] == [type(item) for item in back]


@pytest.mark.parametrize("dtype", plain_data.TENSOR_DTYPES)
def test_tensors_keep_dtype_shape_and_bytes(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))

    back = plain_data.decode(plain_data.encode(tensor))

    assert (tensor.dtype, tensor.shape) == (back.dtype, back.shape)
    assert tensor.view(torch.uint8).tolist() == back.view(torch.uint8).tolist()


def test_a_transposed_array_and_a_conjugated_tensor_arrive_by_value() -> None:
    torch = pytest.importorskip("torch")
    array = np.arange(6).reshape(2, 3).T
    tensor = torch.tensor([1 + 2j]).conj()

    assert array.tolist() == plain_data.decode(plain_data.encode(array)).tolist()
    assert tensor.tolist() == plain_data.decode(plain_data.encode(tensor)).tolist()


class Alien:
    """No kind of plain data."""


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Alien(), "value is an object of type Alien, not plain data"),
        ({"a": [1, {2}]}, "value['a'][1] is an object of type set, not plain data"),
        ({1: 2}, "value has the key 1; keys of plain data must be text"),
        (nested(40), "is nested too deeply"),
        (1 << 2000, "value is an integer of more than 1024 bits"),
        ("\ud800", "value is text that contains half of a surrogate pair"),
        (np.array([object()]), "value[0] is an object of type object, not plain data"),
        (np.zeros(10_000_000), "more than 67,108,864 bytes"),
        (lambda: 0, "value is an object of type function, not plain data"),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_other_objects_are_refused_by_name(value: object, said: str) -> None:
    with pytest.raises(PlainDataError) as refused:
        plain_data.encode(value)

    assert said in refused.value.what


def message(tree: object, tail: bytes = b"") -> bytes:
    header = json.dumps(tree).encode()
    return plain_data.MAGIC + len(header).to_bytes(8, "little") + header + tail


@pytest.mark.parametrize("odd", [2**1025, "text", None, [1], {"a": 1}], ids=["huge", "text", "None", "list", "dict"])
@pytest.mark.parametrize("numbers", [[1, 2, 3], [0.5, 1, True], [1.5] * 9, []])
def test_a_list_of_numbers_is_read_and_written_as_one_with_something_else_in_it(numbers, odd) -> None:
    assert [numbers, numbers] == plain_data.decode(plain_data.encode([numbers, tuple(numbers)]))
    if odd == 2**1025:
        with pytest.raises(PlainDataError, match="1024 bits"):
            plain_data.encode([*numbers, odd])
        with pytest.raises(PlainDataError, match="1024 bits"):
            plain_data.decode(message([*numbers, odd]))
    else:
        assert [*numbers, odd] == plain_data.decode(plain_data.encode([*numbers, odd]))


def test_long_lists_of_numbers_count_as_nodes() -> None:
    assert [[0] * 8] == plain_data.decode(plain_data.encode([[0] * 8]), max_nodes=10)
    with pytest.raises(PlainDataError, match="too many parts"):
        plain_data.decode(plain_data.encode([[0] * 9]), max_nodes=10)
    with pytest.raises(PlainDataError, match="too many parts"):
        plain_data.encode([[0] * plain_data.MAX_NODES])


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"EDLP1",
        b"nonsense" * 10,
        plain_data.MAGIC + b"\xff" * 8,
        plain_data.MAGIC + (1).to_bytes(8, "little") + b"{",
        message(1)[:-1] + b"\xff",
        plain_data.MAGIC + (100_000).to_bytes(8, "little") + b"[" * 100_000,
        plain_data.MAGIC + (10_001).to_bytes(8, "little") + b"1" * 10_001,
        message({"a": ["float64", [1 << 40], 0]}),
        message({"a": ["float64", [-1], 0]}),
        message({"a": ["float64", [True], 0]}),
        message({"a": ["object", [1], 0]}, b"12345678"),
        message({"a": ["float64", [1], None]}, b"12345678"),
        message({"a": ["float64", [1], -8]}, b"12345678"),
        message({"t": [["float32"], [1], 0]}, b"1234"),
        message({"d": [[1, 2]]}),
        message({"d": [["a"]]}),
        message({"x": 1, "y": 2}),
        message({"f": "1e5"}),
        message(nested(40)),
        message([0] * (plain_data.MAX_NODES + 1)),
    ],
    ids=range(21),
)
def test_hostile_bytes_raise_one_kind_of_error(raw: bytes) -> None:
    with pytest.raises(PlainDataError):
        plain_data.decode(raw)


@given(st.binary(max_size=60), st.integers(0, 60), st.integers(0, 255))
@settings(max_examples=300, deadline=None)
def test_fuzzed_messages_decode_or_raise_plain_data_error(tail: bytes, at: int, byte: int) -> None:
    raw = bytearray(plain_data.encode({"a": [1.5, "x", None], "b": np.arange(3)}) + tail)
    raw[at % len(raw)] = byte
    try:
        plain_data.decode(bytes(raw))
    except PlainDataError as error:
        assert error.what
