"""The models of the published steps, rebuilt in plain torch and torchvision: shapes and operators, no weights.

Each `build(row)` returns the module on meta (with its loss if it trains), its inputs, and how the row was run: dtype,
optimizer, accumulation, layout over GPUs. Sizes are those of the models' papers and configurations.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
import torchvision
from torch import nn
from torch.utils.checkpoint import checkpoint


@dataclass
class Job:
    """A row, ready for `predict`: the module, its example, and keywords."""

    model: nn.Module
    example: Any
    dtype: str
    optimizer: Any = None
    accumulate: int = 1
    checkpoint: bool | str = False
    compiled: bool = False
    graphed: bool = False
    cluster: dict[str, Any] = field(default_factory=dict)


class WithLoss(nn.Module):
    """A classifier and its cross-entropy."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.model(x), y)


class Attention(nn.Module):
    """Self-attention, fused or written out; `style` 'hf' divides, masks with `where` and drops as Hugging Face does."""

    def __init__(self, width: int, heads: int, *, kv_heads: int = 0, fused: bool, causal: bool, bias: bool = True,
                 dropout: float = 0.0, style: str = "plain", separate: bool = True) -> None:  # fmt: skip
        super().__init__()
        self.heads, self.kv, self.dim = heads, kv_heads or heads, width // heads
        self.fused, self.causal, self.p, self.style, self.separate = fused, causal, dropout, style, separate
        kv_width = self.kv * self.dim
        inner = heads * self.dim
        if separate:
            self.q, self.k, self.v = (nn.Linear(width, size, bias=bias) for size in (inner, kv_width, kv_width))
        else:
            self.qkv = nn.Linear(width, inner + 2 * kv_width, bias=bias)
        self.sizes = (inner, kv_width, kv_width)
        self.out = nn.Linear(inner, width, bias=bias)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None, rope: Any = None) -> torch.Tensor:
        b, s, _ = x.shape
        parts = (self.q(x), self.k(x), self.v(x)) if self.separate else self.qkv(x).split(self.sizes, -1)
        q, k, v = (p.view(b, s, -1, self.dim).transpose(1, 2) for p in parts)
        if rope is not None:
            q, k = rotated(q, rope), rotated(k, rope)
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=self.kv != self.heads)
        else:
            scores = q @ k.transpose(-1, -2)
            scores = scores / math.sqrt(self.dim)
            if self.causal and mask is not None:
                scores = torch.where(mask, scores, torch.full([], -1e9, dtype=scores.dtype, device=scores.device))
            elif mask is not None:
                scores = scores + mask
            weights = F.dropout(F.softmax(scores, -1), self.p, self.training).to(v.dtype)
            y = weights @ v
        return self.out(y.transpose(1, 2).reshape(b, s, -1))


def rotated(x: torch.Tensor, rope: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Rotary positions, as Llama's code does them: in fp32, on pairs."""
    cos, sin = rope
    left, right = x.float().chunk(2, -1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), -1).type_as(x)


class GeluNew(nn.Module):
    """GPT-2's GELU, written out in seven operations as Hugging Face has it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class RMSNorm(nn.Module):
    """Llama's norm, written out in fp32."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


class Block(nn.Module):
    """A transformer block with norms before (or, as BERT's, after) its two halves."""

    def __init__(self, width: int, heads: int, hidden: int, *, act: nn.Module, pre: bool = True, dropout: float = 0.0,
                 norm: Any = nn.LayerNorm, gated: bool = False, ffn_bias: bool = True, beside: bool = False, **attention: Any) -> None:  # fmt: skip  # noqa: E501
        super().__init__()
        self.beside = beside
        self.attention = Attention(width, heads, dropout=dropout, **attention)
        self.one, self.two, self.pre, self.p, self.act = norm(width), norm(width), pre, dropout, act
        self.up, self.down = nn.Linear(width, hidden, bias=ffn_bias), nn.Linear(hidden, width, bias=ffn_bias)
        self.gate = nn.Linear(width, hidden, bias=False) if gated else None

    def ffn(self, x: torch.Tensor) -> torch.Tensor:
        up = self.up(x)
        return self.down(self.act(self.gate(x)) * up if self.gate is not None else self.act(up))

    def forward(self, x: torch.Tensor, mask: Any = None, rope: Any = None) -> torch.Tensor:
        drop = lambda y: F.dropout(y, self.p, self.training)  # noqa: E731
        if self.beside:
            near = self.one(x)
            return x + self.attention(near, mask, rope) + self.ffn(near)
        if self.pre:
            x = x + drop(self.attention(self.one(x), mask, rope))
            return x + drop(self.ffn(self.two(x)))
        x = self.one(drop(self.attention(x, mask, rope)) + x)
        return self.two(drop(self.ffn(x)) + x)


