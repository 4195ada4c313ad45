"""What is told of the weights is true of the weights that made the output."""
import numpy as np
import pytest
from attention_reference import assert_within, forward, mix

import attn

SETTINGS = {
    "plain": {},
    "causal": dict(causal=True),
    "window": dict(causal=True, window=(3, None), align="bottom-right"),
    "lengths": dict(key_lengths=[5, 0]),
    "sinks": dict(sinks=np.array([0.5, 2, -np.inf, 0], "float32")),
    "mask": dict(mask=np.random.default_rng(4).random((2, 1, 11, 13)) < 0.3),
    "cap and slopes": dict(soft_cap=1.0, alibi_slopes=np.array([0.5, 0.25, 0.1, 0], "float32")),
}


@pytest.fixture(params=SETTINGS)
def settings(request):
    return SETTINGS[request.param]


@pytest.fixture(params=("float32", "float16", "float64"))
def arrays(request):
    generator = np.random.default_rng(8)
    return [generator.standard_normal(shape).astype(request.param)
            for shape in ((2, 4, 11, 16), (2, 2, 13, 16), (2, 2, 13, 5))]


def test_weights_times_values_are_the_output(arrays, settings):
    q, k, v = arrays
    weights = attn.weights(q, k, **settings)
    out = attn.attention(q, k, v, out=np.empty((2, 4, 11, 5), weights.dtype), **settings)
    product = weights.astype(np.longdouble) @ np.repeat(v, 2, axis=1).astype(np.longdouble)
    epsilon = 2.0**-53 if q.dtype == np.float64 else 2.0**-24
    assert_within(out, product, 64 * epsilon * (weights @ abs(np.repeat(v, 2, axis=1)).astype(weights.dtype)) + 1e-30)


def test_rows_of_weights_sum_to_one_or_to_nothing(arrays, settings):
    q, k, _ = arrays
    want = forward(q, k, k, **settings)
    sums = attn.weights(q, k, **settings).sum(axis=-1, dtype=np.longdouble)
    assert_within(sums, want.weights.sum(axis=-1), 1e-5)
    if "sinks" not in settings:
        kept = (want.scores != -np.inf).any(axis=-1)
        assert_within(sums, np.where(kept, 1.0, 0.0), 2e-6)


@pytest.mark.parametrize("n", (1, 3, 8, 64))
def test_topk_are_the_largest_of_the_weights(arrays, settings, n):
    q, k, _ = arrays
    weights = attn.weights(q, k, **settings)
    top = attn.topk(q, k, n, **settings)
    assert top.weights.shape == top.keys.shape == (2, 4, 11, n) and top.keys.dtype == np.int32
    assert top.weights.dtype == weights.dtype
    largest = -np.sort(-weights, axis=-1)
    largest = np.concatenate([largest, np.zeros((2, 4, 11, max(0, n - 13)), weights.dtype)], axis=-1)[..., :n]
    assert top.weights.tobytes() == largest.tobytes()
    named = top.keys >= 0
    there = np.take_along_axis(weights, np.where(named, top.keys, 0), axis=-1)
    assert np.array_equal(np.where(named, there, 0), top.weights)
    kept = (forward(q, k, k, **settings).scores != -np.inf).sum(axis=-1)
    assert np.array_equal(named.sum(axis=-1), np.minimum(kept, n))
    for keys in top.keys.reshape(-1, n):
        keys = keys[keys >= 0]
        assert len(set(keys.tolist())) == len(keys)


def test_topk_of_equal_scores_names_the_lower_key_first():
    top = attn.topk(np.ones((3, 4), "float32"), np.ones((6, 4), "float32"), 4)
    assert np.array_equal(top.keys, [[0, 1, 2, 3]] * 3)


def test_topk_has_eight_by_default():
    q = np.ones((20, 4), "float32")
    assert attn.topk(q, q).keys.shape == (20, 8)


def test_entropy_and_what_keys_receive(arrays, settings):
    q, k, _ = arrays
    want = forward(q, k, k, **settings)
    entropy, received = attn.entropy(q, k, **settings), attn.received(q, k, **settings)
    assert entropy.dtype == received.dtype == (np.float64 if q.dtype == np.float64 else np.float32)
    assert_within(entropy, want.entropy, 1e-5, "entropy")
    assert_within(received, want.received, 1e-5, "received")


def test_entropy_is_in_nats():
    q, k = np.zeros((2, 4), "float64"), np.zeros((10, 4), "float64")
    assert_within(attn.entropy(q, k), np.full(2, np.log(10)), 1e-14)
    assert_within(attn.entropy(q, k, causal=True), np.array([0, np.log(2)]), 1e-14)


def test_given_statistics_change_no_bit(arrays, settings):
    q, k, v = arrays
    _, stats = attn.attention(q, k, v, return_stats=True, **settings)
    assert attn.weights(q, k, stats=stats, **settings).tobytes() == attn.weights(q, k, **settings).tobytes()
    for given, alone in zip(attn.topk(q, k, 5, stats=stats, **settings), attn.topk(q, k, 5, **settings)):
        assert given.tobytes() == alone.tobytes()
    assert attn.entropy(q, k, stats=stats, **settings).tobytes() == attn.entropy(q, k, **settings).tobytes()
    assert attn.received(q, k, stats=stats, **settings).tobytes() == attn.received(q, k, **settings).tobytes()


