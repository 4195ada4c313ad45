"""The operators: torch.ops.attn.forward, backward, decode, weights and inspect, which mirror the C library.

    forward(q, k, v, <settings>, dropout=0.0, dropout_seed=None) -> (out, stats)
    decode(q, k, v, <settings>) -> out
    weights(q, k, stats, <settings>) -> weights
    inspect(q, k, stats, top, entropy, maximum, received, <settings>)
        -> (top_weights, top_keys, entropy, maximum, received)
    backward(d_out, q, k, v, out, stats, wanted, <settings>, dropout=0.0, dropout_seed=None)
        -> (d_q, d_k, d_v, d_mask, d_sinks)

q, k and v are [B, H, L, d], [H, L, d] or [L, d], all alike, on the CPU; shapes, types and errors are those of
attn.attention. `stats` is [.., H, Lq, 2], as forward gives it; weights and inspect make it where it is None. What
inspect and backward are not asked for is a tensor without elements. Settings:

    mask, sinks, alibi_slopes, key_lengths     tensors or None
    causal, offset, window_left, window_right  where queries stand and what they see; None is no limit
    scale, soft_cap, precision                 None: 1/sqrt(d_qk); 0: none; "bf16" (the default) or "exact"
    dropout, dropout_seed                      0..1, and with it an int64 tensor without axes

forward has a gradient for q, k, v, a floating mask and sinks, through backward, which has none itself: a second
derivative is refused. The others have no gradient either, and say so when they are differentiated. vmap runs an
operator once for each part (vmap.py).
"""
import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
# Not public: how register_autograd's own kernels go on to the next one.
from torch._C import DispatchKeySet, _after_autograd_keyset, _AutoDispatchBelowAutograd
from torch._functorch import autograd_function

from attn.torch import dispatch, gradient, kernels
from attn.torch.eager import is_plain

_SETTINGS = ("Tensor? mask=None, Tensor? sinks=None, Tensor? alibi_slopes=None, Tensor? key_lengths=None, "
             "bool causal=False, SymInt offset=0, SymInt? window_left=None, SymInt? window_right=None, "
             "float? scale=None, float soft_cap=0.0, str precision='bf16'")
