"""PyTorch's own cases of scaled_dot_product_attention on CPUs, as a grid: shapes, element types, causality, groups of
heads, scales. Taken from what PyTorch 2.13 tests (test/test_transformers.py, classes TestTransformers, TestSDPA and
TestSDPACpuOnly, and the sample inputs of torch/testing/_internal/common_methods_invocations.py), written anew against
the formula, with tighter tolerances. Masks, layouts and dropout have files of their own.
"""
import itertools
from functools import partial

import pytest

torch = pytest.importorskip("torch")

from sdpa_reference import (  # noqa: E402
    TOLERANCE,
    TYPES,
    Tolerance,
    assert_close,
    causal_mask,
    compare,
    formula,
    type_name,
)


def random_heads(batch, heads, length, d, dtype):
    """[batch, heads, length, d] as models make it: a transposed view of [batch, length, heads, d]."""
    return torch.randn(batch, length, heads, d, dtype=dtype).transpose(1, 2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=type_name)
@pytest.mark.parametrize("batch", [0, 5])
@pytest.mark.parametrize(
    "axes, mask_axes, is_causal",
    [(3, None, False), (3, None, True), (3, 2, False), (3, 3, False)]
    + [(4, None, False), (4, None, True), (4, 2, False), (4, 4, False)],
)
def test_three_and_four_axes(attention, dtype, batch, axes, mask_axes, is_causal):
    leading = (batch,) if axes == 3 else (batch, 2)
    q = torch.randn(*leading, 4, 6, dtype=dtype)
    k, v = torch.randn(2, *leading, 3, 6, dtype=dtype)
    mask = None
    if mask_axes is not None:
        mask = torch.randint(0, 2, (4, 3) if mask_axes == 2 else (*leading, 4, 3), dtype=torch.bool)
    compare(attention, q, k, v, mask, is_causal=is_causal)


def check_packed_projection(attention, dtype, batch, length, heads, d, is_causal):
    """q, k and v are views of one projection, whose gradient they share."""
    packed = torch.randn(batch, length, 3 * heads * d, dtype=dtype)
    views = [part.view(batch, length, heads, d).transpose(1, 2) for part in packed.split(heads * d, 2)]
    compare(attention, *views, is_causal=is_causal, train=False)
    gradients = []
    d_output = torch.randn(batch, heads, length, d, dtype=torch.float64).to(dtype)
    for function, leaf in (attention, packed.requires_grad_()), (formula, packed.detach().double().requires_grad_()):
        views = [part.view(batch, length, heads, d).transpose(1, 2) for part in leaf.split(heads * d, 2)]
        function(*views, is_causal=is_causal).backward(d_output.to(leaf.dtype))
        gradients.append(leaf.grad)
    assert_close(gradients[0], gradients[1], TOLERANCE[dtype].gradient, "gradient of the packed projection")


packed_grid = partial(pytest.mark.parametrize, "dtype, heads, d, is_causal", ids=type_name)
packed_cases = list(itertools.product(TYPES, [1, 3], [8, 16], [True, False]))


@packed_grid(packed_cases)
def test_packed_projection(attention, dtype, heads, d, is_causal):
    check_packed_projection(attention, dtype, 2, 131, heads, d, is_causal)


@pytest.mark.slow
@pytest.mark.parametrize("batch, length", [(2, 267), (12, 267), (2, 1030), (12, 1030)])
@packed_grid(packed_cases)
def test_packed_projection_in_pytorch_sizes(attention, dtype, batch, length, heads, d, is_causal):
    check_packed_projection(attention, dtype, batch, length, heads, d, is_causal)


@pytest.mark.parametrize("dtype", TYPES, ids=type_name)
@pytest.mark.parametrize("heads, key_heads", [(65, 5), (16, 4), (27, 1), (5, 1)])
@pytest.mark.parametrize("masked", [True, False])
def test_groups_of_heads(attention, dtype, heads, key_heads, masked):
    q = random_heads(2, heads, 17, 8, dtype)
    k, v = random_heads(2, key_heads, 100, 8, dtype), random_heads(2, key_heads, 100, 8, dtype)
    mask = torch.randn(2, heads, 17, 100, dtype=dtype) if masked else None
    compare(attention, q, k, v, mask, enable_gqa=True)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES, ids=type_name)
