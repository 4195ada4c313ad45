"""Attention on arrays: the functions of attn itself.

An array is anything on the CPU with the buffer protocol (NumPy, memoryview, ctypes) or DLPack (PyTorch, JAX …),
float32, float16, bfloat16 or float64, of 2 to 4 axes: [L, d], [H, L, d] or [B, H, L, d], with B batches, H heads,
length L and dim d. All arrays of a call have as many axes. They are read where they stand, whatever their strides:
negative ones and 0 too. Nothing is copied, and nothing is kept after the call.

Results are new NumPy arrays; for PyTorch's tensors new tensors. They are float32, or float64 where q is float64;
attention and decode give q's type (float32 for bfloat16 outside PyTorch).

Calls release the GIL, and any number of threads may be in them at once. What they do in parallel they share among
`threads` threads; the number changes no bit of a result.
"""
from __future__ import annotations

from collections.abc import Collection
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, SupportsIndex, TypeAlias, Unpack

import numpy

from attn import _native

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from attn._native import Settings

__all__ = ["Array", "Gradients", "TopK", "attention", "decode", "entropy", "get_threads", "gradients", "isa",
           "received", "set_threads", "topk", "version", "weights"]


class SupportsDLPack(Protocol):
    """An array that hands out its memory as Python's array API standard (2022.12) says."""

    def __dlpack__(self, *, stream: Any = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, int]: ...


Array: TypeAlias = "numpy.ndarray[Any, Any] | SupportsDLPack | Buffer"

version = _native.version


class TopK(NamedTuple):
    """The largest weights of each query, largest first, and the keys that they belong to.

    weights [.., Lq, n]  float32 (float64); 0 where the query keeps fewer than n keys
    keys    [.., Lq, n]  int32, places in k; -1 where the query keeps fewer than n keys
    """

    weights: Any
    keys: Any


class Gradients(NamedTuple):
    """The gradients that were wanted, None for the others.

    q, k, v [as q, k, v]  of the type of q, k, v; float32 where that is bfloat16
    mask    [as mask]     float32 (float64), summed along the axes on which the mask has size 1
    sinks   [H]           float32 (float64)
    """

    q: Any
    k: Any
    v: Any
    mask: Any
    sinks: Any


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    mask: Array | None = None,
    causal: bool = False,
    align: int | Literal["top-left", "bottom-right"] = "top-left",
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    soft_cap: float = 0.0,
    sinks: Array | None = None,
    alibi_slopes: Array | None = None,
    key_lengths: Any = None,
    precision: Literal["exact", "bf16"] = "exact",
    dropout: float = 0.0,
    dropout_seed: int = 0,
    threads: int = 0,
    out: Array | None = None,
    return_stats: bool = False,
) -> Any:
    """softmax(scale · q·kᵀ) · v, without ever holding the weights: memory grows with L, not with L·L.

    q             [.., H, Lq, d]
    k             [.., Hkv, Lk, d]; H is a multiple of Hkv, and head h reads key head h / (H / Hkv)
    v             [.., Hkv, Lk, d_v]

    A score is scale·(q·k), then soft_cap·tanh(score / soft_cap), then + mask − slope·|i + offset − j|. A key that any
    setting excludes has weight exactly 0, and NaN in its k and v reaches nothing. A query that keeps no key gives 0.

    mask          bool: True keeps a key, False excludes it; or floating: added to the scores, −inf excludes. Of 0 to 4
                  axes, which line up with [B, H, Lq, Lk] from the last one on, each of that size or 1: one of padded
                  keys, [B, Lk], is given as mask[:, None, None]. A floating mask is float32, float16 or bfloat16, with
                  float64 arrays also float64
    causal        query i keeps the keys j ≤ i + offset
    align         where queries stand among the keys: the offset itself, "top-left" (0: query i at key i), or
                  "bottom-right" (Lk − Lq: the last query at the last key, as with a cache)
    window        (left, right): query i keeps the keys i + offset − left … i + offset + right; None, and not −1, for no
                  limit on that side
    scale         None: 1/√d; any other number as it is
    soft_cap      0: none
    sinks         [H] floating: one more logit a head in the softmax's denominator, without a value
    alibi_slopes  [H] floating
    key_lengths   [B] integers: in batch b keys from key_lengths[b] on are excluded; 0 … Lk
    precision     "exact": all products and sums in float32 (float64); "bf16": where q and k are bfloat16 and the CPU
                  can, products may be made of bfloat16. Sums stay float32
    dropout       0 … 1: a weight counts as 0 with this probability, else 1/(1 − dropout) times. Which ones go depends
                  on dropout_seed (0 … 2⁶⁴ − 1) and the place alone
    threads       how many threads; 0: what set_threads says
    out           [.., H, Lq, d_v] of q's type, or float32 where that has 16 bits: written, and returned
    return_stats  True: also returns the row statistics, [.., H, Lq, 2] float32 (float64), which weights, topk, entropy,
                  received and gradients take. A row's are m, its largest score, and l = Σ exp(score − m): its
                  log-sum-exp is m + ln l

    scale, soft_cap, sinks, alibi_slopes and dropout are rounded to float32, also with float64 arrays.

    Returns out, or with return_stats (out, stats). Raises ValueError (shapes that do not fit, a setting out of range,
    an array that is not in the CPU's memory, an output that is read-only or shares memory with an input), TypeError (a
    type that is not taken), BufferError (an array that its owner does not hand out) and MemoryError; the message names
    the argument, and no output is written.

    Bits of a row depend on its own numbers and settings, the CPU's instruction set and the version of attn: not on
    other rows, batches, heads, strides or threads.
    """
    return _native.forward(
        q, k, v, mask=mask, causal=causal, align=align, window=window, scale=scale, soft_cap=soft_cap, sinks=sinks,
        alibi_slopes=alibi_slopes, key_lengths=key_lengths, precision=precision, dropout=dropout,
        dropout_seed=dropout_seed, threads=threads, out=out, stats=bool(return_stats))