def test_statistics_are_used_where_given():
    q, k = np.ones((3, 4), "float32"), np.ones((5, 4), "float32")
    _, stats = attn.attention(q, k, k, return_stats=True)
    halved = stats * np.array([1, 2], "float32")  # twice the sum: half the weights
    assert np.array_equal(attn.weights(q, k, stats=halved), attn.weights(q, k) / 2)


def test_asking_for_statistics_changes_no_bit_of_the_output(arrays, settings):
    q, k, v = arrays
    out, stats = attn.attention(q, k, v, return_stats=True, **settings)
    assert out.tobytes() == attn.attention(q, k, v, **settings).tobytes()
    assert stats.shape == (2, 4, 11, 2)
    out, stats = attn.decode(q, k, v, return_stats=True, **settings)
    assert out.tobytes() == attn.decode(q, k, v, **settings).tobytes() and stats.shape == (2, 4, 11, 2)


@pytest.mark.parametrize("axes", (2, 3))
def test_fewer_axes(axes):
    generator = np.random.default_rng(3)
    q, k = (generator.standard_normal((3, length, 8)[3 - axes:]).astype("float32") for length in (5, 7))
    heads = (3,) * (axes - 2)
    assert attn.weights(q, k).shape == (*heads, 5, 7)
    assert attn.topk(q, k, 2).weights.shape == attn.topk(q, k, 2).keys.shape == (*heads, 5, 2)
    assert attn.entropy(q, k).shape == (*heads, 5)
    assert attn.received(q, k).shape == (*heads, 7)
    assert_within(attn.received(q, k), attn.weights(q, k).astype("float64").sum(axis=-2), 1e-6)


def test_each_head_of_a_group_has_sums_of_its_own():
    generator = np.random.default_rng(3)
    q, k = (generator.standard_normal((1, heads, 6, 8)).astype("float32") for heads in (4, 2))
    assert attn.received(q, k).shape == (1, 4, 6)


def test_an_excluded_value_never_leaks():
    generator = np.random.default_rng(6)
    q, k, v = (generator.standard_normal((2, 2, 9, 8)).astype("float32") for _ in range(3))
    clean = attn.attention(q, k, v, key_lengths=[6, 9])
    clean_weights = attn.weights(q, k, key_lengths=[6, 9])
    for poison in (np.nan, np.inf, -np.inf):
        k[0, :, 6:] = v[0, :, 6:] = poison
        assert attn.attention(q, k, v, key_lengths=[6, 9]).tobytes() == clean.tobytes()
        assert attn.decode(q, k, v, key_lengths=[6, 9]).tobytes() == attn.decode(
            q, np.nan_to_num(k), np.nan_to_num(v), key_lengths=[6, 9]).tobytes()
        assert attn.weights(q, k, key_lengths=[6, 9]).tobytes() == clean_weights.tobytes()
        assert np.isfinite(attn.received(q, k, key_lengths=[6, 9])).all()
        for gradient in attn.gradients(np.ones_like(q), q, k, v, key_lengths=[6, 9])[:3]:
            assert np.isfinite(gradient).all()


def test_a_row_without_a_key_is_zero_everywhere():
    generator = np.random.default_rng(6)
    q, k, v = (generator.standard_normal((5, 8)).astype("float32") for _ in range(3))
    settings = dict(causal=True, align=-2)  # the first two queries stand before the first key
    out, stats = attn.attention(q, k, v, return_stats=True, **settings)
    assert not out[:2].any() and out[2:].all()
    assert np.array_equal(stats[:2], [[-np.inf, 0]] * 2)
    assert not attn.weights(q, k, **settings)[:2].any() and not attn.entropy(q, k, **settings)[:2].any()
    top = attn.topk(q, k, 3, **settings)
    assert np.array_equal(top.keys[:2], [[-1] * 3] * 2) and not top.weights[:2].any()
    gradients = attn.gradients(np.full_like(q, np.nan), q, k, v, causal=True, align=-5)
    assert not any(gradient.any() for gradient in gradients[:3])


def test_a_kept_nan_stays_in_its_rows():
    generator = np.random.default_rng(6)
    q, k, v = (generator.standard_normal((5, 8)).astype("float32") for _ in range(3))
    k[3] = np.nan
    out = attn.attention(q, k, v, causal=True)
    assert np.isfinite(out[:3]).all() and np.isnan(out[3:]).all()
    entropy = attn.entropy(q, k, causal=True)
    assert np.isfinite(entropy[:3]).all() and np.isnan(entropy[3:]).all()


def test_the_reference_itself():
    """Two keys of scores 0 and ln 3: weights 1/4 and 3/4."""
    q, k, v = np.array([[1.0]]), np.array([[0], [np.log(3.0)]]), np.array([[4.0], [8.0]])
    want = forward(q, k, v)
    assert abs(want.out[0, 0] - 7) < 1e-14 and abs(want.weights[0] - [0.25, 0.75]).max() < 1e-15
    assert np.isnan(mix(np.ones((1, 1, 1, 1)), np.full((1, 1, 1, 1), np.nan), np.ones((1, 1, 1, 1), bool))).all()
