"""Bodies of kernels that Triton's compiler accepts or refuses; the compiler is asked.

Each body sees: x_ptr (float32), h_ptr (float16), i_ptr (int32), b_ptr (int8), s (int32), f (float32), N (constexpr 16),
and the names that HEAD defines.
"""

from __future__ import annotations

PARAMETERS = {
    "x_ptr": "*fp32", "h_ptr": "*fp16", "i_ptr": "*i32", "b_ptr": "*i8", "g_ptr": "*bf16", "s": "i32", "f": "fp32",
    "N": 16,
}  # fmt: skip
HEAD = """
at = tl.arange(0, N)
x = tl.load(x_ptr + at)
h = tl.load(h_ptr + at)
i = tl.load(i_ptr + at)
b = tl.load(b_ptr + at)
g = tl.load(g_ptr + at)
m = at < s
"""
_OPERANDS = ("x", "h", "i", "b", "g", "m", "s", "f", "2", "2.5", "x_ptr", "N", "-1")
_OPERATORS = ("+", "-", "*", "/", "//", "%", "&", "<<", "<", "==", "and")
_PAIRS = [
    f"v = {a} {op} {b}"
    for k, a in enumerate(_OPERANDS)
    for j, b in enumerate(_OPERANDS)
    for n, op in enumerate(_OPERATORS)
    if (k * 5 + j * 3 + n) % 6 == 0 and not (a in "22.5N-1" and b in "22.5N-1")
]
_FUNCTIONS = [
    f"v = tl.{name}({a})"
    for name in ("exp", "sqrt", "abs", "sum", "max", "argmax", "cumsum", "sigmoid", "erf", "trans", "zeros_like")
    for a in ("x", "h", "i", "b", "m", "s", "x_ptr")
]
_STATEMENTS = """
for k in range(s): x = x + 1
for k in range(s): x = x + h
for k in range(s): h = h + x
for k in range(s): h = h * 2.5
for k in range(s): s += 1
for k in range(s): f = k
for k in range(0, N, 4): x += k
for k in range(s, 0, -1): x += k
for k in range(f): x += k
for k in tl.range(0, s, num_stages=2): x += k
for k in tl.static_range(4): x += k
for k in tl.static_range(s): x += k
for k in range(4): break
for k in range(4): continue
for k in range(s): q = k|v = q
for k in range(s): q = k|v = k
for k in range(2): N = 3
if s > 0: q = x|v = q
if s > 0: q = x|else: q = x + 1|v = q
if s > 0: q = x|else: q = i|v = q
if s > 0: q = 1|else: q = 2.5|v = q
if s > 0: x = i
if s > 0: x = x + 1
if N > 8: q = x|v = q
if N > 80: q = x|v = q
if m: x = x + 1
if s: x = x + 1
if f: x = x + 1
if s > 0: return|tl.store(x_ptr + at, x)
if s > 0: return|else: q = x|v = q
if s > 0: q = i; return|v = q
for k in range(s): return
while s > 0: s -= 1
while s > 0: x = x * 2.0; s -= 1
while m: s -= 1
q = 16|v = tl.arange(0, q)
q: tl.constexpr = 16|v = tl.arange(0, q)
q: tl.constexpr = s|v = x + q
x: tl.constexpr = 3
v = tl.arange(0, 12)
v = tl.arange(0, N * 2)
v = tl.arange(0, s)
v = tl.arange(4, 8)
v = tl.arange(8, 4)
v = tl.zeros((N, N), tl.float32)
v = tl.zeros((N, 3), tl.float32)
v = tl.zeros([N, N], dtype=tl.float16)
v = tl.zeros((N, N), float)
v = tl.zeros((1024, 1024), tl.int8)
v = tl.zeros((2048, 1024), tl.int8)
v = tl.full((N,), f, tl.float32)
v = tl.full((N,), x, tl.float32)
v = tl.full((N,), 2.5, tl.int32)
v = tl.full((N,), 0.0, tl.int32)
v = x[:, None]
v = x[None, :] + x[:, None]
v = x[:, None, None]
v = x[0]
v = x[0:4]
v = x[:, :]
v = x + tl.arange(0, 8)
v = x[:, None] + tl.arange(0, 8)[None, :]
v = tl.load(x_ptr + at, mask=m)
v = tl.load(x_ptr + at, mask=m, other=0)
v = tl.load(x_ptr + at, other=0.0)
v = tl.load(x_ptr + at, mask=i, other=0.0)
v = tl.load(x_ptr + at, mask=m, other=h)
v = tl.load(x_ptr, mask=m)
v = tl.load(x_ptr, mask=s > 0)
v = tl.load(x_ptr + at[:, None], mask=m[None, :])
v = tl.load(x_ptr + x)
v = tl.load(x)
v = tl.load(s)
v = tl.load(x_ptr + at, 3)
tl.store(x_ptr + at, x)
tl.store(x_ptr + at, h)
tl.store(i_ptr + at, x)
tl.store(x_ptr, x)
tl.store(x_ptr, 1.0)
tl.store(x_ptr + at, 1)
tl.store(x_ptr + at, x, mask=m)
tl.store(x_ptr + at, x, mask=i)
tl.store(x_ptr + at, x[:, None])
tl.store(x_ptr + at[:, None], x)
tl.store(x_ptr + at, None)
v = tl.dot(x[:, None] + x[None, :], x[:, None] + x[None, :])
v = tl.dot(x, x)
v = tl.dot(h[:, None] + h[None, :], h[:, None] + h[None, :])
v = tl.dot(h[:, None] + h[None, :], x[:, None] + x[None, :])
v = tl.dot(b[:, None] + b[None, :], b[:, None] + b[None, :])
v = tl.dot(i[:, None] + i[None, :], i[:, None] + i[None, :])
v = tl.dot(tl.zeros((32, 4), tl.float32), tl.zeros((4, 32), tl.float32))
v = tl.dot(tl.zeros((32, 8), tl.float32), tl.zeros((8, 32), tl.float32))
v = tl.dot(tl.zeros((32, 8), tl.float16), tl.zeros((8, 32), tl.float16))
v = tl.dot(tl.zeros((1, 16), tl.float16), tl.zeros((16, 1), tl.float16))
v = tl.dot(tl.zeros((32, 32), tl.int8), tl.zeros((32, 32), tl.int8))
v = tl.dot(tl.zeros((32, 16), tl.float16), tl.zeros((32, 16), tl.float16))
v = tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float32))
v = tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float16))
v = tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float16), tl.zeros((16, 32), tl.float32))
v = tl.dot(tl.zeros((16, 16), tl.float16), tl.zeros((16, 16), tl.float16), out_dtype=tl.float16)
v = tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float16))
v = tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32), input_precision="high")
v = tl.dot(tl.zeros((16, 16), tl.bfloat16), tl.zeros((16, 16), tl.bfloat16), out_dtype=tl.bfloat16)
v = tl.trans(x[:, None] + x[None, :])
v = tl.permute(x[:, None] + x[None, :], (1, 0))
v = tl.permute(x[:, None] + x[None, :], (1, 1))
v = tl.reshape(x, (4, 4))
v = tl.reshape(x, (4, 8))
v = tl.reshape(x, 2, 8)
v = tl.broadcast_to(x[:, None], (N, 4))
v = tl.broadcast_to(x, (N, 4))
v = tl.expand_dims(x, 1)
v = tl.expand_dims(x, 3)
v = tl.join(x, x)
v = tl.join(x, h)
v = tl.interleave(x, x)
a, c = tl.split(tl.join(x, x + 1))
a, c = tl.split(x)
a, c = x, h
a, c = x
v = tl.cat(x, x, can_reorder=True)
v = tl.cat(x, x)
v = tl.where(m, x, 0.0)
v = tl.where(m, x, h)
v = tl.where(m, x, i)
v = tl.where(i, x, x)
v = tl.where(m[:, None], x[None, :], 0.0)
v = tl.maximum(x, 0)
v = tl.maximum(x, h)
v = tl.maximum(m, m)
v = tl.minimum(s, 4)
v = min(s, 4)
v = max(x, 0.0)
v = tl.sum(x, axis=0)
v = tl.sum(x, axis=1)
v = tl.sum(x[:, None] + x[None, :], axis=1)
v = tl.sum(x, axis=0, keep_dims=True)
v = tl.max(x, axis=0, return_indices=True)
v = tl.sum(x, axis=s)
v = tl.cumsum(x, 0)
v = tl.cumsum(x, 1)
v = tl.histogram(i, 16)
v = tl.histogram(i, 10)
v = tl.histogram(x, 16)
v = tl.softmax(x)
v = tl.softmax(h)
v = tl.fma(x, 2.0, 1.0)
v = tl.cdiv(s, 4)
v = tl.cdiv(N, 4)
v = x.to(tl.float16)
v = x.to(tl.int32)
v = x.to(tl.float8e5)
v = x.to(h.dtype)
v = x.to(tl.pi)
v = x.to(h_ptr.dtype.element_ty)
v = i.to(tl.float32, bitcast=True)
v = h.to(tl.float32, bitcast=True)
v = tl.cast(x, tl.bfloat16)
v = x.shape[0]|w = tl.arange(0, x.shape[0])
v = x.foo
v = x.sum()
v = x.T
v = tl.foo(x)
v = tl.tanh(x)
v = y
v = -x
v = -m
v = ~i
v = ~x
v = not m
v = not s
v = not (s > 0)
v = x ** 2
v = N ** 2
v = x @ x
v = x if s > 0 else x + 1
v = x if s > 0 else i
v = x if N > 4 else i
v = 1 < s < 4
v = s in (1, 2)
v = x is None
v = "a" + "b"
v = (x, h)
v = [x, h]
tl.static_assert(N == 16)
tl.static_assert(N == 8)
tl.static_assert(s == 8)
tl.assume(s > 0)
tl.atomic_add(x_ptr + at, x)
tl.atomic_add(x_ptr + at, x, mask=m)
tl.atomic_add(h_ptr + at, h)
tl.atomic_add(b_ptr + at, b)
tl.atomic_max(x_ptr + at, x)
tl.atomic_max(h_ptr + at, h)
tl.atomic_max(i_ptr + at, i)
v = tl.program_id(3)
v = tl.program_id(axis=1)
v = tl.num_programs(0)
v = tl.multiple_of(s, 16)
x += 1
x_ptr += 4
x_ptr += at
x_ptr += f
i_ptr -= 1
v = x_ptr - i_ptr
v = x_ptr + i_ptr
v = tl.where(s > 0, x_ptr, x_ptr + 1)
v = tl.load(tl.where(m, x_ptr + at, x_ptr))
v = 2147483648 + i
v = i + 3000000000
v = b + 300
v = b + 100
v = i % 0
v = N % 0
v = N // 0
v = float("inf") + x
v = int(N)
return
return x
pass
""".strip().splitlines()


def _text(line: str) -> str:
    """A body from one line: `|` begins a line, and what follows the colon of a compound statement may be several."""
    return "\n".join(line.split("|"))


OUTSIDE = {
    "v = x_ptr and x_ptr": "truth of addresses",
    "for k in range(s): q = k\nv = k": "the value of a loop's name after the loop",
    "v = tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float16))": (
        "an accumulator of another type than the product"
    ),
}
"""What the compiler accepts and the language leaves out."""
BODIES = [*_PAIRS, *_FUNCTIONS, *map(_text, _STATEMENTS)]


def source_of(body: str) -> str:
    """A kernel with this body."""
    names = ", ".join(f"{name}: tl.constexpr" if name.isupper() else name for name in PARAMETERS)
    lines = "\n".join("    " + line for line in (HEAD + body).strip().splitlines())
    return f"@triton.jit\ndef kernel({names}):\n{lines}\n"
