"""What PyTorch's operator tests ask of any function with a gradient, besides numbers: in-place changes are noticed,
graphs may be kept, packed and differentiated for many gradients at once, autocast, lazily negated and lazily copied
tensors."""
import pytest

torch = pytest.importorskip("torch")

from sdpa_reference import TOLERANCE, assert_close, compare, formula  # noqa: E402

BOUND = TOLERANCE[torch.float32].gradient
NAMES = ["query", "key", "value", "mask", "output"]


@pytest.fixture
def leaves():
    return [*torch.randn(3, 2, 3, 20, 8).requires_grad_().unbind(0)]


def expected_gradients(tensors, d_output):
    inputs = [tensor.detach().double().requires_grad_() for tensor in tensors]
    return torch.autograd.grad(formula(*inputs), inputs, d_output.double())


def check_gradients(gradients, tensors, d_output):
    for gradient, expected in zip(gradients, expected_gradients(tensors, d_output), strict=True):
        assert_close(gradient, expected, BOUND, "gradient")


@pytest.mark.parametrize("changed", NAMES)
def test_changes_in_place_are_noticed(attention, changed):
    """What the gradient is made of must be what the output was made of."""
    tensors = {name: torch.randn(2, 3, 20, 8) for name in NAMES[:3]}
    mask = torch.randn(20, 20)
    for name, tensor in tensors.items():
        tensor.requires_grad_(name != changed)
    output = attention(*tensors.values(), mask)
    (tensors | {"mask": mask, "output": output})[changed].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


def test_graph_is_kept(attention, leaves):
    """Two backward passes give the same; a third, after the graph was freed, is refused."""
    output = attention(*leaves)
    d_output = torch.randn_like(output)
    first = torch.autograd.grad(output, leaves, d_output, retain_graph=True)
    second = torch.autograd.grad(output, leaves, d_output)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(output, leaves, d_output)


def test_many_gradients_at_once(attention, leaves):
    output = attention(*leaves)
    d_outputs = torch.randn(3, *output.shape)
    batched = torch.autograd.grad(output, leaves, d_outputs, is_grads_batched=True)
    for place, d_output in enumerate(d_outputs):
        check_gradients([gradients[place] for gradients in batched], leaves, d_output)


def test_saved_tensors_may_be_packed(attention, leaves):
    with torch.autograd.graph.save_on_cpu():
        output = attention(*leaves)
    d_output = torch.randn_like(output)
    check_gradients(torch.autograd.grad(output, leaves, d_output), leaves, d_output)


@pytest.mark.parametrize("mode", [torch.autograd.set_detect_anomaly, torch.use_deterministic_algorithms])
def test_modes(attention, leaves, mode):
    mode(True)
    try:
        output = attention(*leaves)
        d_output = torch.randn_like(output)
        gradients = torch.autograd.grad(output, leaves, d_output)
    finally:
        mode(False)
    check_gradients(gradients, leaves, d_output)


def test_hooks(attention, leaves):
    """A hook of the output changes the gradient that goes on to the inputs."""
    output = attention(*leaves)
    d_output = torch.randn_like(output)
    output.register_hook(lambda gradient: 2 * gradient)
    gradients = torch.autograd.grad(output, leaves, d_output)
    check_gradients(gradients, leaves, 2 * d_output)


@pytest.mark.parametrize("queries", [5, 20])
def test_lazily_negated(attention, queries):
    """The imaginary part of a conjugate is a view with a sign that nobody has written down."""
    view = torch.randn(2, 3, queries, 8, dtype=torch.complex64).conj().imag
    assert view.is_neg()
    k, v = torch.randn(2, 2, 3, 20, 8)
    compare(attention, view, k, v)
    compare(attention, k, k, torch.randn(2, 3, 20, 8, dtype=torch.complex64).conj().imag)
    leaves = [view.clone().requires_grad_(), k, v]
    (gradient,) = torch.autograd.grad(attention(*leaves), leaves[0], view)
    assert_close(gradient, expected_gradients(leaves, view.clone())[0], BOUND, "gradient")


@pytest.mark.parametrize("queries", [5, 20])
def test_zeros_without_memory(attention, queries):
    """Autograd stands for zero gradients by tensors that have no memory. Nothing public makes one."""
    zeros = torch._efficientzerotensor((2, 3, queries, 8))
    k, v = torch.randn(2, 2, 3, 20, 8)
    output = attention(zeros, k, v)
    assert_close(output, formula(torch.zeros(zeros.shape), k, v), TOLERANCE[torch.float32].output, "output")
    leaves = [torch.randn(zeros.shape, requires_grad=True), k.requires_grad_(), v.requires_grad_()]
    for gradient in torch.autograd.grad(attention(*leaves), leaves, zeros):
        assert (gradient == 0).all()


@pytest.mark.parametrize("queries", [5, 20])
@pytest.mark.parametrize("train", [False, True])
def test_autocast(attention, queries, train):
    """As for PyTorch's own: bfloat16 for all but float64, and gradients of the inputs' types."""
    q = torch.randn(2, 3, queries, 8, requires_grad=train)
    k, v = torch.randn(2, 2, 3, 20, 8)
    mask = torch.randn(queries, 20)
    with torch.autocast("cpu"):
        output = attention(q, k, v, mask)
        mixed = attention(q, k.bfloat16(), v)
        double = attention(q.double(), k.double(), v.double())
    assert output.dtype == mixed.dtype == torch.bfloat16 and double.dtype == torch.float64
    rounded = [tensor.bfloat16() for tensor in (q, k, v, mask)]
    assert_close(output.detach(), formula(*rounded).detach(), TOLERANCE[torch.bfloat16].output, "output")
    if train:
        assert torch.autograd.grad(output.sum(), q)[0].dtype == torch.float32


def test_autocast_off(attention, leaves):
    with torch.autocast("cpu"), torch.autocast("cpu", enabled=False):
        assert attention(*leaves).dtype == torch.float32
