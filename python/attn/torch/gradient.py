"""The gradient of attention: what a forward pass keeps for it, and how it is made of that.

Kept are q, k, v, the settings, the result as it was given out, and two numbers a row; never L x L. With 16-bit tensors
the result that backward reads has 16 bits too, as in PyTorch's own kernels: dQ and dK then have an error about as large
as their own rounding (docs/accuracy.md, "An o of 16 bits"), and no second copy in float32 is kept.
"""
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
# Not public: what autograd.Function is without its support of torch.func, which would need another Function for each
# direction there. The operators' kernels run at one level of torch.func at a time, as those in C++ do.
from torch.autograd.function import _SingleLevelFunction

from attn import _native
from attn.torch import kernels
from attn.torch.eager import is_plain, is_quiet

_DEFAULTS: tuple[Any, ...] = kernels.native_settings.__defaults__ or ()


class NotSimple(ValueError):
    """The usual way does not serve."""


_NONE = (None,) * 6  # gradients of a Function's inputs; PyTorch lets a Function give more of them than it has inputs

# The settings without tensors.
LEAN = frozenset(("precision", "causal", "align", "window", "scale", "soft_cap", "dropout", "dropout_seed"))


class _LeanBackward(_SingleLevelFunction):
    """What follows a forward pass of plain tensors where no setting is a tensor: the usual case, which is to cost
    little. Functions differ in their inputs; q, k and v are the first."""

    @staticmethod
    def backward(ctx: Any, *d_results: Tensor | None) -> tuple[Tensor | None, ...]:
        d_out, wanted = d_results[0], (*ctx.needs_input_grad[:3], False, False)
        if d_out is None:
            return _NONE
        q, k, v, out, stats = ctx.saved_tensors
        # With create_graph the operator is asked, which refuses a second derivative; and so it is for a d_out that
        # libattn refuses, without memory of its own or negated.
        if not torch.is_grad_enabled() and type(d_out) is Tensor and is_quiet():
            try:
                return (*kernels.backward(d_out, q, k, v, out, stats, wanted, ctx.settings)[:3], *_NONE[3:])
            except ValueError:
                pass
        arguments = kernels.operator_arguments(ctx.settings)
        return (*_from_operator(d_out, q, k, v, out, stats, wanted, *arguments)[:3], *_NONE[3:])


class _LeanAttention(_LeanBackward):
    """attn::forward without its statistics. Takes q, k, v and the settings."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, settings: kernels.Settings) -> Any:
        out, stats = kernels.forward(q, k, v, settings)
        ctx.save_for_backward(q, k, v, out, stats)
        ctx.settings = settings
        return out


class _SimpleAttention(_LeanBackward):
    """The same with the arguments of scaled_dot_product_attention. Raises NotSimple where attn._native.attend does not
    take them."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float | None,
                grouped: bool) -> Any:
        found = _native.attend(query, key, value, None, is_causal, scale, grouped, torch.get_num_threads(), True)
        if found is None:
            raise NotSimple
        ctx.save_for_backward(query, key, value, *found)
        ctx.settings = {"precision": "bf16"}
        if is_causal:
            ctx.settings["causal"] = True
        if scale is not None:
            ctx.settings["scale"] = scale
        return found[0]


class _PlainAttention(_SingleLevelFunction):
    """attn::forward of plain tensors, without its statistics. Takes q, k, v, mask and sinks, which can have a gradient,
    and the settings, with mask and sinks among them."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, sinks: Tensor | None,
                settings: kernels.Settings) -> Any:
        out, stats = kernels.forward(q, k, v, settings)
        # The last two are saved so that PyTorch notices where they are changed before backward.
        ctx.save_for_backward(q, k, v, out, stats, mask, sinks, settings.get("alibi_slopes"),
                              settings.get("key_lengths"))
        ctx.settings = settings
        return out

    @staticmethod
    def backward(ctx: Any, *d_results: Tensor | None) -> tuple[Tensor | None, ...]:
        d_out = d_results[0]
        if d_out is None:
            return (None,) * 6
        q, k, v, out, stats, mask, sinks, _, _ = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        # With create_graph the operator is asked, which refuses a second derivative.
        if not torch.is_grad_enabled() and is_plain(d_out):
            return (*kernels.backward(d_out, q, k, v, out, stats, wanted, ctx.settings), None)
        arguments = kernels.operator_arguments({**ctx.settings, "mask": mask, "sinks": sinks})
        return (*_from_operator(d_out, q, k, v, out, stats, wanted[:5], *arguments), None)


def _with_statistics(ctx: Any, out: Tensor) -> tuple[Tensor, Tensor]:
    stats: Tensor = ctx.to_save[4]
    ctx.mark_non_differentiable(stats)
    ctx.set_materialize_grads(False)  # no zeros for stats
    return out, stats


class _LeanWithStatistics(_LeanAttention):
    """The same, giving (out, stats)."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        return _with_statistics(ctx, _LeanAttention.forward(ctx, *inputs))


