"""attention, weights and inspect, with all that libattn can."""
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

import torch
from torch import Tensor

from attn.torch import dispatch, kernels
from attn.torch.arguments import (
    autocast,
    check_integer,
    check_number,
    check_scale,
    check_statistics,
    check_tensors,
    check_window,
    lengths_tensor,
    renamed,
)
from attn.torch.eager import is_ordinary, is_plain, is_quiet

Align = int | Literal["top-left", "bottom-right"]
Window = tuple[int | None, int | None]
Precision = Literal["bf16", "exact"]


class Inspection(NamedTuple):
    """What the weights tell; None for what was not asked for."""

    top_weights: Tensor | None  # [.., H, Lq, top] the largest weights of each query, largest first
    top_keys: Tensor | None  # [.., H, Lq, top] int32: their keys; -1, with weight 0, where there are fewer
    entropy: Tensor | None  # [.., H, Lq] in nats
    maximum: Tensor | None  # [.., H, Lq] the largest weight
    received: Tensor | None  # [.., H, Lk] the sum over queries of the weights that a key gets


@overload
def attention(query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = ..., causal: bool = ...,
              align: Align = ..., window: Window | None = ..., scale: float | None = ..., soft_cap: float = ...,
              sinks: Tensor | None = ..., alibi_slopes: Tensor | None = ...,
              key_lengths: Tensor | Sequence[int] | None = ..., precision: Precision = ..., dropout: float = ...,
              return_stats: Literal[False] = ...) -> Tensor: ...


@overload
def attention(query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = ..., causal: bool = ...,
              align: Align = ..., window: Window | None = ..., scale: float | None = ..., soft_cap: float = ...,
              sinks: Tensor | None = ..., alibi_slopes: Tensor | None = ...,
              key_lengths: Tensor | Sequence[int] | None = ..., precision: Precision = ..., dropout: float = ...,
              return_stats: Literal[True]) -> tuple[Tensor, Tensor]: ...


