"""The numbers of a problem as PyTorch's tensors, and the result that they should have. bench/ of the source tree
uses them too."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:  # bench/ has this folder as a path and not as a package
    from .shapes import Shape

TORCH_TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}

# How far a result may be from the one in f32. 16-bit outputs are rounded, and so are PyTorch's weights there.
TOLERANCE = {"f32": 1e-4, "bf16": 2e-2, "f16": 3e-3}


@dataclass
class Inputs:
    """Contiguous tensors: q [B, H, Lq, d_qk], k and v [B, Hkv, Lk, …]; keep (bool) and bias or None."""

    q: Tensor
    k: Tensor
    v: Tensor
    keep: Tensor | None
    bias: Tensor | None


def make_inputs(shape: Shape) -> Inputs:
    random = torch.Generator().manual_seed(1)

    def normal(*axes: int) -> Tensor:
        return torch.randn(*axes, generator=random).to(TORCH_TYPES[shape.type])

    keep = bias = None
    if shape.kind == "keep":
        keep = torch.rand(1, 1, shape.queries, shape.keys, generator=random) < 0.75
        keep[..., 0] = True  # no row without a key: peers differ there
    elif shape.kind == "padding":
        lengths = torch.randint(1, shape.keys + 1, (shape.batch, 1, 1, 1), generator=random)
        keep = torch.arange(shape.keys).view(1, 1, 1, -1) < lengths
    elif shape.kind == "bias":
        bias = normal(1, shape.heads, shape.queries, shape.keys)
    return Inputs(
        normal(shape.batch, shape.heads, shape.queries, shape.dim),
        normal(shape.batch, shape.key_heads, shape.keys, shape.dim),
        normal(shape.batch, shape.key_heads, shape.keys, shape.value_dim),
        keep,
        bias,
    )


def make_output_gradient(shape: Shape) -> Tensor:
    """[B, H, Lq, d_v]"""
    random = torch.Generator().manual_seed(2)
    gradient = torch.randn(shape.batch, shape.heads, shape.queries, shape.value_dim, generator=random)
    return gradient.to(TORCH_TYPES[shape.type])


def attention_by_formula(shape: Shape, q: Tensor, k: Tensor, v: Tensor, inputs: Inputs) -> Tensor:
    """softmax(q·kᵀ/√d_qk + bias)·v in f32 with the masks of the inputs, whole matrices at a time."""
    group = shape.heads // shape.key_heads
    k, v = (tensor.repeat_interleave(group, 1) for tensor in (k, v))
    scores = q @ k.transpose(2, 3) / shape.dim**0.5
    if inputs.bias is not None:
        scores = scores + inputs.bias.float()
    if inputs.keep is not None:
        scores = scores.masked_fill(~inputs.keep, float("-inf"))
    if shape.kind == "causal":
        later = torch.ones(shape.queries, shape.keys, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return torch.matmul(scores.softmax(3), v)


def expected(shape: Shape, inputs: Inputs) -> tuple[Tensor, ...]:
    """The output in f32, or the gradients of q, k and v with `backward`."""
    q, k, v = (tensor.float() for tensor in (inputs.q, inputs.k, inputs.v))
    if not shape.backward:
        return (attention_by_formula(shape, q, k, v, inputs),)
    q, k, v = (tensor.clone().requires_grad_() for tensor in (q, k, v))
    output = attention_by_formula(shape, q, k, v, inputs)
    return torch.autograd.grad(output, (q, k, v), make_output_gradient(shape).float())