class _PlainWithStatistics(_PlainAttention):
    """The same, giving (out, stats)."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        return _with_statistics(ctx, _PlainAttention.forward(ctx, *inputs))


class _AnyAttention(_SingleLevelFunction):
    """attn::forward of any tensors: (out, stats). Takes what can have a gradient, the operator's other arguments in a
    tuple, and `run`, which gives the result."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, sinks: Tensor | None,
                others: tuple[Any, ...], run: Callable[..., tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        out, stats = run(q, k, v, mask, sinks, *others)
        alibi_slopes, key_lengths, *numbers, dropout_seed = others
        ctx.save_for_backward(q, k, v, out, stats, mask, sinks, alibi_slopes, key_lengths, dropout_seed)
        ctx.numbers = numbers
        ctx.mark_non_differentiable(stats)
        ctx.set_materialize_grads(False)  # no zeros for stats
        return out, stats

    @staticmethod
    def backward(ctx: Any, *d_results: Tensor | None) -> tuple[Tensor | None, ...]:
        if d_results[0] is None:
            return (None,) * 7
        *tensors, dropout_seed = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:5]
        return (*_from_operator(d_results[0], *tensors[:5], wanted, *tensors[5:], *ctx.numbers, dropout_seed), None,
                None)


simple_attention: Callable[..., Tensor] = cast(Any, _SimpleAttention).apply
lean_attention: Callable[..., Tensor] = cast(Any, _LeanAttention).apply
plain_attention: Callable[..., Tensor] = cast(Any, _PlainAttention).apply
_lean_with_statistics: Callable[..., tuple[Tensor, Tensor]] = cast(Any, _LeanWithStatistics).apply
_plain_with_statistics: Callable[..., tuple[Tensor, Tensor]] = cast(Any, _PlainWithStatistics).apply
_any_attention: Callable[..., tuple[Tensor, Tensor]] = cast(Any, _AnyAttention).apply


def _from_operator(*inputs: Any) -> list[Tensor | None]:
    """The gradients of q, k, v, mask and sinks by attn::backward."""
    wanted = inputs[6]
    found = torch.ops.attn.backward.default(*inputs)
    return [gradient if want else None for gradient, want in zip(found, wanted)]


def follow(run: Callable[..., tuple[Tensor, Tensor]], q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None,
           sinks: Tensor | None = None, *others: Any) -> tuple[Tensor, Tensor]:
    """What `run` makes of the arguments of attn::forward, with a gradient. Arguments at the end may be left out, as
    PyTorch's dispatcher does with those that are their defaults."""
    return _any_attention(q, k, v, mask, sinks, others + _DEFAULTS[2 + len(others):], run)


def follow_plain(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, sinks: Tensor | None = None,
                 *others: Any) -> tuple[Tensor, Tensor]:
    """attn::forward of plain tensors, with a gradient."""
    settings = kernels.native_settings(mask, sinks, *others)
    if settings.keys() <= LEAN:
        return _lean_with_statistics(q, k, v, settings)
    return _plain_with_statistics(q, k, v, mask, sinks, settings)


def refusing(operator: str, instead: str) -> Callable[..., Any]:
    """For an operator without a gradient: what `run` makes of the arguments, which says so when it is differentiated.
    """

    def forward(ctx: Any, run: Callable[..., Any], *inputs: Any) -> Any:
        return run(*inputs)

    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        raise NotImplementedError(f"{operator} has no gradient: {instead}")

    function: Any = type("NoGradient", (_SingleLevelFunction,),
                         {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    apply: Callable[..., Any] = function.apply
    return apply
