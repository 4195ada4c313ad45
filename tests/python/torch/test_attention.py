"""attn.torch.attention, weights and inspect with libattn's settings, against their formula in float64."""
import math
import os
import signal
import time

import pytest

torch = pytest.importorskip("torch")

import weights_reference as reference  # noqa: E402

import attn.torch  # noqa: E402
from attn import _native  # noqa: E402

SETTINGS = {
    "plain": {},
    "causal": {"causal": True},
    "bottom-right": {"causal": True, "align": "bottom-right"},
    "offset": {"causal": True, "align": 2},
    "window": {"window": (3, 1)},
    "left-window": {"causal": True, "align": "bottom-right", "window": (2, None)},
    "right-window": {"window": (None, 0)},
    "scale": {"scale": 0.4},
    "soft-cap": {"soft_cap": 1.5},
    "lengths": {"key_lengths": [5, 17]},
    "no-keys": {"key_lengths": [0, 3]},
    "tall": {"causal": True, "align": -30},
}


def normal(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_()


def problem(queries=33, keys=40, dtype=torch.float32):
    return (normal(2, 4, queries, 16, dtype=dtype), normal(2, 2, keys, 16, dtype=dtype),
            normal(2, 2, keys, 12, dtype=dtype))


def terms(queries=33, keys=40, dtype=torch.float32):
    """The settings that are tensors."""
    return {"float-mask": {"mask": normal(4, queries, keys, dtype=dtype)},
            "bool-mask": {"mask": torch.rand(2, 1, queries, keys) > 0.3},
            "sinks": {"sinks": normal(4, dtype=dtype)},
            "alibi": {"alibi_slopes": torch.tensor([0.5, 0.25, 0.125, 0.0625])},
            "all": {"mask": normal(queries, keys, dtype=dtype), "sinks": normal(4, dtype=dtype), "causal": True,
                    "align": "bottom-right", "window": (9, None), "soft_cap": 3.0, "key_lengths": [keys, 19],
                    "alibi_slopes": torch.tensor([0.5, 0.25, 0.125, 0.0625]), "scale": 0.3}}


def error(found, expected):
    return ((found.double() - expected).abs() / (1 + expected.abs())).max().item() if expected.numel() else 0.0


def check(inputs, settings, tolerance, gradient_tolerance):
    out = attn.torch.attention(*inputs, **settings)
    expected = reference.attention(*inputs, **settings)
    assert out.dtype == inputs[0].dtype
    assert error(out, expected) <= tolerance
    with torch.no_grad():
        assert error(attn.torch.attention(*inputs, **settings), expected) <= tolerance
    learning = [*inputs, *(value for value in settings.values() if getattr(value, "requires_grad", False))]
    d_out = torch.randn_like(out)
    found = torch.autograd.grad(out, learning, d_out)
    for tensor, gradient, right in zip(learning, found, torch.autograd.grad(expected, learning, d_out.double())):
        assert gradient.dtype == tensor.dtype
        assert error(gradient, right.double()) <= gradient_tolerance


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("queries", [3, 33])
def test_settings(name, queries):
    check(problem(queries), SETTINGS[name], 4e-6, 6e-6)


@pytest.mark.parametrize("name", terms())
@pytest.mark.parametrize("queries", [3, 33])
def test_tensor_settings(name, queries):
    check(problem(queries), terms(queries)[name], 4e-6, 6e-6)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-6), (torch.float16, 4e-3), (torch.bfloat16, 3e-2)])
def test_types(dtype, tolerance):
    # In float64 soft_cap, slopes and sinks are numbers of float32; without them the next test asks for more.
    check(problem(dtype=dtype), terms(dtype=dtype)["all"], tolerance, 2 * tolerance)


def test_double_scale():
    """libattn's scale is a float32; a float64 result has the digits of the scale that was given."""
    inputs = problem(dtype=torch.float64)
    check(inputs, {"scale": 0.1, "causal": True}, 1e-14, 1e-13)


def test_statistics_and_weights():
    q, k, v = problem()
    settings = terms()["all"]
    with torch.no_grad():
        out, stats = attn.torch.attention(q, k, v, return_stats=True, **settings)
        expected = reference.weights(q, k, **settings)
        assert stats.shape == (2, 4, 33, 2)
        found = attn.torch.weights(q, k, stats=stats, **settings)
        assert error(found, expected) <= 2e-6
        assert torch.equal(attn.torch.weights(q, k, **settings), found)
        assert error(found.double() @ v.double().repeat_interleave(2, 1), out.double()) <= 2e-6