@pytest.mark.parametrize("heads, key_heads", [(65, 5), (16, 4), (27, 1), (5, 1)])
def test_groups_of_heads_in_pytorch_sizes(attention, dtype, heads, key_heads):
    q = random_heads(12, heads, 17, 8, dtype)
    k, v = random_heads(12, key_heads, 100, 8, dtype), random_heads(12, key_heads, 100, 8, dtype)
    compare(attention, q, k, v, torch.randn(12, heads, 17, 100, dtype=dtype), enable_gqa=True)


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize(
    "leading, key_leading, value_leading",
    [((8,), (2,), (2,)), ((2, 3, 8), (2, 3, 4), (2, 3, 4)), ((2, 8), (2, 8), (2, 8)), ((2, 8), (2, 2), (2, 4))],
    ids=["three-axes", "five-axes", "no-group", "other-groups-of-values"],
)
def test_other_groups_of_heads(attention, leading, key_leading, value_leading, is_causal):
    q = torch.randn(*leading, 7, 8)
    k, v = torch.randn(*key_leading, 9, 8), torch.randn(*value_leading, 9, 8)
    compare(attention, q, k, v, is_causal=is_causal, enable_gqa=True)


@pytest.mark.parametrize("dtype", TYPES, ids=type_name)
@pytest.mark.parametrize("queries, keys", [(1, 1), (1, 300), (16, 300), (17, 300), (300, 1), (200, 77), (77, 200)])
@pytest.mark.parametrize("is_causal", [True, False])
def test_queries_and_keys(attention, dtype, queries, keys, is_causal):
    """The corner of is_causal is the top left one, whichever there are more of."""
    q = torch.randn(1, 2, queries, 16, dtype=dtype)
    k, v = torch.randn(2, 1, 2, keys, 16, dtype=dtype)
    output = compare(attention, q, k, v, is_causal=is_causal)
    if is_causal:
        masked = attention(q, k, v, causal_mask(queries, keys))
        assert_close(masked, output.double(), TOLERANCE[dtype].output, "output with the mask spelt out")


@pytest.mark.parametrize("dtype", TYPES, ids=type_name)
@pytest.mark.parametrize("d, d_value", [(1, 1), (5, 3), (8, 16), (15, 15), (64, 32), (80, 80), (192, 128)])
def test_head_sizes(attention, dtype, d, d_value):
    q, k = torch.randn(2, 2, 2, 33, d, dtype=dtype)
    compare(attention, q, k, torch.randn(2, 2, 33, d_value, dtype=dtype), is_causal=True)


@pytest.mark.parametrize("dtype", TYPES, ids=type_name)
@pytest.mark.parametrize("queries", [1, 20])
def test_latent_attention(attention, dtype, queries):
    """Multi-head latent attention (DeepSeek-AI, "DeepSeek-V2" (2024)): the values are the first 512 of the 576 numbers
    of a key, and all heads share them."""
    q = torch.randn(1, 16, queries, 576, dtype=dtype)
    k = torch.randn(1, 1, 75, 576, dtype=dtype)
    compare(attention, q, k, k[..., :512], enable_gqa=True, scale=192**-0.5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=type_name)
@pytest.mark.parametrize("scale", [None, 0.0, 1.0, -1.0, 0.1, 3])
def test_scales(attention, dtype, scale):
    """Errors grow with the scores, which a scale of 3 makes 8 times as large as the usual one."""
    q, k, v = torch.randn(3, 2, 3, 21, 8, dtype=dtype)
    tolerance = Tolerance(*(8 * bound for bound in TOLERANCE[dtype])) if scale == 3 else None
    compare(attention, q, k, v, scale=scale, tolerance=tolerance)


def test_large_negative_scale(attention):
    """Scores of 10^6 in size, as in pytorch/pytorch issue 105190: almost every row keeps one key."""
    x = torch.randn(1, 3, 64, 64)
    output = attention(x, x, x, scale=-1e4)
    assert_close(output, formula(x, x, x, scale=-1e4), 1e-5, "output")