def attention(query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None, causal: bool = False,
              align: Align = "top-left", window: Window | None = None, scale: float | None = None,
              soft_cap: float = 0.0, sinks: Tensor | None = None, alibi_slopes: Tensor | None = None,
              key_lengths: Tensor | Sequence[int] | None = None, precision: Precision = "bf16", dropout: float = 0.0,
              return_stats: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """softmax(scale · query · keyᵀ …) · value on the CPU, with gradients for query, key, value, a floating mask and
    sinks.

    query [B, H, Lq, d], key [B, Hkv, Lk, d], value [B, Hkv, Lk, d_v], or without B, or without B and H; float32,
    float16, bfloat16, each for itself, or all float64. H is a multiple of Hkv: head h reads key head h / (H/Hkv).

    mask          bool, True keeps; or floating, added to the scores. [B|1, H|1, Lq|1, Lk|1], or fewer axes
    causal        query i keeps the keys up to i + offset
    align         the offset: "top-left" is 0, "bottom-right" Lk - Lq, or a number
    window        (left, right): keys from i + offset - left to i + offset + right; None is no limit
    scale         None: 1/sqrt(d)
    soft_cap      above 0: scores become soft_cap · tanh(score / soft_cap)
    sinks         [H]: one more logit in each softmax, without a value
    alibi_slopes  [H]: scores become score - slope · |i + offset - j|
    key_lengths   [B]: keys from there on are excluded
    precision     "bf16": products of bfloat16 tensors may be rounded as docs/accuracy.md says; "exact": never
    dropout       0..1: the share of weights that is left out; the seed comes from PyTorch's generator
    return_stats  also gives the row statistics [B, H, Lq, 2], which weights() and inspect() take

    Returns [B, H, Lq, d_v] of query's type, in query's order in memory. A query without a key gets 0. Without a
    gradient, dropout and statistics, few queries go to decode. torch.autocast acts as on PyTorch's function.
    Errors: ValueError, TypeError.
    """
    if not return_stats and not dropout:
        out = _run_usual(query, key, value, mask, sinks, alibi_slopes, key_lengths, causal, align, window, scale,
                         soft_cap, precision)
        if out is not None:
            return out
    query, key, value, mask, scale = _check(query, key, value, mask, sinks, alibi_slopes, scale)
    tensors, numbers = _settings(query, key, alibi_slopes, key_lengths, causal, align, window, scale, soft_cap,
                                 precision)
    if dropout != 0.0:
        check_number("dropout", dropout)
    inputs = (query, key, value, mask, sinks, *tensors, *numbers, dropout, dispatch.draw_seed() if dropout else None)
    try:
        if return_stats:
            output: tuple[Tensor, Tensor] = torch.ops.attn.forward.default(*inputs)
            return output
        given = (tensor for tensor in (mask, sinks, *tensors) if tensor is not None)
        return dispatch.run(is_plain(query, key, value, *given), *inputs)
    except (ValueError, TypeError) as error:
        raise renamed(error) from None


def weights(query: Tensor, key: Tensor, *, stats: Tensor | None = None, mask: Tensor | None = None,
            causal: bool = False, align: Align = "top-left", window: Window | None = None, scale: float | None = None,
            soft_cap: float = 0.0, sinks: Tensor | None = None, alibi_slopes: Tensor | None = None,
            key_lengths: Tensor | Sequence[int] | None = None, precision: Precision = "bf16") -> Tensor:
    """The weights that attention with these arguments uses, before dropout: [B, H, Lq, Lk], float32 (float64 with
    float64). With `stats` of attention(..., return_stats=True) they are exactly those, and cost half. They have no
    gradient: differentiating them is a NotImplementedError. Errors: ValueError, TypeError."""
    query, key, _, mask, scale = _check(query, key, key, mask, sinks, alibi_slopes, scale)
    check_statistics(stats)
    tensors, numbers = _settings(query, key, alibi_slopes, key_lengths, causal, align, window, scale, soft_cap,
                                 precision)
    try:
        found: Tensor = torch.ops.attn.weights.default(query, key, stats, mask, sinks, *tensors, *numbers)
    except (ValueError, TypeError) as error:
        raise renamed(error) from None
    return found


def inspect(query: Tensor, key: Tensor, *, stats: Tensor | None = None, top: int = 0, entropy: bool = False,
            maximum: bool = False, received: bool = False, mask: Tensor | None = None, causal: bool = False,
            align: Align = "top-left", window: Window | None = None, scale: float | None = None, soft_cap: float = 0.0,
            sinks: Tensor | None = None, alibi_slopes: Tensor | None = None,
            key_lengths: Tensor | Sequence[int] | None = None, precision: Precision = "bf16") -> Inspection:
    """What the weights tell, without ever holding Lq x Lk of them: the `top` (0..64) largest of each query, entropy,
    maximum, what each key received. Else as weights()."""
    query, key, _, mask, scale = _check(query, key, key, mask, sinks, alibi_slopes, scale)
    check_statistics(stats)
    tensors, numbers = _settings(query, key, alibi_slopes, key_lengths, causal, align, window, scale, soft_cap,
                                 precision)
    try:
        found = torch.ops.attn.inspect.default(query, key, stats, check_integer("top", top), bool(entropy),
                                               bool(maximum), bool(received), mask, sinks, *tensors, *numbers)
    except (ValueError, TypeError) as error:
        raise renamed(error) from None
    asked = (top > 0, top > 0, entropy, maximum, received)
    return Inspection(*(tensor if want else None for tensor, want in zip(found, asked)))


def _run_usual(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, sinks: Tensor | None,
               alibi_slopes: Tensor | None, key_lengths: Tensor | Sequence[int] | None, causal: bool, align: Align,
               window: Window | None, scale: float | None, soft_cap: float, precision: Precision) -> Tensor | None:
    """The usual case in little time, or None: libattn is asked at once, and refuses what it cannot take."""
    if not is_quiet() or torch.is_autocast_enabled("cpu"):
        return None
    try:
        for tensor in (query, key, value, mask, sinks, alibi_slopes):
            if tensor is not None and not is_ordinary(tensor):
                return None
        tensors, numbers = _settings(query, key, alibi_slopes, key_lengths, causal, align, window, scale, soft_cap,
                                     precision)
        if scale is not None and (scale != scale or query.dtype is torch.float64):
            return None
        settings = kernels.native_settings(mask, sinks, *tensors, *numbers)
        return dispatch.run_plain(query, key, value, mask, sinks, settings)
    except (AttributeError, ValueError, TypeError, BufferError, IndexError):
        return None


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, sinks: Tensor | None,
           alibi_slopes: Tensor | None, scale: float | None) -> tuple[Tensor, Tensor, Tensor, Tensor | None,
                                                                      float | None]:
    """query, key, value and mask, in autocast's type where that is on, and the scale that they go with."""
    check_tensors(query=query, key=key, value=value, mask=mask, sinks=sinks, alibi_slopes=alibi_slopes)
    query, key, value, mask = autocast(query, key, value, mask)
    dispatch.refuse_tangents(query, key, value, mask, sinks)
    query, scale = check_scale(query, scale)
    return query, key, value, mask, scale


def _settings(query: Tensor, key: Tensor, alibi_slopes: Tensor | None, key_lengths: Tensor | Sequence[int] | None,
              causal: bool, align: Align, window: Window | None, scale: float | None, soft_cap: float,
              precision: Precision) -> tuple[tuple[Tensor | None, Tensor | None], tuple[Any, ...]]:
    """The operators' arguments behind mask and sinks: two tensors, and the numbers. Types are checked here: PyTorch's
    dispatcher would refuse them with a RuntimeError that shows a schema. What is not set costs no check."""
    if key_lengths is not None and not isinstance(key_lengths, Tensor):
        key_lengths = lengths_tensor(key_lengths)
    if align == "top-left":
        offset = 0
    elif align == "bottom-right":
        offset = key.shape[-2] - query.shape[-2]
    elif isinstance(align, str):
        raise ValueError(f"align must be \"top-left\", \"bottom-right\" or a number, not {align!r}")
    else:
        offset = check_integer("align", align)
    left, right = (None, None) if window is None else check_window(window)
    if scale is not None:
        check_number("scale", scale)
    if soft_cap != 0.0:
        check_number("soft_cap", soft_cap)
    if not isinstance(precision, str):
        raise TypeError(f"precision must be \"bf16\" or \"exact\", not {precision!r}")
    return (alibi_slopes, key_lengths), (bool(causal), offset, left, right, scale, soft_cap, precision)
