"""libattn's calls on PyTorch's CPU tensors: what a result's memory looks like, and who makes it.

Tensors here are dense ones on the CPU. Gradients are not followed (`detach`): eager.py and operators.py do that.
Threads are as many as PyTorch uses.
"""
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attn import _native

# What attn._native takes by name: its Settings, from native_settings.
Settings = dict[str, Any]

_SEED_BITS = 2**64 - 1


def number_type(q: Tensor) -> torch.dtype:
    """The type of statistics, weights and everything else that is never of 16 bits."""
    return torch.float64 if q.dtype is torch.float64 else torch.float32


def empty_output(q: Tensor, v: Tensor) -> Tensor:
    """Memory for attention's result, with the axes of q in q's order in memory, as PyTorch's own kernel does it: where
    q is a view of [B, L, H, d], so is this, and out.transpose(1, 2) is contiguous."""
    dim = v.size(-1)
    if q.size(-1) == dim:
        return torch.empty_like(q)
    if q.dim() == 4 and q.stride(1) < q.stride(2):
        return q.new_empty((q.size(0), q.size(2), q.size(1), dim)).transpose(1, 2)
    return q.new_empty((*q.shape[:-1], dim))


def empty_statistics(q: Tensor) -> Tensor:
    """Memory for the row statistics, [.., H, Lq, 2]."""
    return q.new_empty((*q.shape[:-1], 2), dtype=number_type(q))


def empty_weights(q: Tensor, k: Tensor) -> Tensor:
    """Memory for all weights, [.., H, Lq, Lk]."""
    return q.new_empty((*q.shape[:-1], k.shape[-2]), dtype=number_type(q))


def native_settings(mask: Tensor | None = None, sinks: Tensor | None = None, alibi_slopes: Tensor | None = None,
                    key_lengths: Tensor | None = None, causal: bool = False, offset: int = 0,
                    window_left: int | None = None, window_right: int | None = None, scale: float | None = None,
                    soft_cap: float = 0.0, precision: str = "bf16", dropout: float = 0.0,
                    dropout_seed: Tensor | None = None) -> Settings:
    """An operator's arguments as attn._native takes them; those that are not set are left out."""
    settings: Settings = {} if precision == "exact" else {"precision": precision}
    if mask is not None:
        settings["mask"] = mask
    if sinks is not None:
        settings["sinks"] = sinks
    if alibi_slopes is not None:
        settings["alibi_slopes"] = alibi_slopes
    if key_lengths is not None:
        settings["key_lengths"] = key_lengths
    if causal:
        settings["causal"] = True
    if offset:
        settings["align"] = offset
    if window_left is not None or window_right is not None:
        settings["window"] = (window_left, window_right)
    if scale is not None:
        settings["scale"] = scale
    if soft_cap:
        settings["soft_cap"] = soft_cap
    if dropout:
        if dropout_seed is None or dropout_seed.dtype is not torch.int64 or dropout_seed.dim() != 0:
            raise ValueError("dropout_seed must be given with dropout: an int64 tensor without axes")
        settings["dropout"] = dropout
        settings["dropout_seed"] = int(dropout_seed.item()) & _SEED_BITS
    return settings


def operator_arguments(settings: Settings) -> tuple[Any, ...]:
    """The way back: an operator's arguments from what native_settings gave."""
    get = settings.get
    seed = get("dropout_seed")
    if seed is not None:
        seed = torch.tensor(seed - (seed >> 63 << 64))
    return (get("mask"), get("sinks"), get("alibi_slopes"), get("key_lengths"), get("causal", False), get("align", 0),
            *get("window", (None, None)), get("scale"), get("soft_cap", 0.0), settings.get("precision", "exact"),
            get("dropout", 0.0), seed)


def forward(q: Tensor, k: Tensor, v: Tensor, settings: Settings) -> tuple[Tensor, Tensor]:
    """attn_forward: its result and its row statistics."""
    output: tuple[Tensor, Tensor] = _native.forward(q, k, v, out=empty_output(q, v), stats=True,
                                                    threads=torch.get_num_threads(), detach=True, **settings)
    return output


def attend(q: Tensor, k: Tensor, v: Tensor, settings: Settings) -> Tensor:
    """attn_forward without statistics."""
    out = torch.empty_like(q) if q.size(-1) == v.size(-1) else empty_output(q, v)
    _native.forward(q, k, v, out=out, threads=torch.get_num_threads(), detach=True, **settings)
    return out


def decode(q: Tensor, k: Tensor, v: Tensor, settings: Settings) -> Tensor:
    """attn_decode."""
    out = torch.empty_like(q) if q.size(-1) == v.size(-1) else empty_output(q, v)
    _native.decode(q, k, v, out=out, threads=torch.get_num_threads(), detach=True, **settings)
    return out


def backward(d_out: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, stats: Tensor, wanted: Sequence[bool],
             settings: Settings) -> tuple[Tensor | None, ...]:
    """attn_backward: the gradients of q, k, v, mask and sinks, each of its tensor's type; None where not wanted."""
    d_q = torch.empty_like(q) if wanted[0] else None
    d_k = torch.empty_like(k) if wanted[1] else None
    d_v = torch.empty_like(v) if wanted[2] else None
    threads = torch.get_num_threads()
    if not (wanted[3] or wanted[4]):
        _native.backward(q, k, v, out, stats, d_out, d_q=d_q, d_k=d_k, d_v=d_v, threads=threads, detach=True,
                         **settings)
        return d_q, d_k, d_v, None, None
    mask, sinks = settings.get("mask"), settings.get("sinks")
    d_mask = mask.new_empty(mask.shape, dtype=number_type(q)) if mask is not None and wanted[3] else None
    d_sinks = sinks.new_empty(sinks.shape, dtype=number_type(q)) if sinks is not None and wanted[4] else None
    _native.backward(q, k, v, out, stats, d_out, d_q=d_q, d_k=d_k, d_v=d_v, d_mask=d_mask, d_sinks=d_sinks,
                     threads=threads, detach=True, **settings)
    return (d_q, d_k, d_v, d_mask.to(mask.dtype) if mask is not None and d_mask is not None else None,
            d_sinks.to(sinks.dtype) if sinks is not None and d_sinks is not None else None)


def weights(q: Tensor, k: Tensor, stats: Tensor | None, settings: Settings) -> Tensor:
    """attn_weights: [.., H, Lq, Lk]."""
    out = empty_weights(q, k)
    _native.weights(q, k, stats=stats, out=out, threads=torch.get_num_threads(), detach=True, **settings)
    return out


def inspect(q: Tensor, k: Tensor, stats: Tensor | None, top: int, entropy: bool, maximum: bool, received: bool,
            settings: Settings) -> tuple[Tensor | None, ...]:
    """attn_inspect: top weights, top keys, entropy, maximum, received; None for what was not asked for."""
    found: tuple[Tensor | None, ...] = _native.inspect(
        q, k, stats=stats, top=top, entropy=entropy, maximum=maximum, received=received,
        threads=torch.get_num_threads(), detach=True, **settings)
    return found