def test_float16_scores_beyond_its_range(attention):
    """Products of 5 million, as in pytorch/pytorch issue 160841: sums are wider than float16."""
    x = torch.full((1, 32, 23, 80), 256.0, dtype=torch.float16)
    assert_close(attention(x, x, x), x.double(), 0.0, "output")
    leaf = x.clone().requires_grad_()
    attention(leaf, leaf, leaf).sum().backward()
    assert_close(leaf.grad, torch.ones_like(x).double(), TOLERANCE[torch.float16].gradient, "gradient")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=type_name)
def test_uniform_weights(attention, dtype):
    """Zero queries and keys weigh all values alike."""
    q, k = torch.zeros(2, 1, 2, 500, 16, dtype=dtype, requires_grad=True).unbind(0)
    v = torch.ones(1, 2, 500, 16, dtype=dtype, requires_grad=True)
    mask = torch.ones(500, 500, dtype=torch.bool)
    output = attention(q, k, v, mask)
    d_q, d_k, d_v = torch.autograd.grad(output, (q, k, v), torch.ones_like(output))
    bound = TOLERANCE[dtype].output
    assert_close(output.detach(), torch.ones_like(output).double(), bound, "output")
    assert_close(d_q, torch.zeros_like(q).double(), bound, "gradient of query")
    assert_close(d_k, torch.zeros_like(k).double(), bound, "gradient of key")
    assert_close(d_v, torch.ones_like(v).double(), bound, "gradient of value")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=type_name)
@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("is_causal", [True, False])
def test_no_less_exact_than_pytorch(attention, dtype, spread, is_causal):
    """In norm, the errors of output and gradients are at most a tenth above those of PyTorch's own function."""
    tensors = (spread * torch.randn(3, 2, 4, 70, 64, dtype=torch.float64)).to(dtype)
    d_output = torch.randn(2, 4, 70, 64).to(dtype)
    leaves = [tensor.double().requires_grad_() for tensor in tensors]
    output = formula(*leaves, is_causal=is_causal)
    expected = [output, *torch.autograd.grad(output, leaves, d_output.double())]
    errors = []
    for function in (attention, torch.nn.functional.scaled_dot_product_attention):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        output = function(*leaves, is_causal=is_causal)
        results = [output, *torch.autograd.grad(output, leaves, d_output)]
        pairs = zip(results, expected, strict=True)
        errors.append([((result.double() - number).norm() / number.norm()).item() for result, number in pairs])
    for name, ours, theirs in zip(["output", "d_query", "d_key", "d_value"], *errors, strict=True):
        assert ours <= 1.1 * theirs, f"{name}: {ours:.3g}, PyTorch's own {theirs:.3g}"


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("is_causal", [True, False])
def test_gradients_by_differences(attention, contiguous, is_causal):
    packed = torch.randn(1, 5, 3 * 2 * 4, dtype=torch.float64, requires_grad=True)

    def attend(packed):
        views = [part.view(1, 5, 2, 4).transpose(1, 2) for part in packed.chunk(3, -1)]
        views = [view.contiguous() for view in views] if contiguous else views
        return attention(*views, is_causal=is_causal)

    assert torch.autograd.gradcheck(attend, (packed,))


@pytest.mark.parametrize("masked, is_causal", [(True, False), (False, True), (False, False)])
@pytest.mark.parametrize("leading, key_leading", [((2,), (2,)), ((2, 2), (2, 2)), ((2,), (2, 2))])
def test_sample_inputs_by_differences(attention, leading, key_leading, masked, is_causal):
    q = torch.randn(*leading, 3, 2, dtype=torch.float64, requires_grad=True)
    k, v = (torch.randn(*key_leading, 4, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    mask = torch.randn(3, 4, dtype=torch.float64, requires_grad=True) if masked else None
    inputs = (q, k, v) if mask is None else (q, k, v, mask)
    assert torch.autograd.gradcheck(lambda *inputs: attention(*inputs, is_causal=is_causal), inputs)
