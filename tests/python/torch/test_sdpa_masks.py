"""PyTorch's cases of masks: bool (True keeps) and floating (added), of 2 to 4 axes, broadcast, expanded, with gradient,
with rows that keep no key, and the causal biases of torch.nn.attention.bias."""
import itertools
import math

import pytest

torch = pytest.importorskip("torch")

from torch.nn.attention.bias import causal_lower_right, causal_upper_left  # noqa: E402

from sdpa_reference import PYTORCH_TOLERANCE, TOLERANCE, TYPES, assert_close, compare, formula, type_name  # noqa: E402


def random_mask(shape, dtype):
    return torch.randint(0, 2, shape, dtype=dtype) if dtype == torch.bool else torch.randn(shape, dtype=dtype)


def check_mask_shapes(attention, dtype, axes, boolean, *, queries, keys, batch=2, heads=3, tolerance=None):
    q = torch.randn(batch, queries, heads, 8, dtype=dtype).transpose(1, 2)
    k, v = torch.randn(2, batch, keys, heads, 8, dtype=dtype).transpose(2, 3)
    whole = (batch, heads, queries, keys)[-axes:]
    for shape in itertools.product(*({size, 1} for size in whole)):
        mask = random_mask(shape, torch.bool if boolean else dtype)
        compare(attention, q, k, v, mask, mask_gradient=not boolean, tolerance=tolerance)


@pytest.mark.parametrize("dtype", TYPES, ids=type_name)
@pytest.mark.parametrize("axes", [2, 3, 4])
@pytest.mark.parametrize("boolean", [True, False])
@pytest.mark.parametrize("queries", [7, 37])
def test_shapes(attention, dtype, axes, boolean, queries):
    check_mask_shapes(attention, dtype, axes, boolean, queries=queries, keys=70)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES, ids=type_name)
@pytest.mark.parametrize("axes", [2, 4])
@pytest.mark.parametrize("boolean", [True, False])
@pytest.mark.parametrize("queries", [11, 267, 514, 1030])
@pytest.mark.parametrize("heads", [1, 3])
def test_shapes_in_pytorch_sizes(attention, dtype, axes, boolean, queries, heads):
    # The gradient of a mask of one number is a sum of a million rounded terms, and exactly 0.
    tolerance = None if dtype == torch.float64 else PYTORCH_TOLERANCE[dtype]
    check_mask_shapes(attention, dtype, axes, boolean, queries=queries, keys=514, heads=heads, tolerance=tolerance)


@pytest.mark.parametrize("queries", [5, 20])
@pytest.mark.parametrize("dtype", TYPES, ids=type_name)
@pytest.mark.parametrize("mask_dtype", [torch.float32, None], ids=["float32", "own"])
def test_types(attention, request, dtype, mask_dtype, queries):
    """A floating mask is float32 or of the query's type, and so is its gradient."""
    if dtype == torch.float64 and mask_dtype == torch.float32:
        request.getfixturevalue("promised_here")
    q = torch.randn(2, 3, queries, 8, dtype=dtype)
    k, v = torch.randn(2, 2, 3, 20, 8, dtype=dtype)
    compare(attention, q, k, v, torch.randn(2, 1, queries, 20, dtype=mask_dtype or dtype), mask_gradient=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=type_name)
@pytest.mark.parametrize("keys", [15, 16])
@pytest.mark.parametrize("boolean", [True, False])
def test_strides(attention, dtype, keys, boolean):
    """Expanded, transposed and sliced masks."""
    q = torch.rand(2, 3, 64, 16, dtype=dtype)
    k, v = torch.rand(2, 2, 3, keys, 16, dtype=dtype)
    kind = torch.bool if boolean else dtype
    whole = random_mask((2, 3, 64, keys), kind)
    for mask in (
        torch.as_strided(whole, whole.shape, (0, 0, 0, 1)),
        random_mask((64, 1), kind).expand(2, 3, 64, keys),
        random_mask((keys, 64, 3, 2), kind).permute(3, 2, 1, 0),
        random_mask((2, 3, 128, 2 * keys), kind)[:, :, ::2, 1::2],
        random_mask((2, 3, 64, keys + 5), kind)[..., 5:],
    ):
        compare(attention, q, k, v, mask, mask_gradient=False)


def test_expanded_mask_with_gradient(attention):
    """The gradient flows back through expand into the small mask."""
    q, k, v = torch.randn(3, 2, 3, 20, 8, requires_grad=True).unbind(0)
    mask = torch.randn(3, 1, 20, requires_grad=True)
    d_output = torch.randn(2, 3, 20, 8)
    (gradient,) = torch.autograd.grad(attention(q, k, v, mask.expand(2, 3, 20, 20)), mask, d_output)
    expected_mask = mask.detach().double().requires_grad_()
    expected = formula(q, k, v, expected_mask.expand(2, 3, 20, 20))
    (expected_gradient,) = torch.autograd.grad(expected, expected_mask, d_output.double())
    assert_close(gradient, expected_gradient, TOLERANCE[torch.float32].gradient, "gradient of mask")


