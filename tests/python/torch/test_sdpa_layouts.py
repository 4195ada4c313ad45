"""PyTorch's cases of how tensors lie in memory, which axes they have, and which of those are empty."""
import itertools

import pytest

torch = pytest.importorskip("torch")

from sdpa_reference import TOLERANCE, TYPES, assert_close, compare, formula, type_name  # noqa: E402

BATCH, HEADS, LENGTH, D = 2, 3, 19, 16


def contiguous(dtype):
    return torch.randn(BATCH, HEADS, LENGTH, D, dtype=dtype)


def transposed(dtype):
    return torch.randn(BATCH, LENGTH, HEADS, D, dtype=dtype).transpose(1, 2)


def columns(dtype):
    """The last axis has a stride."""
    return torch.randn(BATCH, HEADS, D, LENGTH, dtype=dtype).transpose(2, 3)


def stepped(dtype):
    return torch.randn(BATCH, 2 * HEADS, 2 * LENGTH, 3 * D, dtype=dtype)[:, 1::2, ::2, ::3]


def shifted(dtype):
    """The first element stands at an odd place, which no vector's alignment divides."""
    return torch.randn(BATCH * HEADS * LENGTH * D + 1, dtype=dtype)[1:].view(BATCH, HEADS, LENGTH, D)


def shared_head(dtype):
    return torch.randn(BATCH, 1, LENGTH, D, dtype=dtype).expand(BATCH, HEADS, LENGTH, D)


def repeated_row(dtype):
    return torch.randn(BATCH, HEADS, 1, D, dtype=dtype).expand(BATCH, HEADS, LENGTH, D)


def one_number(dtype):
    return torch.randn(1, 1, 1, 1, dtype=dtype).expand(BATCH, HEADS, LENGTH, D)


LAYOUTS = [contiguous, transposed, columns, stepped, shifted, shared_head, repeated_row, one_number]


@pytest.mark.parametrize("dtype", TYPES, ids=type_name)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("which", ["query", "key", "value", "all"])
def test_strides(attention, dtype, layout, which):
    tensors = [
        layout(dtype) if which in (name, "all") else contiguous(dtype) for name in ("query", "key", "value")
    ]
    compare(attention, *tensors, is_causal=True)


def test_overlapping_rows(attention):
    """Elements that lie in each other's place are read, and their gradients add up in the tensor under the view."""
    base = torch.randn(40, dtype=torch.float64, requires_grad=True)

    def attend(base):
        view = base.as_strided((2, 2, 4, 4), (2, 2, 2, 2))
        return attention(view, view, view)

    assert torch.autograd.gradcheck(attend, (base,))


def test_one_query_with_shared_keys(attention):
    """A decoding step over one key head for 16 query heads, expanded, in strides of a model's cache (the shapes are
    those of PyTorch's test of a mask that is not contiguous)."""
    q = torch.randn(3 * 2304).as_strided((3, 16, 1, 128), (2304, 128, 2048, 1))
    k, v = (torch.randn(3 * 3584).as_strided((3, 16, 14, 128), (3584, 0, 256, 1)) for _ in range(2))
    mask = torch.randn(42).as_strided((3, 1, 1, 14), (14, 14, 14, 1))
    compare(attention, q, k, v, mask)


def test_one_number_per_head(attention):
    q = torch.tensor([[[[1.0, 2.0]]]], dtype=torch.float16).transpose(-1, -2)
    one = torch.ones(1, 1, 1, 1, dtype=torch.float16)
    assert_close(attention(q, one, one), torch.ones(1, 1, 2, 1).double(), 0.0, "output")


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("length", [5, 40])
def test_memory(attention, train, length):
    """The output lies as the query does, so that `view` works on it where it works on PyTorch's own."""
    packed = torch.randn(2, length, 3, 8, requires_grad=train)
    for q in (packed.transpose(1, 2).contiguous(), packed.transpose(1, 2)):
        expected = torch.nn.functional.scaled_dot_product_attention(q, q, q)
        output = attention(q, q, q)
        assert output.stride() == expected.stride()
        assert output.storage_offset() == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=type_name)
@pytest.mark.parametrize("leading", [(), (1,), (4,), (2, 1, 3), (1, 2, 2, 2)], ids=str)
@pytest.mark.parametrize("is_causal", [True, False])
def test_axes(attention, dtype, leading, is_causal):
    q = torch.randn(*leading, 5, 8, dtype=dtype)
    k, v = torch.randn(*leading, 7, 8, dtype=dtype), torch.randn(*leading, 7, 6, dtype=dtype)
    compare(attention, q, k, v, is_causal=is_causal)


@pytest.mark.parametrize("leading", [(4,), (2, 1, 3)], ids=str)
def test_axes_with_masks(attention, leading):
    q = torch.randn(*leading, 5, 8)
    k, v = torch.randn(2, *leading, 7, 8)
    for shape in itertools.product(*({size, 1} for size in (*leading, 5, 7))):
        compare(attention, q, k, v, torch.randn(shape), mask_gradient=True)
        compare(attention, q, k, v, torch.randint(0, 2, shape, dtype=torch.bool))


