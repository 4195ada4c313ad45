"""Each setting alone and with others, for all types and numbers of axes, against the formulas."""
import itertools

import numpy as np
import pytest
from attention_reference import assert_within, forward, gradients

import attn

TYPES = ("float32", "float16", "float64")


def problem(shape=(2, 4, 7, 9), dims=(8, 6), key_heads=2, dtype="float32", seed=0):
    generator = np.random.default_rng(seed)
    batch, heads, queries, keys = shape

    def normal(*axes):
        return generator.standard_normal(axes).astype(dtype)

    return (normal(batch, heads, queries, dims[0]), normal(batch, key_heads, keys, dims[0]),
            normal(batch, key_heads, keys, dims[1]))


def check(q, k, v, **settings):
    """attention, decode, the statistics and the weights."""
    want = forward(q, k, v, **settings)
    out, stats = attn.attention(q, k, v, return_stats=True, **settings)
    assert out.dtype == q.dtype and type(out) is np.ndarray
    assert_within(out, want.out, want.out_bound, "out")
    has_key = want.maximum_score != -np.inf
    score_bound = 1e-5 * (1 + np.where(has_key, abs(want.maximum_score), 0))
    assert_within(stats[..., 0], want.maximum_score, score_bound, "maximum")
    assert_within(stats[..., 1], want.sum, 1e-4 * want.sum, "sum")
    assert stats.dtype == (np.float64 if q.dtype == np.float64 else np.float32)
    weights_settings = {name: value for name, value in settings.items() if not name.startswith("dropout")}
    assert_within(attn.weights(q, k, **weights_settings), want.weights, want.weights_bound, "weights")
    if "dropout" not in settings:
        assert_within(attn.decode(q, k, v, **settings), want.out, want.out_bound, "decode")
    return out


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axes", (2, 3, 4))
def test_as_it_comes(dtype, axes):
    q, k, v = problem(dtype=dtype)
    if axes == 2:
        check(q[0, 0], k[0, 0], v[0, 0])
    elif axes == 3:
        check(q[0], k[0], v[0])
    else:
        check(q, k, v)


RANGES = [dict(causal=causal, align=align, window=window) for causal, align, window in itertools.product(
    (False, True), ("top-left", "bottom-right", 3, -2), (None, (2, None), (None, 1), (3, 2), (0, 0)))]


@pytest.mark.parametrize("settings", RANGES, ids=lambda settings: "-".join(map(str, settings.values())))
@pytest.mark.parametrize("queries, keys", ((7, 9), (9, 4), (1, 12)))
def test_causal_align_window(settings, queries, keys):
    check(*problem((2, 2, queries, keys), seed=queries), **settings)


MASK_SHAPES = ((2, 4, 7, 9), (2, 1, 7, 9), (1, 4, 7, 9), (1, 1, 7, 9), (2, 1, 1, 9), (2, 4, 7, 1), (4, 7, 9), (7, 9),
               (1, 9), (7, 1), (9,), (1,), ())


@pytest.mark.parametrize("shape", MASK_SHAPES, ids=str)
@pytest.mark.parametrize("kind", ("bool", "float32", "float16", "float64"))
def test_masks(shape, kind):
    q, k, v = problem(dtype="float64" if kind == "float64" else "float32")
    generator = np.random.default_rng(len(shape))
    mask = generator.random(shape) < 0.7
    if kind != "bool":
        mask = np.where(mask, generator.standard_normal(shape), -np.inf).astype(kind)
    check(q, k, v, mask=np.asarray(mask))
    check(q, k, v, mask=np.asarray(mask), causal=True, align="bottom-right", window=(4, None))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("key_heads", (1, 2, 4))
def test_everything_at_once(dtype, key_heads):
    q, k, v = problem(key_heads=key_heads, dtype=dtype, seed=key_heads)
    generator = np.random.default_rng(5)
    check(q, k, v, mask=generator.standard_normal((4, 7, 9)).astype(dtype), causal=True, align=3, window=(5, 1),
          scale=0.25, soft_cap=2.5, sinks=np.array([0.5, -np.inf, 1, -2], np.float32),
          alibi_slopes=np.array([0.5, 0.25, 0, 0.125], "float32"), key_lengths=[9, 5])


@pytest.mark.parametrize("settings", (
    dict(scale=0.0), dict(scale=-1.0), dict(scale=3), dict(soft_cap=0.5), dict(soft_cap=30),
    dict(sinks=np.array([3.0, 0, -1, -np.inf])), dict(alibi_slopes=np.array([1.0, 0.5, 0.25, 0.125])),
    dict(key_lengths=np.array([0, 4])), dict(key_lengths=np.array([9, 1], np.int32)), dict(key_lengths=(3, 9)),
    dict(precision="exact"), dict(precision="bf16"), dict(threads=1), dict(threads=3), dict(mask=None, window=None),
), ids=lambda settings: "-".join(f"{name}={value}" for name, value in settings.items()))
@pytest.mark.parametrize("dtype", TYPES)
def test_one_setting(settings, dtype):
    check(*problem(dtype=dtype), **settings)


