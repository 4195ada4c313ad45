"""Which call does the work: attn::decode, attn::forward, with or without the dispatcher."""
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.compiler import is_compiling

from attn import _native
from attn.torch import gradient, kernels

_unpack_dual: Any = forward_ad.unpack_dual
# All of int64 that is not negative.
_SEEDS = 2**63 - 1


def draw_seed() -> Tensor:
    """A seed for dropout from PyTorch's generator, as an int64 tensor without axes: torch.manual_seed rules over it,
    and a compiled function draws a new one each time."""
    return torch.randint(_SEEDS, ())


def has_tangent(*tensors: Tensor | None) -> bool:
    """Whether one of them carries a forward-mode derivative."""
    if is_compiling() or forward_ad._current_level < 0:  # not public: whether there can be any
        return False
    return any(tensor is not None and _unpack_dual(tensor).tangent is not None for tensor in tensors)


def refuse_tangents(*tensors: Tensor | None) -> None:
    """Forward-mode derivatives would be lost without a word otherwise."""
    if has_tangent(*tensors):
        raise NotImplementedError("attention has no forward-mode derivative; use reverse mode, or PyTorch's own "
                                  "attention under torch.nn.attention.sdpa_kernel(SDPBackend.MATH)")


def decodes(queries: int, keys: int) -> bool:
    """Whether attn::decode is the faster one: for up to 4 queries, up to 8 with 16 keys or more, up to 16 with 1024."""
    return any(queries <= most and keys >= least for most, least in _native.DECODE_RULE)


def learns(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, sinks: Tensor | None) -> bool:
    """Whether a gradient is to be followed."""
    return torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad
                                        or (mask is not None and mask.requires_grad)
                                        or (sinks is not None and sinks.requires_grad))


def run_plain(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, sinks: Tensor | None,
              settings: kernels.Settings) -> Tensor:
    """Attention of plain tensors; mask and sinks are among the settings too. Few queries go to decode where neither a
    gradient nor dropout is asked for."""
    if learns(q, k, v, mask, sinks):
        if settings.keys() <= gradient.LEAN:
            return gradient.lean_attention(q, k, v, settings)
        return gradient.plain_attention(q, k, v, mask, sinks, settings)
    if decodes(q.size(-2), k.size(-2)) and "dropout" not in settings:
        return kernels.decode(q, k, v, settings)
    return kernels.attend(q, k, v, settings)


def run_operator(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, sinks: Tensor | None, *others: Any) -> Tensor:
    """The same of any tensors, from all arguments of attn::forward."""
    decode = decodes(q.shape[-2], k.shape[-2]) and others[-2] == 0 and not learns(q, k, v, mask, sinks)
    out: Tensor
    if decode:
        out = torch.ops.attn.decode.default(q, k, v, mask, sinks, *others[:-2])
    else:
        out = torch.ops.attn.forward.default(q, k, v, mask, sinks, *others)[0]
    return out


def run(plain: bool, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, sinks: Tensor | None,
        *others: Any) -> Tensor:
    """Either of them, from all arguments of attn::forward. `plain`: what is_plain says of the tensors."""
    if plain:
        return run_plain(q, k, v, mask, sinks, kernels.native_settings(mask, sinks, *others))
    return run_operator(q, k, v, mask, sinks, *others)