class Decoder(nn.Module):
    """A language model; with labels its loss, as (chunked) cross-entropy over the vocabulary in fp32."""

    def __init__(self, width: int, layers: int, heads: int, hidden: int, vocabulary: int, *, positions: int = 0,
                 rope: bool = False, norm: Any = nn.LayerNorm, dropout: float = 0.0, tied: bool = True,
                 chunks: int = 1, wide_loss: bool = True, **block: Any) -> None:  # fmt: skip
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width) if positions else None
        self.blocks = nn.ModuleList(
            Block(width, heads, hidden, norm=norm, dropout=dropout, **block) for _ in range(layers)
        )
        self.norm, self.head = norm(width), nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.tokens.weight
        self.p, self.dim, self.rope, self.chunks, self.wide = dropout, width // heads, rope, chunks, wide_loss
        self.again = False  # each chunk's logits are made again in the backward pass, as a fused loss has it

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor | None = None) -> torch.Tensor:
        s = tokens.shape[1]
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(s, device=tokens.device))
        x = F.dropout(x, self.p, self.training)
        fused = self.blocks[0].attention.fused
        mask = None if fused else torch.ones(s, s, dtype=torch.bool, device=x.device)
        rope = None
        if self.rope:
            rope = (torch.ones(s, self.dim // 2, device=x.device), torch.ones(s, self.dim // 2, device=x.device))
        for block in self.blocks:
            x = block(x, mask, rope)
        x = self.norm(x)
        if labels is None:
            return self.head(x)
        pieces = zip(x.chunk(self.chunks, 1), labels.chunk(self.chunks, 1), strict=True)
        if self.again:
            parts = [checkpoint(self._loss, *both, use_reentrant=False) for both in pieces]
        else:
            parts = [self._loss(*both) for both in pieces]
        return sum(parts[1:], parts[0])

    def _loss(self, piece: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        logits = self.head(piece)
        return F.cross_entropy((logits.float() if self.wide else logits).flatten(0, 1), label.flatten())


class Encoder(nn.Module):
    """BERT; `task` 'squad' predicts two places, 'mlm' one token in six, None gives the hidden states."""

    def __init__(self, width: int, layers: int, heads: int, *, task: str | None, dropout: float = 0.1) -> None:
        super().__init__()
        self.tokens, self.places, self.kinds = (nn.Embedding(n, width) for n in (30528, 512, 2))
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(
            Block(width, heads, 4 * width, act=nn.GELU(), pre=False, dropout=dropout, fused=False, causal=False)
            for _ in range(layers)
        )
        self.task, self.p = task, dropout
        self.head = nn.Linear(width, 2) if task == "squad" else nn.Linear(width, 30528) if task == "mlm" else None
        self.extra = nn.Linear(width, width) if task == "mlm" else None

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor | None = None) -> torch.Tensor:
        b, s = tokens.shape
        x = self.tokens(tokens) + self.places(torch.arange(s, device=tokens.device)) + self.kinds(tokens)
        x = F.dropout(self.norm(x), self.p, self.training)
        mask = torch.zeros(b, 1, 1, s, device=x.device, dtype=x.dtype)
        for block in self.blocks:
            x = block(x, mask)
        if self.head is None or labels is None:
            return x if self.head is None else self.head(x)
        if self.task == "mlm":
            some = x[:, : max(1, round(s * 20 / 128) if s <= 128 else 80)]
            return F.cross_entropy(
                self.head(F.gelu(self.extra(some))).flatten(0, 1).float(), labels[:, : some.shape[1]].flatten()
            )
        start, end = self.head(x).unbind(-1)
        return F.cross_entropy(start, labels[:, 0]) + F.cross_entropy(end, labels[:, 1])


class EncoderDecoder(nn.Module):
    """BART: blocks of both kinds; the decoder looks at the encoder's output in a second attention."""

    def __init__(self, width: int = 1024, layers: int = 12, heads: int = 16, vocabulary: int = 50272) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        made = {"act": nn.GELU(), "pre": False, "dropout": 0.1, "fused": False}
        self.encoder = nn.ModuleList(Block(width, heads, 4 * width, causal=False, **made) for _ in range(layers))
        self.decoder = nn.ModuleList(Block(width, heads, 4 * width, causal=True, **made) for _ in range(layers))
        self.cross = nn.ModuleList(
            Attention(width, heads, fused=False, causal=False, dropout=0.1) for _ in range(layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        b, s = tokens.shape
        x = self.tokens(tokens)
        mask = torch.zeros(b, 1, 1, s, device=x.device, dtype=x.dtype)
        for block in self.encoder:
            x = block(x, mask)
        y, causal = self.tokens(labels), torch.ones(s, s, dtype=torch.bool, device=x.device)
        for block, cross, norm in zip(self.decoder, self.cross, self.norms, strict=True):
            y = norm(y + cross(y, mask))
            y = block(y, causal)
        return F.cross_entropy(self.head(y).flatten(0, 1), labels.flatten())


class RelativeBlock(nn.Module):
    """Transformer-XL's block: keys of the memory too, and scores of relative positions that are shifted."""

    def __init__(self, width: int, heads: int, dim: int, hidden: int, p: float) -> None:
        super().__init__()
        self.heads, self.dim, self.p = heads, dim, p
        self.qkv, self.r = nn.Linear(width, 3 * heads * dim, bias=False), nn.Linear(width, heads * dim, bias=False)
        self.out = nn.Linear(heads * dim, width, bias=False)
        self.u, self.w = nn.Parameter(torch.empty(heads, dim)), nn.Parameter(torch.empty(heads, dim))
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor, memory: torch.Tensor, places: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        s, b, _ = x.shape
        both = torch.cat((memory, x), 0)
        n = both.shape[0]
        q, k, v = self.qkv(both).chunk(3, -1)
        q = q[-s:].reshape(s, b, self.heads, self.dim)
        k, v = (t.reshape(n, b * self.heads, self.dim) for t in (k, v))
        r = self.r(places).reshape(n, self.heads, self.dim)
        qu, qw = ((q + bias).reshape(s, b * self.heads, self.dim) for bias in (self.u, self.w))
        ac = torch.bmm(qu.transpose(0, 1), k.permute(1, 2, 0)).view(b, self.heads, s, n)
        bd = qw.reshape(s, b, self.heads, self.dim).permute(1, 2, 0, 3) @ r.permute(1, 2, 0)
        bd = F.pad(bd, (1, 0)).view(b, self.heads, n + 1, s)[:, :, 1:].reshape(b, self.heads, s, n)
        scores = (ac + bd) * (1 / math.sqrt(self.dim))
        scores = scores.masked_fill(mask, -65000.0)
        weights = F.dropout(F.softmax(scores, -1), 0.0, self.training).to(v.dtype)
        y = torch.bmm(weights.reshape(b * self.heads, s, n), v.transpose(0, 1))
        y = y.reshape(b, self.heads, s, self.dim).permute(2, 0, 1, 3).reshape(s, b, -1)
        x = self.one(x + F.dropout(self.out(y), self.p, self.training))
        h = F.dropout(F.relu(self.up(x)), self.p, self.training)
        return self.two(x + F.dropout(self.down(h), self.p, self.training))


class TransformerXL(nn.Module):
    """Transformer-XL on WikiText-103; an adaptive softmax counts its head and each tail for its share of tokens."""

    def __init__(
        self, width: int, layers: int, heads: int, hidden: int, memory: int, shrink: int, *, adaptive: bool = True
    ) -> None:
        super().__init__()
        cuts = (0, 19997, 39997, 199997, 267735) if adaptive else (0, 267735)
        self.memory, self.width = memory, width
        self.words = nn.ModuleList(
            nn.Embedding(b - a, width // shrink**i) for i, (a, b) in enumerate(itertools.pairwise(cuts))
        )
        self.widen = nn.ModuleList(nn.Linear(width // shrink**i, width, bias=False) for i in range(len(cuts) - 1))
        self.blocks = nn.ModuleList(RelativeBlock(width, heads, 64, hidden, 0.1) for _ in range(layers))
        self.shares = (0.85, 0.05, 0.07, 0.03)[: len(cuts) - 1]  # of tokens in each cluster of WikiText-103, roughly

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        s, b = tokens.shape
        x = self.words[0](tokens)
        x = (
            self.widen[0](x)
            if x.shape[-1] == self.width and len(self.words) > 1 and self.words[1].embedding_dim < self.width
            else x
        )
        n = s + self.memory
        places = torch.empty(n, self.width, device=x.device, dtype=x.dtype)
        mask = torch.ones(s, n, dtype=torch.bool, device=x.device)
        for block in self.blocks:
            memory = torch.empty(self.memory, b, self.width, device=x.device, dtype=x.dtype)
            x = block(x, memory, places, mask)
        flat, loss = x.reshape(s * b, -1), None
        for i, share in enumerate(self.shares):
            rows = max(8, int(s * b * (1.0 if i == 0 else share)) // 8 * 8)
            logits = F.linear(flat[:rows] @ self.widen[i].weight, self.words[i].weight)
            part = F.log_softmax(logits, 1)[:, 0].sum()
            loss = part if loss is None else loss + part
        return loss


class SSD(nn.Module):
    """SSD300 on the first three stages of a ResNet-50, whose third keeps its size; 8732 boxes, 81 classes."""

    def __init__(self) -> None:
        super().__init__()
        net = torchvision.models.resnet50()
        net.layer3[0].conv2.stride = net.layer3[0].downsample[0].stride = (1, 1)
        self.backbone = nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool, net.layer1, net.layer2, net.layer3)
        wide, thin = (1024, 512, 512, 256, 256, 256), (256, 256, 128, 128, 128)
        self.more = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(wide[i], thin[i], 1, bias=False), nn.BatchNorm2d(thin[i]), nn.ReLU(True),
                nn.Conv2d(thin[i], wide[i + 1], 3, padding=int(i < 3), stride=2 if i < 3 else 1, bias=False),
                nn.BatchNorm2d(wide[i + 1]), nn.ReLU(True),
            )
            for i in range(5)
        )  # fmt: skip
        boxes = (4, 6, 6, 6, 4, 4)
        self.places = nn.ModuleList(nn.Conv2d(w, 4 * n, 3, padding=1) for w, n in zip(wide, boxes, strict=True))
        self.classes = nn.ModuleList(nn.Conv2d(w, 81 * n, 3, padding=1) for w, n in zip(wide, boxes, strict=True))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.backbone(x)
        found = [x]
        for block in self.more:
            x = block(x)
            found.append(x)
        places = torch.cat([c(f).reshape(x.shape[0], 4, -1) for c, f in zip(self.places, found, strict=True)], 2)
        kinds = torch.cat([c(f).reshape(x.shape[0], 81, -1) for c, f in zip(self.classes, found, strict=True)], 2)
        labels = torch.zeros(x.shape[0], kinds.shape[2], dtype=torch.long, device=x.device)
        boxes = torch.zeros(places.shape, device=x.device)
        lost = F.cross_entropy(kinds, labels, reduction="none")
        rank = lost.sort(1, descending=True)[1].sort(1)[1]
        near = F.smooth_l1_loss(places, boxes, reduction="none").sum(1)
        return (near + lost * (rank < 100)).sum(1).mean()


class UNet(nn.Module):
    """nnU-Net with instance norm, leaky ReLU, transposed convolutions and deep supervision."""

    def __init__(self, dims: int, filters: tuple[int, ...], channels: int = 5, classes: int = 4) -> None:
        super().__init__()
        conv, up, norm = (
            (nn.Conv2d, nn.ConvTranspose2d, nn.InstanceNorm2d),
            (nn.Conv3d, nn.ConvTranspose3d, nn.InstanceNorm3d),
        )[dims - 2]
        pair = lambda a, b, stride: nn.Sequential(  # noqa: E731
            conv(a, b, 3, stride, 1), norm(b, affine=True), nn.LeakyReLU(0.01, True),
            conv(b, b, 3, 1, 1), norm(b, affine=True), nn.LeakyReLU(0.01, True))  # fmt: skip
        sizes = (channels, *filters)
        self.down = nn.ModuleList(pair(a, b, 1 if i == 0 else 2) for i, (a, b) in enumerate(itertools.pairwise(sizes)))
        back = filters[::-1]
        self.up = nn.ModuleList(up(a, b, 2, 2) for a, b in itertools.pairwise(back))
        self.join = nn.ModuleList(pair(2 * b, b, 1) for b in back[1:])
        self.heads = nn.ModuleList(conv(b, classes, 1) for b in back[-3:])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
        outs = []
        for i, (up, join) in enumerate(zip(self.up, self.join, strict=True)):
            x = join(torch.cat((up(x), kept[-2 - i]), 1))
            outs.append(x)
        loss = None
        for head, out in zip(self.heads, outs[-3:], strict=True):
            y = head(out)
            soft = torch.softmax(y.float(), 1)
            part = (
                F.cross_entropy(y, torch.zeros(y.shape[0], *y.shape[2:], dtype=torch.long, device=y.device))
                + (soft * soft).sum()
            )
            loss = part if loss is None else loss + part
        return loss


class ViT(nn.Module):
    """ViT-B/16 as timm has it; attention fused or written out."""

    def __init__(self, *, fused: bool) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 768, 16, 16)
        self.places, self.first = nn.Parameter(torch.empty(1, 197, 768)), nn.Parameter(torch.empty(1, 1, 768))
        self.blocks = nn.ModuleList(
            Block(768, 12, 3072, act=nn.GELU(), fused=fused, causal=False, separate=False) for _ in range(12)
        )
        self.norm, self.head = nn.LayerNorm(768), nn.Linear(768, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class DecodeOne(nn.Module):
    """One token of one sequence through a Llama whose cache holds `context` tokens."""

    def __init__(
        self, width: int, layers: int, heads: int, kv: int, hidden: int, vocabulary: int, context: int
    ) -> None:
        super().__init__()
        dim = width // heads
        self.heads, self.kv, self.dim = heads, kv, dim
        self.qkv = nn.ModuleList(nn.Linear(width, (heads + 2 * kv) * dim, bias=False) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.up = nn.ModuleList(nn.Linear(width, hidden, bias=False) for _ in range(layers))
        self.gate = nn.ModuleList(nn.Linear(width, hidden, bias=False) for _ in range(layers))
        self.down = nn.ModuleList(nn.Linear(hidden, width, bias=False) for _ in range(layers))
        self.norms = nn.ModuleList(RMSNorm(width) for _ in range(2 * layers + 1))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("cache", torch.empty(layers, 2, 1, kv, context, dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(len(self.qkv)):
            y = self.qkv[i](self.norms[2 * i](x))
            q = y[..., : self.heads * self.dim].view(1, 1, self.heads, self.dim).transpose(1, 2)
            k, v = self.cache[i, 0].to(q.dtype), self.cache[i, 1].to(q.dtype)
            x = x + self.out[i](
                F.scaled_dot_product_attention(q, k, v, enable_gqa=self.kv != self.heads).reshape(1, 1, -1)
            )
            y = self.norms[2 * i + 1](x)
            x = x + self.down[i](F.silu(self.gate[i](y)) * self.up[i](y))
        return self.head(self.norms[-1](x))


class Lora(nn.Module):
    """A frozen linear layer and its two thin ones."""

    def __init__(self, base: nn.Linear, rank: int, dropout: float) -> None:
        super().__init__()
        self.p = dropout
        self.base = base.requires_grad_(False)
        self.a, self.b = nn.Linear(base.in_features, rank, bias=False), nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.b(self.a(F.dropout(x, self.p, self.training))) * 2.0


def with_lora(model: nn.Module, names: tuple[str, ...], rank: int, dropout: float) -> nn.Module:
    """The model frozen but for thin layers beside those of `names`."""
    model.requires_grad_(False)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if name in names and isinstance(child, nn.Linear):
                setattr(module, name, Lora(child, rank, dropout))
    return model


class MasterAdam(torch.optim.Optimizer):
    """Adam on fp32 copies of 16-bit weights, as apex's O2 keeps them; `fused` in one pass."""

    def __init__(self, params: Any, fused: bool = True) -> None:
        super().__init__(params, {})
        self.fused = fused
        for p in self.param_groups[0]["params"]:
            self.state[p] = {name: torch.empty(p.shape, device=p.device) for name in ("master", "first", "second")}

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        found = [p for p in self.param_groups[0]["params"] if p.grad is not None]
        grads = [p.grad.float() for p in found]
        for name in ("master", "first", "second"):
            torch._foreach_add_([self.state[p][name] for p in found], grads)
        for p in found:
            p.copy_(self.state[p]["master"])


def _llama(width: int, layers: int, heads: int, kv: int, hidden: int, vocabulary: int, **more: Any) -> Decoder:
    return Decoder(width, layers, heads, hidden, vocabulary, rope=True, norm=RMSNorm, kv_heads=kv, act=nn.SiLU(),
                   gated=True, ffn_bias=False, bias=False, **{"fused": True, "causal": True, "tied": False} | more)  # fmt: skip  # noqa: E501


LLAMAS = {
    "llama3.1-8b": (4096, 32, 32, 8, 14336, 128256), "llama3.1-70b": (8192, 80, 64, 8, 28672, 128256),
    "llama3.2-3b": (3072, 28, 24, 8, 8192, 128256), "llama2-7b": (4096, 32, 32, 32, 11008, 32000),
    "llama2-13b": (5120, 40, 40, 40, 13824, 32000), "llama2-34b": (8192, 48, 64, 8, 22016, 32000),
    "llama2-70b": (8192, 80, 64, 8, 28672, 32000), "tinyllama-1.1b": (2048, 22, 32, 4, 5632, 32000),
}  # fmt: skip
PARALLEL = {"phi-1.5": (2048, 24, 32, 8192, 51200), "stablelm-alpha-3b": (4096, 16, 32, 16384, 50688)}
MPT = {
    "125m": (768, 12, 12), "350m": (1024, 24, 16), "760m": (1536, 24, 12), "1b": (2048, 24, 16), "3b": (2560, 32, 20),
    "7b": (4096, 32, 32), "13b": (5120, 40, 40), "30b": (7168, 48, 56), "70b": (8192, 80, 64),
}  # fmt: skip
MEGATRON = {
    "megatron-22b": (6144, 48, 64), "gpt3-175b": (12288, 96, 96), "mt-nlg-530b": (20480, 105, 128),
    "megatron-1t": (25600, 128, 160),
}  # fmt: skip
# NVIDIA's phase 2 batches hold sequences of one bin of 64 tokens (run_pretraining.sh, phase2_bin_size=64), and more
# than half of Wikipedia at 512 tokens is padding (Krell et al. 2021, arXiv:2107.02027): 256 tokens, and half a bin.
_BINNED_TOKENS = 288
XL = {"transformer-xl-base": (512, 16, 8, 2048, 192, 1), "transformer-xl-large": (1024, 18, 16, 4096, 384, 4)}
TIMM = {"mobilenetv2_100": "mobilenet_v2", "efficientnet_b0": "efficientnet_b0", "convnext_tiny": "convnext_tiny",
        "densenet121": "densenet121", "vgg16": "vgg16", "resnet50": "resnet50"}  # fmt: skip


def _gpt2(width: int, layers: int, heads: int, vocabulary: int, **more: Any) -> Decoder:
    made = {"fused": False, "causal": True, "act": GeluNew(), "positions": 2048, "separate": False, "dropout": 0.1}
    return Decoder(width, layers, heads, 4 * width, vocabulary, **made | more)


def build(row: dict[str, str]) -> Job | None:
    """The job of a row; None for one that cannot be rebuilt (GNMT's batches of drawn lengths, llm.c, Muon)."""
    name, notes, source = row["model"], row["notes"], row["source"]
    batch = max(1, round(float(row["batch_per_gpu"] or 1)))
    trains = row["mode"].startswith("train")
    dtype = {"apexO2_fp16": "fp16", "pure_bf16": "amp_bf16" if name.startswith("mpt") else "bf16"}.get(
        row["dtype"], row["dtype"]
    )
    if dtype not in ("fp32", "tf32", "amp_fp16", "amp_bf16", "fp16", "bf16"):
        return None
    numbers = [int(n) for n in re.findall(r"\d+", row["seq_or_image"])]
    compiled, graphed = row["compiled"].startswith("yes"), "cudagraph" in row["compiled"]
    compiled = compiled or "fused layernorm" in notes  # kernels fused by hand move what a compiler's would
    with torch.device("meta"):
        made = _made(name, batch, numbers, row, trains, source, notes)
    if made is None:
        return None
    model, example, more = made
    # Lambda's fork of SSD (LambdaLabsML/DeepLearningExamples, main.py) has no --data-layout yet: its images are NCHW.
    unknown_layout = row["layout"] == "NHWC?" and "lambdal" in source
    if row["layout"].startswith(("NHWC", "NDHWC")) and not unknown_layout:
        last = torch.channels_last_3d if row["layout"].startswith("NDHWC") else torch.channels_last
        model = model.to(memory_format=last)
        example = tuple(
            one.to(memory_format=last) if one.dim() == (5 if "D" in row["layout"] else 4) else one for one in example
        )
    model.train(trains)
    job = Job(model, example, dtype, compiled=compiled, graphed=graphed, **more)
    if int(row["n_gpus"]) > 1 and not job.cluster:
        job.cluster = {"gpus": int(row["n_gpus"])}
        if "lambdal" in source:
            # Its scripts export NCCL_P2P_DISABLE=1: messages go through the host's memory, over PCIe and back.
            job.cluster["inside_byte_per_s"] = 10e9
    if row["mode"] == "train-no-optimizer" or not trains:
        job.optimizer = None
    return job


def _made(name: str, batch: int, numbers: list[int], row: dict[str, str], trains: bool, source: str, notes: str) -> Any:
    tokens = lambda s: torch.empty(batch, s, dtype=torch.long)  # noqa: E731
    apex = row["dtype"] == "apexO2_fp16"
    if name in TIMM or name in ("resnext101_32x4d", "vit_base_patch16_224"):
        if name == "resnext101_32x4d":
            net: nn.Module = torchvision.models.ResNet(
                torchvision.models.resnet.Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=4
            )
        elif name.startswith("vit"):
            net = ViT(fused="fused SDPA" in notes)
        else:
            net = getattr(torchvision.models, TIMM[name])()
        images = torch.empty(batch, *numbers)
        return (
            (WithLoss(net), (images, torch.empty(batch, dtype=torch.long)), {"optimizer": "momentum"})
            if trains
            else (net, (images,), {})
        )
    if name == "ssd300-resnet50":
        return SSD(), (torch.empty(batch, 3, 300, 300),), {"optimizer": "momentum"}
    if name == "nnunet-2d":
        return UNet(2, (32, 64, 128, 256, 512, 512)), (torch.empty(batch, 5, 192, 160),), {"optimizer": "adam"}
    if name == "nnunet-3d":
        return UNet(3, (32, 64, 128, 256, 320, 320)), (torch.empty(batch, 5, 128, 128, 128),), {"optimizer": "adam"}
    if name.startswith("bert"):
        size = (768, 12, 12) if name == "bert-base" else (1024, 24, 16)
        pretraining = "LanguageModeling/BERT" in source
        plain = "NeuSight" in source
        model = Encoder(*size, task=None if plain else "mlm" if pretraining else "squad")
        optimizer: Any = None if pretraining or plain else MasterAdam if apex else "loop_adamw"
        example = (tokens(numbers[0]),) if plain or not trains else (tokens(numbers[0]), tokens(numbers[0]))
        if pretraining and numbers[0] == 512:
            example = (tokens(_BINNED_TOKENS), tokens(_BINNED_TOKENS))
        return model, example, {"optimizer": optimizer}
    if name in XL:
        return (
            # Lambda calls train.py without --adaptive: its logs print adaptive=False and 191,948,759 parameters.
            TransformerXL(*XL[name], adaptive="lambdal" not in source),
            (torch.empty(numbers[0], batch, dtype=torch.long),),
            {"optimizer": MasterAdam if apex else "adam"},
        )
    if name == "bart-large":
        return EncoderDecoder(), (tokens(numbers[0]), tokens(numbers[0])), {}
    if name in ("gpt2-large", "gpt3-xl-1.3b", "opt-1.3b"):
        # NeuSight's "GPT3-XL" is 3072 wide (its scripts/asplos/data/DLmodel_configs/gpt3_xl.json), whatever its name says.  # noqa: E501
        size, vocabulary = {
            "gpt2-large": ((1280, 36, 20), 50257),
            "gpt3-xl-1.3b": ((3072, 24, 24), 50257),
            "opt-1.3b": ((2048, 24, 32), 50272),
        }[name]
        more = {"act": nn.ReLU(), "separate": True} if name.startswith("opt") else {}
        more_row: dict[str, Any] = {}
        kind = re.match(r"(DP|TP|PP)4", notes)
        if kind:
            global_batch = int(re.findall(r"global batch (\d+)", notes)[0])
            # Its pipelines pass one batch on whole: four stages take what one GPU takes for all of it (r337, r336).
            batch = global_batch // (4 if kind[1] == "DP" else 1)
            more_row = {
                "cluster": {
                    "gpus": 4,
                    "dp": 4 if kind[1] == "DP" else 1,
                    "tp": 4 if kind[1] == "TP" else 1,
                    "pp": 4 if kind[1] == "PP" else 1,
                }
            }
        model = _gpt2(*size, vocabulary, **more)
        return model, (torch.empty(batch, numbers[0], dtype=torch.long),), more_row
    if name.startswith("gpt2-124m") and "llm.c" not in name:
        fused = False
        more = {"fused": fused, "act": GeluNew(), "dropout": 0.0, "bias": False, "ffn_bias": False}
        if row["n_gpus"] == "8":
            return (
                _gpt2(768, 12, 12, 50304, **more),
                (tokens(1024), tokens(1024)),
                {"optimizer": "fused_adamw", "accumulate": 5, "cluster": {"gpus": 8, "dp": 8}},
            )
        return _gpt2(768, 12, 12, 50304, **more), (tokens(1024), tokens(1024)), {"optimizer": "fused_adamw"}
    if name.startswith("mpt-"):
        width, layers, heads = MPT[name[4:]]
        model = Decoder(
            width,
            layers,
            heads,
            4 * width,
            50368,
            positions=numbers[0],
            act=nn.GELU(),
            fused=True,
            causal=True,
            separate=False,
            bias=False,
            ffn_bias=False,
            wide_loss=False,
        )
        gpus = int(row["n_gpus"])
        found = int(re.findall(r"grad_accum (\d+)", notes)[0])
        more = {
            "optimizer": "adamw",
            "accumulate": found,
            "checkpoint": "checkpointing True" in notes,
            "cluster": {"gpus": gpus, "dp": gpus, "zero": 3},
        }
        if "PURE" in notes:
            more["cluster"]["state_dtype"] = "bf16"
        return model, (tokens(numbers[0]), tokens(numbers[0])), more
    base = name.removesuffix("-lora").removesuffix("-qlora")
    if "decode" in row["seq_or_image"] and base in LLAMAS:
        sizes = LLAMAS[base]
        gpus = int(row["n_gpus"])
        more = {"cluster": {"gpus": gpus, "tp": gpus}} if gpus > 1 else {}
        return DecodeOne(*sizes, context=200), (torch.empty(1, 1, sizes[0]),), more
    if base in LLAMAS or base in PARALLEL:
        return _made_llama(base, name, tokens, numbers, row, notes, source)
    if name in MEGATRON or name.startswith("gpt-h"):
        return _made_megatron(name, tokens, numbers, row, notes)
    return None


def _made_llama(
    base: str, name: str, tokens: Any, numbers: list[int], row: dict[str, str], notes: str, source: str
) -> Any:
    gpus, more = int(row["n_gpus"]), {"optimizer": "fused_adamw"}
    chunks, kept, names = 1, {}, ("q", "v")  # litgpt's LoRA sits on queries and values, unless told otherwise
    if "torchtune" in source:
        more["optimizer"] = "adamw" if "full finetune" in notes else "fused_adamw"
        chunks = 8 if "chunked" in notes or "checkpointing" in notes else 1
        more["checkpoint"] = "+ activation checkpointing" in notes or "lora" in name
        kept = {"tied": base == "llama3.2-3b"}
        names = ("q", "v", "out", "up", "gate", "down")  # llama3_1/8B_lora_single_device.yaml
    seq = numbers[-1] if numbers else 2048
    if "longest" in row["seq_or_image"]:
        seq, chunks = numbers[0], math.ceil(numbers[0] / 128)  # lm_head_chunk_size=128 in its lora.py
        kept, more["optimizer"] = {"wide_loss": False}, "adamw"
    made = _llama if base in LLAMAS else _parallel
    model = made(*{**LLAMAS, **PARALLEL}[base], chunks=chunks, **kept)
    if "lora" in name:
        if "qlora" in name:
            return None
        model = with_lora(model, names, 8, 0.0 if "torchtune" in source else 0.05)  # their defaults
    cluster: dict[str, Any] = {}
    if gpus > 1:
        tp = 8 if "TP8" in notes else 1
        zero = 2 if "ZeRO-2" in notes else 3
        cluster = {"gpus": gpus, "dp": gpus // tp, "tp": tp, "zero": zero, "wide_state": True}
        if "CPU-offloaded" in notes:
            # Memory alone: the host's update takes time of its own. Liger's loss never holds all logits.
            if row["metric"] != "peak_GiB":
                return None
            cluster |= {"offload": True, "wide_state": False}
            more["checkpoint"], model.chunks, model.again = True, max(1, seq // 1024), True
        elif "full AC" in notes and "fp8" in row["dtype"]:
            return None
        elif "selective AC" in notes and "no AC" not in notes:
            # torchtitan saves every second product; fms-fsdp leaves blocks alone (how many is not told: half).
            more["checkpoint"] = "selective" if "every matmul" in notes else "half"
        elif "full AC" in notes:
            more["checkpoint"] = True
    more["cluster"] = cluster
    return model, (tokens(seq), tokens(seq)), more


def _parallel(width: int, layers: int, heads: int, hidden: int, vocabulary: int, **more: Any) -> Decoder:
    """phi-1.5 and StableLM-alpha: attention and feed-forward beside each other behind one norm, GELU, rotary."""
    return Decoder(width, layers, heads, hidden, vocabulary, rope=True, act=nn.GELU(), fused=True, causal=True,
                   tied=False, beside=True, **more)  # fmt: skip


def _made_megatron(name: str, tokens: Any, numbers: list[int], row: dict[str, str], notes: str) -> Any:
    if name in MEGATRON:
        width, layers, heads = MEGATRON[name]
    else:
        width, layers, heads = (int(n) for n in re.findall(r"[hla](\d+)", name.removeprefix("gpt-")))
    tp, pp = int(re.findall(r"TP (\d+)", notes)[0]), int(re.findall(r"PP (\d+)", notes)[0])
    gpus = int(row["n_gpus"])
    dp = gpus // (tp * pp)
    total = int(re.findall(r"global batch (\d+)", notes)[0])
    micro = int(float(row["batch_per_gpu"]))
    steps = max(1, total // (dp * micro))
    stages = layers / pp
    kept = "Megatron" if name in MEGATRON else "vTrain"
    model = Decoder(
        width,
        max(1, round(stages)),
        heads,
        4 * width,
        51200,
        positions=numbers[0],
        act=nn.GELU(approximate="tanh"),
        fused=False,
        causal=True,
        separate=False,
        dropout=0.1,
        wide_loss=True,
    )
    full = "full recompute" in notes or (kept == "vTrain" and width >= 3072)
    interleave = re.findall(r"interleave (\d+)", notes)
    cluster = {"gpus": gpus, "dp": dp, "tp": tp, "pp": pp, "micro_batches": steps, "interleave": int(interleave[0]) if interleave else 1,  # noqa: E501
               "sequence": "sequence parallel" in notes and "no sequence" not in notes, "stage_of": pp}  # fmt: skip
    return (
        model,
        (tokens(numbers[0]), tokens(numbers[0])),
        {"optimizer": "fused_adamw", "accumulate": steps, "checkpoint": full, "cluster": cluster},
    )
