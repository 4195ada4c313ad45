"""torch.vmap over the operators: each part is a call of its own, which uses all threads."""
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_OPERATORS = ("forward", "decode", "weights", "inspect", "backward")


def _part(value: Tensor, axis: int, part: int | None) -> Tensor:
    if part is None:
        return value.new_zeros([size for place, size in enumerate(value.shape) if place != axis % value.dim()])
    return value.select(axis, part)


def _parts(name: str) -> Callable[..., Any]:
    operator = getattr(torch.ops.attn, name).default

    def run(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> Any:
        def call(part: int | None) -> Any:
            """Of no part at all: of zeros in its place, which tell the result's shape and type."""
            return operator(*(_part(value, axis, part) if isinstance(value, Tensor) and axis is not None else value
                              for value, axis in zip(inputs, in_dims)))

        count = info.batch_size
        results = [call(part) for part in range(count)] or [call(None)]
        if isinstance(results[0], Tensor):
            return torch.stack(results)[:count], 0
        return tuple(torch.stack(parts)[:count] for parts in zip(*results)), (0,) * len(results[0])

    return run


def register() -> None:
    """Tells torch.vmap of them."""
    for name in _OPERATORS:
        torch.library.register_vmap(f"attn::{name}", _parts(name))