def test_statistics_do_not_stop_gradients():
    q, k, v = problem()
    out, stats = attn.torch.attention(q, k, v, return_stats=True)
    assert out.requires_grad and not stats.requires_grad
    found = torch.autograd.grad(out.square().sum(), q)[0]
    expected = torch.autograd.grad(reference.attention(q, k, v).square().sum(), q)[0]
    assert error(found, expected.double()) <= 6e-6


def test_inspect():
    q, k, _ = (tensor.detach() for tensor in problem())
    settings = {"causal": True, "align": "bottom-right"}
    expected = reference.weights(q, k, **settings)
    found = attn.torch.inspect(q, k, top=3, entropy=True, maximum=True, received=True, **settings)
    top = expected.topk(3, -1)
    assert error(found.top_weights, top.values) <= 2e-6
    assert found.top_keys.dtype == torch.int32
    assert error(torch.gather(expected, -1, found.top_keys.long()), top.values) <= 2e-6
    assert error(found.entropy, -torch.xlogy(expected, expected).sum(-1)) <= 1e-5
    assert error(found.maximum, expected.amax(-1)) <= 2e-6
    assert error(found.received, expected.sum(-2)) <= 1e-5
    only = attn.torch.inspect(q, k, entropy=True, **settings)
    assert torch.equal(only.entropy, found.entropy)
    assert (only.top_weights, only.top_keys, only.maximum, only.received) == (None,) * 4


def test_fewer_axes():
    q, k, v = (tensor.detach() for tensor in problem())
    whole = attn.torch.attention(q, k, v)
    assert torch.equal(attn.torch.attention(q[1], k[1], v[1]), whole[1])
    assert torch.equal(attn.torch.attention(q[1, 3], k[1, 1], v[1, 1]), whole[1, 3])


def test_mixed_types():
    """Each tensor has a type of its own; float64 goes with float64 alone."""
    q, k, v = (tensor.detach() for tensor in problem())
    out = attn.torch.attention(q, k.half(), v.bfloat16())
    assert out.dtype == torch.float32
    assert error(out, reference.attention(q, k.half(), v.bfloat16())) <= 4e-6
    with pytest.raises(TypeError, match="key .* float64"):
        attn.torch.attention(q.double(), k, v)


def test_precision():
    """"exact" gives a bfloat16 result its whole accuracy: it is off by its own rounding alone."""
    q, k, v = (tensor.detach() for tensor in problem(dtype=torch.bfloat16))
    exact = attn.torch.attention(q, k, v, precision="exact")
    assert torch.equal(exact, reference.attention(q, k, v).bfloat16()) or error(
        exact, reference.attention(q, k, v)) <= 2**-8
    with pytest.raises(ValueError, match="precision"):
        attn.torch.attention(q, k, v, precision="half")


def test_dropout():
    """What comes out is the mean of what dropout leaves, and backward leaves what forward left."""
    q, k, v = normal(1, 2, 30, 16), normal(1, 2, 30, 16), normal(1, 2, 30, 30)
    with torch.no_grad():
        v.copy_(torch.eye(30).expand(1, 2, 30, 30))
    torch.manual_seed(3)
    kept = attn.torch.attention(q, k, v, dropout=0.4)
    torch.manual_seed(3)
    assert torch.equal(attn.torch.attention(q, k, v, dropout=0.4), kept)
    assert not torch.equal(attn.torch.attention(q, k, v, dropout=0.4), kept)
    share = (kept == 0).double().mean().item()
    assert abs(share - 0.4) <= 5 * math.sqrt(0.24 / 1800)
    weights = reference.weights(q, k)
    assert error(kept, torch.where(kept == 0, 0.0, weights / 0.6)) <= 1e-5
    # dV = (dropped weights)ᵀ · d_out
    d_out = torch.randn_like(kept)
    d_v, = torch.autograd.grad(kept, v, d_out)
    assert error(d_v, kept.detach().double().transpose(-2, -1) @ d_out.double()) <= 1e-5


def test_autocast():
    q, k, v = (tensor.detach() for tensor in problem())
    mask = torch.randn(33, 40)
    with torch.autocast("cpu"):
        out = attn.torch.attention(q, k, v, mask=mask)
        own = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
        assert out.dtype == own.dtype == torch.bfloat16
        assert attn.torch.attention(q.double(), k.double(), v.double()).dtype == torch.float64
    assert error(out, reference.attention(q, k, v, mask=mask)) <= 3e-2
    with torch.autocast("cpu", dtype=torch.float16):
        assert attn.torch.scaled_dot_product_attention(q, q, q).dtype == torch.float16


