"""PyTorch's modules that attend through scaled_dot_product_attention, under attn.torch.use(): the same outputs and
gradients as by themselves, with all their masks, in training and in evaluation."""
import contextlib
import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import attn.torch  # noqa: E402
from sdpa_reference import assert_close  # noqa: E402

BOUND = 2e-5


@pytest.fixture
def calls(monkeypatch):
    """Counts the calls that reach libattn's function through the swap."""
    counted = []

    @contextlib.contextmanager
    def use():
        with attn.torch.use():
            swapped = torch.nn.functional.scaled_dot_product_attention

            def count(*arguments, **settings):
                counted.append(settings)
                return swapped(*arguments, **settings)

            with monkeypatch.context() as patch:
                patch.setattr(torch.nn.functional, "scaled_dot_product_attention", count)
                yield counted

    return use


def outputs_and_gradients(module, inputs, call):
    """The module's outputs with these inputs, and all its gradients."""
    module = copy.deepcopy(module)
    inputs = [tensor.clone().requires_grad_() for tensor in inputs]
    torch.manual_seed(3)
    output = call(module, *inputs)
    torch.manual_seed(4)
    output.backward(torch.randn_like(output))
    gradients = {name: parameter.grad for name, parameter in module.named_parameters()}
    gradients |= {f"input {index}": tensor.grad for index, tensor in enumerate(inputs)}
    return output.detach(), {name: gradient for name, gradient in gradients.items() if gradient is not None}


def check_same(calls, module, inputs, call, bound=BOUND):
    expected, expected_gradients = outputs_and_gradients(module, inputs, call)
    with calls() as counted:
        output, gradients = outputs_and_gradients(module, inputs, call)
    assert counted, "the module did not attend through the function"
    assert_close(output, expected.double(), bound, "output")
    assert gradients.keys() == expected_gradients.keys()
    for name, gradient in gradients.items():
        assert_close(gradient, expected_gradients[name].double(), bound, f"gradient of {name}")


def masks(batch, heads, queries, keys, kind, dtype=torch.float32):
    """A mask of the kind in nn.MultiheadAttention's sense: True, or -inf, excludes."""
    shape = (batch * heads, queries, keys) if "3" in kind else (queries, keys)
    excluded = torch.rand(shape) < 0.3
    excluded[..., 0] = False
    if "bool" in kind:
        return excluded
    return torch.randn(shape, dtype=dtype).masked_fill(excluded, -torch.inf)


@pytest.mark.filterwarnings("ignore:Support for mismatched")
@pytest.mark.parametrize("mask", [None, "bool-2", "bool-3", "float-2", "float-3"])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_multihead_attention(calls, mask, padded, batch_first):
    module = nn.MultiheadAttention(24, 4, batch_first=batch_first)
    x = torch.randn(2, 21, 24) if batch_first else torch.randn(21, 2, 24)
    attn_mask = masks(2, 4, 21, 21, mask) if mask else None
    padding = None
    if padded:
        padding = torch.zeros(2, 21, dtype=torch.bool)
        padding[1, 15:] = True

    def call(module, x):
        return module(x, x, x, attn_mask=attn_mask, key_padding_mask=padding, need_weights=False)[0]

    check_same(calls, module, [x], call)


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}], ids=str)
def test_cross_attention(calls, options):
    module = nn.MultiheadAttention(24, 3, kdim=10, vdim=14, batch_first=True, **options)
    inputs = [torch.randn(2, 5, 24), torch.randn(2, 30, 10), torch.randn(2, 30, 14)]
    check_same(calls, module, inputs, lambda module, *inputs: module(*inputs, need_weights=False)[0])


def test_without_a_batch(calls):
    module = nn.MultiheadAttention(24, 3)
    check_same(calls, module, [torch.randn(20, 24)], lambda module, x: module(x, x, x, need_weights=False)[0])


