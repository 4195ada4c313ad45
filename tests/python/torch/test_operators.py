"""torch.ops.attn.*: PyTorch's own checks of operators, their gradients, and that they agree with the functions."""
import pytest

torch = pytest.importorskip("torch")

import attn.torch  # noqa: E402

operators = torch.ops.attn


def normal(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype).requires_grad_()


def settings(dtype=torch.float32):
    """Every argument behind q, k and v."""
    sink_type = torch.float64 if dtype is torch.float64 else torch.float32
    return (normal(2, 1, 5, 7, dtype=dtype), normal(4, dtype=sink_type), torch.rand(4), torch.tensor([7, 3]), True, 2,
            4, 2, 0.3, 5.0, "exact")


def inputs(dtype=torch.float32):
    return normal(2, 4, 5, 8, dtype=dtype), normal(2, 2, 7, 8, dtype=dtype), normal(2, 2, 7, 6, dtype=dtype)


def turned(*shape):
    """A view [B, H, L, d] of memory [B, L, H, d], as models have it."""
    batch, heads, length, dim = shape
    return torch.randn(batch, length, heads, dim).transpose(1, 2).requires_grad_()


CALLS = {
    "float32": lambda: inputs(),
    "float64": lambda: inputs(torch.float64),
    "bfloat16": lambda: inputs(torch.bfloat16),
    "settings": lambda: (*inputs(), *settings()),
    "bool-mask": lambda: (*inputs(), torch.rand(5, 7) > 0.3),
    "dropout": lambda: (*inputs(), *(None,) * 4, False, 0, None, None, None, 0.0, "bf16", 0.3, torch.tensor(-5)),
    "turned": lambda: (turned(2, 4, 5, 8), turned(2, 2, 7, 8), turned(2, 2, 7, 8)),
    "turned-narrow": lambda: (turned(2, 4, 5, 8), turned(2, 2, 7, 8), turned(2, 2, 7, 3)),
    "expanded": lambda: (normal(1, 1, 5, 8).expand(2, 3, 5, 8), *(normal(2, 3, 7, 8) for _ in range(2))),
    "three-axes": lambda: (normal(4, 5, 8), normal(2, 7, 8), normal(2, 7, 6)),
    "two-axes": lambda: (normal(5, 8), normal(7, 8), normal(7, 8)),
    "no-heads": lambda: tuple(normal(2, 0, 5, 8) for _ in range(3)),
    "no-queries": lambda: (normal(2, 4, 0, 8), *inputs()[1:]),
    "no-keys": lambda: (normal(2, 4, 5, 8), normal(2, 4, 0, 8), normal(2, 4, 0, 8)),
}


# A second each: those that differ most are in the usual run.
USUAL = ("settings", "dropout", "turned-narrow", "three-axes")


@pytest.mark.parametrize("call", [name if name in USUAL else pytest.param(name, marks=pytest.mark.slow)
                                  for name in CALLS])
def test_opcheck_forward(call):
    """Schema, fake tensors (shapes, types, strides) and autograd under AOT compilation with dynamic shapes."""
    torch.library.opcheck(operators.forward.default, CALLS[call]())


@pytest.mark.parametrize("dtype", [torch.float16, *(pytest.param(dtype, marks=pytest.mark.slow)
                                                    for dtype in (torch.float32, torch.float64))])
def test_opcheck_others(dtype):
    q, k, v = (tensor.detach() for tensor in inputs(dtype))
    others = tuple(value.detach() if isinstance(value, torch.Tensor) else value for value in settings(dtype))
    out, stats = operators.forward(q, k, v, *others)
    torch.library.opcheck(operators.decode.default, (q, k, v, *others))
    torch.library.opcheck(operators.weights.default, (q, k, stats, *others))
    torch.library.opcheck(operators.inspect.default, (q, k, stats, 3, True, False, True, *others))
    for wanted in ([True] * 5, [False, True, False, False, True]):
        torch.library.opcheck(operators.backward.default,
                              (torch.randn_like(out), q, k, v, out, stats, wanted, *others))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_gradients_of_turned_tensors_lie_as_promised(device):
    """Without numbers they have the strides that those with numbers have: compiled programs count on them."""
    q, k, v, mask = (tensor.detach().mT.contiguous().mT for tensor in (*inputs(), normal(4, 5, 7)))
    sinks = torch.rand(8)[::2]
    out, stats = operators.forward(q, k, v, mask, sinks)
    given = (out, q, k, v, out, stats, [True] * 5, mask, sinks)
    moved = [value.to(device) if isinstance(value, torch.Tensor) else value for value in given]
    found = operators.backward(*moved)
    assert [gradient.stride() for gradient in found] == [
        *(tensor.stride() for tensor in (q, k, v)), (35, 7, 1), (1,)]


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("flags", [0, 1, 4, 6])
def test_backward_wants_five_flags(device, flags):
    q, k, v = (tensor.detach().to(device) for tensor in inputs())
    out, stats = operators.forward(q, k, v)
    with pytest.raises(ValueError, match="^wanted must have 5 flags"):
        operators.backward(out, q, k, v, out, stats, [True] * flags)