@pytest.mark.parametrize(
    "query, key, value",
    [
        ((4,), (2, 4), (2, 4)),
        ((1, 4), (2, 4), (2, 4)),
        ((2, 4), (1, 4), (1, 4)),
        ((2, 4), (1, 1), (1, 1)),
        ((2, 4), (2, 1), (2, 1)),
        ((2, 1), (1, 4), (1, 4)),
        ((2, 4), (2, 4), (4,)),
        ((2, 4), (), ()),
        ((), (3,), (3,)),
        ((1, 1), (1, 1), (3, 2)),
        ((2, 1, 2), (2, 3, 1), (3, 2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("queries", [5, 20])
def test_leading_axes_broadcast(attention, query, key, value, queries):
    q = torch.randn(*query, queries, 8)
    compare(attention, q, torch.randn(*key, 7, 8), torch.randn(*value, 7, 6))
    compare(attention, q, torch.randn(*key, 7, 8), torch.randn(*value, 7, 6), is_causal=True)


@pytest.mark.parametrize("dtype", TYPES, ids=type_name)
@pytest.mark.parametrize(
    "batch, heads, queries, keys, d, d_value",
    [
        (0, 4, 2, 3, 8, 8),
        (2, 0, 2, 3, 8, 8),
        (2, 4, 0, 3, 8, 8),
        (2, 4, 5, 0, 8, 8),
        (2, 4, 20, 0, 8, 8),
        (2, 4, 0, 0, 8, 8),
        (2, 4, 2, 3, 8, 0),
        (0, 0, 0, 0, 8, 0),
    ],
)
@pytest.mark.parametrize("is_causal", [True, False])
def test_empty(attention, dtype, batch, heads, queries, keys, d, d_value, is_causal):
    q = torch.randn(batch, heads, queries, d, dtype=dtype)
    k = torch.randn(batch, heads, keys, d, dtype=dtype)
    v = torch.randn(batch, heads, keys, d_value, dtype=dtype)
    compare(attention, q, k, v, is_causal=is_causal)
    compare(attention, q, k, v, torch.ones(queries, keys, dtype=torch.bool))


@pytest.mark.parametrize("scale", [None, 2.0])
@pytest.mark.parametrize("queries", [2, 20])
def test_heads_without_a_number(attention, queries, scale):
    """With d = 0 every score is 0, and the output is the mean of the values."""
    q, k, v = torch.randn(2, 4, queries, 0), torch.randn(2, 4, 3, 0), torch.randn(2, 4, 3, 5)
    mean = v.double().mean(-2, keepdim=True).expand(2, 4, queries, 5)
    assert_close(attention(q, k, v, scale=scale), mean, TOLERANCE[torch.float32].output, "output")


def test_parameters_and_keywords(attention):
    """Every argument by its name, and modules' parameters as tensors."""
    q, k, v = (torch.nn.Parameter(torch.randn(2, 3, 9, 8)) for _ in range(3))
    mask = torch.zeros(9, 9)
    output = attention(query=q, key=k, value=v, attn_mask=mask, dropout_p=0.0, is_causal=False, scale=None)
    assert_close(output.detach(), formula(q, k, v).detach(), TOLERANCE[torch.float32].output, "output")
    output.sum().backward()
    assert all(tensor.grad.shape == tensor.shape for tensor in (q, k, v))
    assert attention(q, k, v, None, 0.0, True, enable_gqa=False).requires_grad


def test_inputs_are_read_only(attention):
    q, k, v = torch.randn(3, 2, 3, 20, 8)
    mask = torch.randn(20, 20)
    before = [tensor.clone() for tensor in (q, k, v, mask)]
    leaves = [tensor.requires_grad_() for tensor in (q, k, v, mask)]
    torch.autograd.grad(attention(*leaves).sum(), leaves)
    assert all(torch.equal(tensor, old) for tensor, old in zip(leaves, before, strict=True))


def test_some_gradients(attention):
    """Any part of the inputs may ask for a gradient; the others get none, and the numbers are the same."""
    tensors = torch.randn(3, 2, 3, 20, 8).unbind(0)
    d_output = torch.randn(2, 3, 20, 8)
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    whole = torch.autograd.grad(attention(*leaves, is_causal=True), leaves, d_output)
    for asked in itertools.product([True, False], repeat=3):
        leaves = [tensor.clone().requires_grad_(ask) for tensor, ask in zip(tensors, asked, strict=True)]
        output = attention(*leaves, is_causal=True)
        assert output.requires_grad == any(asked)
        if any(asked):
            output.backward(d_output)
        for leaf, ask, gradient in zip(leaves, asked, whole, strict=True):
            assert torch.equal(leaf.grad, gradient) if ask else leaf.grad is None


@pytest.mark.parametrize("kind", ["ones", "zeros", "transposed", "expanded"])
def test_layouts_of_the_gradient_that_comes_in(attention, kind):
    tensors = torch.randn(3, 2, 3, 20, 8).unbind(0)
    d_output = {
        "ones": torch.ones(1).expand(2, 3, 20, 8),
        "zeros": torch.zeros(2, 3, 20, 8),
        "transposed": torch.randn(8, 20, 3, 2).permute(3, 2, 1, 0),
        "expanded": torch.randn(2, 1, 1, 8).expand(2, 3, 20, 8),
    }[kind]
    gradients = []
    for function, dtype in (attention, torch.float32), (formula, torch.float64):
        leaves = [tensor.to(dtype, copy=True).requires_grad_() for tensor in tensors]
        gradients.append(torch.autograd.grad(function(*leaves), leaves, d_output.to(dtype)))
    for gradient, expected in zip(*gradients, strict=True):
        assert_close(gradient, expected, TOLERANCE[torch.float32].gradient, "gradient")