def decode(
    q: Array, k: Array, v: Array, *, out: Array | None = None, return_stats: bool = False, **settings: Unpack[Settings]
) -> Any:
    """attention for at most 16 queries and many keys, as in generating text: each row of k and v is read once for all
    queries of its group, and threads share long k and v.

    Arguments, results and errors are those of attention; dropout is refused, and precision changes nothing. Results
    agree with attention's up to rounding, not bit for bit.
    """
    return _native.decode(q, k, v, out=out, stats=bool(return_stats), **settings)


def weights(
    q: Array, k: Array, *, stats: Array | None = None, out: Array | None = None, **settings: Unpack[Settings]
) -> Any:
    """The weights that attention uses: its softmax, [.., H, Lq, Lk] float32 (float64), before dropout.

    stats    as attention returned them for the same q, k and settings; None: they are computed first
    out      [.., H, Lq, Lk] float32 (float64): written, and returned

    Other arguments and errors are those of attention. A row sums to 1, with a sink to less, and to 0 where the query
    keeps no key; weights(…) @ v is what attention gave, up to rounding.
    """
    return _native.weights(q, k, stats=stats, out=out, **settings)


def topk(q: Array, k: Array, n: SupportsIndex = 8, *, stats: Array | None = None, **settings: Unpack[Settings]) -> TopK:
    """The n largest weights of each query, 1 ≤ n ≤ 64, and their keys, without holding the others.

    Largest first; of equal scores the lower key first. The weights have the bits of those of weights. Where a query
    keeps fewer than n keys, the rest is weight 0 and key -1. Which keys a row with NaN in its scores names is not
    promised. Other arguments and errors are those of weights.
    """
    if isinstance(n, bool) or not isinstance(n, Integral):
        raise TypeError("n must be an integer in 1..64")
    top = int(n)
    if not 1 <= top <= 64:
        raise ValueError("n must be in 1..64")
    top_weights, top_keys, _, _, _ = _native.inspect(q, k, stats=stats, top=top, **settings)
    return TopK(top_weights, top_keys)


def entropy(q: Array, k: Array, *, stats: Array | None = None, **settings: Unpack[Settings]) -> Any:
    """How widely each query spreads its weights: −Σ w·ln w, [.., H, Lq] float32 (float64), in nats.

    0 for one key or none, ln n for n keys of equal weight; a sink's share counts as one more weight. Other arguments
    and errors are those of weights.
    """
    return _native.inspect(q, k, stats=stats, entropy=True, **settings)[2]


def received(q: Array, k: Array, *, stats: Array | None = None, **settings: Unpack[Settings]) -> Any:
    """What each key receives: the sum of its weights over all queries, [.., H, Lk] float32 (float64).

    0 for a key that no query keeps. A head is one of q's: where several share a key head, each has its own sums.
    Other arguments and errors are those of weights.
    """
    return _native.inspect(q, k, stats=stats, received=True, **settings)[4]