@pytest.mark.parametrize("probability", (0.1, 0.5, 1.0))
@pytest.mark.parametrize("seed", (0, 1, 2**64 - 1))
def test_dropout_draws_what_the_semantics_say(probability, seed):
    q, k, v = problem((2, 2, 33, 70))
    out = check(q, k, v, dropout=probability, dropout_seed=seed, causal=True)
    if probability == 1:
        assert not out.any()


def test_dropout_of_zero_changes_no_bit():
    q, k, v = problem()
    assert attn.attention(q, k, v, dropout=0, dropout_seed=7).tobytes() == attn.attention(q, k, v).tobytes()


def test_mixed_floating_types_are_each_read_as_they_are():
    q, k, v = problem()
    for q_type, k_type, v_type in itertools.product(("float32", "float16"), repeat=3):
        mixed = q.astype(q_type), k.astype(k_type), v.astype(v_type)
        want = forward(*mixed)
        assert_within(attn.attention(*mixed), want.out, want.out_bound)


def test_an_out_of_float32_for_float16_is_not_rounded_twice():
    q, k, v = problem(dtype="float16")
    want = forward(q, k, v, out_type="float32")
    out = np.empty((2, 4, 7, 6), "float32")
    assert attn.attention(q, k, v, out=out) is out
    assert_within(out, want.out, want.out_bound)
    assert attn.attention(q, k, v).tobytes() == out.astype("float16").tobytes()


def test_longer_than_a_tile():
    q, k, v = problem((1, 2, 300, 517), (64, 64), seed=3)
    want = forward(q, k, v, causal=True, align="bottom-right")
    out = attn.attention(q, k, v, causal=True, align="bottom-right")
    assert_within(out, want.out, want.out_bound)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("settings", (
    {}, dict(causal=True, align="bottom-right"), dict(window=(2, 1)), dict(soft_cap=1.5), dict(scale=-0.5),
    dict(key_lengths=[0, 6]), dict(sinks=np.array([1, -np.inf, 0, 2], "float32")),
    dict(alibi_slopes=np.array([1, 0.5, 0.25, 0], "float32")), dict(dropout=0.3, dropout_seed=11),
), ids=lambda settings: "-".join(settings) or "none")
def test_gradients(dtype, settings):
    q, k, v = problem(dtype=dtype)
    d_out = np.random.default_rng(9).standard_normal((2, 4, 7, 6)).astype(dtype)
    wanted = ("q", "k", "v", *(("sinks",) if "sinks" in settings else ()))
    got = attn.gradients(d_out, q, k, v, wanted=wanted, **settings)
    want = gradients(d_out, q, k, v, **settings)
    for name in wanted:
        assert_within(getattr(got, name), *want[name], name)
        assert getattr(got, name).dtype == (dtype if name != "sinks" or dtype == "float64" else "float32")


@pytest.mark.parametrize("shape", MASK_SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_gradients_of_a_mask_have_its_shape(shape, dtype):
    q, k, v = problem(dtype=dtype)
    generator = np.random.default_rng(2)
    d_out = generator.standard_normal((2, 4, 7, 6)).astype(dtype)
    mask = np.asarray(np.where(generator.random(shape) < 0.8, generator.standard_normal(shape), -np.inf).astype(dtype))
    got = attn.gradients(d_out, q, k, v, mask=mask, wanted=["mask"])
    assert got.q is None and got.k is None and got.v is None and got.sinks is None
    assert_within(got.mask, *gradients(d_out, q, k, v, mask=mask)["mask"], "mask")


def test_gradients_from_what_attention_returned_are_the_same_bits():
    q, k, v = problem()
    d_out = np.random.default_rng(1).standard_normal((2, 4, 7, 6)).astype("float32")
    out, stats = attn.attention(q, k, v, causal=True, return_stats=True)
    given = attn.gradients(d_out, q, k, v, out=out, stats=stats, causal=True)
    alone = attn.gradients(d_out, q, k, v, causal=True)
    for name in ("q", "k", "v"):
        assert getattr(given, name).tobytes() == getattr(alone, name).tobytes()
    part = attn.gradients(d_out, q, k, v, wanted={"k"}, causal=True)
    assert part.k.tobytes() == alone.k.tobytes() and part.q is None and part.v is None