@pytest.mark.parametrize("length", [7, 30])
def test_causal_hint(calls, length):
    module = nn.MultiheadAttention(16, 2, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(length)

    def call(module, x):
        return module(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0]

    check_same(calls, module, [torch.randn(2, length, 16)], call)


def test_expected_numbers(calls):
    """Weights of one: every output is the number of features times the number of heads' inputs."""
    module = nn.MultiheadAttention(4, 1)
    module.in_proj_weight = nn.Parameter(torch.ones(12, 4))
    module.out_proj.weight = nn.Parameter(torch.ones(4, 4))
    x = torch.ones(1, 2, 4)
    mask = nn.Transformer.generate_square_subsequent_mask(2)
    with calls() as counted:
        output, _ = module(x, x, x, attn_mask=mask[:1, :1], need_weights=False, is_causal=True)
    assert counted
    assert torch.equal(output, torch.full((1, 2, 4), 16.0))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("masked", [False, True])
def test_encoder_layer(calls, norm_first, activation, masked):
    module = nn.TransformerEncoderLayer(
        32, 4, dim_feedforward=40, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first
    )
    padding = torch.zeros(3, 20, dtype=torch.bool)
    padding[0, 12:] = True
    options = {"src_mask": masks(3, 4, 20, 20, "bool-2"), "src_key_padding_mask": padding} if masked else {}
    check_same(calls, module, [torch.randn(3, 20, 32)], lambda module, x: module(x, **options))


@pytest.mark.parametrize("heads", [1, 4, 8])
def test_encoder_layer_in_evaluation(calls, heads):
    """Without gradients PyTorch's layer may use a fused kernel of its own; with hooks, or the fast path off, it attends
    through the function."""
    module = nn.TransformerEncoderLayer(16, heads, 24, batch_first=True).eval()
    x = torch.randn(2, 4, 16)
    with torch.inference_mode():
        expected = module(x)
        with calls():
            output = module(x)
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            with calls() as counted:
                slow = module(x)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
    assert counted
    assert_close(output, expected.double(), BOUND, "output")
    assert_close(slow, expected.double(), BOUND, "output without the fast path")


@pytest.mark.parametrize("is_causal", [False, True])
def test_encoder(calls, is_causal):
    layer = nn.TransformerEncoderLayer(16, 2, 24, dropout=0.0, batch_first=True)
    module = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    mask = nn.Transformer.generate_square_subsequent_mask(18) if is_causal else None
    check_same(calls, module, [torch.randn(2, 18, 16)], lambda module, x: module(x, mask=mask, is_causal=is_causal))


def test_decoder_layer(calls):
    module = nn.TransformerDecoderLayer(16, 2, 24, dropout=0.0, batch_first=True)
    padding = torch.zeros(2, 25, dtype=torch.bool)
    padding[1, 20:] = True
    mask = nn.Transformer.generate_square_subsequent_mask(18)

    def call(module, x, memory):
        return module(x, memory, tgt_mask=mask, tgt_is_causal=True, memory_key_padding_mask=padding)

    check_same(calls, module, [torch.randn(2, 18, 16), torch.randn(2, 25, 16)], call)


def test_transformer_learns_the_same(calls):
    """Ten steps of an optimizer end at the same parameters."""
    torch.manual_seed(0)
    start = nn.Transformer(16, 2, 1, 1, 24, dropout=0.0, batch_first=True)
    source, target = torch.randn(4, 12, 16), torch.randn(4, 9, 16)
    mask = nn.Transformer.generate_square_subsequent_mask(9)

    def learn():
        model = copy.deepcopy(start)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for _ in range(10):
            optimizer.zero_grad()
            (model(source, target, tgt_mask=mask, tgt_is_causal=True) - target).square().mean().backward()
            optimizer.step()
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

    expected = learn()
    with calls() as counted:
        learned = learn()
    assert len(counted) == 30
    assert_close(learned, expected.double(), BOUND, "parameters")


def test_dropout_of_a_module(calls):
    """A module in training drops weights, one in evaluation drops none."""
    module = nn.MultiheadAttention(16, 2, dropout=0.5, batch_first=True)
    x = torch.randn(2, 20, 16, requires_grad=True)
    with calls() as counted:
        first, second = (module(x, x, x, need_weights=False)[0] for _ in range(2))
        module.eval()
        third, fourth = (module(x, x, x, need_weights=False)[0] for _ in range(2))
    assert len(counted) == 4
    assert not torch.equal(first, second) and torch.equal(third, fourth)


def test_weights_of_a_module(calls):
    """need_weights=True never attends through the function: the module multiplies its own matrices."""
    module = nn.MultiheadAttention(16, 2, batch_first=True)
    x = torch.randn(2, 20, 16, requires_grad=True)
    expected, expected_weights = module(x, x, x)
    with calls() as counted:
        output, weights = module(x, x, x)
    assert not counted
    assert torch.equal(output, expected) and torch.equal(weights, expected_weights)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types(calls, dtype):
    module = nn.TransformerEncoderLayer(32, 4, 40, dropout=0.0, batch_first=True, dtype=dtype)
    bound = 1e-12 if dtype == torch.float64 else 0.15
    check_same(calls, module, [torch.randn(3, 20, 32, dtype=dtype)], lambda module, x: module(x), bound)