def test_excluded_values_reach_nothing():
    q, k, v = problem()
    mask = torch.ones(33, 40, dtype=torch.bool)
    mask[:, 7] = False
    mask[5] = False
    clean = attn.torch.attention(q, k, v, mask=mask)
    with torch.no_grad():
        k[:, :, 7], v[:, :, 7], q[:, :, 5] = math.nan, math.inf, math.nan
    out = attn.torch.attention(q, k, v, mask=mask)
    assert torch.equal(out, clean)
    assert torch.count_nonzero(out[:, :, 5]) == 0
    gradients = torch.autograd.grad(out.square().sum(), (q, k, v))
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert torch.count_nonzero(gradients[0][:, :, 5]) == 0
    assert torch.count_nonzero(gradients[1][:, :, 7]) == torch.count_nonzero(gradients[2][:, :, 7]) == 0


def test_threads_follow_pytorch(monkeypatch):
    """As many threads as PyTorch has at the call."""
    seen = []
    forward = _native.forward

    def watched(*arguments, **settings):
        seen.append(settings["threads"])
        return forward(*arguments, **settings)

    monkeypatch.setattr(_native, "forward", watched)
    q, k, v = (tensor.detach() for tensor in problem())
    for threads in (2, 1):
        torch.set_num_threads(threads)
        attn.torch.attention(q, k, v)
        torch.ops.attn.forward(q, k, v)
    assert seen == [2, 2, 1, 1]


@pytest.mark.parametrize("changed, kind, name", [
    ({"query": None}, TypeError, "query"),
    ({"query": torch.zeros(2, 4, 33, 16, dtype=torch.int32)}, TypeError, "query"),
    ({"key": torch.zeros(2, 2, 40, 15)}, ValueError, "key"),
    ({"key": torch.zeros(2, 3, 40, 16)}, ValueError, "key"),
    ({"value": torch.zeros(2, 2, 41, 12)}, ValueError, "value"),
    ({"value": torch.zeros(2, 2, 40, 12).to_sparse()}, ValueError, "value"),
    ({"key": torch.zeros(2, 2, 40, 16, device="meta")}, ValueError, "key"),
    ({"mask": torch.zeros(3, 40)}, ValueError, "mask"),
    ({"mask": torch.zeros(33, 40, dtype=torch.int64)}, TypeError, "mask"),
    ({"mask": torch.ones(33, 40, dtype=torch.bool, device="meta")}, ValueError, "mask"),
    ({"align": "left"}, ValueError, "align"),
    ({"window": (1, 2, 3)}, ValueError, "window"),
    ({"window": 5}, TypeError, "window"),
    ({"window": torch.zeros(3, 2)}, TypeError, "window"),
    ({"soft_cap": 1e-50}, ValueError, "soft_cap"),
    ({"scale": math.nan}, ValueError, "scale"),
    ({"soft_cap": -1.0}, ValueError, "soft_cap"),
    ({"sinks": torch.zeros(3)}, ValueError, "sinks"),
    ({"alibi_slopes": torch.zeros(3)}, ValueError, "alibi_slopes"),
    ({"key_lengths": [1, 41]}, ValueError, "key_lengths"),
    ({"key_lengths": [1]}, ValueError, "key_lengths"),
    ({"key_lengths": [1.5, 2]}, TypeError, "key_lengths"),
    ({"key_lengths": ["1", 2]}, TypeError, "key_lengths"),
    ({"dropout": 1.5}, ValueError, "dropout"),
])
def test_errors(changed, kind, name):
    arguments = {"query": torch.zeros(2, 4, 33, 16), "key": torch.zeros(2, 2, 40, 16),
                 "value": torch.zeros(2, 2, 40, 12), **changed}
    with pytest.raises(kind, match=rf"\b{name}\b") as caught:
        attn.torch.attention(**arguments)
    assert "\n" not in str(caught.value)


