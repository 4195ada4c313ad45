"""What attention computes, by its formula in float64: every setting is a mask or a term of the scores.

It is written out with matmul, softmax and autograd, so that neither PyTorch's fused kernels nor libattn make the
expected numbers. Tensors are [..., H, L, d], and their leading axes broadcast.
"""
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


def for_query_heads(heads: int, tensor: Tensor) -> Tensor:
    """Each head of keys or values serves a run of query heads."""
    return tensor.repeat_interleave(heads // tensor.shape[-3], -3)


def head_weights(q: Tensor, k: Tensor, *, mask: Tensor | None = None, causal: bool = False,
                 align: str | int = "top-left", window: tuple[int | None, int | None] | None = None,
                 scale: float | None = None, soft_cap: float = 0.0, sinks: Tensor | None = None,
                 alibi_slopes: Tensor | None = None, key_lengths: list[int] | None = None) -> Tensor:
    """[..., H, Lq, Lk] of queries and keys of as many heads; the rest of a row's sum is its sink's."""
    queries, keys = q.shape[-2], k.shape[-2]
    offset = {"top-left": 0, "bottom-right": keys - queries}.get(align, align)
    scores = q.double() @ k.double().transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if soft_cap:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    if alibi_slopes is not None:
        distance = (torch.arange(keys)[None, :] - torch.arange(queries)[:, None] - offset).abs()
        scores = scores - alibi_slopes.double()[:, None, None] * distance
    kept = kept_keys(queries, keys, causal, offset, window or (None, None)).expand(scores.shape)
    if mask is not None and mask.dtype == torch.bool:
        kept = kept & mask
    elif mask is not None:
        excluded = mask.isneginf()
        scores = scores + mask.double().masked_fill(excluded, 0)
        kept = kept & ~excluded
    if key_lengths is not None:
        kept = kept & (torch.arange(keys) < torch.tensor(key_lengths)[:, None, None, None])
    # An excluded score takes no part, in gradients neither; rows without a key give 0.
    rows = kept.any(-1, keepdim=True)
    if sinks is not None:
        sink = sinks.double()[:, None, None].expand(*scores.shape[:-1], 1)
        return torch.softmax(torch.cat([scores.masked_fill(~kept, -math.inf), sink], -1), -1)[..., :-1]
    return scores.masked_fill(~kept & rows, -math.inf).softmax(-1) * rows


def weights(q: Tensor, k: Tensor, **settings: object) -> Tensor:
    """[B, H, Lq, Lk] of keys with as many heads as the queries, or fewer."""
    return head_weights(q, for_query_heads(q.shape[-3], k), **settings)


def attention(q: Tensor, k: Tensor, v: Tensor, **settings: object) -> Tensor:
    """[B, H, Lq, d_v]."""
    return weights(q, k, **settings) @ for_query_heads(q.shape[-3], v.double())