@pytest.mark.parametrize("changed", ["k", "v", "mask", "sinks", "alibi_slopes", "key_lengths", "dropout_seed"])
def test_one_meta_tensor_among_others(changed):
    """It sends the call to what makes results without numbers: on the CPU they would be anything."""
    q, k, v = (tensor.detach() for tensor in inputs())
    given = {"q": q, "k": k, "v": v, "mask": torch.zeros(1, 1), "sinks": torch.zeros(4),
             "alibi_slopes": torch.zeros(4), "key_lengths": torch.tensor([1, 1]), "dropout": 0.5,
             "dropout_seed": torch.tensor(1)}
    operators.forward(**given)
    given[changed] = given[changed].to("meta")
    with pytest.raises(ValueError, match="device"):
        operators.forward(**given)


def test_vmap_over_nothing():
    q, k, v = (tensor.detach() for tensor in inputs())
    nothing = torch.vmap(operators.forward, in_dims=(-1, None, None))(q.new_zeros(*q.shape, 0), k, v)
    assert [part.shape for part in nothing] == [(0, *part.shape) for part in operators.forward(q, k, v)]


def fixed_sinks(values):
    return values[0], values[1].detach(), *values[2:]


@pytest.mark.parametrize("call", ["float64", "settings64", "grouped64"])
def test_gradcheck(call):
    # libattn reads sinks as float32: too coarse for differences, and test_attention.py has their gradients.
    arguments = {"float64": lambda: inputs(torch.float64),
                 "settings64": lambda: (*inputs(torch.float64), *fixed_sinks(settings(torch.float64))),
                 "grouped64": lambda: (normal(4, 3, 5, dtype=torch.float64), normal(1, 4, 5, dtype=torch.float64),
                                       normal(1, 4, 2, dtype=torch.float64), None, None, None, None, True, 1)}[call]()
    assert torch.autograd.gradcheck(lambda *given: operators.forward(*given)[0], arguments)


def test_gradcheck_function():
    q, k, v = inputs(torch.float64)
    mask = normal(5, 7, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda q, k, v, mask: attn.torch.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True), (q, k, v, mask))
    # Vectorised over outputs: vmap over backward.
    assert torch.autograd.gradcheck(lambda q, k, v: attn.torch.attention(q, k, v, causal=True), (q, k, v),
                                    check_batched_grad=True)


def test_functions_take_the_short_way_alike():
    """Plain tensors do not go through the dispatcher; results and gradients are those of the operator, bit for bit."""
    q, k, v = inputs()
    others = settings()
    out, stats = operators.forward(q, k, v, *others)
    mask, sinks, slopes, lengths = others[:4]
    found = attn.torch.attention(q, k, v, mask=mask, sinks=sinks, alibi_slopes=slopes, key_lengths=lengths, causal=True,
                                 align=2, window=(4, 2), scale=0.3, soft_cap=5.0, precision="exact")
    assert torch.equal(found, out)
    d_out = torch.randn_like(out)
    learning = (q, k, v, mask, sinks)
    for one, other in zip(torch.autograd.grad(found, learning, d_out), torch.autograd.grad(out, learning, d_out)):
        assert torch.equal(one, other)


def test_results_lie_as_queries():
    for make in (normal, turned):
        q, k, v = make(2, 4, 5, 8), make(2, 4, 7, 8), make(2, 4, 7, 8)
        for narrow in (v, v[..., :3]):
            out, _ = operators.forward(q, k, narrow)
            assert out.is_contiguous() == q.is_contiguous()
            assert out.transpose(1, 2).is_contiguous() != q.is_contiguous()
        gradients = torch.autograd.grad(operators.forward(q, k, v)[0].sum(), (q, k, v))
        assert [gradient.stride() for gradient in gradients] == [tensor.stride() for tensor in (q, k, v)]


@pytest.mark.parametrize("name", ["decode", "weights", "inspect"])
def test_no_gradient(name):
    q, k, v = inputs()
    call = {"decode": lambda: operators.decode(q, k, v), "weights": lambda: operators.weights(q, k, None),
            "inspect": lambda: operators.inspect(q, k, None, 0, True, False, False)[2]}[name]
    with pytest.raises(NotImplementedError, match=f"attn::{name} has no gradient"):
        call().sum().backward()


@pytest.mark.parametrize("call", [operators.forward, attn.torch.scaled_dot_product_attention])
def test_no_second_derivative(call):
    q = normal(1, 2, 5, 8)
    out = call(q, q, q)
    out = out if isinstance(out, torch.Tensor) else out[0]
    first, = torch.autograd.grad(out.square().sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="attn::backward has no gradient"):
        first.sum().backward()


def test_changed_inputs_are_noticed():
    """PyTorch refuses to differentiate what has been changed since."""
    q, k, v = inputs()
    for name in ("mask", "key_lengths"):
        tensor = {"mask": torch.zeros(5, 7), "key_lengths": torch.tensor([7, 3])}[name]
        out = attn.torch.attention(q, k, v, **{name: tensor})
        tensor += 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()


def test_part_of_the_gradients():
    q, k, v = inputs()
    whole = torch.autograd.grad(attn.torch.attention(q, k, v).square().sum(), (q, k, v))
    for place in range(3):
        parts = [tensor.detach() for tensor in (q, k, v)]
        parts[place].requires_grad_()
        attn.torch.attention(*parts).square().sum().backward()
        assert torch.equal(parts[place].grad, whole[place])
