"""torch.vmap over the operators: each part is a call of its own, which uses all threads."""
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_OPERATORS = ("forward", "decode", "weights", "inspect", "backward")


def _parts(name: str) -> Callable[..., Any]:
    operator = getattr(torch.ops.attn, name).default

    def run(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> Any:
        results = []
        for part in range(info.batch_size):
            results.append(operator(*(
                value.select(axis, part) if isinstance(value, Tensor) and axis is not None else value
                for value, axis in zip(inputs, in_dims))))
        if isinstance(results[0], Tensor):
            return torch.stack(results), 0
        return tuple(torch.stack(parts) for parts in zip(*results)), (0,) * len(results[0])

    return run


def register() -> None:
    """Tells torch.vmap of them."""
    for name in _OPERATORS:
        torch.library.register_vmap(f"attn::{name}", _parts(name))
