"""scaled_dot_product_attention by the formula of weights_reference.py, in float64, and the comparison with it. Inputs of
16 bits become float64 exactly: what is measured is the function's own error.
"""
import os
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from weights_reference import for_query_heads, head_weights


class Tolerance(NamedTuple):
    """What |error| / (1 + |expected|) may be, of outputs and of gradients."""

    output: float
    gradient: float


# PyTorch's tests (test/test_transformers.py, CPU) allow 1e-5 + 5e-6 |expected| in float32 and in float64, 1e-2 for both
# in float16 (1e-1 in gradients) and 5e-2 in bfloat16 (1e-1 in gradients of groups of heads).
PYTORCH_TOLERANCE = {
    torch.float64: Tolerance(1e-5, 1.25e-5),
    torch.float32: Tolerance(1e-5, 1.25e-5),
    torch.float16: Tolerance(1e-2, 1e-1),
    torch.bfloat16: Tolerance(5e-2, 1e-1),
}
TOLERANCE = {
    torch.float64: Tolerance(1e-13, 1e-12),
    torch.float32: Tolerance(4e-6, 6e-6),
    torch.float16: Tolerance(1e-3, 4e-3),
    torch.bfloat16: Tolerance(1e-2, 3e-2),
}
if os.environ.get("ATTN_TEST_SDPA") == "pytorch":
    TOLERANCE = PYTORCH_TOLERANCE
TYPES = list(TOLERANCE)


def type_name(value: object) -> str | None:
    """Short names of types in test ids."""
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else None


def causal_mask(queries: int, keys: int) -> Tensor:
    """PyTorch's is_causal: query i keeps the keys up to i, counted from the top left corner."""
    return torch.ones(queries, keys, dtype=torch.bool).tril()


def formula(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    factors: Tensor | None = None,
) -> Tensor:
    """softmax(scale q k^T + mask) v in float64; rows without a key give 0. `factors` stand for dropout's."""
    if enable_gqa:
        k, v = for_query_heads(q.shape[-3], k), for_query_heads(q.shape[-3], v)
    weights = head_weights(q, k, mask=attn_mask, causal=is_causal, scale=scale)
    if factors is not None:
        weights = weights * factors
    return weights @ v.double()


def assert_close(actual: Tensor, expected: Tensor, bound: float, what: str) -> None:
    """error <= bound (1 + |expected|) everywhere, so that NaN fails."""
    assert actual.shape == expected.shape, f"{what} has the shape {tuple(actual.shape)}"
    error = (actual.double() - expected).abs() / (1 + expected.abs())
    assert (error <= bound).all(), f"{what} is off by {error.max():.3g}, allowed {bound:.3g}"


def compare(
    attention: Callable[..., Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    *,
    train: bool = True,
    mask_gradient: bool = False,
    tolerance: Tolerance | None = None,
    **settings: object,
) -> Tensor:
    """`attention` agrees with the formula on these tensors, as they lie in memory: its output without gradients, and
    with `train` its output and its gradients by q, k, v (and the mask) with them. Returns the output."""
    tolerance = tolerance or TOLERANCE[q.dtype]
    inputs = [tensor.detach() for tensor in (q, k, v)]
    mask = attn_mask if attn_mask is None else attn_mask.detach()
    expected_inputs = [tensor.double().requires_grad_() for tensor in inputs]
    expected_mask = mask
    if mask is not None and mask_gradient:
        expected_mask = mask.double().requires_grad_()
    expected = formula(*expected_inputs, expected_mask, **settings)

    with torch.no_grad():
        output = attention(*inputs, mask, **settings)
    assert output.dtype == q.dtype and not output.requires_grad
    assert_close(output, expected.detach(), tolerance.output, "output without gradient")
    if not train:
        return output

    leaves = [tensor.requires_grad_() for tensor in inputs]
    expected_leaves = list(expected_inputs)
    names = ["query", "key", "value"]
    if mask is not None and mask_gradient:
        leaves.append(mask.requires_grad_())
        expected_leaves.append(expected_mask)
        names.append("mask")
    output = attention(*leaves[:3], mask, **settings)
    assert output.dtype == q.dtype and output.requires_grad
    assert_close(output.detach(), expected.detach(), tolerance.output, "output with gradient")
    d_output = torch.randn(output.shape, dtype=torch.float64).to(output.dtype)
    gradients = torch.autograd.grad(output, leaves, d_output)
    expected_gradients = torch.autograd.grad(expected, expected_leaves, d_output.double())
    for name, leaf, gradient, expected_gradient in zip(names, leaves, gradients, expected_gradients, strict=True):
        assert gradient.dtype == leaf.dtype, f"the gradient of {name} has the type {gradient.dtype}"
        bound = max(tolerance.gradient, torch.finfo(leaf.dtype).eps)
        assert_close(gradient, expected_gradient, bound, f"gradient of {name}")
    return output.detach()
