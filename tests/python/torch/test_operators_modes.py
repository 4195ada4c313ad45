"""Everything in PyTorch that wants to see an operator rather than run it: modes, transforms, tracers, profilers."""
import pytest

torch = pytest.importorskip("torch")

from torch.autograd import forward_ad  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import attn.torch  # noqa: E402

FUNCTIONS = {
    "scaled_dot_product_attention": attn.torch.scaled_dot_product_attention,
    "attention": attn.torch.attention,
    "operator": lambda q, k, v: torch.ops.attn.forward(q, k, v)[0],
}
pytestmark = pytest.mark.parametrize("call", FUNCTIONS.values(), ids=FUNCTIONS)


def inputs(*lead):
    return tuple(torch.randn(*lead, 2, 4, 20, 8) for _ in range(3))


def formula(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, -1) @ v


def close(found, expected, tolerance=1e-5):
    return ((found - expected).abs() / (1 + expected.abs())).max().item() <= tolerance


class Names(TorchDispatchMode):
    """Notes the operators that run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def test_dispatch_mode(call):
    tensors = [tensor.requires_grad_() for tensor in inputs()]
    with Names() as seen:
        call(*tensors).sum().backward()
    assert "attn::forward" in seen.names and "attn::backward" in seen.names


def test_mode_around_backward(call):
    tensors = [tensor.requires_grad_() for tensor in inputs()]
    out = call(*tensors).sum()
    with Names() as seen:
        out.backward()
    assert "attn::backward" in seen.names


def test_fake_tensors(call):
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        q, k, v = inputs()
        q.requires_grad_()
        out = call(q, k, v)
        gradient, = torch.autograd.grad(out.sum(), q)
    assert type(out).__name__ == "FakeTensor" and out.shape == gradient.shape == (2, 4, 20, 8)


def test_meta_tensors(call):
    assert call(*(tensor.to("meta") for tensor in inputs())).shape == (2, 4, 20, 8)


def test_function_mode(call):
    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(f"{func} {getattr(func, '__name__', '')}")
            return func(*args, **(kwargs or {}))

    seen = []
    tensors = inputs()
    with Functions():
        found = call(*tensors)
    assert any("attn.forward" in name or "scaled_dot_product_attention" in name for name in seen)
    assert torch.equal(found, call(*tensors))


def test_profiler(call):
    tensors = inputs()
    with torch.profiler.profile() as profile:
        call(*tensors)
    assert any(event.key == "attn::forward" for event in profile.key_averages())


def test_vmap(call):
    q, k, v = inputs(3)
    assert torch.equal(torch.vmap(call)(q, k, v), torch.stack([call(*part) for part in zip(q, k, v)]))
    shared = torch.vmap(call, in_dims=(2, None, None))(q.movedim(0, 2), k[0], v[0])
    assert torch.equal(shared, torch.stack([call(part, k[0], v[0]) for part in q]))


def test_func_grad(call):
    q, k, v = inputs()
    found = torch.func.grad(lambda *tensors: call(*tensors).square().sum(), (0, 1, 2))(q, k, v)
    expected = torch.func.grad(lambda *tensors: formula(*tensors).square().sum(), (0, 1, 2))(q, k, v)
    assert all(close(one, other) for one, other in zip(found, expected))


def test_gradients_of_each_sample(call):
    q, k, v = inputs(3)
    found = torch.vmap(torch.func.grad(lambda *tensors: call(*tensors).square().sum()))(q, k, v)
    expected = torch.vmap(torch.func.grad(lambda *tensors: formula(*tensors).square().sum()))(q, k, v)
    assert close(found, expected)
    whole = torch.func.grad(lambda *tensors: torch.vmap(call)(*tensors).square().sum())(q, k, v)
    assert close(whole, expected)


def test_jacobian(call):
    q, k, v = (tensor[:1, :1, :3, :2] for tensor in inputs())
    found = torch.func.jacrev(call)(q, k, v)
    assert close(found, torch.func.jacrev(formula)(q, k, v))
    q.requires_grad_()
    assert close(torch.autograd.functional.jacobian(lambda q: call(q, k, v), q, vectorize=True), found)


def test_forward_mode_is_refused(call):
    q, k, v = inputs()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(q, torch.ones_like(q))
        for context in (torch.no_grad(), torch.enable_grad()):
            with context, pytest.raises(NotImplementedError, match="forward-mode"):
                call(dual, k, v)
        assert call(q, k, v).shape == q.shape
    with pytest.raises(NotImplementedError, match="forward-mode"):
        torch.func.jvp(lambda q: call(q, k, v), (q,), (q,))


def test_lazily_negated_tensors(call):
    q, k, v = inputs()
    negated = torch._neg_view(q)
    assert negated.is_neg()
    assert torch.equal(call(negated, k, v), call(-q, k, v))


def test_make_fx(call):
    from torch.fx.experimental.proxy_tensor import make_fx

    tensors = inputs()
    traced = make_fx(lambda q, k, v: call(q, k, v))(*tensors)
    assert any("attn.forward" in str(node.target) for node in traced.graph.nodes)
    assert torch.equal(traced(*tensors), call(*tensors))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_jit_trace(call):
    tensors = inputs()
    traced = torch.jit.trace(call, tensors, check_trace=False)
    others = inputs()
    assert torch.equal(traced(*others), call(*others))


def test_inference_mode(call):
    tensors = inputs()
    with torch.inference_mode():
        inside = call(*tensors)
        again = call(*(tensor.clone() for tensor in tensors))
    assert torch.equal(inside, call(*tensors)) and torch.equal(again, inside)
