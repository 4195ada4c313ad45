"""attn.torch.use(): what it puts in the place of PyTorch's function, and that PyTorch's comes back."""
import threading

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402
from torch.nn.attention.bias import causal_lower_right, causal_upper_left  # noqa: E402

import attn.torch  # noqa: E402

OWN = F.scaled_dot_product_attention


@pytest.fixture
def calls(monkeypatch):
    """The calls of libattn that were made."""
    from attn import _native

    seen = []
    for name in ("forward", "attend", "decode"):
        function = getattr(_native, name)

        def watched(*arguments, name=name, function=function, **settings):
            out = function(*arguments, **settings)
            if out is not None:
                seen.append(name)
            return out

        monkeypatch.setattr(_native, name, watched)
    return seen


def inputs(queries=20, keys=30, **settings):
    return (torch.randn(2, 4, queries, 8, **settings), torch.randn(2, 4, keys, 8, **settings),
            torch.randn(2, 4, keys, 8, **settings))


def close(found, expected, tolerance=1e-5):
    return ((found - expected).abs() / (1 + expected.abs())).max().item() <= tolerance


def test_in_and_out():
    assert F.scaled_dot_product_attention is OWN
    with attn.torch.use():
        inside = F.scaled_dot_product_attention
        assert inside is not OWN
        with attn.torch.use():
            assert F.scaled_dot_product_attention is inside
        assert F.scaled_dot_product_attention is inside
    assert F.scaled_dot_product_attention is OWN
    with pytest.raises(KeyError), attn.torch.use():
        raise KeyError
    assert F.scaled_dot_product_attention is OWN


def test_decorator():
    @attn.torch.use()
    def function():
        return F.scaled_dot_product_attention

    for _ in range(2):
        assert function() is not OWN
        assert F.scaled_dot_product_attention is OWN


def test_entered_and_let_go():
    """Without a with statement nobody holds the context, and it must not end by itself."""
    attn.torch.use()
    assert F.scaled_dot_product_attention is OWN
    attn.torch.use().__enter__()
    try:
        assert F.scaled_dot_product_attention is not OWN
    finally:
        attn.torch.use().__exit__(None, None, None)
    assert F.scaled_dot_product_attention is OWN


def test_threads():
    """Whoever comes first or goes last, PyTorch's is back in the end."""
    start, wrong = threading.Barrier(8), []

    def work():
        start.wait()
        for _ in range(200):
            with attn.torch.use():
                if F.scaled_dot_product_attention is OWN:
                    wrong.append(True)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and F.scaled_dot_product_attention is OWN


def test_someone_else_in_between():
    """Another function that was put there stays; and who puts ours back by mistake, later, does not make it call
    itself."""
    def other(*arguments, **settings):
        raise AssertionError

    try:
        with attn.torch.use():
            ours = F.scaled_dot_product_attention
            F.scaled_dot_product_attention = other
        assert F.scaled_dot_product_attention is other
        F.scaled_dot_product_attention = ours
        with attn.torch.use(), pytest.raises(TypeError):
            F.scaled_dot_product_attention(1, 2, 3)
        assert F.scaled_dot_product_attention is OWN
    finally:
        F.scaled_dot_product_attention = OWN


def test_is_used(calls):
    q, k, v = inputs()
    with attn.torch.use():
        assert close(F.scaled_dot_product_attention(q, k, v), OWN(q, k, v))
        assert close(F.scaled_dot_product_attention(q[:, :, :1], k, v), OWN(q[:, :, :1], k, v))
        q.requires_grad_()
        F.scaled_dot_product_attention(q, k, v, scale=0.1).sum().backward()
        assert close(q.grad, torch.autograd.grad(OWN(q, k, v, scale=0.1).sum(), q)[0])
    assert calls == ["attend"] * 3


def test_function_modes(calls):
    """torch.set_default_device puts a mode around every call."""
    q, k, v = inputs()
    with attn.torch.use(), torch.device("cpu"):
        assert close(F.scaled_dot_product_attention(q, k, v), OWN(q, k, v))
    assert calls == ["attend"]


class Subclass(torch.Tensor):
    pass


OTHERS = {
    "integers": lambda: [tensor.int() for tensor in inputs()],
    "complex": lambda: inputs(dtype=torch.complex64),
    "meta": lambda: inputs(device="meta"),
    "subclass": lambda: [tensor.as_subclass(Subclass) for tensor in inputs()],
    "nested": lambda: [torch.nested.nested_tensor(list(tensor.transpose(1, 2)), layout=torch.jagged).transpose(1, 2)
                       for tensor in inputs()],
    "no-tensors": lambda: [1, 2, 3],
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.filterwarnings("ignore")
def test_what_goes_to_pytorch(name, calls, monkeypatch):
    """Results and errors are PyTorch's own, and attn's function, whose results may look alike, is not asked."""
    monkeypatch.setattr("attn.torch.scaled_dot_product.scaled_dot_product_attention",
                        lambda *arguments, **settings: pytest.fail("attn was asked"))

    def run(function):
        try:
            return type(function(*tensors))
        except Exception as error:
            return type(error), str(error)

    tensors = OTHERS[name]()
    expected = run(OWN)
    with attn.torch.use():
        assert run(F.scaled_dot_product_attention) == expected
    assert calls == []


def test_forward_mode_goes_to_pytorch():
    q, k, v = inputs()
    with forward_ad.dual_level(), attn.torch.use(), torch.nn.attention.sdpa_kernel(
            torch.nn.attention.SDPBackend.MATH):
        out = F.scaled_dot_product_attention(forward_ad.make_dual(q, q), k, v)
        assert forward_ad.unpack_dual(out).tangent is not None


@pytest.mark.parametrize("bias", [causal_upper_left, causal_lower_right])
def test_causal_bias(bias, calls):
    """torch.nn.attention.bias: no mask is made."""
    q, k, v = inputs()
    with attn.torch.use():
        found = F.scaled_dot_product_attention(q, k, v, bias(20, 30))
    mask = torch.ones(20, 30, dtype=torch.bool).tril(10 if bias is causal_lower_right else 0)
    assert close(found, OWN(q, k, v, mask))
    assert calls == ["forward"]
    with pytest.raises(ValueError, match="attn_mask"):
        attn.torch.scaled_dot_product_attention(q, k, v, bias(20, 20))