CALLS = {
    "attention": lambda q, **settings: attn.torch.attention(q, q, q, **settings),
    "attention with statistics": lambda q, **settings: attn.torch.attention(q, q, q, return_stats=True, **settings),
    "weights": lambda q, **settings: attn.torch.weights(q, q, **settings),
    "inspect": lambda q, **settings: attn.torch.inspect(q, q, top=1, **settings),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name, value", [
    ("align", 1.5), ("align", None), ("window", 5), ("window", "ab"), ("window", ("a", None)), ("window", (None, 1.5)),
    ("scale", "a"), ("scale", torch.ones(2)), ("soft_cap", "a"), ("precision", 5), ("sinks", [1.0, 2.0]),
    ("mask", [[True]]), ("key_lengths", [2.5]), ("key_lengths", ["a"]), ("key_lengths", [None]), ("key_lengths", 3),
    ("key_lengths", torch.tensor([2.5])),
])
def test_settings_of_wrong_types(call, name, value):
    """One line that names the argument, whichever way the call takes: no schema of an operator, no number cut off."""
    with pytest.raises(TypeError, match=rf"\b{name}\b") as caught:
        CALLS[call](torch.zeros(1, 2, 5, 8), **{name: value})
    assert "\n" not in str(caught.value)


def test_wrong_types_of_other_arguments():
    q = torch.zeros(1, 2, 5, 8)
    for name, call in (("dropout", lambda: attn.torch.attention(q, q, q, dropout="a")),
                       ("top", lambda: attn.torch.inspect(q, q, top="a")),
                       ("stats", lambda: attn.torch.weights(q, q, stats="a")),
                       ("stats", lambda: attn.torch.inspect(q, q, stats="a", entropy=True))):
        with pytest.raises(TypeError, match=rf"^{name}\b"):
            call()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_child_after_fork():
    """PyTorch's threads stay behind in the parent: the child works on its own, where GNU's OpenMP would hang."""
    torch.set_num_threads(2)
    q, d_out = normal(2, 8, 256, 32), torch.randn(2, 8, 256, 32)

    def work():  # nothing else of PyTorch's that is large enough for two threads
        return torch.autograd.grad(attn.torch.attention(q, q.detach(), q.detach()), q, d_out)

    work()
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    end = time.monotonic() + 30
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)


@pytest.mark.parametrize("queries", [3, 33])
@pytest.mark.parametrize("query_type, mask_type", [(torch.bfloat16, torch.float16), (torch.float32, torch.float16),
                                                   (torch.float32, torch.float64), (torch.float32, torch.int32)])
def test_mask_types_that_pytorch_refuses(query_type, mask_type, queries):
    """attention() takes a 16-bit mask with any 16- or 32-bit query; the drop-in takes what PyTorch's function takes."""
    q, mask = torch.zeros(1, 1, queries, 8, dtype=query_type), torch.zeros(queries, queries, dtype=mask_type)
    with pytest.raises(TypeError, match="attn_mask"):
        attn.torch.scaled_dot_product_attention(q, q, q, mask)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (4, 5), (5, 15), (5, 16), (8, 16), (9, 1023), (9, 1024), (16, 1024), (17, 1024)])
def test_few_queries_go_to_decode(queries, keys):
    """By the rule that attn.torch states, on the short way and on the long one."""
    q, k, v = torch.randn(1, 2, queries, 8), torch.randn(1, 2, keys, 8), torch.randn(1, 2, keys, 8)
    decodes = queries <= 4 or (queries <= 8 and keys >= 16) or (queries <= 16 and keys >= 1024)
    expected = torch.ops.attn.decode(q, k, v) if decodes else torch.ops.attn.forward(q, k, v)[0]
    assert torch.equal(attn.torch.scaled_dot_product_attention(q, k, v), expected)
    assert torch.equal(attn.torch.attention(q, k, v), expected)


def test_tensors_that_move_while_a_call_is_prepared():
    """Memory is lent for the call alone: Python code that runs in between may take it away."""
    q, k = torch.randn(1, 1, 4, 8), torch.randn(1, 1, 4, 8)

    class Offset:
        def __index__(self):
            q.set_()
            return 0

    with pytest.raises(ValueError, match="^q .*changed"):
        _native.forward(q, k, k, align=Offset(), out=torch.empty(1, 1, 4, 8))


def test_a_negation_that_cannot_be_asked_for():
    class Silent(torch.Tensor):
        def is_neg(self):
            return self.missing

    negated = torch._neg_view(torch.ones(1, 1, 4, 8)).as_subclass(Silent)
    with pytest.raises(AttributeError, match="missing"):
        _native.forward(negated, torch.ones(1, 1, 4, 8), torch.ones(1, 1, 4, 8))
