"""use(): attn's attention in the place of PyTorch's."""
import contextlib
import threading
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.bias import CausalBias

from attn.torch import dispatch, scaled_dot_product
from attn.torch.arguments import TYPES
from attn.torch.scaled_dot_product import run_simple

_own = torch.nn.functional.scaled_dot_product_attention
_lock = threading.Lock()
_users = 0


def _takes(tensor: object) -> bool:
    """Whether attn takes such a tensor. Subclasses know PyTorch's own function only."""
    if type(tensor) not in (Tensor, torch.nn.Parameter):
        return False
    assert isinstance(tensor, Tensor)
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided or tensor.is_nested:
        return False
    return not dispatch.has_tangent(tensor)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, *, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """attn.torch.scaled_dot_product_attention where that takes the tensors, PyTorch's own elsewhere."""
    out = run_simple(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if out is not None:
        return out
    bias = isinstance(attn_mask, CausalBias)
    if (_takes(query) and _takes(key) and _takes(value) and (attn_mask is None or bias or _takes(attn_mask))
            and query.dtype in TYPES and key.dtype in TYPES and value.dtype in TYPES):
        return scaled_dot_product.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal,
                                                               scale=scale, enable_gqa=enable_gqa)
    return _own(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)


class _Use(contextlib.ContextDecorator):
    """One that is entered and let go of stays in force, which a generator's would not."""

    def __enter__(self) -> None:
        _enter()

    def __exit__(self, *error: object) -> None:
        _leave()


def use() -> _Use:
    """Within it, torch.nn.functional.scaled_dot_product_attention is attn's, in every thread of the process:

        with attn.torch.use():
            model(x)

    What attn does not take (tensors that are not on the CPU, other types, nested and sparse ones, subclasses,
    forward-mode derivatives) still goes to PyTorch's own function. It may be nested, and entered by several threads;
    when the last one leaves, PyTorch's is back. Functions of torch.compile notice, and are compiled anew. Code that has
    imported the function by name before keeps what it has, and so do modules that do not call it, as
    torch.nn.MultiheadAttention in inference, whose short way has an attention of its own.

    Also a decorator, @attn.torch.use(). The call alone changes nothing: attn.torch.use().__enter__() does it for the rest
    of the program.
    """
    return _Use()


def _enter() -> None:
    global _own, _users
    with _lock:
        found = torch.nn.functional.scaled_dot_product_attention
        if _users == 0 and found is not scaled_dot_product_attention:
            _own = found
            _set(scaled_dot_product_attention)
        _users += 1


def _leave() -> None:
    global _users
    with _lock:
        _users -= 1
        # Where someone has put another function there meanwhile, that one stays.
        if _users == 0 and torch.nn.functional.scaled_dot_product_attention is scaled_dot_product_attention:
            _set(_own)


def _set(function: Any) -> None:
    torch.nn.functional.scaled_dot_product_attention = function
