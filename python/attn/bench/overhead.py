"""What a call costs where there is next to nothing to compute: q, k and v are [1, 1, 4, 8] in f32."""
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy

import attn

from .timing import Call, least

if TYPE_CHECKING:
    from torch import Tensor

AXES = (1, 1, 4, 8)
# Rounds are many and short: some of them fall between what other programs do.
SECONDS_A_ROUND = 0.0005

# The most microseconds that a call of attn's may take above PyTorch's own; with NumPy, at all.
NUMPY_LIMIT = 5
PLAIN_LIMIT = 10
GRADIENT_LIMIT = 20


@dataclass
class Overhead:
    """Microseconds of a call of attn's, and of PyTorch's own where they are compared."""

    name: str
    attn: float
    torch: float | None
    limit: float

    @property
    def above(self) -> float:
        return self.attn - (self.torch or 0)


def measured(name: str, limit: float, rounds: int, call: Call, peer: Call | None = None) -> Overhead:
    calls = {"attn": call} | ({"torch": peer} if peer else {})
    slowest = max(least(calls, 5, 5).values())
    seconds = least(calls, rounds, max(1, round(SECONDS_A_ROUND / slowest)))
    return Overhead(name, seconds["attn"] * 1e6, seconds["torch"] * 1e6 if peer else None, limit)


def of_numpy(threads: int, rounds: int) -> list[Overhead]:
    q, k, v = numpy.random.default_rng(1).standard_normal((3, *AXES), numpy.float32)
    attn.set_threads(threads)
    found = measured("NumPy: attention", NUMPY_LIMIT, rounds, partial(attn.attention, q, k, v))
    attn.set_threads(0)
    return [found]


def of_torch(threads: int, rounds: int) -> list[Overhead]:
    """Of attn.torch.scaled_dot_product_attention, and of the operator that it stands on, beside PyTorch's own."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention as torch_attention

    import attn.torch

    torch.set_num_threads(threads)
    q, k, v = torch.randn(3, *AXES, generator=torch.Generator().manual_seed(1))
    learnable = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
    d_output = torch.ones(AXES)
    operator = torch.ops.attn.forward.default

    def compared(name: str, attention: Callable[..., Any], output: "Callable[..., Tensor]") -> list[Overhead]:
        """`output` is the attention again, giving nothing but its output."""

        def gradients(attention: "Callable[..., Tensor]") -> object:
            return torch.autograd.grad(attention(*learnable), learnable, d_output)

        plain, torch_plain = partial(attention, q, k, v), partial(torch_attention, q, k, v)
        learning, torch_learning = partial(attention, *learnable), partial(torch_attention, *learnable)
        with torch.inference_mode():
            inference = measured(f"{name}, inference mode", PLAIN_LIMIT, rounds, plain, torch_plain)
        return [
            inference,
            measured(f"{name}, no gradient", PLAIN_LIMIT, rounds, plain, torch_plain),
            measured(f"{name}, with gradient", GRADIENT_LIMIT, rounds, learning, torch_learning),
            measured(f"{name}, with backward", GRADIENT_LIMIT, rounds, partial(gradients, output),
                     partial(gradients, torch_attention)),
        ]  # fmt: skip

    wrapper = attn.torch.scaled_dot_product_attention
    return [
        *compared("PyTorch: wrapper", wrapper, wrapper),
        *compared("PyTorch: operator", operator, lambda *inputs: operator(*inputs)[0]),
    ]
