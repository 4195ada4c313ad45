"""The C part of the package: libattn's calls on arrays that others own. Internal; the public functions are in
attn, attn.torch and attn.transformers.

An array is anything with the buffer protocol or DLPack, on the CPU, of 2 to 4 axes: [L, d], [H, L, d] or
[B, H, L, d]; all arrays of a call have as many. Nothing is copied. Where a result is not given to be written
into, it is made: by q's library, where its type has DLPack's C exchange API (PyTorch), as a NumPy array
otherwise; with as many axes as q.

Settings, of every call (None or the default: not set):
    mask           bool (True keeps) or floating (added to the scores), of 0 to 4 axes, which line up from the last
                   one on: [B|1, H|1, Lq|1, Lk|1]
    causal         query i keeps the keys up to i + offset
    align          where queries stand among the keys: the offset, "top-left" (0) or "bottom-right" (Lk - Lq)
    window         (left, right), each a number of keys or None for no limit
    scale          None: 1/sqrt(d_qk)
    soft_cap       0: none
    sinks          [H] floating
    alibi_slopes   [H] floating
    key_lengths    [B] integers
    precision      "exact", or "bf16": bf16 products may be used for bf16 tensors
    dropout        0..1; dropout_seed: 0..2**64 - 1
    threads        0: what set_threads says
    detach         takes tensors that require a gradient, which is a ValueError otherwise: no result carries it on. The
                   caller sees to it that none is a negated view

ValueError, TypeError or BufferError name the argument and say what would be right; MemoryError. Calls release the
GIL, and any number of threads may be in them at once.
"""
from collections.abc import Sequence
from typing import Any, Literal, TypedDict, Unpack

Array = Any

class Settings(TypedDict, total=False):
    mask: Array | None
    causal: bool
    align: int | Literal["top-left", "bottom-right"]
    window: tuple[int | None, int | None] | None
    scale: float | None
    soft_cap: float
    sinks: Array | None
    alibi_slopes: Array | None
    key_lengths: Array | Sequence[int] | None
    precision: Literal["exact", "bf16"]
    dropout: float
    dropout_seed: int
    threads: int
    detach: bool

def forward(
    q: Array, k: Array, v: Array, /, *, out: Array | None = ..., stats: Array | bool = ..., **settings: Unpack[Settings]
) -> Any:
    """attn_forward. `out` [.., H, Lq, d_v] of q's type or float32; made, it has q's type (bfloat16 for NumPy:
    float32). `stats` [.., H, Lq, 2] float32 (float64 where q is) is written, or made where True is given.
    Returns out, or (out, stats) where stats is True or an array."""

def decode(
    q: Array, k: Array, v: Array, /, *, out: Array | None = ..., stats: Array | bool = ..., **settings: Unpack[Settings]
) -> Any:
    """attn_decode, for at most 16 queries, without dropout; else as forward."""

def backward(
    q: Array, k: Array, v: Array, out: Array, stats: Array, d_out: Array, /, *, d_q: Array | None = ...,
    d_k: Array | None = ..., d_v: Array | None = ..., d_mask: Array | None = ..., d_sinks: Array | None = ...,
    **settings: Unpack[Settings]
) -> None:
    """attn_backward: writes the gradients that are given. d_mask has the mask's shape, float32 (float64 where q
    is); d_sinks is [H], float32 (float64)."""

def weights(
    q: Array, k: Array, /, *, stats: Array | None = ..., out: Array | None = ..., **settings: Unpack[Settings]
) -> Any:
    """attn_weights, [.., H, Lq, Lk] float32 (float64). `stats` as forward wrote them; None: computed first."""

def inspect(
    q: Array, k: Array, /, *, stats: Array | None = ..., top: int = ..., entropy: bool = ..., maximum: bool = ...,
    received: bool = ..., **settings: Unpack[Settings]
) -> tuple[Any, Any, Any, Any, Any]:
    """attn_inspect: (top weights [.., Lq, top], top keys int32 [.., Lq, top], entropy [.., Lq], maximum [.., Lq],
    received [.., H, Lk]), None for what was not asked for."""

def know_tensors(tensor: type, parameter: type, empty_like: Any, /) -> None:
    """What attend takes for a plain tensor of PyTorch, and how a result is made."""

def attend(query: Array, key: Array, value: Array, mask: Array | None, causal: bool, scale: float | None, grouped: bool, threads: int, stats: bool, /) -> Any:
    """scaled_dot_product_attention of plain tensors without dropout: with `stats` (out, stats) by forward, for a
    gradient; else out, by forward or by decode as DECODE_RULE says. None, with nothing done, where PyTorch would do
    otherwise than libattn. Gradients are not followed. Errors as forward."""

DECODE_RULE: tuple[tuple[int, int], ...]
"""Pairs: decode is the faster one for up to so many queries with so many keys or more."""

def set_threads(threads: int) -> None:
    """How many threads a call uses where it does not say; 0: as many as CPUs, or as the OpenMP runtime that is shared
    says when a call begins."""

def get_threads() -> int: ...
def share_threads() -> bool:
    """Lets calls run on the threads of the OpenMP runtime that the process has loaded globally (as PyTorch does),
    instead of own ones, from now on. False where there is none."""

def isa() -> str: ...

version: str
