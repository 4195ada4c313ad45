"""Attention and its gradients by the formulas of docs/semantics.md, in more precision than attn has, holding the whole
matrix; and beside each result the error that docs/accuracy.md allows.

float64 inputs are worked on in long double, all others in float64. Arrays have 2 to 4 axes, as in attn.
"""
from typing import NamedTuple

import numpy as np

LONG = np.longdouble
SMALLEST_WEIGHT = 2.0**-125  # a weight below it may count as 0
ROUNDING = {np.dtype("float16"): 2.0**-11, np.dtype("float32"): 0.0, np.dtype("float64"): 0.0}
SUBNORMAL_ROUNDING = {np.dtype("float16"): 2.0**-25, np.dtype("float32"): 2.0**-149, np.dtype("float64"): 0.0}


class Forward(NamedTuple):
    """All with q's number of axes, but for the fields that are marked."""

    out: np.ndarray
    weights: np.ndarray
    maximum_score: np.ndarray  # [.., Lq]
    sum: np.ndarray  # [.., Lq]
    entropy: np.ndarray  # [.., Lq]
    received: np.ndarray  # [.., H, Lk]
    scores: np.ndarray  # −inf: excluded
    out_bound: np.ndarray
    weights_bound: np.ndarray


class Problem(NamedTuple):
    """The inputs on four axes, heads of keys repeated, and what the formulas have in common."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scale: float
    capped: np.ndarray  # d capped score / d score, 1 without a cap
    scores: np.ndarray  # −inf where excluded
    weights: np.ndarray
    sink_weight: np.ndarray  # [B, H, Lq]
    largest: np.ndarray  # [B, H, Lq]
    sum: np.ndarray  # [B, H, Lq]
    factor: np.ndarray  # of dropout
    size: np.ndarray  # S of docs/accuracy.md, [B, H, Lq]
    epsilon: float
    group: int


def four_axes(array):
    array = np.asarray(array)
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def offset_of(align, queries, keys):
    return {"top-left": 0, "bottom-right": keys - queries}.get(align, align)


def kept_keys(shape, mask, causal, align, window, key_lengths):
    batch, _, queries, keys = shape
    distance = np.arange(keys)[None, :] - np.arange(queries)[:, None] - offset_of(align, queries, keys)
    kept = np.ones(shape, bool)
    if mask is not None and mask.dtype == bool:
        kept &= four_axes(mask)
    if causal:
        kept &= distance <= 0
    left, right = window or (None, None)
    if left is not None:
        kept &= distance >= -left
    if right is not None:
        kept &= distance <= right
    if key_lengths is not None:
        kept &= (np.arange(keys) < np.asarray(key_lengths).reshape(batch, 1))[:, None, None, :]
    return kept, distance


def philox(counter, key):
    """Ten rounds of Philox4x32 (J. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011))."""
    low = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    words = [np.asarray(word, np.uint64) & low for word in counter]
    key = [np.uint64(part) for part in key]
    for _ in range(10):
        first, second = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [(second >> shift) ^ words[1] ^ key[0], second & low, (first >> shift) ^ words[3] ^ key[1], first & low]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    return words


def dropout_factor(shape, probability, seed):
    if probability == 0:
        return np.ones(shape)
    batch, head, query, key = (np.arange(size) for size in shape)
    counter = np.broadcast_arrays(key[None, None, None, :] // 4, query[None, None, :, None], head[None, :, None, None],
                                  batch[:, None, None, None])
    words = philox(counter, (seed & 0xFFFFFFFF, seed >> 32))
    word = np.choose(np.broadcast_to(key % 4, shape), words)
    probability = float(np.float32(probability))
    return np.where(word < probability * 2.0**32, 0.0, 1.0 / (1.0 - probability) if probability < 1 else 0.0)


def solve(q, k, v, *, mask=None, causal=False, align="top-left", window=None, scale=None, soft_cap=0.0, sinks=None,
          alibi_slopes=None, key_lengths=None, dropout=0.0, dropout_seed=0, **_):
    double = np.asarray(q).dtype == np.float64
    work = LONG if double else np.float64
    q, k, v = (four_axes(array).astype(work) for array in (q, k, v))
    group = q.shape[1] // k.shape[1] if k.shape[1] else 1
    k, v = (np.repeat(array, group, axis=1) for array in (k, v))
    shape = (*q.shape[:3], k.shape[2])
    scale = 1 / np.sqrt(work(q.shape[3])) if scale is None else work(np.float32(scale))

    mask = None if mask is None else np.asarray(mask)
    kept, distance = kept_keys(shape, mask, causal, align, window, key_lengths)
    scores = scale * np.einsum("bhid,bhjd->bhij", q, k)
    size = np.einsum("bhid,bhjd->bhij", abs(scale * q), abs(k))
    capped = np.ones(shape, work)
    if soft_cap:
        soft_cap = work(np.float32(soft_cap))
        bent = np.tanh(scores / soft_cap)
        scores, capped = soft_cap * bent, 1 - bent**2
    if mask is not None and mask.dtype != bool:
        bias = np.broadcast_to(four_axes(mask).astype(work), shape)
        scores = scores + bias
        kept = kept & (bias != -np.inf)
        size = size + abs(np.where(np.isfinite(bias), bias, 0))
    if alibi_slopes is not None:
        penalty = np.asarray(alibi_slopes).astype(np.float32).astype(work)[:, None, None] * abs(distance)
        scores, size = scores - penalty, size + abs(penalty)
    kept = kept & (scores != -np.inf)
    scores = np.where(kept, scores, -np.inf)

    sink = np.full(shape[1], -np.inf, work) if sinks is None else np.asarray(sinks).astype(np.float32).astype(work)
    sink = np.broadcast_to(sink[None, :, None], shape[:3])
    largest = np.maximum(scores.max(axis=3, initial=-np.inf), sink)
    base = np.where(largest == -np.inf, 0, largest)
    raw, raw_sink = np.exp(scores - base[..., None]), np.exp(sink - base)
    total = raw.sum(axis=3) + raw_sink
    safe = np.where(total == 0, 1, total)
    size = np.where(kept, size, 0).max(axis=3, initial=0)
    size = np.maximum(size, abs(np.where(np.isfinite(sink), sink, 0)))
    return Problem(q, k, v, scale, capped, scores, raw / safe[..., None], raw_sink / safe, largest, total,
                   dropout_factor(shape, dropout, dropout_seed), size, 2.0**-53 if double else 2.0**-24, group)


def mix(weights, values, kept):
    """Σ weight · value over kept keys only: 0 · NaN of an excluded one is not 0."""
    terms = weights[..., None] * values[:, :, None, :, :]
    return np.where(kept[..., None], terms, 0).sum(axis=3)


@np.errstate(all="ignore")
def forward(q, k, v, *, out_type=None, **settings):
    problem = solve(q, k, v, **settings)
    kept = problem.scores != -np.inf
    used = problem.weights * problem.factor
    out = mix(used, problem.v, kept)
    spread = 16 * problem.epsilon * (1 + problem.size)
    out_bound = spread[..., None] * mix(used, abs(problem.v), kept) + SMALLEST_WEIGHT * mix(
        np.ones_like(used), abs(problem.v), kept)
    out_type = np.dtype(out_type or np.asarray(q).dtype)
    out_bound = out_bound + ROUNDING[out_type] * abs(out) + SUBNORMAL_ROUNDING[out_type]

    shares = np.concatenate([problem.weights, problem.sink_weight[..., None]], axis=3)
    entropy = -np.where(shares == 0, 0, shares * np.log(np.where(shares == 0, 1, shares))).sum(axis=3)
    weights_bound = spread[..., None] * problem.weights + SMALLEST_WEIGHT
    axes = np.asarray(q).ndim

    def cut(array):
        return array.reshape(array.shape[4 - axes:])

    return Forward(cut(out), cut(problem.weights), cut(problem.largest), cut(problem.sum), cut(entropy),
                   cut(problem.weights.sum(axis=2)), cut(problem.scores), cut(out_bound), cut(weights_bound))


def reduced(array, shape):
    """Summed to `shape`, which lines up from the last axis on."""
    target = (1,) * (array.ndim - len(shape)) + tuple(shape)
    axes = tuple(axis for axis in range(array.ndim) if target[axis] == 1)
    return array.sum(axis=axes, keepdims=True).reshape(shape)


@np.errstate(all="ignore")
def gradients(d_out, q, k, v, **settings):
    """{name: (gradient, bound)} of q, k, v, mask (where floating) and sinks, each of its input's shape."""
    problem = solve(q, k, v, **settings)
    kept = problem.scores != -np.inf
    work = problem.q.dtype
    d_out = four_axes(d_out).astype(work)
    used = problem.weights * problem.factor
    d_weights = np.where(kept, problem.factor * np.einsum("bhic,bhjc->bhij", d_out, problem.v), 0)
    size = np.where(kept, problem.factor * np.einsum("bhic,bhjc->bhij", abs(d_out), abs(problem.v)), 0)
    row = (problem.weights * d_weights).sum(axis=3)  # Σ d_out · out
    row_size = (problem.weights * size).sum(axis=3)
    d_scores = np.where(kept, problem.weights * (d_weights - row[..., None]), 0)
    spread = 16 * problem.epsilon * (1 + problem.size)
    d_scores_bound = np.where(kept, (spread[..., None] * problem.weights + SMALLEST_WEIGHT)
                              * (size + row_size[..., None]), 0)
    d_products = d_scores * problem.capped

    def over_keys(pairs, array):
        return mix(pairs, array, kept)

    def over_queries(pairs, array):
        array = mix(pairs.swapaxes(2, 3), array, kept.swapaxes(2, 3))
        batch, heads, length, dim = array.shape
        return array.reshape(batch, heads // problem.group, problem.group, length, dim).sum(axis=2)

    scale = problem.scale
    result = {
        "q": (scale * over_keys(d_products, problem.k), abs(scale) * over_keys(d_scores_bound, abs(problem.k))),
        "k": (scale * over_queries(d_products, problem.q), abs(scale) * over_queries(d_scores_bound, abs(problem.q))),
        "v": (over_queries(used, d_out), over_queries(spread[..., None] * used + SMALLEST_WEIGHT, abs(d_out))),
    }
    for name, array in (("q", q), ("k", k), ("v", v)):
        array = np.asarray(array)
        value, bound = result[name]
        bound = bound + ROUNDING[array.dtype] * abs(value) + SUBNORMAL_ROUNDING[array.dtype]
        result[name] = (value.reshape(array.shape), bound.reshape(array.shape))
    mask, sinks = settings.get("mask"), settings.get("sinks")
    if mask is not None and np.asarray(mask).dtype != bool:
        result["mask"] = (reduced(d_scores, np.shape(mask)), reduced(d_scores_bound, np.shape(mask)) + 2.0**-149)
    if sinks is not None:
        share = problem.sink_weight
        result["sinks"] = (-(share * row).sum(axis=(0, 2)),
                           ((spread * share + SMALLEST_WEIGHT) * row_size).sum(axis=(0, 2)) + 2.0**-149)
    return result


def assert_within(got, want, bound, name="result"):
    """Each element within its bound; NaN exactly where NaN is wanted."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{name}: shape {got.shape} instead of {want.shape}"
    undefined = np.isnan(want)
    with np.errstate(invalid="ignore"):
        error = np.abs(got.astype(LONG) - want)
    right = np.where(undefined, np.isnan(got), (error <= bound) | (got == want))
    if not right.all():
        place = tuple(int(index) for index in np.argwhere(~right)[0])
        raise AssertionError(f"{name}{list(place)}: {got[place]!r} instead of {want[place]!r}, "
                             f"allowed {np.broadcast_to(bound, want.shape)[place]!r}")