def gradients(
    d_out: Array,
    q: Array,
    k: Array,
    v: Array,
    *,
    out: Array | None = None,
    stats: Array | None = None,
    wanted: Collection[str] = ("q", "k", "v"),
    **settings: Unpack[Settings],
) -> Gradients:
    """The gradients of a number that depends on attention's output, from d_out, its gradient there.

    d_out    [.., H, Lq, d_v], float32 or q's type
    out      as attention gave it for the same q, k, v and settings, float32 or q's type. With a 16-bit out the
             gradients of q and k have its rounding error
    stats    as attention gave them; out and stats come together, or both are computed first, out in float32
    wanted   which gradients: any of "q", "k", "v", "mask" (a floating one) and "sinks"

    The result's fields have these names; those that were not wanted are None, and asking for fewer changes no bit
    of the others. They are NumPy arrays. (PyTorch's tensors have autograd in attn.torch.) The gradient of an excluded
    score is 0, and so is what a query without a key gives and gets.

    Other arguments and errors are those of attention. Bits depend neither on threads nor on strides.
    """
    names = Gradients._fields
    if isinstance(wanted, str) or not isinstance(wanted, Collection) or not all(
            isinstance(name, str) and name in names for name in wanted):
        raise ValueError(f"wanted must be a collection of {', '.join(names)}")
    if (out is None) != (stats is None):
        raise ValueError("out and stats: give both, as attention(…, return_stats=True) returned them, or neither")
    forms = {"q": _form("q", q), "k": _form("k", k), "v": _form("v", v)}
    sums = numpy.dtype("float64" if forms["q"].dtype == numpy.float64 else "float32")
    if out is None or stats is None:
        exact = numpy.empty(forms["q"].shape[:-1] + forms["v"].shape[-1:], sums)
        out, stats = _native.forward(q, k, v, out=exact, stats=True, **settings)

    if "mask" in wanted:
        forms["mask"] = _form_with_gradient("mask", settings.get("mask"), sums)
    if "sinks" in wanted:
        forms["sinks"] = _form_with_gradient("sinks", settings.get("sinks"), sums)
    written: dict[str, Any] = dict.fromkeys(Gradients._fields)
    for name in wanted:
        written[name] = numpy.empty(forms[name].shape, forms[name].dtype)
    _native.backward(q, k, v, out, stats, d_out, d_q=written["q"], d_k=written["k"], d_v=written["v"],
                     d_mask=written["mask"], d_sinks=written["sinks"], **settings)
    return Gradients(**written)


class _Form(NamedTuple):
    shape: tuple[int, ...]
    dtype: numpy.dtype[Any]


def _form(name: str, array: Any) -> _Form:
    try:
        if isinstance(array, numpy.ndarray):
            seen = array
        elif hasattr(array, "__dlpack__"):
            seen = numpy.from_dlpack(array)
        else:
            seen = numpy.asarray(memoryview(array))
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        # PyTorch's and JAX's bfloat16, which NumPy has not: attn reads it, and the gradient is float32.
        if str(getattr(array, "dtype", "")).endswith("bfloat16") and isinstance(getattr(array, "shape", None), tuple):
            return _Form(tuple(array.shape), numpy.dtype("float32"))
        raise TypeError(f"{name}: NumPy cannot see this {type(array).__name__} as an array: {error}") from error
    return _Form(seen.shape, seen.dtype)


def _form_with_gradient(name: str, array: Any, sums: numpy.dtype[Any]) -> _Form:
    if array is None:
        raise ValueError(f"{name} is not given, but its gradient is wanted")
    form = _form(name, array)
    if form.dtype == bool:
        raise ValueError(f"{name} is bool and has no gradient; it must be floating where that is wanted")
    return form._replace(dtype=sums)


def set_threads(threads: int) -> None:
    """How many threads a call uses where it does not say: 1 or more, or 0 for as many as CPUs (the default), and once
    attn.torch is imported as many as torch.get_num_threads() says."""
    _native.set_threads(threads)


def get_threads() -> int:
    """How many threads a call uses where it does not say."""
    return _native.get_threads()


def isa() -> str:
    """The instruction set that attn uses on this CPU: "avx512", "avx2", "neon" or "scalar"."""
    return _native.isa()
