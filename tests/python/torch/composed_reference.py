"""What attn.torch.attention computes, by its formula in float64: every setting is a mask or a term of the scores."""
import math

import torch
from torch import Tensor


def kept_keys(queries: int, keys: int, causal: bool, offset: int, window: tuple[int | None, int | None]) -> Tensor:
    """[Lq, Lk]: which keys a query keeps by its place."""
    distance = torch.arange(keys)[None, :] - torch.arange(queries)[:, None] - offset
    left, right = window
    kept = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        kept &= distance <= 0
    if left is not None:
        kept &= distance >= -left
    if right is not None:
        kept &= distance <= right
    return kept


def weights(q: Tensor, k: Tensor, *, mask: Tensor | None = None, causal: bool = False, align: str | int = "top-left",
            window: tuple[int | None, int | None] | None = None, scale: float | None = None, soft_cap: float = 0.0,
            sinks: Tensor | None = None, alibi_slopes: Tensor | None = None,
            key_lengths: list[int] | None = None) -> Tensor:
    """[B, H, Lq, Lk]; the rest of a row's sum is its sink's."""
    heads, (queries, keys) = q.shape[1], (q.shape[2], k.shape[2])
    offset = {"top-left": 0, "bottom-right": keys - queries}.get(align, align)
    k = k.double().repeat_interleave(heads // k.shape[1], 1)
    scores = q.double() @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if soft_cap:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    if alibi_slopes is not None:
        distance = (torch.arange(keys)[None, :] - torch.arange(queries)[:, None] - offset).abs()
        scores = scores - alibi_slopes.double()[:, None, None] * distance
    kept = kept_keys(queries, keys, causal, offset, window or (None, None)).expand(scores.shape)
    if mask is not None and mask.dtype == torch.bool:
        kept = kept & mask
    elif mask is not None:
        scores = scores + mask.double()
    if key_lengths is not None:
        kept = kept & (torch.arange(keys) < torch.tensor(key_lengths)[:, None, None, None])
    # An excluded score takes no part, in gradients neither; rows without a key give 0.
    scores = torch.where(kept, scores, -math.inf)
    if sinks is not None:
        sink = sinks.double()[:, None, None].expand(*scores.shape[:-1], 1)
        return torch.softmax(torch.cat([scores, sink], -1), -1)[..., :-1]
    rows = kept.any(-1, keepdim=True)
    return torch.softmax(torch.where(rows, scores, 0.0), -1) * rows


def attention(q: Tensor, k: Tensor, v: Tensor, **settings: object) -> Tensor:
    """[B, H, Lq, d_v]."""
    v = v.double().repeat_interleave(q.shape[1] // v.shape[1], 1)
    return weights(q, k, **settings) @ v
