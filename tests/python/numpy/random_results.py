"""Makes the random calls of random_calls.py and judges what they give."""
import numpy as np
from attention_reference import assert_within, forward, gradients
from random_calls import INSPECTIONS, SENTINEL, draw

import attn


def perform(call):
    """What the call gives, or a clear refusal; anything else is raised."""
    try:
        return getattr(attn, call.function)(**call.given), None
    except (BufferError, MemoryError, TypeError, ValueError) as error:
        if call.kind != "wild":
            message = str(error)
            assert message and "\n" not in message, f"no clear message: {error!r}"
        return None, error
    except RuntimeError as error:
        assert call.kind == "wild" and str(error).startswith("no "), repr(error)
        return None, error


def run(seed, number):
    """Does one call. Returns whether it was accepted; AssertionError where it went wrong."""
    call = draw(seed, number)
    result, error = perform(call)
    if call.kind == "right":
        assert error is None, f"refused: {error!r}"
        judge(call, result)
        for name, buffer in call.outputs.items():
            call.given[name][...] = SENTINEL
            assert (buffer == SENTINEL).all(), f"memory beside {name} was written"
    elif call.kind != "wild":
        assert error is not None, f"accepted, though {call.kind}"
    return error is None


def judge(call, result):
    q, k, v = (call.arrays[name] for name in "qkv")
    if call.function == "gradients":
        want = gradients(call.arrays["d_out"], q, k, v, **call.settings)
        for name in attn.Gradients._fields:
            if name in call.given["wanted"]:
                assert_within(getattr(result, name), *want[name], name)
            else:
                assert getattr(result, name) is None
        return
    if call.function in INSPECTIONS:
        v = k
    out_type = call.given["out"].dtype if "out" in call.given else None
    want = forward(q, k, v, out_type=out_type, **call.settings)
    if "out" in call.given:
        assert (result[0] if "return_stats" in call.given else result) is call.given["out"]
    if call.function in ("attention", "decode"):
        out = result[0] if "return_stats" in call.given else result
        assert_within(out, want.out, want.out_bound, "out")
        if "return_stats" in call.given:
            has = want.maximum_score != -np.inf
            assert_within(result[1][..., 0], want.maximum_score,
                          1e-4 * (1 + np.where(has, abs(want.maximum_score), 0)), "maximum")
            assert_within(result[1][..., 1], want.sum, 1e-3 * want.sum, "sum")
    elif call.function == "weights":
        assert_within(result, want.weights, want.weights_bound, "weights")
    elif call.function == "entropy":
        logarithm = np.log(np.where(want.weights > 0, want.weights, 1))
        assert_within(result, want.entropy, 1e-5 + (want.weights_bound * (1 + abs(logarithm))).sum(axis=-1), "entropy")
    elif call.function == "received":
        assert_within(result, want.received, 1e-5 + want.weights_bound.sum(axis=-2), "received")
    else:
        judge_top(result, want, call.given["n"])


def judge_top(result, want, n):
    kept = want.scores != -np.inf
    named = result.keys >= 0
    assert np.array_equal(named.sum(axis=-1), np.minimum(kept.sum(axis=-1), n)), "another number of keys"
    if not kept.shape[-1]:
        assert not result.weights.any()
        return
    places = np.where(named, result.keys, 0)
    assert np.take_along_axis(kept, places, axis=-1)[named].all(), "a key that is excluded"
    there = np.where(named, np.take_along_axis(want.weights, places, axis=-1), 0)
    bound = np.take_along_axis(want.weights_bound, places, axis=-1)
    assert_within(result.weights, there, bound, "weights of the named keys")
    assert (result.weights[..., 1:] <= result.weights[..., :-1]).all(), "not the largest first"
    largest = -np.sort(-want.weights, axis=-1)[..., :n]
    assert_within(result.weights[..., :largest.shape[-1]], largest, want.weights_bound.max(axis=-1, keepdims=True),
                  "largest weights")