def test_mask_alone_with_gradient(attention):
    """A learned bias over frozen queries, keys and values."""
    q, k, v = torch.randn(3, 2, 3, 20, 8)
    mask = torch.randn(20, 20, requires_grad=True)
    output = attention(q, k, v, mask)
    (gradient,) = torch.autograd.grad(output, mask, torch.ones_like(output))
    expected_mask = mask.detach().double().requires_grad_()
    expected = formula(q, k, v, expected_mask)
    (expected_gradient,) = torch.autograd.grad(expected, expected_mask, torch.ones_like(expected))
    assert_close(gradient, expected_gradient, TOLERANCE[torch.float32].gradient, "gradient of mask")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=type_name)
@pytest.mark.parametrize("length", [100, pytest.param(600, marks=pytest.mark.slow)])
def test_band_of_infinities(attention, dtype, length):
    """As in pytorch/pytorch issue 127055: long runs of -inf before and behind what a row keeps; row 0 keeps one key."""
    full = torch.full((length, length), -math.inf, dtype=dtype)
    mask = full.triu(1) + full.tril(-10)
    q, k, v = torch.randn(3, 1, 2, length, 8, dtype=dtype)
    compare(attention, q, k, v, mask.nan_to_num(nan=0.0, neginf=-math.inf))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=type_name)
@pytest.mark.parametrize("length, d", [(32, 16), (63, 33), (128, 64)])
@pytest.mark.parametrize("boolean", [True, False])
def test_rows_without_a_key(attention, dtype, length, d, boolean):
    """Every fourth query keeps nothing: its output and its gradient are exactly 0, and no other one notices."""
    q, k, v = torch.rand(3, 1, 1, length, d, dtype=dtype).unbind(0)
    places = torch.arange(length)
    mask = (places[:, None] % 5 == places % 5) & (places % 4 != 0)[:, None]
    if not boolean:
        mask = torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, -math.inf)
    output = compare(attention, q, k, v, mask)
    assert (output[:, :, ::4] == 0).all()
    leaves = [tensor.detach().requires_grad_() for tensor in (q, k, v)]
    d_q, d_k, d_v = torch.autograd.grad(attention(*leaves, mask).sum(), leaves)
    assert (d_q[:, :, ::4] == 0).all()
    assert not any(gradient.isnan().any() for gradient in (d_q, d_k, d_v))


@pytest.mark.parametrize("boolean", [True, False])
def test_nothing_is_kept(attention, boolean):
    q, k, v = torch.randn(3, 2, 2, 20, 8, requires_grad=True).unbind(0)
    mask = torch.zeros(20, 20, dtype=torch.bool) if boolean else torch.full((20, 20), -math.inf)
    output = attention(q, k, v, mask)
    assert (output == 0).all()
    for gradient in torch.autograd.grad(output.sum(), (q, k, v)):
        assert (gradient == 0).all()


@pytest.mark.parametrize("number", [-1e4, torch.finfo(torch.float32).min])
def test_large_negative_numbers_exclude_nothing(attention, number):
    """A row that holds nothing but the same large number weighs its keys as if there were no mask."""
    q, k, v = torch.randn(3, 1, 2, 20, 8)
    mask = torch.zeros(20, 20)
    mask[:, 11:] = number
    mask[3] = number
    output = attention(q, k, v, mask)
    assert_close(output, formula(q, k, v, mask), 1e-3 if number == -1e4 else 2e-6, "output")


SHAPES = [(2, 4, 33, 33, 16), (1, 2, 33, 70, 32), (1, 2, 70, 33, 32), (1, 1, 23, 56, 15)]


@pytest.mark.filterwarnings("ignore:Lower right causal bias")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("corner", [causal_upper_left, causal_lower_right])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=type_name)
def test_causal_bias(attention, shape, corner, dtype):
    """torch.nn.attention.bias: a mask object that stands for causality from either corner."""
    batch, heads, queries, keys, d = shape
    q = torch.rand(batch, heads, queries, d, dtype=dtype, requires_grad=True)
    k, v = (torch.rand(batch, heads, keys, d, dtype=dtype, requires_grad=True) for _ in range(2))
    output = attention(q, k, v, attn_mask=corner(queries, keys))
    inputs = [tensor.detach().double().requires_grad_() for tensor in (q, k, v)]
    diagonal = 0 if corner is causal_upper_left else keys - queries
    expected = formula(*inputs, torch.ones(queries, keys, dtype=torch.bool).tril(diagonal))
    d_output = torch.randn(output.shape, dtype=dtype)
    assert_close(output.detach(), expected.detach(), TOLERANCE[dtype].output, "output")
    expected_gradients = torch.autograd.grad(expected, inputs, d_output.double())
    for gradient, other in zip(torch.autograd.grad(output, (q, k, v), d_output), expected_gradients, strict=True):
        assert_close(gradient, other, TOLERANCE[dtype].gradient, "gradient")


def test_causal_bias_and_is_causal(attention):
    q, k, v = torch.randn(3, 1, 2, 8, 16)
    with pytest.raises((ValueError, RuntimeError), match="causal"):
        attention(q, k, v, attn_mask=causal_upper_left(8, 8), is_causal=True)
