"""torch.compile and torch.export trace attention whole, forward and backward, with shapes that change."""
import pytest

torch = pytest.importorskip("torch")

import attn.torch  # noqa: E402

# What a graph is made of is asked of Dynamo and AOTAutograd; that Inductor's code runs it alike is one test, as it
# needs a C++ compiler and seconds.
BACKEND = "aot_eager"


def normal(*shape):
    return torch.randn(shape, requires_grad=True)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def masked(q, k, v, mask):
    return attn.torch.scaled_dot_product_attention(q, k, v, mask) * 2


def everything(q, k, v, mask):
    return attn.torch.attention(q, k[:, :2], v[:, :2], mask=mask, causal=True, align="bottom-right", window=(9, None),
                                soft_cap=3.0, sinks=mask[0, 0, 0, :1].expand(4), key_lengths=[7] * q.shape[0],
                                alibi_slopes=torch.full((4,), 0.1))


@pytest.mark.parametrize("function, dynamic", [(everything, True),
                                               pytest.param(everything, False, marks=pytest.mark.slow),
                                               pytest.param(masked, True, marks=pytest.mark.slow)])
def test_whole_graph(function, dynamic):
    compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, backend=BACKEND)
    for batch, queries, keys in ((2, 20, 30), (2, 20, 30), (3, 40, 21), (2, 21, 33)):
        inputs = (normal(batch, 4, queries, 8), normal(batch, 4, keys, 8), normal(batch, 4, keys, 8),
                  normal(1, 1, queries, keys))
        found, expected = compiled(*inputs), function(*inputs)
        assert torch.equal(found, expected) and found.stride() == expected.stride()
        d_out = torch.randn_like(expected)
        for one, other in zip(torch.autograd.grad(found, inputs, d_out), torch.autograd.grad(expected, inputs, d_out)):
            assert torch.equal(one, other)


def test_one_compilation_for_changing_shapes():
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module

    compiled = torch.compile(masked, fullgraph=True, dynamic=True, backend=backend)
    for length in (20, 30, 45):
        compiled(*(normal(2, 4, length, 8) for _ in range(3)), torch.zeros(length, length))
    assert len(graphs) == 1
    assert sum("attn.forward" in str(node.target) for node in graphs[0].graph.nodes) == 1


def test_decode():
    """Without a gradient few queries go to attn::decode, in a graph too."""
    graphs = []

    def backend(module, inputs):
        graphs.append([str(node.target) for node in module.graph.nodes])
        return module

    compiled = torch.compile(lambda q, k: attn.torch.scaled_dot_product_attention(q, k, k), fullgraph=True,
                             backend=backend)
    q, k = torch.randn(1, 2, 1, 8), torch.randn(1, 2, 50, 8)
    assert torch.equal(compiled(q, k), attn.torch.scaled_dot_product_attention(q, k, k))
    assert any("attn.decode" in target for target in graphs[0])


def test_inductor():
    compiled = torch.compile(masked, fullgraph=True)
    inputs = (*(normal(2, 4, 20, 8) for _ in range(3)), normal(20, 20))
    try:
        found = compiled(*inputs)
    except Exception as error:
        if "compiler" in str(error).lower():
            pytest.skip("Inductor has no C++ compiler here")
        raise
    expected = masked(*inputs)
    assert torch.equal(found, expected)
    found, expected = (torch.autograd.grad(out.square().sum(), inputs) for out in (found, expected))
    assert all(((one - other).abs() / (1 + other.abs())).max().item() <= 1e-5 for one, other in zip(found, expected))


def test_dropout_is_drawn_at_each_call():
    compiled = torch.compile(lambda q: attn.torch.scaled_dot_product_attention(q, q, q, dropout_p=0.5), fullgraph=True,
                             backend=BACKEND)
    q = normal(1, 2, 20, 8)
    torch.manual_seed(5)
    first, second = compiled(q), compiled(q)
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    assert torch.equal(compiled(q), first)
    torch.manual_seed(5)
    eager = attn.torch.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
    assert torch.equal(first, eager)
    d_out = torch.randn_like(eager)
    assert torch.equal(torch.autograd.grad(first, q, d_out)[0], torch.autograd.grad(eager, q, d_out)[0])


def test_autocast():
    def function(q):
        with torch.autocast("cpu"):
            return attn.torch.scaled_dot_product_attention(q, q, q)

    q = normal(1, 2, 20, 8)
    found = torch.compile(function, fullgraph=True, backend=BACKEND)(q)
    assert found.dtype == torch.bfloat16 and torch.equal(found, function(q))


def test_use_is_noticed():
    """What was compiled without use() is compiled anew within, and the other way round."""
    graphs = []

    def backend(module, inputs):
        graphs.append(any("attn.forward" in str(node.target) for node in module.graph.nodes))
        return module

    compiled = torch.compile(lambda q: torch.nn.functional.scaled_dot_product_attention(q, q, q), fullgraph=True,
                             backend=backend)
    q = normal(1, 2, 20, 8)
    compiled(q)
    with attn.torch.use():
        compiled(q)
    compiled(q)
    assert graphs == [False, True]


class Model(torch.nn.Module):
    def forward(self, q, k):
        return attn.torch.scaled_dot_product_attention(q, k, k, is_causal=True)


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict):
    lengths = {2: torch.export.Dim.AUTO}
    program = torch.export.export(Model(), (torch.randn(2, 4, 20, 8), torch.randn(2, 4, 30, 8)), strict=strict,
                                  dynamic_shapes=(lengths, lengths))
    assert sum("attn.forward" in str(node.target) for node in program.graph.nodes) == 1
    q, k = torch.randn(2, 4, 25, 8), torch.randn(2, 4, 33, 8)
    assert torch.equal(program.module()(q, k), Model()(q, k))