_DROPOUT = "float dropout=0.0, Tensor? dropout_seed=None"
_SCHEMAS = {
    "forward": f"(Tensor q, Tensor k, Tensor v, {_SETTINGS}, {_DROPOUT}) -> (Tensor, Tensor)",
    "decode": f"(Tensor q, Tensor k, Tensor v, {_SETTINGS}) -> Tensor",
    "weights": f"(Tensor q, Tensor k, Tensor? stats, {_SETTINGS}) -> Tensor",
    "inspect": f"(Tensor q, Tensor k, Tensor? stats, int top, bool entropy, bool maximum, bool received, {_SETTINGS})"
               " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "backward": f"(Tensor d_out, Tensor q, Tensor k, Tensor v, Tensor out, Tensor stats, bool[] wanted, {_SETTINGS}, "
                f"{_DROPOUT}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
}
_one_level: Any = getattr(autograd_function, "enable_single_level_autograd_function")
_LIBRARY: Any = cast(Any, torch.library).Library("attn", "FRAGMENT")


def _or_nothing(q: Tensor, tensors: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """An operator gives tensors: one without elements in place of None."""
    return tuple(q.new_empty(0) if tensor is None else tensor for tensor in tensors)


def _forward(q: Tensor, k: Tensor, v: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
    return kernels.forward(q, k, v, kernels.native_settings(*arguments))


def _decode(q: Tensor, k: Tensor, v: Tensor, *arguments: Any) -> Tensor:
    return kernels.decode(q, k, v, kernels.native_settings(*arguments))


def _weights(q: Tensor, k: Tensor, stats: Tensor | None, *arguments: Any) -> Tensor:
    return kernels.weights(q, k, stats, kernels.native_settings(*arguments))


def _inspect(q: Tensor, k: Tensor, stats: Tensor | None, top: int, entropy: bool, maximum: bool, received: bool,
             *arguments: Any) -> tuple[Tensor, ...]:
    settings = kernels.native_settings(*arguments)
    return _or_nothing(q, kernels.inspect(q, k, stats, top, entropy, maximum, received, settings))


def _check_wanted(wanted: Sequence[bool]) -> None:
    if len(wanted) != 5:
        raise ValueError(f"wanted must have 5 flags, for q, k, v, mask and sinks, not {len(wanted)}")


def _backward(d_out: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, stats: Tensor, wanted: Sequence[bool],
              *arguments: Any) -> tuple[Tensor, ...]:
    _check_wanted(wanted)
    settings = kernels.native_settings(*arguments)
    return _or_nothing(q, kernels.backward(d_out, q, k, v, out, stats, wanted, settings))


def _fake_forward(q: Tensor, k: Tensor, v: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
    return kernels.empty_output(q, v), kernels.empty_statistics(q)


def _fake_decode(q: Tensor, k: Tensor, v: Tensor, *arguments: Any) -> Tensor:
    return kernels.empty_output(q, v)


def _fake_weights(q: Tensor, k: Tensor, *rest: Any) -> Tensor:
    return kernels.empty_weights(q, k)


def _fake_inspect(q: Tensor, k: Tensor, stats: Tensor | None, top: int, entropy: bool, maximum: bool, received: bool,
                  *arguments: Any) -> tuple[Tensor, ...]:
    rows, number = q.shape[:-1], kernels.number_type(q)
    return _or_nothing(q, (
        q.new_empty((*rows, top), dtype=number) if top else None,
        q.new_empty((*rows, top), dtype=torch.int32) if top else None,
        q.new_empty(rows, dtype=number) if entropy else None,
        q.new_empty(rows, dtype=number) if maximum else None,
        q.new_empty((*rows[:-1], k.shape[-2]), dtype=number) if received else None))


def _fake_backward(d_out: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, stats: Tensor, wanted: Sequence[bool],
                   mask: Tensor | None = None, sinks: Tensor | None = None, *arguments: Any) -> tuple[Tensor, ...]:
    _check_wanted(wanted)
    gradients = [torch.empty_like(tensor) if want else None for tensor, want in zip((q, k, v), wanted)]
    gradients += [tensor.new_empty(tensor.shape) if tensor is not None and want else None
                  for tensor, want in zip((mask, sinks), wanted[3:])]
    return _or_nothing(q, gradients)


def _fake_on_one_device(fake: Callable[..., Any], place_of_q: int) -> Callable[..., Any]:
    """One tensor without memory (of the meta device) among others sends the call here: what it gives has q's device,
    and would be memory that nobody has written."""

    @functools.wraps(fake)
    def run(*inputs: Any) -> Any:
        device = inputs[place_of_q].device
        for value in inputs:
            if isinstance(value, Tensor) and value.device != device and device.type != "meta":
                raise ValueError(f"tensors must be on one device: q is on {device}, another on {value.device}")
        return fake(*inputs)

    return run


def _autograd_kernel(name: str, on_cpu: Callable[..., Any]) -> Callable[..., Any]:
    """The operator's kernel for autograd. torch.library.register_autograd would make one as well, which takes 20 to
    100 µs a call; this one sends plain tensors straight to `on_cpu`, and others down the dispatcher as that does."""
    operator = getattr(torch.ops.attn, name).default
    if name == "forward":
        follow, follow_plain = gradient.follow, gradient.follow_plain
    else:
        follow = gradient.refusing(f"attn::{name}", _INSTEAD[name])
        follow_plain = functools.partial(follow, on_cpu)

    def kernel(keyset: DispatchKeySet, *inputs: Any) -> Any:
        tensors = [value for value in inputs if isinstance(value, Tensor)]
        learns = torch.is_grad_enabled() and any([tensor.requires_grad for tensor in tensors])
        if is_plain(*tensors):
            return follow_plain(*inputs) if learns else on_cpu(*inputs)
        dispatch.refuse_tangents(*tensors)

        def run(*inputs: Any) -> Any:
            with _AutoDispatchBelowAutograd():
                return operator.redispatch(keyset & _after_autograd_keyset, *inputs)

        if not learns:
            return run(*inputs)
        with _one_level():
            return follow(run, *inputs)

    return kernel


_IMPLEMENTATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "forward": (_forward, _fake_forward), "decode": (_decode, _fake_decode), "weights": (_weights, _fake_weights),
    "inspect": (_inspect, _fake_inspect), "backward": (_backward, _fake_backward)}
# What to do about an operator without a gradient.
_INSTEAD = {"decode": "call attn::forward where q, k or v require one",
            "weights": "pass q.detach() and k.detach()",
            "inspect": "pass q.detach() and k.detach()",
            "backward": "second derivatives need PyTorch's own attention, under "
                        "torch.nn.attention.sdpa_kernel(SDPBackend.MATH)"}


def register() -> None:
    """Tells PyTorch of them. Once."""
    for name, (on_cpu, fake) in _IMPLEMENTATIONS.items():
        operator = f"attn::{name}"
        torch.library.define(operator, _SCHEMAS[name], tags=(torch.Tag.pt2_compliant_tag,))
        torch.library.impl(operator, "cpu", on_cpu)
        torch.library.register_fake(operator, _fake_on_one_device(fake, 1 if name == "backward" else 0))
        _LIBRARY.impl(name, _autograd_kernel(name, on_cpu), "Autograd", with_keyset=True)
