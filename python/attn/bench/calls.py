"""A problem as calls without arguments: of attn.torch and of PyTorch, as their users make them."""
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as torch_attention

import attn.torch

from .inputs import TOLERANCE, Inputs, expected, make_inputs, make_output_gradient
from .shapes import Shape, standard

Attention = Callable[..., Tensor]
Call = Callable[[], Tensor | tuple[Tensor, ...]]
CONTENDERS: dict[str, Attention] = {"attn": attn.torch.scaled_dot_product_attention, "torch": torch_attention}


@dataclass
class Problem:
    shape: Shape
    calls: dict[str, Call]  # by contender
    right: tuple[Tensor, ...]  # the result that they should have, in f32


def distinct_shapes() -> list[Shape]:
    """Those of the standard ones that are different calls here. attn.torch goes to attn_decode by itself, and so
    what the standard ones have both with it and with attn_forward comes once."""
    twins = {replace(shape, kind="dense") for shape in standard() if shape.kind == "decode"}
    return [shape for shape in standard() if shape not in twins]


def make_problem(shape: Shape) -> Problem:
    """To be made, and its calls to run, in torch.inference_mode() unless the shape is one of gradients."""
    inputs = make_inputs(shape)
    make_call = backward_call if shape.backward else forward_call
    calls = {name: make_call(attention, shape, inputs) for name, attention in CONTENDERS.items()}
    return Problem(shape, calls, expected(shape, inputs))


def with_settings(attention: Attention, shape: Shape, inputs: Inputs) -> Attention:
    return partial(
        attention,
        attn_mask=inputs.keep if inputs.keep is not None else inputs.bias,
        is_causal=shape.kind == "causal",
        enable_gqa=shape.heads != shape.key_heads,
    )


def forward_call(attention: Attention, shape: Shape, inputs: Inputs) -> Call:
    return partial(with_settings(attention, shape, inputs), inputs.q, inputs.k, inputs.v)


def backward_call(attention: Attention, shape: Shape, inputs: Inputs) -> Call:
    """The backward pass alone: the forward pass is done here, and its graph is kept."""
    learnable = [tensor.clone().requires_grad_() for tensor in (inputs.q, inputs.k, inputs.v)]
    output = with_settings(attention, shape, inputs)(*learnable)
    return partial(torch.autograd.grad, output, learnable, make_output_gradient(shape), retain_graph=True)


def differences(problem: Problem) -> list[str]:
    """What is wrong with the results, one line each. The tolerance is that of numbers up to 1, and grows with the
    largest one of a tensor."""
    found = []
    allowed = TOLERANCE[problem.shape.type]
    for name, call in problem.calls.items():
        error = largest_error(call(), problem.right)
        if not error <= allowed:
            found.append(f"{name} differs by {error:.2g}, at most {allowed:g} is allowed")
    return found


def largest_error(result: Tensor | tuple[Tensor, ...], right: tuple[Tensor, ...]) -> float:
    """Relative to the largest number of the tensor where that is above 1; NaN where there is one."""
    results = (result,) if isinstance(result, Tensor) else result
    errors = [(one.float() - other).abs().max() / other.abs().max().clamp(min=1)
              for one, other in zip(results, right, strict=True)]  # fmt: skip
    return float(torch.stack(errors).max())
